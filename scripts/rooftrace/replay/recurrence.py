"""Computes every time of a run from its constraints, block by block, many scenarios at once.

Threads and queues both follow ``x[i] = max(x[i-1] + a[i], b[i])``. With ``A`` the running sum of ``a`` that is
``x[i] = A[i] + max(x[-1], max over j <= i of (b[j] - A[j]))``: a running sum and a running maximum over columns.
Tables have a row an event and a column a scenario; times are integer ns, so the order of sums does not matter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.replay.constraints import NEVER
from rooftrace.replay.events import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.replay.blocks import Order
    from rooftrace.replay.program import Program
    from rooftrace.replay.scenarios import Changes, Compiler


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """Times of the first scenario, where all are asked for, ns."""

    event: NDArray[np.int64]  # by position in `Events`
    held: NDArray[np.bool_]  # by position: whether a call that blocks really waited
    start: NDArray[np.int64]  # of activities
    end: NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class State:
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
        changes = compiler.stretch(_ranks(blocks.threads, first, last), _ranks(blocks.queues, first, last))
        for block in range(first, last):
            threads.block(block, changes)
            queues.block(block, changes)
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
    """Parts as Python integers: first rank, the one after its last, key, and a slice of each list of ranks."""

    def __init__(self, order: Order, *lists: NDArray[np.int64]) -> None:
        self._bounds = order.bounds.tolist()
        columns = [order.low, order.high, order.key]
        for ranks in lists:
            columns += [np.searchsorted(ranks, order.low), np.searchsorted(ranks, order.high)]
        self._rows = list(zip(*(column.tolist() for column in columns), strict=True))

    def of_block(self, number: int) -> list[tuple[int, ...]]:
        return self._rows[self._bounds[number] : self._bounds[number + 1]]


class _Threads:
    """Shifts of threads, from the ends that their calls wait for to the launches that follow."""

    def __init__(self, program: Program, state: State, count: int) -> None:
        columns = program.threads
        self._columns = columns
        self._state = state
        self._parts = _Parts(program.blocks.threads, columns.joints, columns.launches, columns.leaves)
        self._start = np.zeros(count, dtype=np.int64)
        self._first_handover = program.first_handover

    def block(self, number: int, changes: Changes) -> None:
        columns, state = self._columns, self._state
        for low, high, lane, joint, joint_end, *marks in self._parts.of_block(number):
            change = columns.change[low:high, None]
            if changes.cut is not None:
                change = change - changes.cut[low - changes.thread_low : high - changes.thread_low]
            joints = columns.joints[joint:joint_end]
            ready = state.known[columns.source[joints]] + columns.after[joints, None]
            if changes.worked is not None:
                ready -= changes.worked[joints - changes.thread_low]
            before = state.shift.get(lane, self._start)
            special = [rank for rank in joints.tolist() if rank in changes.unblocked] if changes.unblocked else []
            if special:
                shift = _partly(
                    before, change, (joints - low, ready), {at - low: changes.unblocked[at] for at in special}
                )
            else:
                shift = follow(before, change, ready, joints - low)
            state.shift[lane] = shift[-1]
            self._tell(low, shift, marks)
            if state.kept is not None:
                position = columns.position[low:high]
                state.kept.event[position] = shift[:, 0] + columns.time[low:high]
                unheld = np.concatenate([before[None], shift[:-1]]) + change
                waited = (ready > unheld[joints - low])[:, 0] & (columns.step[joints] != int(Step.RESUME))
                state.kept.held[columns.position[joints]] = waited

    def _tell(self, low: int, shift: NDArray[np.int64], marks: list[int]) -> None:
        """Times of launches and of hand-overs, for those who need them."""
        columns, state = self._columns, self._state
        launches, leaves = columns.launches[marks[0] : marks[1]], columns.leaves[marks[2] : marks[3]]
        state.launched[columns.item[launches]] = shift[launches - low] + columns.time[launches, None]
        if leaves.size:
            slots = self._first_handover + columns.item[leaves]
            state.known[slots] = shift[leaves - low] + columns.time[leaves, None]


def _partly(
    before: NDArray[np.int64],
    change: NDArray[np.int64],
    joints: tuple[NDArray[np.int64], NDArray[np.int64]],
    unblocked: dict[int, NDArray[np.float64]],
) -> NDArray[np.int64]:
    """`follow`, but at some rows a share of the waiting is gone: these are computed one by one."""
    rows, ready = joints
    shift = np.empty((change.shape[0], before.size), dtype=np.int64)
    done = 0
    for row in [*sorted(unblocked), change.shape[0]]:
        inside = slice(*np.searchsorted(rows, (done, row)).tolist())
        if row > done:
            shift[done:row] = follow(before, change[done:row], ready[inside], rows[inside] - done)
            before = shift[row - 1]
        if row in unblocked:
            free = before + change[row]
            held = np.maximum(free, ready[inside.stop])
            shift[row] = before = free + np.rint((1 - unblocked[row]) * (held - free)).astype(np.int64)
        done = row + 1
    return shift


@dataclass(frozen=True, slots=True, kw_only=True)
class _Part:
    """Activities of one queue in one block: one row each."""

    gap: NDArray[np.int64]
    external: NDArray[np.int64]  # when launch and other queues let each start
    dur: NDArray[np.int64]
    waited: NDArray[np.int64]  # when other queues let each start: whatever comes after it has waited, too
    first: NDArray[np.bool_]  # of its queue
    gone: NDArray[np.bool_] | None
    left: NDArray[np.int64] | None  # of what is gone, the time that stays

    def overlapping(self) -> list[int]:
        """Rows of which some time is left though they are gone, and that did not wait for the end of what ran before.

        Where these start and how far they reach is no running maximum.
        """
        if self.gone is None or self.left is None:
            return []
        partly = (self.gone & (self.left > 0)).any(axis=1)
        rows: list[int] = np.flatnonzero(partly & (self.gap < 0)[:, 0] & ~self.first[:, 0]).tolist()
        return rows

    def rows(self, low: int, high: int) -> _Part:
        return _Part(
            gap=self.gap[low:high],
            external=self.external[low:high],
            waited=self.waited[low:high],
            dur=self.dur[low:high],
            first=self.first[low:high],
            gone=None if self.gone is None else self.gone[low:high],
            left=None if self.left is None else self.left[low:high],
        )


class _Queues:
    """Starts and ends of activities, queue by queue."""

    def __init__(self, program: Program, state: State, count: int) -> None:
        columns = program.queues
        self._columns = columns
        self._state = state
        self._parts = _Parts(program.blocks.queues, columns.edges[:, 0], columns.kept, columns.beside)
        self._never = np.full(count, NEVER, dtype=np.int64)

    def block(self, number: int, changes: Changes) -> None:
        columns, state = self._columns, self._state
        for low, high, queue, *marks in self._parts.of_block(number):
            changed = slice(low - changes.queue_low, high - changes.queue_low)
            dur = columns.dur[low:high, None]
            dur = dur if changes.saved is None else np.maximum(dur - changes.saved[changed], 0)
            share = None if changes.removed is None else changes.removed[changed]
            external, waited = self._external(low, high, columns.edges[marks[0] : marks[1]])
            part = _Part(
                gap=columns.gap[low:high, None],
                external=external,
                waited=waited,
                dur=dur,
                first=columns.first[low:high, None],
                gone=None if share is None else share > 0,
                left=None if share is None else np.rint((1 - share) * dur).astype(np.int64),
            )
            start, end = self._part(queue, part, (columns.beside[marks[4] : marks[5]] - low).tolist())
            kept = slice(marks[2], marks[3])
            state.known[columns.kept_slot[kept]] = end[columns.kept[kept] - low]
            if state.kept is not None:
                item = columns.item[low:high]
                state.kept.start[item], state.kept.end[item] = start[:, 0], end[:, 0]

    def _external(self, low: int, high: int, edges: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """When each activity could start but for its own queue, and when but for that and its launch."""
        columns, state = self._columns, self._state
        launch = columns.launch[low:high]
        bound = launch >= 0
        if bound.all():
            external = state.launched[launch] + columns.latency[low:high, None]
        else:
            external = np.repeat(columns.alone[low:high, None], self._never.size, axis=1)
            external[bound] = state.launched[launch[bound]] + columns.latency[low:high, None][bound]
        if not edges.size:
            return external, np.broadcast_to(np.int64(NEVER), external.shape)
        waited = np.full_like(external, NEVER)
        for rank, slot, lag in edges.tolist():
            row = waited[rank - low]
            np.maximum(row, state.known[slot] + lag, out=row)
        return np.maximum(external, waited), waited

    def _part(self, queue: int, part: _Part, beside: list[int]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        singles = sorted({*beside, *part.overlapping()})
        if not singles:
            return self._in_order(queue, part)
        pieces, done = [], 0
        for row in singles:
            if row > done:
                pieces.append(self._in_order(queue, part.rows(done, row)))
            pieces.append(self._single(queue, part.rows(row, row + 1), is_beside=row in beside))
            done = row + 1
        if done < part.gap.shape[0]:
            pieces.append(self._in_order(queue, part.rows(done, part.gap.shape[0])))
        starts, ends = zip(*pieces, strict=True)
        return np.concatenate(starts), np.concatenate(ends)

    def _in_order(self, queue: int, part: _Part) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Activities that start after everything before them in their queue."""
        reach = self._state.reach.get(queue, self._never)
        rise = np.maximum(part.gap + part.dur, 0)
        ready = part.external + part.dur
        if part.gone is not None and part.left is not None:
            rise = np.where(part.gone, part.left, rise)
            ready = np.where(part.gone, np.where(part.first, part.external, part.waited) + part.left, ready)
        reached = follow(reach, rise, ready, None)
        before = np.concatenate([reach[None], reached[:-1]])
        start = np.maximum(before + part.gap, part.external)
        return self._done(queue, part, start, before, reached[-1])

    def _single(self, queue: int, part: _Part, *, is_beside: bool) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """One activity alone: a branch of a graph follows the start of the one before it, others its end."""
        reach = self._state.reach[queue]
        start = np.maximum((self._state.last[queue] if is_beside else reach) + part.gap, part.external)
        return self._done(queue, part, start, reach[None], None)

    def _done(
        self,
        queue: int,
        part: _Part,
        start: NDArray[np.int64],
        before: NDArray[np.int64],
        reach: NDArray[np.int64] | None,
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Ends, and the state of the queue; what is gone needs no launch, and goes on where the queue is."""
        state = self._state
        end = start + part.dur
        if part.gone is not None and part.left is not None:
            start = np.where(part.gone & ~part.first, np.minimum(start, np.maximum(before, part.waited)), start)
            end = np.where(part.gone, start + part.left, end)
        earliest = start.min(axis=0)
        state.first[queue] = np.minimum(state.first[queue], earliest) if queue in state.first else earliest
        state.reach[queue] = np.maximum(before[0], end[0]) if reach is None else reach
        state.last[queue] = start[-1]
        return start, end
