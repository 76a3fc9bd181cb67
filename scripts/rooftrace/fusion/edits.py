"""The change of a run that fusing would be, as arrays: kernels shortened and removed, host time cut."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Callers
from rooftrace.intervals import union
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.fusion.find import FusionResult


# A call that takes this many times the median of its like, or of all calls, loads a module or compiles: the fused call
# would, too.
_TIMES_TYPICAL = 20


def claimed(result: FusionResult, candidate: Candidate) -> int:
    """Number of activities that a candidate claims."""
    return int(result.activities(candidate).size)


def kernel_edit(
    members: NDArray[np.int64], dur: NDArray[np.int64], fused_ns: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Activities shortened, by how much, and activities removed; ``members`` has a row an instance.

    The first kernel of an instance stands for the fused one; where it is shorter than that, the longest kernels do
    that together are as long. Instances that are as fast as the fused kernel stay as they are.
    """
    times = dur[members]
    slow = times.sum(axis=1) > fused_ns
    members, times = members[slow], times[slow]
    preference = -times.astype(np.int64)
    suffices = times[:, 0] >= fused_ns if times.size else np.zeros(0, dtype=bool)
    preference[suffices, 0] = np.iinfo(np.int64).min
    order = np.argsort(preference, axis=1, kind="stable")
    members, times = np.take_along_axis(members, order, axis=1), np.take_along_axis(times, order, axis=1)
    reached = np.cumsum(times, axis=1)
    kept = reached - times < fused_ns
    last = kept & (reached >= fused_ns)
    return members[last], (reached - fused_ns)[last], members[~kept]


class HostCalls:
    """The host time of calls, with the ops around each that serve it alone."""

    def __init__(self, run: FusionInputs, calls: Calls) -> None:
        self._tree, self._calls, tree = run.tree, calls, run.tree
        launching = sorted_unique(calls.node[calls.node >= 0])
        self._typical = float(np.median(tree.dur[launching])) if launching.size else 0.0
        self._callers = Callers(tree, launching)

    def cuts(self, group: Sequence[Candidate]) -> list[tuple[int, NDArray[np.int64], NDArray[np.int64]]]:
        """By thread the time of calls that are made no more: of each instance all but those that stay launches."""
        removed = [
            (candidate.first[:, None] + np.array(candidate.members[candidate.kept_launches :])[None, :]).reshape(-1)
            for candidate in group
        ]
        nodes = self._calls.node[np.concatenate(removed)]
        nodes = sorted_unique(self._callers.outermost(nodes[nodes >= 0]))
        took = self._tree.dur[nodes]
        if nodes.size:
            nodes = nodes[took <= _TIMES_TYPICAL * min(float(np.median(took)), self._typical)]
        cuts = []
        for lane in sorted_unique(self._tree.lane[nodes]).tolist():
            mine = nodes[self._tree.lane[nodes] == lane]
            cut = union(self._tree.start[mine], self._tree.end[mine])
            if cut.start.size:
                cuts.append((lane, cut.start, cut.end))
        return cuts
