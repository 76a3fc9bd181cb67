"""Hand-overs between host threads: a thread that goes on as soon as another one has finished.

Forward call, autograd thread, caller again: while one works, the other has no event. A thread that goes on after a
rest waited for the thread that worked last during it, if that one rests in turn until the first has done its work.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.intervals import union
from rooftrace.schedule.model import Handovers
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import CallTree
    from rooftrace.intervals import Union

# A shorter rest is the thread's own.
_REST_NS = 10_000
# Threads that work at once for more than this share of the lesser one's time do not wait for each other.
_CONCURRENT_SHARE = 0.05
_KINDS = (Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)


def find_handovers(tree: CallTree, lanes: NDArray[np.int64]) -> Handovers:
    """Hand-overs among threads that launch work or wait for it."""
    work = np.isin(tree.kind, [int(kind) for kind in _KINDS]) & np.isin(tree.lane, lanes)
    top = tree.outermost(work)
    nodes = np.flatnonzero(work & (top == np.arange(top.size)))
    stretches = _stretches(tree, nodes)
    if stretches.shape[0] == 0 or sorted_unique(stretches[:, 0]).size < 2:
        return _handovers([])
    return _handovers(_match(stretches))


def _stretches(tree: CallTree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Rows (lane, start, end) of work without a rest, by lane and start."""
    order = nodes[np.lexsort((tree.start[nodes], tree.lane[nodes]))]
    if not order.size:
        return np.empty((0, 3), dtype=np.int64)
    lane, start, end = tree.lane[order].astype(np.int64), tree.start[order], tree.end[order]
    opens = np.r_[True, (lane[1:] != lane[:-1]) | (start[1:] - end[:-1] > _REST_NS)]
    firsts = np.flatnonzero(opens)
    lasts = np.r_[firsts[1:], order.size] - 1
    return np.stack([lane[firsts], start[firsts], end[lasts]], axis=1)


def _match(stretches: NDArray[np.int64]) -> list[tuple[int, int, int, int]]:
    """(lane, start, lane waited for, its end) of every stretch that another thread's stretch led to."""
    by_end = stretches[np.argsort(stretches[:, 2], kind="stable")]
    ends, lanes = by_end[:, 2].tolist(), by_end[:, 0].tolist()
    next_start = _next_starts(by_end)
    in_turn = _Turns(stretches)
    previous_end: dict[int, int] = {}
    found = []
    for lane, start, end in sorted(stretches.tolist(), key=lambda row: (row[1], row[0])):
        rested_from = previous_end.get(lane)
        previous_end[lane] = end
        low = 0 if rested_from is None else bisect_right(ends, rested_from)
        last = bisect_right(ends, start) - 1
        while last >= low and lanes[last] == lane:
            last -= 1
        if last >= low and next_start[last] >= end and in_turn.hold(lanes[last], lane):
            found.append((lane, start, lanes[last], ends[last]))
    return found


class _Turns:
    """Which threads hardly ever work at the same time; each pair is looked at when it first matters."""

    def __init__(self, stretches: NDArray[np.int64]) -> None:
        firsts = np.flatnonzero(np.diff(stretches[:, 0], prepend=-1))  # they come by lane and start
        bounds = [*firsts.tolist(), stretches.shape[0]]
        self._stretches = stretches
        self._places = dict(zip(stretches[firsts, 0].tolist(), pairwise(bounds), strict=True))
        self._busy: dict[int, Union] = {}
        self._known: dict[tuple[int, int], bool] = {}

    def hold(self, first: int, second: int) -> bool:
        """Whether two threads work in turn."""
        pair = (min(first, second), max(first, second))
        if pair not in self._known:
            one, other = self._union(pair[0]), self._union(pair[1])
            common = 0
            if one.length and other.length and one.start[0] < other.end[-1] and other.start[0] < one.end[-1]:
                common = int((one.covered_before(other.end) - one.covered_before(other.start)).sum())
            self._known[pair] = common <= _CONCURRENT_SHARE * min(one.length, other.length)
        return self._known[pair]

    def _union(self, lane: int) -> Union:
        """When a thread worked."""
        if lane not in self._busy:
            low, high = self._places[lane]
            self._busy[lane] = union(self._stretches[low:high, 1], self._stretches[low:high, 2])
        return self._busy[lane]


def _next_starts(by_end: NDArray[np.int64]) -> list[int]:
    """Start of the next stretch on the same lane, for each; a very late time after the last."""
    following: dict[int, int] = {}
    result = [1 << 62] * by_end.shape[0]
    for at, (lane, start, _) in reversed(list(enumerate(by_end.tolist()))):
        result[at] = following.get(lane, 1 << 62)
        following[lane] = start
    return result


def _handovers(rows: list[tuple[int, int, int, int]]) -> Handovers:
    table = np.array(rows, dtype=np.int64).reshape(-1, 4)
    return Handovers(lane=table[:, 0], start=table[:, 1], from_lane=table[:, 2], from_end=table[:, 3])
