"""The host call tree: which event was open inside which, on every thread.

Children lie inside their parents: an event that overlaps its parent's end is cut there and counted. Built in one
pass over the events in (thread, start, -end, file order). Python frames that enclose no other kind of event are left
out and counted: they are most of a trace with stacks and own no launch.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import HOST_KINDS, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.trace import Trace

    _Columns = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]

# Above this depth a vectorised step a level costs more than a plain loop over all nodes.
_MAX_LEVELS = 2_000
# Threads with fewer nodes, or whose nodes overlap one another in longer chains, are walked node by node.
_FEW = 200
_MOST_ROUNDS = 8


class CallTree(Struct, frozen=True, kw_only=True):
    """Nodes in (thread, start) order; every column has one entry a node, -1 stands for "none".

    Numbers of rows and nodes take 32 bits: widen before computing.
    """

    row: NDArray[np.int32]
    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    lane: NDArray[np.int32]
    name: NDArray[np.int32]
    kind: NDArray[np.uint8]
    by_depth: NDArray[np.int32]
    level_bounds: NDArray[np.int64]
    clamped: int
    empty_frames: int

    @property
    def dur(self) -> NDArray[np.int64]:
        """Duration of each node inside its parent, ns."""
        return self.end - self.start

    def innermost(self, own: NDArray[np.bool_]) -> NDArray[np.int32]:
        """For each node, itself or its nearest ancestor for which ``own`` holds."""
        return self._spread(own, outermost=False)

    def outermost(self, own: NDArray[np.bool_]) -> NDArray[np.int32]:
        """For each node, its farthest ancestor (or itself) for which ``own`` holds."""
        return self._spread(own, outermost=True)

    def _spread(self, own: NDArray[np.bool_], *, outermost: bool) -> NDArray[np.int32]:
        values = np.where(own, np.arange(own.size, dtype=np.int32), np.int32(-1))
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


def _spread_by_node(values: NDArray[np.int32], parent: NDArray[np.int32], *, outermost: bool) -> NDArray[np.int32]:
    result, parents = values.tolist(), parent.tolist()
    for node, above in enumerate(parents):
        if above >= 0 and result[above] >= 0 and (outermost or result[node] < 0):
            result[node] = result[above]
    return np.array(result, dtype=np.int32)


def build_tree(trace: Trace) -> CallTree:
    """The host tree of a trace, one root list per thread."""
    empty = _empty_frames(trace)
    rows = trace.of_kind(*HOST_KINDS)
    if empty.size:
        is_empty = np.zeros(trace.kind.size, dtype=bool)
        is_empty[empty] = True
        rows = rows[~is_empty[rows]]
        del is_empty
    start, end, lane = trace.start[rows], trace.end_of(rows), trace.lane[rows]
    order = np.lexsort((rows, -end, start, lane))
    rows, start, end, lane = rows[order], start[order], end[order], lane[order]
    del order
    nesting = _nest(start, end, lane)
    by_depth = np.argsort(_narrow(nesting.depth), kind="stable").astype(np.int32)
    levels = int(nesting.depth.max(initial=-1)) + 2
    return CallTree(
        row=rows.astype(np.int32),
        parent=nesting.parent,
        depth=nesting.depth,
        start=start,
        end=nesting.end,
        lane=lane,
        name=trace.name[rows],
        kind=trace.kind[rows],
        by_depth=by_depth,
        level_bounds=np.searchsorted(nesting.depth[by_depth], np.arange(levels)),
        clamped=nesting.clamped,
        empty_frames=empty.size,
    )


def _empty_frames(trace: Trace) -> NDArray[np.int64]:
    """Rows of the Python frames during which no other kind of event starts on their thread."""
    frames = trace.of_kind(Kind.PYTHON)
    others = trace.of_kind(*(kind for kind in HOST_KINDS if kind != Kind.PYTHON))
    start, end, starts = trace.start[frames], trace.end_of(frames), trace.start[others]
    length = max(int(end.max(initial=0)), int(starts.max(initial=0))) + 1
    if length > np.iinfo(np.int64).max // (len(trace.lanes) + 1):  # a place in the order of all times does as well
        times = sorted_unique(np.r_[start, end, starts])
        start, end, starts = (np.searchsorted(times, some) for some in (start, end, starts))
        length = times.size
    starts += trace.lane[others].astype(np.int64) * length
    starts = np.append(np.sort(starts), np.iinfo(np.int64).max)
    base = trace.lane[frames].astype(np.int64) * length
    start += base
    end += base
    empty: NDArray[np.int64] = frames[starts[np.searchsorted(starts, start)] >= end]
    return empty


class _Nesting(Struct, frozen=True):
    """Parents, depths, ends cut to the parent's, and how many were cut."""

    parent: NDArray[np.int32]
    depth: NDArray[np.int32]
    end: NDArray[np.int64]
    clamped: int


