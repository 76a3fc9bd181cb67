"""The change of a run where several calls in a row become one: kernels that go, and the host time of their calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers.idle_edits import cuts
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload


@dataclass(frozen=True, slots=True, kw_only=True)
class Merged:
    """Activities in a row, by start, and the time that one in their place takes, ns.

    ``at_end``: it stands where the last of them stood, because it needs what comes before each of them.
    """

    activities: NDArray[np.int64]
    time_ns: int
    at_end: bool = False

    @property
    def kept_first(self) -> NDArray[np.int64]:
        """The activities, those that stay before the others."""
        return self.activities[::-1] if self.at_end else self.activities


def chain_ns(workload: Workload, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from the first start to each end if some activities are queued back to back, ns."""
    spent: NDArray[np.int64] = np.cumsum(workload.activities.dur[members])
    return spent + workload.schedule.usual_gap_ns * np.arange(members.size)


def merged_edit(workload: Workload, runs: Sequence[Merged]) -> Edit:
    """Some activities of each run stand for the one: as many as take its time with the gaps that queues keep.

    The last of these is shortened, the others are gone, and so are all calls but one from the host.
    """
    shortened, saved, removed = [], [], []
    for run in runs:
        members = run.kept_first
        chain = chain_ns(workload, members)
        last = int(np.searchsorted(chain, run.time_ns))
        shortened.append(int(members[last]))
        saved.append(min(int(chain[last]) - run.time_ns, int(workload.activities.dur[members[last]])))
        removed.append(members[last + 1 :])
    lane, start, end = _calls_gone(workload, runs)
    return Edit(
        activities=np.array(shortened, dtype=np.int64),
        saved_ns=np.array(saved, dtype=np.int64),
        removed=np.concatenate(removed),
        host=cuts(lane, start, end),
    )


def _calls_gone(workload: Workload, runs: Sequence[Merged]) -> tuple[NDArray[np.int64], ...]:
    """Thread, start and end of every call but one of each run."""
    tree, gone = workload.tree, []
    for run in runs:
        launches = workload.activities.launch[run.activities]
        calls = np.unique(outermost(workload, launches[launches >= 0]))
        gone.append(calls[:-1] if run.at_end else calls[1:])
    node = np.concatenate(gone)
    return tree.lane[node].astype(np.int64), tree.start[node], tree.end[node]


def outermost(workload: Workload, launches: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each launch the outermost op around it that launches nothing else, or the launch itself; -1 without one."""
    tree, launch = workload.tree, workload.activities.launch
    length = int(tree.end.max()) + 1 if tree.end.size else 1
    every = sorted_unique(launch[launch >= 0])
    keys = np.sort(tree.lane[every].astype(np.int64) * length + tree.start[every])
    found: NDArray[np.int64] = launches.copy()
    active = np.flatnonzero(found >= 0)
    while active.size:
        above = tree.parent[found[active]]
        fits = (above >= 0) & (tree.kind[np.maximum(above, 0)] == int(Kind.CPU_OP))
        active, above = active[fits], above[fits]
        lane = tree.lane[above].astype(np.int64) * length
        single = np.searchsorted(keys, lane + tree.end[above]) - np.searchsorted(keys, lane + tree.start[above]) <= 1
        active, above = active[single], above[single]
        found[active] = above
    return found
