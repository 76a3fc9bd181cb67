"""The fast reader: blocks of events, decoded by msgspec straight into typed records, then into columns."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace import blocks, repair
from rooftrace.trace.columns import Columns
from rooftrace.trace.envelope import parse_envelope
from rooftrace.trace.rawevents import ExactEvent, FastEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

_MALFORMED = (msgspec.DecodeError, UnicodeDecodeError)
_decode_fast = msgspec.json.Decoder(list[FastEvent]).decode
_decode_exact = msgspec.json.Decoder(list[ExactEvent]).decode


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events of a trace file, in columns, with times as they stand in the file (ns, not yet based)."""
    chunks = source.chunks()
    head = blocks.split_head(chunks, source.path.name)
    reader = _Reader()
    for piece in blocks.cut_pieces(head.rest, chunks, len(head.text)):
        reader.take(piece)
        if progress is not None:
            progress(source.content_bytes)
    if not reader.closed and source.truncated is None:
        source.truncated = "the event array is not closed"
    header = parse_envelope(head.text, b"".join(reader.tail))
    return reader.columns.finish(header, head.layout)


class _Reader:
    """Feeds pieces to the columns until the array ends; the rest is the tail."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.tail: list[bytes] = []
        self.closed = False
        self._pending = b""
        self._pending_offset = 0

    def take(self, piece: blocks.Piece) -> None:
        if self.closed:
            self.tail.append(piece.text)
            return
        text, offset = piece.text, piece.offset
        if self._pending:
            text, offset = self._pending + b"," + text, self._pending_offset
            self._pending = b""
        if self._decode(text):
            return
        if self._decode_up_to_end(text):
            return
        if not piece.last and len(text) < 4 * blocks.BLOCK:
            self._pending, self._pending_offset = (
                text,
                offset,
            )  # a cut inside a string: prove it with the next piece
            return
        self._salvage(text, offset, last=piece.last)

    def _decode(self, text: bytes) -> bool:
        """Take the text if it is a whole number of valid events."""
        array = b"[" + text + b"]"
        try:
            events = _decode_fast(array)
        except msgspec.ValidationError:
            return self._decode_exactly(array)
        except _MALFORMED:
            return False
        return self.columns.add_fast(events) or self._decode_exactly(array)

    def _decode_exactly(self, array: bytes) -> bool:
        try:
            events = _decode_exact(array)
        except _MALFORMED:
            return False
        self.columns.add_exact(events)
        return True

    def _decode_up_to_end(self, text: bytes) -> bool:
        """Take the text up to the bracket that closes the array, if one of the candidates proves to be it."""
        for end, tail in blocks.array_ends(text):
            if self._decode(text[:end]):
                self.closed = True
                self.tail.append(text[tail:])
                return True
        if text.lstrip().startswith(b"]"):
            self.closed = True
            self.tail.append(text.lstrip()[1:])
            return True
        return False

    def _salvage(self, text: bytes, offset: int, *, last: bool) -> None:
        """Read a damaged piece event by event; the last one may hold the array's end."""
        if last:
            ends = list(blocks.array_ends(text))
            if ends:
                self.closed = True
                self.tail.append(text[ends[-1][1] :])
                text = text[: ends[-1][0]]
        events = repair.salvage(text, offset, self.columns.repaired, self.columns.dropped)
        self.columns.add_exact(events)