def _nest(start: NDArray[np.int64], end: NDArray[np.int64], lane: NDArray[np.int32]) -> _Nesting:
    """Nodes in (thread, start, -end) order, put inside each other; one thread after the other."""
    parent, depth = np.full(start.size, -1, dtype=np.int32), np.zeros(start.size, dtype=np.int32)
    clamped = 0
    for low, high in pairwise([*np.flatnonzero(np.diff(lane, prepend=-1)).tolist(), start.size]):
        ends = end[low:high]
        parents, depths, own = _nest_thread(start[low:high], ends)
        clamped += int((own < ends).sum())
        parents[parents >= 0] += low
        parent[low:high], depth[low:high], end[low:high] = parents, depths, own
    return _Nesting(parent, depth, end, clamped)


def _nest_thread(start: NDArray[np.int64], end: NDArray[np.int64]) -> _Columns:
    """Parents, depths and ends of a thread's nodes.

    They are those of a walk over the nodes in their order as soon as each end is the node's own or, if that is
    earlier, its parent's: what a node finds open depends on the nodes before it alone.
    """
    ends = end
    for _ in range(_MOST_ROUNDS if start.size > _FEW else 0):
        parent, depth = _nest_whole(start, ends)
        inner = np.flatnonzero(depth != 0)
        above = parent[inner]
        following = end.copy()
        is_open = ends[above] > start[inner]  # what is not was found by a depth that is still wrong
        following[inner[is_open]] = np.minimum(end[inner], ends[above])[is_open]
        if (following == ends).all() and _is_whole(start, ends, inner, above):
            return parent, depth, ends
        ends = np.maximum(following, start)
    parents, depths, cut = _nest_by_node(start.tolist(), end.tolist())
    return np.array(parents), np.array(depths), np.array(cut)


def _is_whole(
    start: NDArray[np.int64], end: NDArray[np.int64], inner: NDArray[np.int64], above: NDArray[np.int64]
) -> bool:
    """Whether each node that has a parent lies inside it."""
    return bool(((above >= 0) & (start[above] <= start[inner]) & (end[above] >= end[inner])).all())


def _nest_whole(start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Parents and depths of a thread's nodes, if each lies inside its parent; else not all of them are right.

    Of the nodes that precede one, those that have not ended enclose it, and their number is its depth; the last one
    that is less deep by one is its parent.
    """
    count = start.size
    ended = np.searchsorted(np.sort(end), start, side="right")
    empty = end == start
    if empty.any():  # they count as ended where they start, but for those that come later in the order
        before = np.r_[0, np.cumsum(empty)]
        ended -= before[np.searchsorted(start, start, side="right")] - before[:-1]
    depth = np.arange(count) - ended
    del ended, empty
    by_depth = np.argsort(_narrow(depth), kind="stable")
    keys = depth[by_depth]
    is_inner = keys > 0
    keys *= count
    keys += by_depth
    above = by_depth[np.searchsorted(keys, keys - count) - 1]
    parent = np.empty(count, dtype=np.int64)
    parent[by_depth] = np.where(is_inner, above, -1)
    return parent, depth


def _narrow(depth: NDArray[np.signedinteger[Any]]) -> NDArray[np.signedinteger[Any]]:
    """The same numbers in a type that numpy sorts by their digits, if they are small enough."""
    small = depth.size == 0 or (int(depth.min()) >= -(1 << 15) and int(depth.max()) < 1 << 15)
    return depth.astype(np.int16) if small else depth


def _nest_by_node(starts: list[int], ends: list[int]) -> tuple[list[int], list[int], list[int]]:
    """Parents, depths and cut ends of one thread's nodes, one after the other."""
    parents: list[int] = []
    depths: list[int] = []
    stack: list[int] = []
    for node, start in enumerate(starts):
        while stack and ends[stack[-1]] <= start:
            stack.pop()
        parents.append(stack[-1] if stack else -1)
        if stack:
            ends[node] = min(ends[node], ends[stack[-1]])
        depths.append(len(stack))
        stack.append(node)
    return parents, depths, ends


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
