"""Cuts a stream of JSON into its envelope and pieces of whole events.

The array of events is found once; from there the stream is cut at the last ``},`` that is followed by ``{``. The
decoder proves each cut: a piece that parses as a JSON array was cut at top level. What does not parse is handed to
`salvage`.
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
# A piece is handed on as soon as it is this long; of the sizes tried from 2^18 to 2^23 the fastest.
BLOCK = 1 << 20
# Without a boundary in this many blocks the text is no list of events: it is handed on as it is, to bound memory.
MAX_BLOCKS = 32

_ARRAY_DOCUMENT = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[")
_KEY = rb'"traceEvents"\s{0,32}:\s{0,32}\['
_ARRAY_START = re.compile(_KEY + rb"(?:\s{0,32}\{\s{0,32}" + _KEY + rb")?")
_NESTED_START = re.compile(rb"(?:\xef\xbb\xbf)?\s*\[\s{0,32}\{\s{0,32}" + _KEY)
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
# Longer than what a pattern above may span, so that one broken by the end of a chunk is found with the next.
_SPAN = 256
_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class Head:
    """Everything before the first event; `offset` is where `rest` begins in the content."""

    text: bytes
    layout: Literal["object", "array"]
    rest: bytes
    offset: int


def split_head(chunks: Iterator[bytes], name: str) -> Head:
    """Read up to the event array; `NotATrace` if there is none."""
    buffer = bytearray()
    searched = 0
    for chunk in chunks:
        buffer += chunk
        if len(buffer) < _SPAN:
            continue
        head = _find_head(buffer, searched)
        if head is not None and len(head.rest) >= _SPAN:
            return head
        searched = max(0, len(buffer) - 2 * _SPAN)
        if len(buffer) > MAX_HEAD:
            break
    head = _find_head(buffer, searched)
    if head is not None:
        return head
    start = bytes(buffer[:65536])
    raise NotATrace(_no_events(start, name), hint=_no_events_hint(start))


def _find_head(buffer: bytearray, searched: int) -> Head | None:
    match = _ARRAY_DOCUMENT.match(buffer)
    nested = _NESTED_START.match(buffer) if match else None
    if nested:
        return Head(b"{", "object", bytes(buffer[nested.end() :]), nested.end())
    if match:
        return Head(b"", "array", bytes(buffer[match.end() :]), match.end())
    match = _ARRAY_START.search(buffer, searched)
    if match is None:
        return None
    text = bytes(buffer[: match.start()]).removeprefix(_BOM)
    return Head(text, "object", bytes(buffer[match.end() :]), match.end())


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


class Stretches:
    """Content that is read in stretches, each up to the first boundary at or behind a given place.

    Where a stretch ends depends on the content alone and not on how it comes in chunks: two processes that read the
    same file agree on it.
    """

    def __init__(self, rest: bytes, chunks: Iterator[bytes], offset: int) -> None:
        self.offset = offset
        self._rest = rest
        self._chunks = chunks

    def up_to(self, place: int | None) -> Iterator[bytes]:
        """The next stretch in chunks; `offset` is then where the one after it begins. None: all that is left."""
        while (chunk := self._rest or next(self._chunks, None)) is not None:
            self._rest = b""
            if place is not None and self.offset + len(chunk) > place:
                yield self._divide(bytearray(chunk), max(0, place - self.offset))
                return
            self.offset += len(chunk)
            yield chunk

    def _divide(self, buffer: bytearray, at: int) -> bytes:
        """What belongs to this stretch; a text without boundaries is cut as it is, to bound memory."""
        limit = at + MAX_BLOCKS * BLOCK
        while (match := _BOUNDARY.search(buffer, at, limit)) is None and len(buffer) < limit:
            chunk = next(self._chunks, None)
            if chunk is None:
                limit = len(buffer)
            else:
                buffer += chunk
        end, after = (match.start() + 1, match.end()) if match else (limit, limit)
        self._rest = bytes(buffer[after:])
        self.offset += after
        return bytes(buffer[:end])


def cut_pieces(rest: bytes, chunks: Iterator[bytes], offset: int, *, final: bool = True) -> Iterator[Piece]:
    """Pieces of the array and of what follows it; the last one holds the end of the document, if `final`."""
    buffer = bytearray(rest)
    searched = 0
    for chunk in chunks:
        buffer += chunk
        if len(buffer) < BLOCK:
            continue
        cut = last_boundary(buffer, searched)
        if cut is None and len(buffer) < MAX_BLOCKS * BLOCK:
            searched = max(0, len(buffer) - _SPAN)
            continue
        end, after = cut or (len(buffer), len(buffer))
        with memoryview(buffer) as view:  # a slice of the buffer itself would be one more copy
            text = bytes(view[:end])
        yield Piece(text, offset, last=False)
        del buffer[:after]
        offset, searched = offset + after, 0
    yield Piece(bytes(buffer), offset, last=final)


def last_boundary(buffer: bytearray, start: int) -> tuple[int, int] | None:
    """The last place between two events, from `start` on: (end of one, start of the next)."""
    at = len(buffer)
    while (at := buffer.rfind(b"}", start, at)) >= 0:
        match = _BOUNDARY.match(buffer, at)
        if match:
            return at + 1, match.end()
    return None
