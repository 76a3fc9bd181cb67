"""The fast reader: pieces of the event array, decoded by msgspec straight into typed records, then into columns."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace import blocks
from rooftrace.trace.columns import Columns
from rooftrace.trace.envelope import parse_envelope
from rooftrace.trace.rawevents import MALFORMED, ExactEvent, FastEvent, StrictEvent
from rooftrace.trace.salvage import Salvage

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

# Of what follows the events, this much is kept: keys that are used are short, Chrome's stack frames are not.
MAX_TAIL = 16 << 20

_SECOND_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[\s*\{')
_decode_fast = msgspec.json.Decoder(list[FastEvent]).decode
_decode_strict = msgspec.json.Decoder(list[StrictEvent]).decode
_decode_exact = msgspec.json.Decoder(list[ExactEvent | None]).decode


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events of a trace file, in columns, with times as they stand in the file (ns, not yet based)."""
    chunks = source.chunks()
    head = blocks.split_head(chunks, source.path.name)
    reader = _Reader()
    for piece in blocks.cut_pieces(head.rest, chunks, head.offset):
        reader.take(piece)
        if progress is not None:
            progress(source.content_bytes)
    if not reader.closed and source.truncated is None:
        source.truncated = "the event array is not closed"
    header = parse_envelope(head.text, bytes(reader.tail))
    return reader.columns.finish(header, head.layout)


class _Reader:
    """Feeds pieces to the columns until the array ends; the rest is the tail."""

    def __init__(self) -> None:
        self.columns = Columns()
        self.repaired = self.columns.repaired
        self.dropped = self.columns.dropped
        self.tail = bytearray()
        self.closed = False
        self._times_are_exact = True
        self._proven = True
        self._pending = bytearray()
        self._pending_offset = 0
        self._retry_at = 0

    def take(self, piece: blocks.Piece) -> None:
        """Take the next piece of the document."""
        if self.closed:
            self._take_tail(piece.text, piece.offset)
            return
        text, offset = piece.text, piece.offset
        if self._pending:
            gap = offset - self._pending_offset - len(self._pending)
            # Between two pieces stood a comma, unless one was cut for its length.
            self._pending += (b",".ljust(gap) if gap else b"") + text
            if len(self._pending) < self._retry_at and not piece.last:
                return
            text, offset = bytes(self._pending), self._pending_offset
            self._pending.clear()
        if self.take_run(text):
            self._proven = True
        else:
            self._salvage(text, offset, last=piece.last)

    def take_run(self, text: bytes) -> bool:
        """Take the text if it is a whole number of valid events."""
        array = b"[" + text + b"]"
        if self._times_are_exact:
            try:
                if self.columns.add_fast(_decode_fast(array)):
                    return True
                self._times_are_exact = False
            except msgspec.ValidationError:
                pass
            except MALFORMED:
                return False
        return self._take_exactly(array)

    def take_events(self, events: list[ExactEvent]) -> None:
        """Take events that were decoded one by one."""
        self.columns.add_exact(events)

    def _take_exactly(self, array: bytes) -> bool:
        try:
            self.columns.add_strict(_decode_strict(array))
        except msgspec.ValidationError:
            try:
                events = _decode_exact(array)
            except MALFORMED:
                return False
            self.columns.add_exact([event for event in events if event is not None])
        except MALFORMED:
            return False
        return True

    def _salvage(self, text: bytes, offset: int, *, last: bool) -> None:
        """Read a piece that is cut wrongly, damaged, or holds the array's end."""
        salvage = Salvage(text, offset, last, self, proven=self._proven)
        salvage.run()
        self._proven = salvage.proven
        if salvage.tail is not None:
            self.closed = True
            self._take_tail(text[salvage.tail :], offset + salvage.tail)
        elif salvage.rest is not None:
            # A cut inside a string or an argument: prove it with the next piece. An event longer than several
            # pieces is tried again only when its text has doubled, which keeps the work linear.
            self._pending += text[salvage.rest :]
            self._pending_offset = offset + salvage.rest
            self._retry_at = 2 * len(self._pending)

    def _take_tail(self, text: bytes, offset: int) -> None:
        second = _SECOND_ARRAY.search(text)
        if second:
            self.dropped.add("second trace in the same file", 1, offset + second.start())
        if len(self.tail) < MAX_TAIL:
            self.tail += text
