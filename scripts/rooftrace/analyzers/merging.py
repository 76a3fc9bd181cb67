"""The change of a run where several calls in a row become one: kernels that go, and the host time of their calls."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.analyzers.idle_edits import cuts
from rooftrace.calltree import Callers
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import RatedRun


class Merged(Struct, frozen=True, kw_only=True):
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


def chain_ns(workload: RatedRun, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from the first start to each end if some activities are queued back to back, ns."""
    spent: NDArray[np.int64] = np.cumsum(workload.activities.dur[members])
    return spent + workload.schedule.usual_gap_ns * np.arange(members.size)


def callers_of(workload: RatedRun) -> Callers:
    """The ops around the launches of a run."""
    launch = workload.activities.launch
    return Callers(workload.tree, sorted_unique(launch[launch >= 0]))


def merged_edit(workload: RatedRun, runs: Sequence[Merged]) -> Edit:
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


def _calls_gone(workload: RatedRun, runs: Sequence[Merged]) -> tuple[NDArray[np.int64], ...]:
    """Thread, start and end of every call but one of each run."""
    tree, callers, gone = workload.tree, callers_of(workload), []
    for run in runs:
        launches = workload.activities.launch[run.activities]
        calls = sorted_unique(callers.outermost(launches[launches >= 0]))
        gone.append(calls[:-1] if run.at_end else calls[1:])
    node = np.concatenate(gone)
    return tree.lane[node].astype(np.int64), tree.start[node], tree.end[node]
