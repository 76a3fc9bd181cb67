"""Gives every gap its cause (METHODS: idle by cause).

A gap whose next activity was launched before the window, or whose launch is not known, is settled at once. Where
that activity could have started early in the gap, had only its launch decided, it was queued: it waited for the
device or for another queue. Else the host was late, and `late` tells what it did instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Link
from rooftrace.causes.classes import classify
from rooftrace.causes.frames import thread_looked_at, user_frames
from rooftrace.causes.late import DISPATCH_NS, Scene, explain
from rooftrace.causes.launches import find_gaps_and_launches
from rooftrace.causes.model import HOST_CAUSES, Cause, IdleCauses, Reason
from rooftrace.causes.spans import Windows, deepest_covering, innermost
from rooftrace.causes.verdict import Verdict
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree, Context
    from rooftrace.schedule import Schedule
    from rooftrace.trace import Trace


# An activity starts within this of the end of what it waited for (observed: 1 to 20 us); what is longer is not known.
_PROMPT_NS = 100_000


def attribute(trace: Trace, tree: CallTree, context: Context, activities: Activities, schedule: Schedule) -> IdleCauses:
    """Every gap of every device with its cause."""
    gaps = find_gaps_and_launches(tree, activities, schedule)
    scene = Scene(
        trace=trace,
        tree=tree,
        activities=activities,
        schedule=schedule,
        gaps=gaps,
        work=classify(trace, tree, context, activities),
        whole=Windows(lane=gaps.lane, start=gaps.start, end=np.minimum(gaps.end, gaps.returned)),
        before=Windows(lane=gaps.lane, start=gaps.start, end=np.minimum(gaps.end, gaps.called)),
    )
    verdict = Verdict.of(gaps.start.size)
    _settle_unlinked(scene, verdict)
    _settle_queued(scene, verdict)
    explain(scene, verdict, np.flatnonzero(verdict.cause < 0))
    _doubt(scene, verdict)
    wait_gap, wait = verdict.waits()
    return IdleCauses(
        device=gaps.device,
        start=gaps.start,
        end=gaps.end,
        before=gaps.before,
        after=gaps.after,
        cause=verdict.cause.astype(np.uint8),
        reason=verdict.reason.astype(np.uint8),
        row=verdict.row,
        op=_ops(scene, context, verdict.row),
        frame=_frames(scene, verdict),
        lane=gaps.lane,
        ready=gaps.ready,
        blocked_ns=verdict.blocked_ns,
        covered_ns=verdict.covered_ns,
        pieces=verdict.pieces(),
        special=tuple(scene.work.special.values()),
        overheads=tuple(scene.work.overheads.values()),
        wait_gap=wait_gap,
        wait=wait,
    )


def _settle_unlinked(scene: Scene, verdict: Verdict) -> None:
    gaps = scene.gaps
    carried = np.flatnonzero(scene.activities.link[gaps.after] == int(Link.CARRY_IN))
    _settle(verdict, carried, Cause.BEFORE_WINDOW, Reason.NONE)
    unlinked = verdict.among(np.flatnonzero(gaps.launch < 0))
    apart = Reason.CLOCKS_APART if scene.activities.apart else Reason.NO_LAUNCH
    _settle(verdict, unlinked, Cause.UNKNOWN, apart)
    unclear = verdict.among(np.flatnonzero(gaps.called > gaps.end))
    _settle(verdict, unclear, Cause.UNKNOWN, Reason.CLOCK)
    verdict.row[unclear] = scene.tree.row[gaps.launch[unclear]]


def _settle(verdict: Verdict, gaps: NDArray[np.int64], cause: Cause, reason: Reason) -> None:
    nothing = np.full(gaps.size, -1, dtype=np.int64)
    verdict.settle(gaps, cause, nothing, nothing)
    verdict.reason[gaps] = int(reason)


def _settle_queued(scene: Scene, verdict: Verdict) -> None:
    """Gaps whose next activity was queued: it waited for another queue if that one's work ended last, and lately."""
    gaps, schedule, ends = scene.gaps, scene.schedule, scene.activities.end
    queued = verdict.among(np.flatnonzero(gaps.queued))
    after = gaps.after[queued]
    other, own = schedule.dependency[after], schedule.reach[after]
    waited = (other >= 0) & ((own < 0) | (ends[other] >= ends[own]))
    unexplained = gaps.end[queued] - np.maximum(ends[other], gaps.ready[queued])
    waited &= (unexplained <= _PROMPT_NS) | (2 * unexplained <= gaps.dur[queued])
    for cause, mask in ((Cause.DEPENDENCY, waited), (Cause.DEVICE, ~waited)):
        mine = queued[mask]
        verdict.settle(mine, cause, scene.tree.row[gaps.launch[mine]], gaps.called[mine])


def _doubt(scene: Scene, verdict: Verdict) -> None:
    """Take back long gaps for which nothing but the absence of ops speaks, on threads that recorded no op at all."""
    trace, gaps = scene.trace, scene.gaps
    with_ops = sorted_unique(trace.lane[trace.of_kind(Kind.CPU_OP, Kind.PYTHON)])
    silent = (verdict.cause == int(Cause.HOST_CODE)) & ~np.isin(gaps.lane, with_ops)
    silent &= gaps.dur >= DISPATCH_NS
    _settle(verdict, np.flatnonzero(silent), Cause.UNKNOWN, Reason.NO_OPS)


def _ops(scene: Scene, context: Context, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Node of the innermost op round each row of the trace; -1 for none."""
    tree = scene.tree
    node_of_row = np.full(scene.trace.kind.size + 1, -1, dtype=np.int32)  # the last entry serves row -1
    node_of_row[tree.row] = np.arange(tree.row.size, dtype=np.int32)
    node = node_of_row[rows]
    return np.where(node >= 0, context.op[node] if tree.row.size else -1, -1)


def _frames(scene: Scene, verdict: Verdict) -> NDArray[np.int64]:
    """Row of a user frame for each gap; -1 for none.

    Where the host's own time is to blame, the deepest frame that covers at least half of the gap; else the innermost
    one round the event that is.
    """
    trace, gaps = scene.trace, scene.gaps
    rows = user_frames(trace)
    frames = (trace.lane[rows].astype(np.int64), trace.start[rows], trace.end_of(rows))
    lane = thread_looked_at(trace, verdict.row, gaps.lane)
    hosts = np.isin(verdict.cause, [int(cause) for cause in HOST_CAUSES])
    at = innermost(*frames, (lane, verdict.at))
    asked = np.flatnonzero(hosts)
    at[asked] = deepest_covering(*frames, Windows(lane=lane, start=gaps.start, end=gaps.end).select(asked))
    return np.where(at >= 0, rows[at] if rows.size else -1, -1)
