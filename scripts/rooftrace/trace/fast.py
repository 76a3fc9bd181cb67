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


def read(
    source: Source, progress: Callable[[int], None] | None = None, divided: stretches.Division | None = None
) -> Trace:
    """All events of a trace file, in columns, with times as they stand in the file (ns, not yet based).

    `divided`: how its content is divided among processes; chosen by its size unless given.
    """
    path = source.path
    with stretches.helpers_of(path) if divided is None else stretches.helpers(path, divided) as helpers:
        return _read(source, progress, helpers, _Reader())


def read_adding_zeros(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """The same, of a file whose times lack the zeros of their fractions (see `unpadded`)."""
    return _read(source, progress, stretches.NONE, _Reader(add_zeros=True))


def _read(source: Source, progress: Callable[[int], None] | None, helpers: Helpers, reader: _Reader) -> Trace:
    walk = _Walk(source, progress)
    walk.read(reader, helpers.places[0] if helpers.places else None)
    if helpers.places and not reader.is_between_events():
        walk.read(reader, None)
    elif helpers.places:
        states = _read_with(helpers, walk)
        number = _join(reader, states, len(helpers.places))
        if number is not None:
            del states
            source.rewind()
            walk = _Walk(source, progress)
            for place in helpers.places[:number]:
                walk.skip_to(place)
            walk.read(reader, None)
    if not reader.closed and source.truncated is None:
        source.truncated = "the event array is not closed"
    header = parse_envelope(walk.head.text, bytes(reader.tail))
    return reader.columns.finish(header, walk.head.layout)


def _read_with(helpers: Helpers, walk: _Walk) -> dict[int, ReaderState]:
    """What was read of each stretch but the first, by number: here, as long as there are some that nobody reads."""
    states = walk.read_those(helpers.places, helpers.take)
    walk.skip_to(None)  # for the digest, and for whether it is cut short
    return states | helpers.results()


def _join(reader: _Reader, states: dict[int, ReaderState], count: int) -> int | None:
    """Put the stretches behind what the reader has read; the number of the first that has to be read here, if any."""
    for number in range(1, count + 1):
        if number not in states or not reader.is_between_events():
            return number
        reader.absorb(states.pop(number))
    return None


class _Walk:
    """The content of a file from its first event on, gone through once."""

    def __init__(self, source: Source, progress: Callable[[int], None] | None, *, digest: bool = True) -> None:
        self._source = source
        self._progress = progress
        chunks = source.chunks(digest=digest)
        self.head = blocks.split_head(chunks, source.path.name)
        self.content = blocks.Stretches(self.head.rest, chunks, self.head.offset)

    def read(self, reader: _Reader, place: int | None) -> None:
        """Read up to the first boundary behind a place; None: all that is left."""
        content = self.content
        for piece in blocks.cut_pieces(b"", content.up_to(place), content.offset, final=place is None):
            reader.take(piece)
            self._tell()

    def skip_to(self, place: int | None) -> None:
        """Pass over what is read by others."""
        for _ in self.content.up_to(place):
            self._tell()

    def read_those(self, places: Sequence[int], take: Callable[[], int | None]) -> dict[int, ReaderState]:
        """Read whole stretches, by number, as long as `take` gives some, in their order."""
        states, behind = {}, 1  # the stretch that the walk stands before
        while (number := take()) is not None:
            for place in places[behind:number]:
                self.skip_to(place)
            reader = _Reader()
            self.read(reader, [*places, None][number])
            states[number] = reader.state()
            behind = number + 1
        return states

    def _tell(self) -> None:
        if self._progress is not None:
            self._progress(self._source.content_bytes)


def read_stretches(path: Path, places: Sequence[int], number: int, tokens: int | None) -> dict[int, ReaderState]:
    """What a reader has read after the stretch of this number, begun between two events, and after those it took."""
    source = open_source(path, sys.maxsize)  # the reader that puts the stretches together keeps to the limit
    walk = _Walk(source, None, digest=False)
    head = walk.head
    if not source.container and head.offset + len(head.rest) < places[0]:  # what lies before need not be looked at
        walk.content = blocks.Stretches(b"", source.chunks_from(places[0]), places[0])
    walk.skip_to(places[0])
    own = iter([number])
    return walk.read_those(places, lambda: next(own, None) or stretches.take(tokens))


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
