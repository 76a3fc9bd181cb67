"""The longest stretch of a window in which a thread neither began nor ended an op, call or Python frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.causes.spans import Windows, expanded
from rooftrace.intervals import union
from rooftrace.sorted_unique import grouped, sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.intervals import Union
    from rooftrace.trace import Trace


def longest_quiet(trace: Trace, windows: Windows, wanted: NDArray[np.bool_]) -> Windows:
    """The stretch of each wanted window, the first of equal ones; the others get an empty one at their start."""
    start, end = windows.start.copy(), windows.start.copy()
    rows = trace.of_kind(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON)
    lane = trace.lane[rows]
    asked = np.flatnonzero(wanted & (windows.end > windows.start))
    places = dict(grouped(lane))
    for number, at in grouped(windows.lane[asked]):
        mine, on_lane = asked[at], rows[places.get(number, at[:0])]
        asked_for = union(windows.start[mine], windows.end[mine])
        edges = sorted_unique(
            np.r_[_inside(trace.start[on_lane], asked_for), _inside(trace.end_of(on_lane), asked_for)]
        )
        start[mine], end[mine] = _longest(edges, windows.start[mine], windows.end[mine])
    return Windows(lane=windows.lane, start=start, end=end)


def _inside(times: NDArray[np.int64], windows: Union) -> NDArray[np.int64]:
    """The times that lie in a window: of many events few do, and only these need to be sorted."""
    at = np.searchsorted(windows.start, times, side="right") - 1
    inside: NDArray[np.int64] = times[(at >= 0) & (times < windows.end[at])]
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
