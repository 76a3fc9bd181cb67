"""Cuts a stream of JSON into its envelope and blocks of whole events.

The array of events is found once; from there the stream is cut at the last ``},`` that is followed by ``{``. The
decoder proves each cut: a piece that parses as a JSON array was cut at top level. What does not parse is handed to
`repair`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from rooftrace.errors import NotATrace

if TYPE_CHECKING:
    from collections.abc import Iterator

# Head of a document: this many bytes may precede the event array (device lists and log lines do).
MAX_HEAD = 256 << 20
BLOCK = 1 << 20

_ARRAY_START = re.compile(rb'"traceEvents"\s*:\s*\[\s*(?:\{\s*"traceEvents"\s*:\s*\[)?')
_NESTED_START = re.compile(rb'\s*\[\s*\{\s*"traceEvents"\s*:\s*\[')
_ARRAY_END = re.compile(rb'\}\s*,?\s*\]\s*(?=,\s*"|\}|\]|$)')
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
_OPEN = re.compile(rb"\s*\{")


@dataclass(frozen=True, slots=True)
class Head:
    """Everything before the first event."""

    text: bytes
    layout: Literal["object", "array"]
    rest: bytes


def split_head(chunks: Iterator[bytes], name: str) -> Head:
    """Read up to the event array; `NotATrace` if there is none."""
    buffer = bytearray()
    searched = 0
    for chunk in chunks:
        if not buffer:
            chunk = chunk.removeprefix(b"\xef\xbb\xbf")
        buffer += chunk
        start = buffer.lstrip()[:1] if searched == 0 else b"{"
        if start == b"[":
            return _array_head(bytes(buffer))
        match = _ARRAY_START.search(buffer, max(0, searched - 64))
        if match and match.end() < len(buffer):
            return Head(bytes(buffer[: match.start()]), "object", bytes(buffer[match.end() :]))
        searched = len(buffer)
        if searched > MAX_HEAD:
            break
    match = _ARRAY_START.search(buffer)
    if match:
        return Head(bytes(buffer[: match.start()]), "object", bytes(buffer[match.end() :]))
    raise NotATrace(_no_events(bytes(buffer[:65536]), name), hint=_no_events_hint(bytes(buffer[:65536])))


def _array_head(buffer: bytes) -> Head:
    nested = _NESTED_START.match(buffer)
    if nested:
        return Head(b"{", "object", buffer[nested.end() :])
    return Head(b"", "array", buffer[buffer.index(b"[") + 1 :])


# (key that tells the format, what the file is)
_OTHER_JSON = (
    (b'"rocprofiler-sdk-tool"', "a rocprofv3 result file"),
    (b'"viztracer_metadata"', "a VizTracer file"),
    (b'"device_traces"', "a PyTorch memory snapshot"),
    (b'"nodes"', "a PyTorch execution trace (the graph, without GPU times)"),
    (b'"weight_map"', "the index of a model checkpoint"),
    (b'"model_type"', "the configuration of a model"),
)


def _no_events(head: bytes, name: str) -> str:
    for key, what in _OTHER_JSON:
        if key in head:
            return f"`{name}` looks like {what}, not like a profiler trace: it has no `traceEvents`"
    return f"`{name}` is JSON without `traceEvents`"


def _no_events_hint(head: bytes) -> str:
    if len(head) < 65536 and not head.rstrip().endswith(b"}"):
        return "The file ends before its events; capture again and let the profiler finish writing"
    return "Give the Chrome trace that torch.profiler wrote (export_chrome_trace)"


@dataclass(frozen=True, slots=True)
class Piece:
    """Some whole events, without the brackets around them; `offset` counts from the start of the content."""

    text: bytes
    offset: int
    last: bool


def cut_pieces(rest: bytes, chunks: Iterator[bytes], offset: int) -> Iterator[Piece]:
    """Pieces of the array and of what follows it; the last one holds the end of the document.

    The consumer finds the array's end with `array_end`; from there on pieces are the tail's text.
    """
    buffer = rest
    for chunk in chunks:
        buffer = buffer + chunk if buffer else chunk
        if len(buffer) < BLOCK:
            continue
        cut = last_boundary(buffer, len(buffer))
        if cut is None:
            continue
        yield Piece(buffer[:cut], offset, last=False)
        buffer, offset = _after_comma(buffer, cut), offset + cut
    yield Piece(buffer, offset, last=True)


def last_boundary(buffer: bytes, end: int) -> int | None:
    """Position after the last `}` before `end` that is followed by a comma and `{`."""
    while (at := buffer.rfind(b"}", 0, end)) > 0:
        if _BOUNDARY.match(buffer, at):
            return at + 1
        end = at
        # Only a look at the near end: a piece without a boundary there is rare and grows by the next chunk.
        if len(buffer) - at > BLOCK:
            return None
    return None


def _after_comma(buffer: bytes, cut: int) -> bytes:
    return buffer[buffer.index(b",", cut) + 1 :]


def array_ends(text: bytes) -> Iterator[tuple[int, int]]:
    """Places where the event array may end: (end of the last event, start of the tail), first to last."""
    for match in _ARRAY_END.finditer(text):
        yield match.start() + 1, match.end()


def boundaries(text: bytes) -> Iterator[tuple[int, int]]:
    """Places between two events: (end of one, start of the next)."""
    for match in _BOUNDARY.finditer(text):
        yield match.start() + 1, match.end()


def starts_event(text: bytes) -> bool:
    """Whether the text begins with an object."""
    return _OPEN.match(text) is not None
