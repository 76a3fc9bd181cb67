"""Cuts a stream of JSON into its envelope and pieces of whole events.

The array of events is found once; from there the stream is cut at the last ``},`` that is followed by ``{``. The
decoder proves each cut: a piece that parses as a JSON array was cut at top level. What does not parse is handed to
`salvage`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

import msgspec
from msgspec import Struct

from rooftrace.errors import NotATrace
from rooftrace.trace.rawevents import MALFORMED

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
_ARRAY_START = re.compile(_KEY)
# What comes first in an array tells whether it is that of the events, or holds a document that has it.
_PHASE_OR_START = re.compile(rb'"ph"\s{0,32}:|' + _KEY)
# An envelope is looked for a phase or another array so far; one with longer log lines holds no document.
_LOOK = 1 << 20
_MAX_NESTED = 16
_BOUNDARY = re.compile(rb"\}\s*,\s*(?=\{)")
# Longer than what a pattern above may span, so that one broken by the end of a chunk is found with the next.
_SPAN = 256
_BOM = b"\xef\xbb\xbf"
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)|[{}]', re.DOTALL)


class Head(Struct, frozen=True):
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
        found = _find_array(buffer, searched)
        if found is not None and found.is_sure and len(buffer) - found.end >= _SPAN:
            return _head(buffer, found)
        searched = max(0, len(buffer) - 2 * _SPAN) if found is None else found.begin
        if len(buffer) > MAX_HEAD:
            break
    found = _find_array(buffer, searched)
    if found is not None:
        return _head(buffer, found)
    start = bytes(buffer[:65536])
    raise NotATrace(_no_events(start, name), hint=_no_events_hint(start))


class _Array(Struct, frozen=True):
    """Where an array begins to be told and where its content begins; where the text before it ends.

    `is_sure`: what follows has shown that the array is the one of the events. `is_document`: nothing is around it.
    """

    begin: int
    end: int
    text_end: int
    is_sure: bool
    is_document: bool


def _find_array(buffer: bytearray, searched: int) -> _Array | None:
    """The array of the events: of arrays in one another the innermost, and none that another follows at once."""
    document = _ARRAY_DOCUMENT.match(buffer)
    match = document or _ARRAY_START.search(buffer, searched)
    if match is None:
        return None
    begin = text_end = match.start()
    for _ in range(_MAX_NESTED):
        end = match.end()
        told = _PHASE_OR_START.search(buffer, end, end + _LOOK)
        if told is None or told.group().startswith(b'"ph"'):
            is_sure = told is not None or len(buffer) >= end + _LOOK
            return _Array(begin, end, text_end, is_sure=is_sure, is_document=match is document)
        if buffer[end : told.start()].strip() != b"{":  # it has a header of its own
            text_end = told.start()
        match = told
    return _Array(begin, match.end(), text_end, is_sure=True, is_document=False)


def _head(buffer: bytearray, array: _Array) -> Head:
    rest = bytes(buffer[array.end :])
    if array.is_document:
        return Head(b"", "array", rest, array.end)
    text = bytes(buffer[: array.text_end]).removeprefix(_BOM)
    return Head(_innermost(text) or b"{", "object", rest, array.end)


def _innermost(text: bytes) -> bytes:
    """The header without the objects and arrays around it, where that alone makes it valid."""
    if len(text) > _LOOK or _is_open_object(text):
        return text
    opened: list[int] = []
    for token in _TOKEN.finditer(text):
        if token.group() == b"{":
            opened.append(token.start())
        elif token.group() == b"}" and opened:
            opened.pop()
    inner = text[opened[-1] :] if opened else text
    return inner if _is_open_object(inner) else text


def _is_open_object(text: bytes) -> bool:
    try:
        msgspec.json.decode(text.rstrip(b", \t\r\n") + b"}", type=dict[str, msgspec.Raw])
    except MALFORMED:
        return False
    return True


_PYTHON = re.compile(rb"\s*(?:\[\s*)?\{\s*'\w+'\s*:")
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
    if _PYTHON.match(head):
        return f"`{name}` is Python's text of a dict, not JSON"
    return f"`{name}` is JSON without `traceEvents`"


def _no_events_hint(head: bytes) -> str:
    if _PYTHON.match(head):
        return "Write it with `json.dump` instead of `print` or `str`"
    if len(head) < 65536 and not head.rstrip().endswith(b"}"):
        return "The file ends before its events; capture again and let the profiler finish writing"
    return "Give the Chrome trace that torch.profiler wrote (export_chrome_trace)"


class Piece(Struct, frozen=True):
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
