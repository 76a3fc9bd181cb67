"""Gaps and the launches that ended them: when the next activity could have started, had only its launch decided."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Work
from rooftrace.ledger import gap_columns
from rooftrace.schedule.distances import usual_durations
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule import Schedule


class Gaps(Struct, frozen=True, kw_only=True):
    """Gaps by (device, start) and the launches of the activities after them.

    Where there is no launch, node and lane are -1 and times are those of the gap's end.
    """

    device: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]
    launch: NDArray[np.int64]  # node of the launching call
    lane: NDArray[np.int64]
    called: NDArray[np.int64]  # start of that call, or when its full queue had room, ns
    returned: NDArray[np.int64]  # its end, ns
    ready: NDArray[np.int64]  # when the activity could have started, had only its launch decided, ns

    @property
    def dur(self) -> NDArray[np.int64]:
        """Length, ns."""
        return self.end - self.start

    @property
    def queued(self) -> NDArray[np.bool_]:
        """Whether for most of the gap the next activity was queued already."""
        ready = np.clip(self.ready, self.start, self.end)
        return 2 * (self.end - ready) > self.dur


def find_gaps_and_launches(tree: CallTree, activities: Activities, schedule: Schedule) -> Gaps:
    """All gaps of all devices."""
    parts = [_gaps_of(activities, device) for device in sorted_unique(activities.device).tolist()]
    parts = parts or [tuple(np.empty(0, dtype=np.int64) for _ in range(5))]
    device, start, end, before, after = (np.concatenate(column) for column in zip(*parts, strict=True))
    launch = activities.launch[after]
    known = launch >= 0
    called, returned, ready = end.copy(), end.copy(), end.copy()
    lane = np.full(end.size, -1, dtype=np.int64)
    node = launch[known]
    lane[known] = tree.lane[node]
    called[known] = schedule.launch_start[after[known]]
    returned[known] = tree.end[node]
    slow = np.maximum((returned - called)[known] - _usual_launch_times(tree, activities)[node], 0)
    slow[activities.work[after[known]] == int(Work.COPY)] = 0  # a blocking copy's call lasts as long as the copy
    ready[known] = called[known] + slow + schedule.usual_latency_ns
    in_graph = known & activities.graph[after]
    first = _first_of_launch(activities)[after]
    ready[in_graph] = np.where(first, returned, called)[in_graph]
    return Gaps(
        device=device,
        start=start,
        end=end,
        before=before,
        after=after,
        launch=launch,
        lane=lane,
        called=called,
        returned=returned,
        ready=ready,
    )


def _gaps_of(activities: Activities, device: int) -> tuple[NDArray[np.int64], ...]:
    members = np.flatnonzero(activities.device == device)
    gaps = gap_columns(activities.start[members], activities.end[members])
    return np.full(gaps.start.size, device), gaps.start, gaps.end, members[gaps.before], members[gaps.after]


def _usual_launch_times(tree: CallTree, activities: Activities) -> NDArray[np.int64]:
    """For each node: what launches of its name usually take if it is one, else its own duration, ns."""
    usual: NDArray[np.int64] = tree.dur.copy()
    nodes = sorted_unique(activities.launch[activities.launch >= 0])
    nodes = nodes[np.isin(tree.kind[nodes], (int(Kind.RUNTIME), int(Kind.DRIVER)))]
    usual[nodes] = usual_durations(tree, nodes)
    return usual


def _first_of_launch(activities: Activities) -> NDArray[np.bool_]:
    """Whether an activity is the first that its launch set going."""
    order = np.lexsort((activities.start, activities.launch))
    launch = activities.launch[order]
    first = np.zeros(launch.size, dtype=bool)
    first[order] = np.r_[True, launch[1:] != launch[:-1]] if launch.size else first
    return first
