"""What the host did instead of launching, for gaps whose next activity was launched too late.

Looked at in this order, and decided as soon as one explains at least half of a gap: a graph launch; special work
(`classes`) on the launching thread; overhead of the profiler or driver; blocking calls without which the launch
would have come that much earlier; one unusually long runtime call; ops and runtime calls back to back. Then the
same on all threads, since work is handed over between them. What is left is host code.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Work
from rooftrace.causes.calls import SLOW_NS
from rooftrace.causes.classes import all_lanes, is_memory_call
from rooftrace.causes.model import Cause
from rooftrace.causes.queues import blocked_times
from rooftrace.causes.quiet import longest_quiet
from rooftrace.causes.spans import Spans, Windows, innermost
from rooftrace.schedule import WaitKind
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.causes.classes import HostWork
    from rooftrace.causes.launches import Gaps
    from rooftrace.causes.verdict import Verdict
    from rooftrace.schedule import Schedule, Waits
    from rooftrace.trace import Trace

# A host that needs longer between two launches than this is not dispatching back to back: eager PyTorch takes 5 to
# 50 us an op, with stacks recorded up to about 100 (rule of thumb).
DISPATCH_NS = 100_000
# Within an op this much has to pass without any event before it counts as more than slow dispatch: wrappers of compiled
# code and Python autograd functions dispatch from inside an op.
_STALL_NS = 1_000_000
# Host and device clocks agree to about this.
_CLOCK_NS = 2_000


class Scene(Struct, frozen=True, kw_only=True):
    """What the search looks at. ``whole`` are the gaps up to the return of the launch, ``before`` up to its begin."""

    trace: Trace
    tree: CallTree
    activities: Activities
    schedule: Schedule
    gaps: Gaps
    work: HostWork
    whole: Windows
    before: Windows


def explain(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    """Decide the gaps of the given numbers, whose next activity was launched too late."""
    waits = wait_spans(scene.tree, scene.schedule.waits)
    verdict.covered_ns[late] = scene.work.dispatch.covered(scene.whole.select(late))
    _graph_launches(scene, verdict, late)
    _special(scene, verdict, late, anywhere=False)
    _overheads(scene, verdict, late)
    _blocked(scene, verdict, late, waits, anywhere=False)
    _slow_calls(scene, verdict, late)
    _dispatching(scene, verdict, late)
    if verdict.among(late).size:
        _special(scene, verdict, late, anywhere=True)
        _blocked(scene, verdict, late, all_lanes(waits), anywhere=True)
        _host_code(scene, verdict, late)


def wait_spans(tree: CallTree, waits: Waits) -> Spans:
    """Calls that blocked, each a span; ``row`` is the number of the wait."""
    chosen = np.flatnonzero(waits.waited & (waits.kind != int(WaitKind.QUEUE)))
    node = waits.node[chosen]
    order = np.lexsort((tree.start[node], tree.lane[node]))
    node, chosen = node[order], chosen[order]
    return Spans(lane=tree.lane[node].astype(np.int64), start=tree.start[node], end=tree.end[node], row=chosen)


def _graph_launches(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    gaps = scene.gaps
    left = verdict.among(late)
    left = left[scene.activities.graph[gaps.after[left]]]
    inside = np.minimum(gaps.returned[left], gaps.end[left]) - np.maximum(gaps.called[left], gaps.start[left])
    chosen = left[2 * inside >= gaps.dur[left]]
    row = scene.tree.row[gaps.launch[chosen]]
    verdict.settle(chosen, Cause.GRAPH_LAUNCH, row, gaps.called[chosen])
    verdict.blame(chosen, row, gaps.lane[chosen], gaps.called[chosen], gaps.returned[chosen])


def _special(scene: Scene, verdict: Verdict, late: NDArray[np.int64], *, anywhere: bool) -> None:
    """Decide gaps of which one kind of special work covers at least half, the kind that covers most."""
    left = verdict.among(late)
    work = scene.work
    windows = scene.whole.on_all_lanes() if anywhere else scene.whole
    candidates = [(cause, all_lanes(spans) if anywhere else spans) for cause, spans in work.special.items()]
    if not anywhere:
        candidates.append((Cause.COMMUNICATION_SETUP, work.collectives))
    totals = np.stack([spans.covered(windows.select(left)) for _, spans in candidates])
    if not anywhere:  # ops that hand collectives over count where the gap ends at one
        totals[-1] *= scene.activities.work[scene.gaps.after[left]] == int(Work.COMMUNICATION)
    best, enough = totals.argmax(axis=0), 2 * totals.max(axis=0) >= scene.gaps.dur[left]
    for place, (cause, spans) in enumerate(candidates):
        _blame_spans(scene, verdict, left[enough & (best == place)], (cause, spans, windows))


def _overheads(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    windows = scene.whole.on_all_lanes()
    for cause, spans in scene.work.overheads.items():
        left = verdict.among(late)
        enough = 2 * spans.covered(windows.select(left)) >= scene.gaps.dur[left]
        _blame_spans(scene, verdict, left[enough], (cause, spans, windows))


def _blame_spans(scene: Scene, verdict: Verdict, gaps: NDArray[np.int64], found: tuple[Cause, Spans, Windows]) -> None:
    """Settle gaps for the spans that overlap them; the one with most of the gap stands for all."""
    cause, spans, windows = found
    if not gaps.size:
        return
    pairs = spans.overlaps(windows.select(gaps))
    top = pairs.piece[pairs.largest(gaps.size)]
    low = np.maximum(spans.start[top], windows.start[gaps])
    high = np.minimum(spans.end[top], windows.end[gaps])
    verdict.settle(gaps, cause, spans.row[top], low + (high - low) // 2)
    row = spans.row[pairs.piece]
    threadless = scene.trace.kind[row] == int(Kind.OVERHEAD)
    lane = np.where(threadless, scene.gaps.lane[gaps[pairs.window]], scene.trace.lane[row])
    verdict.blame(gaps[pairs.window], row, lane, spans.start[pairs.piece], spans.end[pairs.piece])


def _blocked(scene: Scene, verdict: Verdict, late: NDArray[np.int64], waits: Spans, *, anywhere: bool) -> None:
    """Decide gaps that would have been half as long, had the thread not stood in blocking calls before its launch."""
    left, gaps, known = verdict.among(late), scene.gaps, scene.schedule.waits
    lane = np.zeros_like(gaps.lane) if anywhere else gaps.lane
    windows = Windows(lane=lane, start=gaps.start - _CLOCK_NS, end=gaps.called).select(left)
    pairs = waits.overlaps(windows)
    number = waits.row[pairs.piece]
    blocked = blocked_times(scene.tree, scene.activities, known)[number]
    total = np.zeros(left.size, dtype=np.int64)
    np.add.at(total, pairs.window, blocked)
    verdict.blocked_ns[left] = np.maximum(verdict.blocked_ns[left], total)
    drained = (total > 0) & (2 * total >= gaps.dur[left])
    top = pairs.with_inside(blocked).largest(left.size)
    chosen = left[drained]
    node = known.node[number[top[drained]]]
    row = scene.tree.row[node]
    allocator = is_memory_call(scene.trace, row)
    first = allocator & scene.work.first_use[row]
    for cause, mask in (
        (Cause.SYNCHRONISATION, ~allocator),
        (Cause.COMPILATION, first),
        (Cause.MEMORY_MANAGEMENT, allocator & ~first),
    ):
        verdict.settle(chosen[mask], cause, row[mask], scene.tree.start[node[mask]])
    verdict.drain(left[pairs.window], number)
    verdict.blame(chosen[allocator], row[allocator], *_stretch(scene.tree, node[allocator]))


def _stretch(tree: CallTree, node: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    return tree.lane[node].astype(np.int64), tree.start[node], tree.end[node]


def _slow_calls(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    """Decide gaps that one unusually long runtime call filled: loading, if it is the first of its kind."""
    left, windows = verdict.among(late), scene.whole
    pairs = scene.work.calls.overlaps(windows.select(left))
    top = pairs.largest(left.size)
    found = np.flatnonzero(top >= 0)
    inside, row = pairs.inside[top[found]], scene.work.calls.row[pairs.piece[top[found]]]
    calls = scene.work.slow
    slow = (inside >= SLOW_NS) & (2 * inside >= scene.gaps.dur[left[found]]) & calls.is_slow[row]
    gaps, row = left[found[slow]], row[slow]
    at = scene.trace.start[row]
    kinds = np.select(
        [calls.is_first[row], calls.is_launch[row]], [Cause.COMPILATION, Cause.LAUNCH_BOUND], Cause.HOST_CODE
    )
    for cause in (Cause.COMPILATION, Cause.LAUNCH_BOUND, Cause.HOST_CODE):
        mine = kinds == cause
        verdict.settle(gaps[mine], cause, row[mine], at[mine])
    verdict.blame(gaps, row, scene.trace.lane[row].astype(np.int64), at, scene.trace.end_of(row))


def _dispatching(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    """Decide gaps in which the launching thread ran ops or calls most of the time, or that are short."""
    left = verdict.among(late)
    windows = scene.before.select(left)
    length = windows.end - windows.start
    busy = 2 * scene.work.dispatch.covered(windows) >= length
    long = length >= DISPATCH_NS
    quiet = longest_quiet(scene.trace, windows, busy & (length >= _STALL_NS))
    alone = 2 * (quiet.end - quiet.start) >= np.maximum(length, 2 * _STALL_NS)
    held = np.flatnonzero(alone)
    row = _innermost_work(scene, windows.lane[held], (quiet.start[held] + quiet.end[held]) // 2)
    in_call = np.isin(scene.trace.kind[row], (int(Kind.RUNTIME), int(Kind.DRIVER))) & (row >= 0)
    alone[held[in_call]] = False
    chosen = np.flatnonzero((busy | ~long) & ~alone)
    mine = left[chosen]
    _blame_dispatch(scene, verdict, mine)


def _blame_dispatch(scene: Scene, verdict: Verdict, mine: NDArray[np.int64]) -> None:
    """Settle gaps for the time that the launching thread took, up to the return of the launch."""
    gaps = scene.gaps
    row = scene.tree.row[gaps.launch[mine]]
    verdict.settle(mine, Cause.LAUNCH_BOUND, row, gaps.called[mine])
    begin = np.minimum(gaps.start[mine], gaps.called[mine])
    verdict.blame(mine, row, gaps.lane[mine], begin, np.minimum(gaps.end[mine], gaps.returned[mine]))


def _host_code(scene: Scene, verdict: Verdict, late: NDArray[np.int64]) -> None:
    """What is left: ops on another launching thread, else host code, at the middle of its longest quiet stretch."""
    left = verdict.among(late)
    windows = scene.before.select(left)
    elsewhere = all_lanes(scene.work.dispatch).covered(windows.on_all_lanes())
    own = scene.work.dispatch.covered(windows)
    handed = (2 * elsewhere >= windows.end - windows.start) & (2 * own < windows.end - windows.start)
    mine = left[handed]
    _blame_dispatch(scene, verdict, mine)
    left, windows = left[~handed], windows.select(~handed)
    quiet = longest_quiet(scene.trace, windows, np.ones(left.size, dtype=bool))
    middle = (quiet.start + quiet.end) // 2
    row = _innermost_work(scene, windows.lane, middle)
    verdict.settle(left, Cause.HOST_CODE, row, middle)
    verdict.blame(left, row, windows.lane, windows.start, np.maximum(windows.start, windows.end))


def _innermost_work(scene: Scene, lane: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.int64]:
    """Row of the innermost op or runtime call open at each (lane, time); -1 where there is none."""
    trace = scene.trace
    rows = trace.of_kind(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
    at = innermost(trace.lane[rows].astype(np.int64), trace.start[rows], trace.end_of(rows), (lane, time))
    return np.where(at >= 0, rows[at] if rows.size else -1, -1)
