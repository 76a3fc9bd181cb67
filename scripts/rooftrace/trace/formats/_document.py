"""A JSON document as a whole: for formats whose tables of names may stand behind the records that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rooftrace.errors import NotATrace
from rooftrace.trace.rawevents import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source

# A record takes about 300 bytes of text and 1 kB of memory.
MAX_BYTES = 4 << 30


def decoded(source: Source, progress: Callable[[int], None] | None = None) -> Any:
    """The value of the document; names in it may hold bytes that are no UTF-8."""
    text = whole_text(source, progress)
    try:
        return msgspec.json.decode(text)
    except MALFORMED as error:
        problem: Exception = error
    try:
        return msgspec.json.decode(text.decode("utf-8", "replace").encode())
    except MALFORMED:
        raise NotATrace(
            f"`{source.path.name}` is damaged or cut short: {str(problem)[:120]}",
            hint="Let the profiler finish writing, or copy the file again",
        ) from None


def whole_text(source: Source, progress: Callable[[int], None] | None = None, limit: int = MAX_BYTES) -> bytes:
    """All content of the file; `NotATrace` beyond the limit."""
    content = bytearray()
    for chunk in source.chunks():
        content += chunk
        if progress is not None:
            progress(source.content_bytes)
        if len(content) > limit:
            raise NotATrace(
                f"`{source.path.name}` holds more than {limit >> 30} GiB, too much for this format",
                hint="Record fewer steps",
            )
    return bytes(content)
