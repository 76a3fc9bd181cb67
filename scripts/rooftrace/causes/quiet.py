"""The longest stretch of a window in which a thread neither began nor ended an op, call or Python frame."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.causes.spans import Windows, expanded
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.trace import Trace


def longest_quiet(trace: Trace, windows: Windows, wanted: NDArray[np.bool_]) -> Windows:
    """The stretch of each wanted window, the first of equal ones; the others get an empty one at their start."""
    start, end = windows.start.copy(), windows.start.copy()
    rows = trace.of_kind(Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER, Kind.PYTHON)
    lane = trace.lane[rows]
    asked = np.flatnonzero(wanted & (windows.end > windows.start))
    for number in np.unique(windows.lane[asked]).tolist():
        mine = asked[windows.lane[asked] == number]
        on_lane = rows[lane == number]
        edges = np.unique(np.r_[trace.start[on_lane], trace.end[on_lane]])
        start[mine], end[mine] = _longest(edges, windows.start[mine], windows.end[mine])
    return Windows(lane=windows.lane, start=start, end=end)


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
