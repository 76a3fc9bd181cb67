"""The fast reader: pieces of the event array, decoded by msgspec straight into typed records, then into columns."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from rooftrace import stretches
from rooftrace.trace import blocks
from rooftrace.trace.columns import Columns
from rooftrace.trace.containers import open_source
from rooftrace.trace.envelope import parse_envelope
from rooftrace.trace.eventtypes import typed, untyped
from rooftrace.trace.rawevents import MALFORMED, ExactEvent, FastEvent, StrictEvent
from rooftrace.trace.salvage import Salvage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rooftrace.stretches import Helpers
    from rooftrace.trace.columns import ColumnsState
    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

# Of what follows the events, this much is kept: keys that are used are short, Chrome's stack frames are not.
MAX_TAIL = 16 << 20
# After so many pieces in a row that have something unusual in them, all are taken to have.
_TYPED_TRIES = 8

_SECOND = "second trace in the same file"
_LEFT = "event behind the end of the trace: several ranks wrote this file"
_SECOND_ARRAY = re.compile(rb'"traceEvents"\s*:\s*\[\s*\{')
_EVENT = re.compile(rb'\{\s{0,32}"ph"\s{0,32}:\s{0,32}"X"')
_decode_fast = msgspec.json.Decoder(list[FastEvent]).decode
_decode_strict = msgspec.json.Decoder(list[StrictEvent]).decode
_decode_exact = msgspec.json.Decoder(list[ExactEvent | None]).decode


def read(source: Source, progress: Callable[[int], None] | None = None, places: Sequence[int] | None = None) -> Trace:
    """All events of a trace file, in columns, with times as they stand in the file (ns, not yet based).

    `places`: where its content is divided among processes, in bytes; chosen by its size unless given.
    """
    path = source.path
    try:
        with stretches.helpers_of(path) if places is None else stretches.helpers(path, places) as helpers:
            return _read(source, progress, helpers, _Reader())
    except _HelperFailed:
        source.rewind()
        return _read(source, progress, stretches.NONE, _Reader())


def read_adding_zeros(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """The same, of a file whose times lack the zeros of their fractions (see `unpadded`)."""
    return _read(source, progress, stretches.NONE, _Reader(add_zeros=True))


class _HelperFailed(Exception):  # noqa: N818 - caught above, never seen
    """A stretch that was left to a helper was not read."""


def _read(source: Source, progress: Callable[[int], None] | None, helpers: Helpers, reader: _Reader) -> Trace:
    chunks = source.chunks()
    head = blocks.split_head(chunks, source.path.name)
    content = blocks.Stretches(head.rest, chunks, head.offset)
    for number, place in enumerate([*helpers.places, None]):
        if number and reader.is_between_events() and not helpers.has_failed(number):
            for _ in content.up_to(place):  # for the digest
                _tell(progress, source)
            state = helpers.result(number)
            if state is None:
                raise _HelperFailed
            reader.absorb(state)
            continue
        for piece in blocks.cut_pieces(b"", content.up_to(place), content.offset, final=place is None):
            reader.take(piece)
            _tell(progress, source)
    if not reader.closed and source.truncated is None:
        source.truncated = "the event array is not closed"
    header = parse_envelope(head.text, bytes(reader.tail))
    return reader.columns.finish(header, head.layout)


def _tell(progress: Callable[[int], None] | None, source: Source) -> None:
    if progress is not None:
        progress(source.content_bytes)


def read_stretch(path: Path, places: Sequence[int], number: int) -> ReaderState:
    """What a reader has read after the stretch of this number, begun between two events."""
    source = open_source(path, sys.maxsize)  # the reader that puts the stretches together keeps to the limit
    chunks = source.chunks(digest=False)
    head = blocks.split_head(chunks, path.name)
    content = blocks.Stretches(head.rest, chunks, head.offset)
    if not source.container and head.offset + len(head.rest) < places[0]:  # what lies before need not be looked at
        content = blocks.Stretches(b"", source.chunks_from(places[0]), places[0])
    for place in places[:number]:
        for _ in content.up_to(place):
            pass
    end = [*places, None][number]
    reader = _Reader()
    for piece in blocks.cut_pieces(b"", content.up_to(end), content.offset, final=end is None):
        reader.take(piece)
    return reader.state()


class ReaderState(Struct, frozen=True):
    """All that a reader knows, to go from one process to another."""

    columns: ColumnsState
    tail: bytes
    tail_end: int
    second: bool
    closed: bool
    times_are_exact: bool
    proven: bool
    pending: bytes
    pending_offset: int
    retry_at: int


class _Reader:
    """Feeds pieces to the columns until the array ends; the rest is the tail."""

    def __init__(self, *, add_zeros: bool = False) -> None:
        self.columns = Columns(add_zeros=add_zeros)
        self.repaired = self.columns.repaired
        self.dropped = self.columns.dropped
        self.tail = bytearray()
        self._tail_end = 0
        self._second = False
        self.closed = False
        self._times_are_exact = not add_zeros
        self._typed_pays = _TYPED_TRIES
        self._proven = True
        self._pending = bytearray()
        self._pending_offset = 0
        self._retry_at = 0

    def is_between_events(self) -> bool:
        """Whether all so far is read and the array goes on: what follows can be read on its own."""
        return self._proven and not self.closed and not self._pending

    def state(self) -> ReaderState:
        """What was read; the reader is empty then."""
        return ReaderState(
            columns=self.columns.release(),
            tail=bytes(self.tail),
            tail_end=self._tail_end,
            second=self._second,
            closed=self.closed,
            times_are_exact=self._times_are_exact,
            proven=self._proven,
            pending=bytes(self._pending),
            pending_offset=self._pending_offset,
            retry_at=self._retry_at,
        )

    def absorb(self, state: ReaderState) -> None:
        """Go on behind what another reader has read from here."""
        self.columns.absorb(state.columns)
        self.tail += state.tail
        self._tail_end = state.tail_end
        self._second = state.second
        self.closed = state.closed
        self._times_are_exact = self._times_are_exact and state.times_are_exact
        self._proven = state.proven
        self._pending += state.pending
        self._pending_offset = state.pending_offset
        self._retry_at = state.retry_at

    def take(self, piece: blocks.Piece) -> None:
        """Take the next piece of the document."""
        if self.closed:
            self._take_tail(piece.text, piece.offset)
            return
        text, offset = piece.text, piece.offset
        if self._pending:
            self._pending += _between(self._pending_offset + len(self._pending), offset) + text
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
        return (self._typed_pays > 0 and self._take_typed(array)) or self._take_untyped(array)

    def _take_typed(self, array: bytes) -> bool:
        block = None
        if self._times_are_exact:
            block = typed(array, times_are_text=False)
            if block is not None and self.columns.add_fast(block):
                self._typed_pays = _TYPED_TRIES
                return True
            self._times_are_exact = block is None
        if not self._times_are_exact:
            block = typed(array, times_are_text=True)
            if block is not None:
                self.columns.add_strict(block)
                self._typed_pays = _TYPED_TRIES
                return True
        self._typed_pays -= 1
        return False

    def _take_untyped(self, array: bytes) -> bool:
        if self._times_are_exact:
            try:
                if self.columns.add_fast(untyped(_decode_fast(array))):
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
            self.columns.add_strict(untyped(_decode_strict(array)))
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
        second, left = _SECOND_ARRAY.search(text), _EVENT.search(text)
        self._second = self._second or second is not None
        first = second or left
        if first is not None:
            count = sum(1 for _ in _EVENT.finditer(text))
            self.dropped.add(_SECOND if self._second else _LEFT, max(count, 1), offset + first.start())
        if len(self.tail) < MAX_TAIL:
            self.tail += (_between(self._tail_end, offset) if self.tail else b"") + text
        self._tail_end = offset + len(text)


def _between(end: int, start: int) -> bytes:
    """What stood between two pieces: a comma and spaces, unless one was cut for its length."""
    return b",".ljust(start - end) if start > end else b""
