"""Takes the events out of a piece of text that is not valid JSON as a whole; what cannot be read is counted.

Long runs are decoded at once and halved where they fail, so that sparse damage costs little; a single event that
fails is measured by its brackets, mended, or joined with what follows, and dropped at last. Whatever is intact is
kept, and no byte is looked at more than a bounded number of times.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Protocol

import msgspec
from msgspec import Struct, field

from rooftrace.trace.blocks import BLOCK, MAX_BLOCKS
from rooftrace.trace.rawevents import MALFORMED, ExactEvent
from rooftrace.trace.repair import read_intact, read_mended

if TYPE_CHECKING:
    from rooftrace.trace.events import Tally

_BOUNDARY = re.compile(rb"\}[\s,]*(?=\{)")
_GAP = re.compile(rb"[\s,\x00]*")
_ARRAY_END = re.compile(rb'(\})\s*,?\s*\]\s*(?=,\s*"|\}|\]|\Z)')
_ARRAY_CLOSES = re.compile(rb'\}\s*\]\s*(?:,\s*"|\})')
# Where an array ends behind one event and another begins before the next.
_ARRAYS_MEET = re.compile(rb"\}\s*\][\s,]*\[\s*\{")
# Where another document begins, written into this one: what follows the bracket are events again.
_HEADER = re.compile(rb'"traceEvents"\s{0,32}:\s{0,32}\[\s{0,32}(?=\{)')
_TOKEN = re.compile(rb'[{}\[\]"]|\\.', re.DOTALL)
# An event whose name holds unescaped quotes and `},{` may take this many fragments.
_MAX_JOIN = 6
# Nothing that a writer wrote as an event: a log line, a comment, a null.
TEXT_BETWEEN = "text between events"
# Runs shorter than this are decoded into the batch of single events: a part of every column costs more.
_RUN = 32
# Where the array may end inside a damaged last event: more candidates than this are arrays in arguments.
_MAX_ENDS = 8
# A damaged event longer than this is dropped: it is no event that any writer wrote.
_MAX_MEND = 2 << 20
# How far an event's brackets are followed, in all, as a multiple of the piece; then only this many bytes an event.
_SCANS = 4
_SHORT_SCAN = 4096
# How much text is mended beyond the fragments themselves, in all, as a multiple of the piece.
_JOINS = 2

_decode_exact = msgspec.json.Decoder(list[ExactEvent]).decode


class Sink(Protocol):
    """Where the events go."""

    repaired: Tally
    dropped: Tally

    def take_run(self, text: bytes) -> bool:
        """Take the text if it is a whole number of valid events."""

    def take_events(self, events: list[ExactEvent]) -> None:
        """Take events."""


class Salvage(Struct):
    """One damaged piece; after `run`, `tail` is where the text behind the array begins, `rest` what to read again.

    `proven` says whether the text begins, and then whether it ended, between two events of the array: elsewhere an
    object without a phase is part of a damaged event, and a bracket does not close the array.
    """

    text: bytes
    offset: int
    last: bool
    sink: Sink
    proven: bool = True
    tail: int | None = None
    rest: int | None = None
    _ends: array[int] = field(default_factory=lambda: array("q"))
    _batch: list[ExactEvent] = field(default_factory=list)
    _at: int = 0
    _scan_budget: int = 0
    _join_budget: int = 0

    def run(self) -> None:
        """Read the whole piece."""
        self._ends.extend(match.start() + 1 for match in _BOUNDARY.finditer(self.text))
        self._ends.append(len(self.text))
        self._scan_budget = _SCANS * len(self.text)
        self._join_budget = _JOINS * len(self.text)
        step = max(1, len(self._ends) - 1)
        self._go_on_from(0)
        while self._at < len(self.text) and self.tail is None and self.rest is None:
            if step > 1 and not self._take_run(step):
                step //= 2
            elif step > 1:
                step *= 2
            else:
                step = 2 if self._take_one() else 1
        self._flush()

    def _fragment_end(self, count: int) -> int:
        """End of the `count`-th fragment from here."""
        first = bisect_right(self._ends, self._at)
        return self._ends[min(first + count, len(self._ends)) - 1]

    def _take_run(self, count: int) -> bool:
        end = self._fragment_end(count)
        run = self.text[self._at : end]
        if count >= _RUN:
            self._flush()
            taken = self.sink.take_run(run)
        else:
            taken = self._decode_small(run)
        if taken:
            self._go_on_from(end)
        return taken

    def _decode_small(self, run: bytes) -> bool:
        try:
            self._batch += _decode_exact(b"[" + run + b"]")
        except MALFORMED:
            return False
        return True

    def _take_one(self) -> bool:
        """Read one event from here, or drop it; False where it had to be dropped."""
        start = self._at
        closing, ran_off = None, False
        end = self._fragment_end(1)
        event = read_intact(self.text[start:end])
        if event is not None and not (event.ph or self.proven):  # a part of the damaged event before
            self._go_on_from(end)
            return False
        header = _HEADER.search(self.text, start, end) if event is None else None
        if event is None and self._take_before_array_end(start, end, header):
            return True
        if header:
            self._drop_up_to_events(start, header.end())
            return False
        event = event or self._mend_balanced(start, end)
        if event is None:
            closing, ran_off = self._closing_bracket(start)
            event, end = self._read_damaged(start, end, closing)
        if event is not None:
            self._batch.append(event)
            self.proven = self.proven or bool(event.ph)
            self._go_on_from(end)
            return True
        if self._may_go_on(start, ran_off=ran_off):
            self.rest = start
        elif ran_off and not self._event_follows(start):  # nothing but this event is left, and it does not end
            self._drop(start, len(self.text), ran_off=True)
        else:
            self._drop(start, self._fragment_end(1), ran_off=ran_off)
        return False

    def _read_intact(self, start: int, end: int) -> ExactEvent | None:
        event = read_intact(self.text[start:end])
        return event if event is not None and (event.ph or self.proven) else None

    def _read_damaged(self, start: int, end: int, closing: int | None) -> tuple[ExactEvent | None, int]:
        """The event and its end: as its brackets delimit it, as a fragment, before the array's end, or joined."""
        if closing is not None and closing != end:
            event = self._read_intact(start, closing)
            if event is not None:
                return event, closing
        ends = [match.end(1) for match in self._array_ends(start, end)] if end - start <= _MAX_MEND else []
        # With the array's end in it, the fragment as a whole is more than an event.
        whole = [] if ends and end == len(self.text) and closing != end else [end]
        candidates = [*whole, *([closing] if closing not in (None, end) else []), *ends]
        for candidate in candidates:
            event = self._mend(start, candidate)
            if event is not None:
                return event, candidate
        return self._read_joined(start, end) if closing != end else (None, end)

    def _take_before_array_end(self, start: int, end: int, header: re.Match[bytes] | None) -> bool:
        """Take the intact event behind which an array ends and another one begins, in an array or with a header.

        Arrays in an array are read on; what follows a document is its tail.
        """
        meet = None if header else _ARRAYS_MEET.search(self.text, start, end)
        if not (meet or (header and _ARRAY_CLOSES.search(self.text, start, header.start()))):
            return False
        closing, _ = self._closing_bracket(start)
        event = self._read_intact(start, closing) if closing is not None else None
        if event is None or closing is None or self.text[closing:end].lstrip()[:1] != b"]":
            return False
        self._batch.append(event)
        self.proven = True
        if meet and meet.start() == closing - 1:
            self.sink.dropped.add(TEXT_BETWEEN, 1, self.offset + closing)
            closing = meet.end() - 1
        self._go_on_from(closing)
        return True

    def _mend_balanced(self, start: int, end: int) -> ExactEvent | None:
        """The mended fragment, where its braces say that it is whole: nearly all damage is of this kind."""
        balanced = self.text.count(b"{", start, end) == self.text.count(b"}", start, end)
        return self._mend(start, end) if balanced else None

    def _mend(self, start: int, end: int) -> ExactEvent | None:
        if end - start > _MAX_MEND:
            return None
        return read_mended(self.text[start:end].rstrip(b" \t\r\n,\x00"), self.offset + start, self.sink.repaired)

    def _read_joined(self, start: int, end: int) -> tuple[ExactEvent | None, int]:
        """The event whose damaged text holds what looks like a boundary; never across an intact event."""
        first = bisect_right(self._ends, start)
        for index in range(first + 1, min(first + _MAX_JOIN, len(self._ends))):
            begin, end = self._ends[index - 1], self._ends[index]
            self._join_budget -= end - start
            if self._join_budget < 0 or self._is_event(begin, end):
                break
            event = self._mend(start, end)
            if event is not None:
                return event, end
        return None, end

    def _is_event(self, begin: int, end: int) -> bool:
        """Whether a whole event, and not a part of one, lies here behind a boundary."""
        gap = _GAP.match(self.text, begin)
        begin = gap.end() if gap else begin
        event = read_intact(self.text[begin:end])
        if event is None:  # it may hold what looks like a boundary, or be followed by the array's end
            event = read_intact(self.text[begin : self._closing_bracket(begin)[0] or begin])
        return event is not None and bool(event.ph)

    def _array_ends(self, start: int, end: int) -> list[re.Match[bytes]]:
        """Where the array may end in this text: the first and the last few candidates."""
        found = list(islice(_ARRAY_END.finditer(self.text, start, end), _MAX_ENDS))
        if len(found) == _MAX_ENDS:
            near = max(found[-1].end(), end - _SHORT_SCAN)
            found += list(_ARRAY_END.finditer(self.text, near, end))[-_MAX_ENDS:]
        return found

    def _closing_bracket(self, start: int) -> tuple[int | None, bool]:
        """End of the object that begins here, by its brackets outside strings; else whether the text ends in it."""
        limit = min(len(self.text), start + max(self._scan_budget, _SHORT_SCAN))
        depth, in_string = 0, False
        for match in _TOKEN.finditer(self.text, start, limit):
            token = match.group()
            if token == b'"':
                in_string = not in_string
            elif in_string or len(token) > 1:
                continue
            elif token in b"{[":
                depth += 1
            else:
                depth -= 1
                if depth == 0:
                    self._scan_budget -= match.end() - start
                    return match.end(), False
        self._scan_budget -= limit - start
        return None, limit == len(self.text)

    def _may_go_on(self, start: int, *, ran_off: bool) -> bool:
        """Whether the event that begins here may end in the next piece: no whole event follows it in this one."""
        if self.last or len(self.text) - start >= MAX_BLOCKS * BLOCK:
            return False
        near_end = bisect_right(self._ends, start) + _MAX_JOIN > len(self._ends)
        return (ran_off or near_end) and not self._event_follows(start)

    def _event_follows(self, start: int) -> bool:
        """Whether a whole event begins within the next fragments."""
        first = bisect_right(self._ends, start)
        following = range(first + 1, min(first + _MAX_JOIN, len(self._ends)))
        return any(self._is_event(self._ends[at - 1], self._ends[at]) for at in following)

    def _drop(self, start: int, end: int, *, ran_off: bool) -> None:
        """Count the unreadable event; behind it, the array may end."""
        fragment = self.text[start:end]
        array_end = self._array_end_behind(start, end, ran_off=ran_off) if self.last else None
        cut_short = self.last and ran_off and end == len(self.text) and array_end is None
        reason = "event cut short by the end of the file" if cut_short else "unreadable event"
        if fragment.strip(b" \t\r\n,\x00") and (self.proven or b'"ph"' in fragment):  # not a part of the one before
            self.sink.dropped.add(reason, 1, self.offset + start)
        self.proven = False
        if array_end is None:
            self._go_on_from(end)
        else:
            self.tail = array_end

    def _drop_up_to_events(self, start: int, end: int) -> None:
        """Count the beginning of another document, in which events follow."""
        self.sink.dropped.add("beginning of another trace: several ranks wrote this file", 1, self.offset + start)
        self.proven = True
        self._go_on_from(end)

    def _array_end_behind(self, start: int, end: int, *, ran_off: bool) -> int | None:
        """The first bracket in the fragment that is followed by the rest of an object, or by nothing."""
        final = end == len(self.text)
        ends = self._array_ends(start, end)
        for match in ends:
            tail = self.text[match.end() :].strip(b" \t\r\n\x00,")
            if (ran_off and not tail.startswith(b'"')) or not (tail or final):
                continue  # brackets alone may as well be the event's own
            try:
                msgspec.json.decode(b"{" + tail + (b"" if tail else b"}"), type=dict[str, msgspec.Raw])
            except MALFORMED:
                continue
            return match.end()
        return ends[-1].end() if final and ends and not ran_off else None

    def _go_on_from(self, end: int) -> None:
        """Set the position to the next event; a bracket behind an event closes the array."""
        gap = _GAP.match(self.text, end)
        at = gap.end() if gap else end
        following = self.text[at : at + 1]
        if following == b"]" and self.proven:
            self.tail = at + 1
        elif following not in (b"{", b""):
            found = self.text.find(b"{", at)
            found = len(self.text) if found < 0 else found
            is_event = b'"ph"' in self.text[at:found]  # without its bracket
            reason = "unreadable event" if is_event else TEXT_BETWEEN
            self.sink.dropped.add(reason, 1 if self.proven or is_event else 0, self.offset + at)
            self.proven = self.proven and not is_event
            at = found
        self._at = at

    def _flush(self) -> None:
        if self._batch:
            self.sink.take_events(self._batch)
            self._batch = []
