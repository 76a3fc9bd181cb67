"""Scenarios in the form that a replay works with: tables with one column a scenario, for one stretch of the run.

A table exists only where a scenario changes something in the stretch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from msgspec import Struct

from rooftrace.replay.edits import Edit
from rooftrace.replay.events import Step
from rooftrace.replay.gone import gone_of_threads
from rooftrace.replay.program import time_before
from rooftrace.sorted_unique import grouped, sorted_unique

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from rooftrace.replay.program import Program, Recorded

# Fixes that are made together, each with the share of it that is reached.
Scenario: TypeAlias = "Sequence[tuple[Edit, float]]"
Span: TypeAlias = "tuple[int, int]"  # ranks from, up to


class Changes(Struct, frozen=True, kw_only=True):
    """What differs from the recorded run in one stretch: rows are its ranks, columns are scenarios; times in ns."""

    thread_low: int  # first ranks of the stretch
    queue_low: int
    saved: NDArray[np.int64] | None  # of activities, taken from their duration
    removed: NDArray[np.float64] | None  # of activities, the share that is gone; of the rest, launch and gap are gone
    cut: NDArray[np.int64] | None  # of thread events, host time gone since the thread's last event, and of the call
    worked: NDArray[np.int64] | None  # of calls that block, host time gone of what they do after waiting
    unblocked: dict[int, NDArray[np.float64]]  # rank of a wait -> share of its waiting that is gone


class _Placed(Struct, frozen=True, kw_only=True):
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
        self._lanes = run.events.lane[program.threads.position]
        self._gone = gone_of_threads(scenarios, int(self._lanes.max(initial=-1)) + 1)
        self._before = time_before(run.events) if self._gone.gone else np.empty(0, dtype=np.int64)

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
        parts = []
        for column, edit, closure in self._edits():
            low, high = np.searchsorted(edit.unblocked, span).tolist()
            if low < high:
                parts.append((column, edit.unblocked[low:high], closure))
        if not parts:
            return {}
        ranks = sorted_unique(np.concatenate([some for _, some, _ in parts]))
        table = np.zeros((ranks.size, len(self._scenarios)))
        for column, some, closure in parts:
            rows = np.searchsorted(ranks, some)
            table[rows, column] = np.maximum(table[rows, column], closure)
        return dict(zip(ranks.tolist(), table, strict=True))

    def _table(self, span: Span) -> NDArray[np.int64]:
        return np.zeros((span[1] - span[0], len(self._scenarios)), dtype=np.int64)

    def _host(self, span: Span) -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
        """Host time gone before each event of the threads, and after the waiting of calls that block."""
        cut: NDArray[np.int64] | None = None
        worked: NDArray[np.int64] | None = None
        kinds = self._gone.kind[self._lanes[span[0] : span[1]]] if self._gone.gone else self._lanes[:0]
        for kind, rows in grouped(kinds):
            if kind < 0:
                continue
            content = self._gone.content[self._lanes[rows + span[0]]]
            lows, highs, work, time = self._segments(rows + span[0])
            earliest, latest = lows.min(), max(int(highs.max()), int(time.max()))
            for gone, columns in self._gone.gone[kind]:
                if gone.time.size < 2 or gone.every[0] >= latest or gone.every[-1] <= earliest:
                    continue
                cut = self._table(span) if cut is None else cut
                cut[np.ix_(rows, columns)] = gone.between(content, lows, highs)[:, None]
                if work.any():
                    worked = self._table(span) if worked is None else worked
                    worked[np.ix_(rows, columns)] = gone.between(content, time - work, time)[:, None]
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
