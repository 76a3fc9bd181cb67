"""Scenarios in the form that a replay works with: tables with one column a scenario, for one stretch of the run.

A table exists only where a scenario changes something in the stretch.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rooftrace.replay.edits import Edit
from rooftrace.replay.events import Step
from rooftrace.replay.program import time_before
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from rooftrace.replay.edits import HostCut
    from rooftrace.replay.program import Program, Recorded

# Fixes that are made together, each with the share of it that is reached.
Scenario: TypeAlias = "Sequence[tuple[Edit, float]]"
Span: TypeAlias = "tuple[int, int]"  # ranks from, up to
# Host time gone until each of some times.
_Gone: TypeAlias = "tuple[NDArray[np.int64], NDArray[np.float64]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs from the recorded run in one stretch: rows are its ranks, columns are scenarios; times in ns."""

    thread_low: int  # first ranks of the stretch
    queue_low: int
    saved: NDArray[np.int64] | None  # of activities, taken from their duration
    removed: NDArray[np.float64] | None  # of activities, the share that is gone; of the rest, launch and gap are gone
    cut: NDArray[np.int64] | None  # of thread events, host time gone since the thread's last event, and of the call
    worked: NDArray[np.int64] | None  # of calls that block, host time gone of what they do after waiting
    unblocked: dict[int, NDArray[np.float64]]  # rank of a wait -> share of its waiting that is gone


@dataclass(frozen=True, slots=True, kw_only=True)
class _Placed:
    """An edit in working order."""

    activities: NDArray[np.int64]  # ranks, sorted
    saved: NDArray[np.int64]
    removed: NDArray[np.int64]
    unblocked: NDArray[np.int64]


