"""The host call tree: which event was open inside which, on every thread.

Children lie inside their parents: an event that overlaps its parent's end is cut there and counted. Built in one
pass over the events in (thread, start, -end, file order). Python frames that enclose no other kind of event are left
out and counted: they are most of a trace with stacks and own no launch.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import HOST_KINDS, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.trace import Trace

# Above this depth a vectorised step a level costs more than a plain loop over all nodes.
_MAX_LEVELS = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class CallTree:
    """Nodes in (thread, start) order; every column has one entry a node, -1 stands for "none"."""

    row: NDArray[np.int64]
    parent: NDArray[np.int64]
    depth: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    lane: NDArray[np.int32]
    name: NDArray[np.int32]
    kind: NDArray[np.uint8]
    by_depth: NDArray[np.int64]
    level_bounds: NDArray[np.int64]
    clamped: int
    empty_frames: int

    @property
    def dur(self) -> NDArray[np.int64]:
        """Duration of each node inside its parent, ns."""
        return self.end - self.start

    def innermost(self, own: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each node, itself or its nearest ancestor for which ``own`` holds."""
        mine = np.where(own, np.arange(own.size), -1)
        return self._spread(mine, outermost=False)

    def outermost(self, own: NDArray[np.bool_]) -> NDArray[np.int64]:
        """For each node, its farthest ancestor (or itself) for which ``own`` holds."""
        mine = np.where(own, np.arange(own.size), -1)
        return self._spread(mine, outermost=True)

    def _spread(self, values: NDArray[np.int64], *, outermost: bool) -> NDArray[np.int64]:
        if not values.size or not (values >= 0).any():
            return values
        if self.level_bounds.size > _MAX_LEVELS:
            return _spread_by_node(values, self.parent, outermost=outermost)
        for low, high in pairwise(self.level_bounds[1:].tolist()):
            nodes = self.by_depth[low:high]
            above, mine = values[self.parent[nodes]], values[nodes]
            prefer, other = (above, mine) if outermost else (mine, above)
            values[nodes] = np.where(prefer >= 0, prefer, other)
        return values

    def self_time(self) -> NDArray[np.int64]:
        """Duration of each node less its children's, ns."""
        spent = np.zeros(self.row.size, dtype=np.int64)
        inner = self.parent >= 0
        np.add.at(spent, self.parent[inner], self.dur[inner])
        return self.dur - spent


def _spread_by_node(values: NDArray[np.int64], parent: NDArray[np.int64], *, outermost: bool) -> NDArray[np.int64]:
    result, parents = values.tolist(), parent.tolist()
    for node, above in enumerate(parents):
        if above >= 0 and result[above] >= 0 and (outermost or result[node] < 0):
            result[node] = result[above]
    return np.array(result, dtype=np.int64)


def build_tree(trace: Trace) -> CallTree:
    """The host tree of a trace, one root list per thread."""
    rows = trace.of_kind(*HOST_KINDS)
    empty = _is_empty_frame(trace, rows)
    rows = rows[~empty]
    start, end, lane = trace.start[rows], trace.end_of(rows), trace.lane[rows]
    order = np.lexsort((rows, -end, start, lane))
    rows, start, end, lane = rows[order], start[order], end[order], lane[order]
    parents, depths, ends, clamped = _nest(start.tolist(), end.tolist(), lane.tolist())
    depth = np.array(depths, dtype=np.int64)
    by_depth = np.argsort(depth, kind="stable")
    return CallTree(
        row=rows,
        parent=np.array(parents, dtype=np.int64),
        depth=depth,
        start=start,
        end=np.array(ends, dtype=np.int64),
        lane=lane,
        name=trace.name[rows],
        kind=trace.kind[rows],
        by_depth=by_depth,
        level_bounds=np.searchsorted(depth[by_depth], np.arange(max(depths, default=-1) + 2)),
        clamped=clamped,
        empty_frames=int(empty.sum()),
    )


def _is_empty_frame(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Python frames during which no other kind of event starts on their thread."""
    frames: NDArray[np.bool_] = trace.kind[rows] == int(Kind.PYTHON)
    start, end, lane = trace.start[rows], trace.end_of(rows), trace.lane[rows].astype(np.int64)
    length = int(end.max()) + 1 if rows.size else 1
    if length > np.iinfo(np.int64).max // (len(trace.lanes) + 1):  # a place in the order of all times does as well
        times = sorted_unique(np.r_[start, end])
        start, end, length = np.searchsorted(times, start), np.searchsorted(times, end), times.size
    others = np.sort(lane[~frames] * length + start[~frames])
    asked = np.flatnonzero(frames)
    begin = lane[asked] * length
    finish = begin + end[asked]
    begin += start[asked]
    following = np.r_[others, np.iinfo(np.int64).max][np.searchsorted(others, begin)]
    empty = np.zeros(rows.size, dtype=bool)
    empty[asked] = following >= finish
    return empty


def _nest(starts: list[int], ends: list[int], lanes: list[int]) -> tuple[list[int], list[int], list[int], int]:
    """Parents, depths, ends cut to the parent's, and how many were cut."""
    parents: list[int] = []
    depths: list[int] = []
    stack: list[int] = []
    current, clamped = -1, 0
    for node, (start, lane) in enumerate(zip(starts, lanes, strict=True)):
        if lane != current:
            stack.clear()
            current = lane
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        if stack:
            above = stack[-1]
            if ends[node] > ends[above]:
                ends[node] = ends[above]
                clamped += 1
            parents.append(above)
        else:
            parents.append(-1)
        depths.append(len(stack))
        stack.append(node)
    return parents, depths, ends, clamped


def check_tree(tree: CallTree) -> None:
    """Raise `ValueError` where a child leaves its parent, crosses threads or precedes it in order."""
    inner = np.flatnonzero(tree.parent >= 0)
    above = tree.parent[inner]
    for broken, what in (
        (above >= inner, "a parent does not precede its child"),
        (tree.lane[above] != tree.lane[inner], "a child runs on another thread"),
        (tree.start[above] > tree.start[inner], "a child starts before its parent"),
        (tree.end[above] < tree.end[inner], "a child ends after its parent"),
        (tree.depth[above] + 1 != tree.depth[inner], "a depth is not its parent's plus one"),
    ):
        if broken.any():
            raise ValueError(what)
