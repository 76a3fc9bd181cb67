"""Stretches in which a thread neither began nor ended an op, call or Python frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.causes.spans import Windows, expanded
from rooftrace.intervals import Union, union
from rooftrace.sorted_unique import grouped, sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rooftrace.calltree import CallTree
    from rooftrace.trace import Trace

# A profiler takes about a microsecond an event; where none is recorded for this long, it takes nothing (rule of thumb).
LONG_NS = 1_000_000
_PIECE = 1 << 20  # events that are looked at at once: what most of them leave is nothing
_CALLS = (Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON)


def long_calls(trace: Trace, tree: CallTree, lanes: NDArray[np.int64]) -> dict[int, Union]:
    """Of each of some threads, the stretches of `LONG_NS` and more inside a call in which no other event is recorded.

    Recording stacks and shapes lengthens what is recorded, so not these: a decoder, a file read, a copy on the host.
    """
    rows = trace.of_kind(Kind.PYTHON)
    frames = dict(grouped(trace.lane[rows])) if rows.size else {}
    lows, highs = (np.searchsorted(tree.lane, lanes, side=side).tolist() for side in ("left", "right"))
    found = {}
    for lane, low, high in zip(lanes.tolist(), lows, highs, strict=True):
        nodes, between = _without_starts(tree, low, high)
        on_lane = rows[frames[lane]] if nodes.size and lane in frames else rows[:0]
        found[lane] = _long_among(trace, tree, (nodes, between), on_lane)
    return found


def _without_starts(tree: CallTree, low: int, high: int) -> tuple[NDArray[np.int64], Union]:
    """A thread's long stretches from a start to the next one or the last end, and the node that each begins with."""
    edges = np.r_[tree.start[low:high], tree.end[low:high].max(initial=0)] if high > low else tree.start[:0]
    wide = np.flatnonzero(np.diff(edges) >= LONG_NS)
    return low + wide, Union(edges[wide], edges[wide + 1])


def _long_among(
    trace: Trace, tree: CallTree, stretches: tuple[NDArray[np.int64], Union], frames: NDArray[np.int64]
) -> Union:
    """What no end cuts of stretches without a start, and no frame that the tree leaves out, while a call is open.

    Such a frame lies between two starts of the tree; what else ends between them is open when the stretch begins.
    """
    nodes, between = stretches
    frames = frames[_is_inside(trace.start[frames], between)]
    opened = [nodes[:0]]
    while nodes.size:
        opened.append(nodes)
        nodes = sorted_unique(tree.parent[nodes])
        nodes = nodes[nodes >= 0]
    chain = np.concatenate(opened)
    ends = _inside(np.r_[tree.end[chain], trace.end_of(frames)], between)
    times = sorted_unique(np.r_[between.start, between.end, ends, trace.start[frames]])
    low, high = times[:-1], times[1:]
    chain = chain[np.isin(tree.kind[chain], [int(kind) for kind in _CALLS])]
    calls = union(np.r_[tree.start[chain], trace.start[frames]], np.r_[tree.end[chain], trace.end_of(frames)])
    quiet = high - low >= LONG_NS
    for whole in (calls, between):
        quiet &= whole.covered_before(high) - whole.covered_before(low) == high - low
    return Union(low[quiet], high[quiet])


def longest_quiet(trace: Trace, windows: Windows, wanted: NDArray[np.bool_]) -> Windows:
    """The stretch of each wanted window, the first of equal ones; the others get an empty one at their start."""
    start, end = windows.start.copy(), windows.start.copy()
    asked = np.flatnonzero(wanted & (windows.end > windows.start))
    mine = {number: asked[at] for number, at in grouped(windows.lane[asked])}
    edges = _edges(trace, {number: union(windows.start[at], windows.end[at]) for number, at in mine.items()})
    for number, at in mine.items():
        start[at], end[at] = _longest(edges[number], windows.start[at], windows.end[at])
    return Windows(lane=windows.lane, start=start, end=end)


def _edges(trace: Trace, asked_for: Mapping[int, Union]) -> dict[int, NDArray[np.int64]]:
    """Of each thread asked about, the times in its windows at which an event began or ended."""
    found: dict[int, list[NDArray[np.int64]]] = {lane: [np.empty(0, dtype=np.int64)] for lane in asked_for}
    wanted = np.zeros(len(Kind), dtype=bool)
    wanted[[int(kind) for kind in _CALLS]] = True
    for low in range(0, trace.kind.size if asked_for else 0, _PIECE):
        rows = low + np.flatnonzero(wanted[trace.kind[low : low + _PIECE]])
        for lane, places in grouped(trace.lane[rows]):
            if lane in asked_for:
                on_lane = rows[places]
                found[lane] += [_inside(on, asked_for[lane]) for on in (trace.start[on_lane], trace.end_of(on_lane))]
    return {lane: sorted_unique(np.concatenate(parts)) for lane, parts in found.items()}


def _inside(times: NDArray[np.int64], windows: Union) -> NDArray[np.int64]:
    """The times that lie in a window: of many events few do, and only these need to be sorted."""
    return times[_is_inside(times, windows)]


def _is_inside(times: NDArray[np.int64], windows: Union) -> NDArray[np.bool_]:
    if not windows.start.size:
        return np.zeros(times.size, dtype=bool)
    at = np.searchsorted(windows.start, times, side="right") - 1
    inside: NDArray[np.bool_] = (at >= 0) & (times < windows.end[at])
    return inside


def _longest(
    edges: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    first = np.searchsorted(edges, low, side="right")
    last = np.searchsorted(edges, high, side="left")
    window, edge = expanded(first - 1, last)  # each stretch begins at an edge, the first one at the window's start
    stop = np.r_[edges, 0][np.minimum(edge + 1, edges.size)]
    stop = np.where(edge + 1 < last[window], stop, high[window])
    begin = np.where(edge >= first[window], np.r_[edges, 0][edge], low[window])
    order = np.lexsort((begin, begin - stop, window))
    opens = order[np.r_[True, np.diff(window[order]) != 0]]
    return begin[opens], stop[opens]