class Compiler:
    """Compiles scenarios for one stretch after another."""

    def __init__(self, run: Recorded, program: Program, scenarios: Sequence[Scenario]) -> None:
        self._run = run
        self._program = program
        self._scenarios = scenarios
        self._rank = np.empty(program.queues.item.size, dtype=np.int64)
        self._rank[program.queues.item] = np.arange(self._rank.size)
        self._rank_of_wait = _ranks_of_waits(run, program)
        self._placed: dict[int, _Placed] = {}
        self._gone = self._gone_by_lane()
        self._before = time_before(run.events) if self._gone else np.empty(0, dtype=np.int64)
        lanes = run.events.lane[program.threads.position]
        self._ranks = {lane: np.flatnonzero(lanes == lane) for lane in self._gone}

    def stretch(self, threads: Span, queues: Span) -> Changes:
        """The changes of one stretch, given as ranks of thread events and of activities."""
        cut, worked = self._host(threads)
        return Changes(
            thread_low=threads[0],
            queue_low=queues[0],
            saved=self._saved(queues),
            removed=self._removed(queues),
            cut=cut,
            worked=worked,
            unblocked=self._unblocked(threads),
        )

    def _edits(self) -> Iterable[tuple[int, _Placed, float]]:
        for column, scenario in enumerate(self._scenarios):
            for edit, closure in scenario:
                yield column, self._place(edit), closure

    def _place(self, edit: Edit) -> _Placed:
        placed = self._placed.get(id(edit))
        if placed is None:
            ranks = self._rank[edit.activities]
            order = np.argsort(ranks, kind="stable")
            waits = self._rank_of_wait[edit.unblocked]
            placed = self._placed[id(edit)] = _Placed(
                activities=ranks[order],
                saved=edit.saved_ns[order],
                removed=np.sort(self._rank[edit.removed]),
                unblocked=np.sort(waits[waits >= 0]),
            )
        return placed

    def _saved(self, span: Span) -> NDArray[np.int64] | None:
        table: NDArray[np.int64] | None = None
        for column, edit, closure in self._edits():
            low, high = np.searchsorted(edit.activities, span).tolist()
            if low == high:
                continue
            table = self._table(span) if table is None else table
            saved = np.rint(edit.saved[low:high] * closure).astype(np.int64)
            np.add.at(table[:, column], edit.activities[low:high] - span[0], saved)
        return table

    def _removed(self, span: Span) -> NDArray[np.float64] | None:
        table: NDArray[np.float64] | None = None
        for column, edit, closure in self._edits():
            low, high = np.searchsorted(edit.removed, span).tolist()
            if low < high and closure > 0:
                table = np.zeros((span[1] - span[0], len(self._scenarios))) if table is None else table
                rows = edit.removed[low:high] - span[0]
                table[rows, column] = np.maximum(table[rows, column], min(closure, 1.0))
        return table

    def _unblocked(self, span: Span) -> dict[int, NDArray[np.float64]]:
        result: dict[int, NDArray[np.float64]] = {}
        for column, edit, closure in self._edits():
            low, high = np.searchsorted(edit.unblocked, span).tolist()
            for rank in edit.unblocked[low:high].tolist():
                shares = result.setdefault(rank, np.zeros(len(self._scenarios)))
                shares[column] = max(shares[column], closure)
        return result

    def _table(self, span: Span) -> NDArray[np.int64]:
        return np.zeros((span[1] - span[0], len(self._scenarios)), dtype=np.int64)

    def _gone_by_lane(self) -> dict[int, list[tuple[_Gone, NDArray[np.int64]]]]:
        """Of each thread, the host time gone and the scenarios in which it is."""
        pieces: dict[int, dict[int, list[tuple[HostCut, float]]]] = defaultdict(lambda: defaultdict(list))
        for column, scenario in enumerate(self._scenarios):
            for edit, closure in scenario:
                for cut in edit.host:
                    pieces[cut.lane][column].append((cut, closure))
        result: dict[int, list[tuple[_Gone, NDArray[np.int64]]]] = {}
        for lane in sorted(pieces):
            alike: dict[tuple[tuple[int, float], ...], list[int]] = defaultdict(list)
            for column, cuts in pieces[lane].items():
                alike[tuple((id(cut), closure) for cut, closure in cuts)].append(column)
            result[lane] = [(_gone_until(pieces[lane][mine[0]]), np.array(mine)) for mine in alike.values()]
        return result

    def _host(self, span: Span) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Host time gone before each event of the threads, and after the waiting of calls that block."""
        cut: NDArray[np.int64] | None = None
        worked: NDArray[np.int64] | None = None
        for lane in self._gone:
            low, high = np.searchsorted(self._ranks[lane], span).tolist()
            rows = self._ranks[lane][low:high]
            if not rows.size:
                continue
            lows, highs, work, time = self._segments(rows)
            latest = max(int(highs.max()), int(time[-1]))
            for gone, columns in self._gone[lane]:
                if gone[0].size < 2 or gone[0][0] >= latest or gone[0][-1] <= lows.min():
                    continue
                cut = self._table(span) if cut is None else cut
                cut[np.ix_(rows - span[0], columns)] = _gone_between(gone, lows, highs)[:, None]
                if work.any():
                    worked = self._table(span) if worked is None else worked
                    worked[np.ix_(rows - span[0], columns)] = _gone_between(gone, time - work, time)[:, None]
        return cut, worked

    def _segments(self, rows: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
        """Host time around each event of a thread: from the one before to its wait, and after that; and its time."""
        events, waits, threads = self._run.events, self._run.schedule.waits, self._program.threads
        position, step, time = threads.position[rows], threads.step[rows], threads.time[rows]
        begin = events.begin[position]
        lows = np.where(step == int(Step.RESUME), begin, np.minimum(self._before[position], begin))
        own, work = np.zeros_like(begin), np.zeros_like(begin)
        calls = np.flatnonzero(step == int(Step.WAIT))
        own[calls] = waits.own_ns[threads.item[rows[calls]]]
        work[calls] = waits.work_ns[threads.item[rows[calls]]]
        return lows, begin + own, work, time


def _ranks_of_waits(run: Recorded, program: Program) -> NDArray[np.int64]:
    """Rank of the event of each wait, -1 for one that waits for nothing known."""
    threads = program.threads
    ranks = np.full(run.schedule.waits.node.size, -1, dtype=np.int64)
    waiting = (threads.source >= 0) & ((threads.step == int(Step.WAIT)) | (threads.step == int(Step.ROOM)))
    ranks[threads.item[waiting]] = np.flatnonzero(waiting)
    return ranks


def _gone_until(pieces: list[tuple[HostCut, float]]) -> _Gone:
    """Times, and the host time gone until each; where cuts overlap the larger share counts."""
    times = sorted_unique(np.concatenate([np.r_[cut.start, cut.end] for cut, _ in pieces]))
    share = np.zeros(max(times.size - 1, 0))
    for cut, closure in pieces:
        change = np.zeros(times.size, dtype=np.int64)
        np.add.at(change, np.searchsorted(times, cut.start), 1)
        np.add.at(change, np.searchsorted(times, cut.end), -1)
        covered = np.cumsum(change)[:-1] > 0
        share = np.maximum(share, np.where(covered, min(cut.share * closure, 1.0), 0.0))
    return times, np.r_[0.0, np.cumsum(share * np.diff(times))]


def _gone_between(gone: _Gone, lows: NDArray[np.int64], highs: NDArray[np.int64]) -> NDArray[np.int64]:
    until = np.rint(np.interp(highs, *gone)) - np.rint(np.interp(lows, *gone))  # sums stay exact
    return until.astype(np.int64)
