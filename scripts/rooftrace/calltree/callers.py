"""The op around a launch that is there for it alone: what goes with the launch if that is not made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree.tree import CallTree


class Callers:
    """Ops of a tree and which of some launching nodes (sorted, distinct) they enclose; made once, asked often."""

    def __init__(self, tree: CallTree, launching: NDArray[np.int64]) -> None:
        self._tree = tree
        self._length = int(tree.end.max()) + 1 if tree.end.size else 1
        self._lanes = tree.lane.astype(np.int64)
        self._ops = tree.kind == int(Kind.CPU_OP)
        self._keys = np.sort(self._lanes[launching] * self._length + tree.start[launching])

    def outermost(self, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
        """For each node the outermost op around it that encloses no more than one launch, or the node itself."""
        tree = self._tree
        current: NDArray[np.int64] = nodes.copy()
        active = np.flatnonzero(current >= 0)
        while active.size:
            above = tree.parent[current[active]]
            fits = (above >= 0) & self._ops[np.maximum(above, 0)]
            active, above = active[fits], above[fits]
            lane = self._lanes[above] * self._length
            low = np.searchsorted(self._keys, lane + tree.start[above])
            high = np.searchsorted(self._keys, lane + tree.end[above])
            single = high - low <= 1
            active, above = active[single], above[single]
            current[active] = above
        return current
