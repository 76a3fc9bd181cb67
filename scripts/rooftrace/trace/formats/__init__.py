"""Files of other profilers, recognised by their content: one module a format, found by folder.

A format's module has `NAME`, `recognises(head)`, which looks at the first bytes of the innermost content, and
`read(source, progress)`, which gives the same columns as the reader of Kineto's files. Modules that begin with an
underscore are shared ground. What no format here can read but `refusals` knows is refused by its name.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache
from typing import TYPE_CHECKING, Protocol, cast

from rooftrace.trace.formats.refusals import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

# What is looked at: the process names of a Chrome trace and the first lines of an export stand within it.
HEAD = 1 << 18


class Format(Protocol):
    """What a format's module has."""

    NAME: str

    def recognises(self, head: bytes) -> bool:
        """Whether a content that begins so is of this format."""

    def read(self, source: Source, progress: Callable[[int], None] | None = None) -> Trace:
        """All its events, with times as they stand in the file (ns, not yet based)."""


def find(source: Source) -> Format | None:
    """The format of a file; None for one of Kineto or for what no format knows.

    `NotATrace` for a file of a known kind that holds no times of a GPU or a host.
    """
    head = head_of(source)
    found = next((form for form in formats() if form.recognises(head)), None)
    source.any_content = found is not None
    if found is None:
        refuse(head, source.path.name)
    return found


def head_of(source: Source) -> bytes:
    """The first bytes of the innermost content; the source is as it was."""
    source.any_content = True
    head = bytearray()
    for chunk in source.chunks(digest=False):
        head += chunk
        if len(head) >= HEAD:
            break
    source.rewind()
    return bytes(head)


@cache
def formats() -> tuple[Format, ...]:
    """All modules of this folder that are formats, by name."""
    names = sorted(info.name for info in pkgutil.iter_modules(__path__) if not info.name.startswith("_"))
    modules = [importlib.import_module(f"{__name__}.{name}") for name in names]
    return tuple(cast("Format", module) for module in modules if hasattr(module, "recognises"))
