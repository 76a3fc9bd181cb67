"""Computes every time of a run from its constraints, block by block, many scenarios at once.

Threads and queues both follow ``x[i] = max(x[i-1] + a[i], b[i])``. With ``A`` the running sum of ``a`` that is
``x[i] = A[i] + max(x[-1], max over j <= i of (b[j] - A[j]))``: a running sum and a running maximum over columns.
Tables have a row an event and a column a scenario; times are integer ns, so the order of sums does not matter.
Where threads and queues wait for one another all the time, blocks hold a few events each: these, and events of which
the recurrence does not hold, are computed one by one.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from rooftrace.replay.constraints import NEVER
from rooftrace.replay.events import Step

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rooftrace.replay.blocks import Order
    from rooftrace.replay.program import Program
    from rooftrace.replay.scenarios import Changes, Compiler, Span


# So many events take about as long one by one as at once (measured).
_FEW = 12


class Kept(Struct, frozen=True, kw_only=True):
    """Times of the first scenario, where all are asked for, ns."""

    event: NDArray[np.int64]  # by position in `Events`
    held: NDArray[np.bool_]  # by position: whether a call that blocks really waited
    start: NDArray[np.int64]  # of activities
    end: NDArray[np.int64]


class State(Struct, kw_only=True):
    """Times so far, one entry a scenario."""

    launched: NDArray[np.int64]  # launch -> when its queue took it
    known: NDArray[np.int64]  # slot -> time
    shift: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # thread -> replayed less measured time
    reach: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> end of everything so far
    first: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> its first start
    last: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> start of its last activity
    kept: Kept | None = None


def run(program: Program, compiler: Compiler, count: int, kept: Kept | None = None) -> State:
    """One pass over a run in some scenarios."""
    state = State(
        launched=np.zeros((program.launches, count), dtype=np.int64),
        known=np.zeros((program.slots, count), dtype=np.int64),
        kept=kept,
    )
    blocks = program.blocks
    threads, queues = _Threads(program, state, count), _Queues(program, state, count)
    for first, last in pairwise(blocks.stretches.tolist()):
        events, activities = _ranks(blocks.threads, first, last), _ranks(blocks.queues, first, last)
        changes = compiler.stretch(events, activities)
        threads.stretch(events, changes)
        queues.stretch(activities, changes)
        for block in range(first, last):
            threads.block(block)
            queues.block(block)
    return state


def _ranks(order: Order, first: int, last: int) -> tuple[int, int]:
    """Ranks from the first of some blocks up to the last."""
    low, high = order.bounds[[first, last]].tolist()
    return (int(order.low[low]), int(order.high[high - 1])) if low < high else (0, 0)


def follow(
    before: NDArray[np.int64], change: NDArray[np.int64], ready: NDArray[np.int64], rows: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """``x[i] = max(x[i-1] + change[i], ready[i])`` from ``x[-1] = before``; only some rows may have a ``ready``.

    ``change`` has one column or as many as ``before`` has entries.
    """
    total = np.cumsum(change, axis=0)
    if not ready.shape[0]:
        return before + total
    ahead = np.concatenate([before[None], ready - (total if rows is None else total[rows])])
    np.maximum.accumulate(ahead, axis=0, out=ahead)
    reached = ahead[1:] if rows is None else ahead[np.searchsorted(rows, np.arange(total.shape[0]), side="right")]
    return reached + total


class _Parts:
    """Parts as Python integers: first rank, the one after its last, and the thread or queue."""

    def __init__(self, order: Order) -> None:
        self._bounds = order.bounds.tolist()
        self._rows = list(zip(order.low.tolist(), order.high.tolist(), order.key.tolist(), strict=True))

    def of_block(self, number: int) -> list[tuple[int, int, int]]:
        return self._rows[self._bounds[number] : self._bounds[number + 1]]


def _pieces(low: int, high: int, singles: list[int]) -> Iterator[tuple[int, int, bool]]:
    """Ranks of a part in pieces, and whether these are computed at once: not where they are few or single."""
    if high - low <= _FEW:
        yield low, high, False
        return
    for single in [*singles[bisect_left(singles, low) : bisect_left(singles, high)], high]:
        if single > low:
            yield low, single, single - low > _FEW
        if single < high:
            yield single, single + 1, False
        low = single + 1


class _Threads:
    """Shifts of threads, from the ends that their calls wait for to the launches that follow."""

    def __init__(self, program: Program, state: State, count: int) -> None:
        self._columns = program.threads
        self._state = state
        self._parts = _Parts(program.blocks.threads)
        self._start = np.zeros(count, dtype=np.int64)
        self._first_handover = program.first_handover

    def stretch(self, ranks: Span, changes: Changes) -> None:
        """Take up the next events and what is changed in them."""
        columns, (low, high) = self._columns, ranks
        step, item = columns.step[low:high], columns.item[low:high]
        self._low = low
        self._table = np.stack(
            [
                columns.change[low:high],
                columns.source[low:high],
                columns.after[low:high],
                columns.time[low:high],
                np.where(step == int(Step.LAUNCH), item, -1),
                np.where(step == int(Step.LEAVE), self._first_handover + item, -1),
            ],
            axis=1,
        )
        self._changes = changes
        self._left = {rank: 1 - shares for rank, shares in changes.unblocked.items()}
        self._singles = sorted(changes.unblocked)

    def block(self, number: int) -> None:
        state = self._state
        for low, high, lane in self._parts.of_block(number):
            shift = state.shift.get(lane, self._start)
            for first, last, at_once in _pieces(low, high, self._singles):
                shift = self._at_once(first, last, shift) if at_once else self._one_by_one(first, last, shift)
            state.shift[lane] = shift

    def _one_by_one(self, low: int, high: int, shift: NDArray[np.int64]) -> NDArray[np.int64]:
        """The shift after some events, from that before them."""
        state, cut, worked = self._state, self._changes.cut, self._changes.worked
        launched, known = state.launched, state.known
        rows = self._table[low - self._low : high - self._low].tolist()
        for at, (change, source, after, time, launch, leave) in enumerate(rows, low - self._low):
            if cut is not None:
                shift = shift + (change - cut[at])
            elif change:
                shift = shift + change
            if source >= 0:
                ready = known[source] + (after if worked is None else after - worked[at])
                if state.kept is not None:
                    self._keep_held(self._low + at, ready > shift)
                left = self._left.get(self._low + at)
                held = np.maximum(shift, ready)
                shift = held if left is None else shift + np.rint(left * (held - shift)).astype(np.int64)
            if launch >= 0:
                launched[launch] = shift + time
            elif leave >= 0:
                known[leave] = shift + time
            if state.kept is not None:
                state.kept.event[self._columns.position[self._low + at]] = shift[0] + time
        return shift

    def _at_once(self, low: int, high: int, before: NDArray[np.int64]) -> NDArray[np.int64]:
        """The same of many events that wait for all they wait for."""
        columns, state = self._columns, self._state
        cut, worked = self._changes.cut, self._changes.worked
        change, source = columns.change[low:high, None], columns.source[low:high]
        joints = np.flatnonzero(source >= 0)
        after = columns.after[low:high][joints, None]
        if cut is not None:
            change = change - cut[low - self._low : high - self._low]
        if worked is not None:
            after = after - worked[low - self._low : high - self._low][joints]
        ready = state.known[source[joints]] + after
        shift = follow(before, change, ready, joints)
        step, item, time = columns.step[low:high], columns.item[low:high], columns.time[low:high]
        launches, leaves = np.flatnonzero(step == int(Step.LAUNCH)), np.flatnonzero(step == int(Step.LEAVE))
        state.launched[item[launches]] = shift[launches] + time[launches, None]
        if leaves.size:
            state.known[self._first_handover + item[leaves]] = shift[leaves] + time[leaves, None]
        if state.kept is not None:
            state.kept.event[columns.position[low:high]] = shift[:, 0] + time
            unheld = np.concatenate([before[None], shift[:-1]]) + change
            self._keep_held(low + joints, (ready > unheld[joints])[:, 0])
        shifted: NDArray[np.int64] = shift[-1]
        return shifted

    def _keep_held(self, rank: NDArray[np.int64] | int, waits: NDArray[np.bool_]) -> None:
        columns, kept = self._columns, self._state.kept
        if kept is not None:
            kept.held[columns.position[rank]] = waits & (columns.step[rank] != int(Step.RESUME))


class _Queues:
    """Starts and ends of activities, queue by queue."""

    def __init__(self, program: Program, state: State, count: int) -> None:
        self._columns = program.queues
        self._state = state
        self._parts = _Parts(program.blocks.queues)
        self._never = np.full(count, NEVER, dtype=np.int64)

    def stretch(self, ranks: Span, changes: Changes) -> None:
        """Take up the next activities and what is changed in them."""
        columns, (low, high) = self._columns, ranks
        self._low, self._saved, self._share = low, changes.saved, changes.removed
        beside, slot = np.zeros(high - low, dtype=bool), np.full(high - low, -1, dtype=np.int64)
        beside[_within(columns.beside, ranks) - low] = True
        slot[_within(columns.kept, ranks) - low] = columns.kept_slot[_between(columns.kept, ranks)]
        numbers = (columns.launch, columns.latency, columns.alone, columns.gap, columns.dur)
        self._table = np.stack([*(column[low:high] for column in numbers), beside, slot], axis=1)
        self._singles: list[int] = (low + np.flatnonzero(beside | self._overlapping(ranks))).tolist()
        self._edges: dict[int, list[list[int]]] = {}
        for rank, *edge in columns.edges[_between(columns.edges[:, 0], ranks)].tolist():
            self._edges.setdefault(rank - low, []).append(edge)

    def _overlapping(self, ranks: Span) -> NDArray[np.bool_]:
        """Activities of which some time is left though they are gone, and that did not wait for what ran before.

        Where these start and how far they reach is no running maximum.
        """
        low, high = ranks
        overlapping = np.zeros(high - low, dtype=bool)
        if self._share is not None:
            no_wait = np.flatnonzero((self._columns.gap[low:high] < 0) & ~self._columns.first[low:high])
            dur = self._lasting(no_wait, self._columns.dur[low:high][no_wait, None])
            overlapping[no_wait] = (_left(self._share[no_wait], dur) > 0).any(axis=1)
        return overlapping

    def _lasting(self, at: NDArray[np.int64] | int | slice, dur: NDArray[np.int64] | int) -> NDArray[np.int64]:
        """How long activities take, of which this much is recorded, less what is saved."""
        return np.asarray(dur) if self._saved is None else np.maximum(dur - self._saved[at], 0)

    def block(self, number: int) -> None:
        """Compute the activities of a block."""
        for low, high, queue in self._parts.of_block(number):
            for first, last, at_once in _pieces(low, high, self._singles):
                (self._at_once if at_once else self._one_by_one)(queue, first, last)

    def _one_by_one(self, queue: int, low: int, high: int) -> None:
        """Some activities: a branch of a graph follows the start of the one before it, others the end of all."""
        state = self._state
        launched, known = state.launched, state.known
        reach, first, last = state.reach.get(queue, self._never), state.first.get(queue), state.last.get(queue)
        rows = self._table[low - self._low : high - self._low].tolist()
        gone = self._gone(low, high)
        for at, (launch, latency, alone, gap, dur, beside, slot) in enumerate(rows, low - self._low):
            start = launched[launch] + latency if launch >= 0 else np.full_like(reach, alone)
            waited = self._waited(at)
            if waited is not None:
                start = np.maximum(start, waited)
            if gap > NEVER:
                start = np.maximum(start, (reach if last is None or not beside else last) + gap)
            end = start + (dur if self._saved is None else self._lasting(at, dur))
            if at in gone:
                start, end = self._without(at, (start, end), reach, waited)
            reach, last = np.maximum(reach, end), start
            first = start if first is None else np.minimum(first, start)
            if slot >= 0:
                known[slot] = end
            if state.kept is not None:
                item = self._columns.item[self._low + at]
                state.kept.start[item], state.kept.end[item] = start[0], end[0]
        if first is not None and last is not None:
            state.reach[queue], state.first[queue], state.last[queue] = reach, first, last

    def _gone(self, low: int, high: int) -> frozenset[int]:
        """Those of some activities of which a share is gone somewhere, counted from the stretch's first."""
        if self._share is None:
            return frozenset()
        share = self._share[low - self._low : high - self._low]
        return frozenset((low - self._low + np.flatnonzero(share.any(axis=1))).tolist())

    def _waited(self, at: int) -> NDArray[np.int64] | None:
        """When other queues let an activity start: whatever comes after it has waited, too."""
        waited: NDArray[np.int64] | None = None
        for slot, lag in self._edges.get(at, ()):
            ready = self._state.known[slot] + lag
            waited = ready if waited is None else np.maximum(waited, ready)
        return waited

    def _without(
        self,
        at: int,
        times: tuple[NDArray[np.int64], NDArray[np.int64]],
        reach: NDArray[np.int64],
        waited: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Start and end where a share is gone: what is gone needs no launch, and goes on where the queue is."""
        start, end = times
        if self._share is None:
            return start, end
        share, dur = self._share[at], end - start
        if not self._columns.first[self._low + at]:
            ready = reach if waited is None else np.maximum(reach, waited)
            start = np.where(share > 0, np.minimum(start, ready), start)
        return start, np.where(share > 0, start + _left(share, dur), end)

    def _at_once(self, queue: int, low: int, high: int) -> None:
        """Many activities that start after everything before them in their queue."""
        columns, state = self._columns, self._state
        inside = slice(low - self._low, high - self._low)
        reach = state.reach.get(queue, self._never)
        gap, is_first = columns.gap[low:high, None], columns.first[low:high, None]
        dur = self._lasting(inside, columns.dur[low:high, None])
        external, waited = self._external(low, high)
        rise, ready = np.maximum(gap + dur, 0), external + dur
        if self._share is not None:
            gone, left = self._share[inside] > 0, _left(self._share[inside], dur)
            rise = np.where(gone, left, rise)
            ready = np.where(gone, np.where(is_first, external, waited) + left, ready)
        reached = follow(reach, rise, ready, None)
        before = np.concatenate([reach[None], reached[:-1]])
        start = np.maximum(before + gap, external)
        end = start + dur
        if self._share is not None:
            start = np.where(gone & ~is_first, np.minimum(start, np.maximum(before, waited)), start)
            end = np.where(gone, start + left, end)
        earliest = start.min(axis=0)
        state.first[queue] = np.minimum(state.first[queue], earliest) if queue in state.first else earliest
        state.reach[queue], state.last[queue] = reached[-1], start[-1]
        kept = _between(columns.kept, (low, high))
        state.known[columns.kept_slot[kept]] = end[columns.kept[kept] - low]
        if state.kept is not None:
            item = columns.item[low:high]
            state.kept.start[item], state.kept.end[item] = start[:, 0], end[:, 0]

    def _external(self, low: int, high: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """When each activity could start but for its own queue, and when but for that and its launch."""
        columns, state = self._columns, self._state
        launch = columns.launch[low:high]
        bound = launch >= 0
        if bound.all():
            external = state.launched[launch] + columns.latency[low:high, None]
        else:
            external = np.repeat(columns.alone[low:high, None], self._never.size, axis=1)
            external[bound] = state.launched[launch[bound]] + columns.latency[low:high, None][bound]
        edges = columns.edges[_between(columns.edges[:, 0], (low, high))]
        if not edges.size:
            return external, np.broadcast_to(np.int64(NEVER), external.shape)
        waited = np.full_like(external, NEVER)
        opens = np.flatnonzero(np.diff(edges[:, 0], prepend=-1))
        ready = state.known[edges[:, 1]] + edges[:, 2, None]
        waited[edges[opens, 0] - low] = np.maximum.reduceat(ready, opens, axis=0)
        return np.maximum(external, waited), waited


def _between(ranks: NDArray[np.int64], span: Span) -> slice:
    """Where sorted ranks are those of a span."""
    low, high = np.searchsorted(ranks, span).tolist()
    return slice(low, high)


def _within(ranks: NDArray[np.int64], span: Span) -> NDArray[np.int64]:
    """Those of sorted ranks that lie in a span."""
    return ranks[_between(ranks, span)]


def _left(share: NDArray[np.float64], dur: NDArray[np.int64]) -> NDArray[np.int64]:
    """What stays of activities of which a share is gone, ns; nothing where all of one is, or none."""
    stays: NDArray[np.int64] = np.where(share > 0, np.rint((1 - share) * dur), 0).astype(np.int64)
    return stays
