"""The critical path of a run: which resource decided each instant of the span, from its end backwards.

An activity was held back by its queue, its launch or another queue; a launch by the host thread since that thread
last waited; a wait by the activity it waited for. The stretches cover the span without gap or overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.replay.constraints import Binding
from rooftrace.replay.events import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.replay.run import Replay


class Resource(IntEnum):
    """What the run was waiting for; the first three in the order of the ledger's kinds of work."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2
    HOST = 3
    LAUNCH = 4  # from launch call to start, as far as usual
    DEVICE = 5  # between queued activities, as far as usual
    DEPENDENCY = 6  # from another queue's end to the start
    SYNCHRONISATION = 7  # from the end of the work to the return of the call that waited for it
    UNEXPLAINED = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """The critical path of one device, in time order; times in ns."""

    device: int
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    resource: NDArray[np.uint8]
    activity: NDArray[np.int64]  # of activities, which; -1: none
    lane: NDArray[np.int64]  # of host time, whose; -1: none

    def by_resource(self) -> dict[str, int]:
        """Time of each resource, ns; sums to the span."""
        spent = np.bincount(self.resource, weights=(self.end - self.start).astype(np.float64), minlength=len(Resource))
        return {resource.name.lower(): int(spent[resource]) for resource in Resource}


def critical_path(replay: Replay, device: int) -> Path:
    """The critical path of a device, from its last end back to its first start."""
    walk = _Walk(replay, device)
    walk.run()
    rows = np.array(walk.rows[::-1], dtype=np.int64).reshape(-1, 5)
    return Path(
        device=device,
        start=rows[:, 0],
        end=rows[:, 1],
        resource=rows[:, 2].astype(np.uint8),
        activity=rows[:, 3],
        lane=rows[:, 4],
    )


class _Walk:
    """Goes back in time; ``now`` is where the stretch being looked for ends."""

    def __init__(self, replay: Replay, device: int) -> None:
        self.replay = replay
        activities = replay.activities
        mine = np.flatnonzero(activities.device == device)
        self.begin = int(activities.start[mine].min())
        self.now = int(activities.end[mine].max())
        self.last = int(mine[np.argmax(activities.end[mine])])
        self.rows: list[tuple[int, int, int, int, int]] = []
        self._host_points()

    def _host_points(self) -> None:
        """For each thread, where it waited or was handed something: (time, step, item), in time order."""
        events, waits = self.replay.events, self.replay.schedule.waits
        waited = np.zeros(events.step.size, dtype=bool)
        is_wait = (events.step == int(Step.WAIT)) | (events.step == int(Step.ROOM))
        waited[is_wait] = waits.waited[events.item[is_wait]] & events.usable_wait[events.item[is_wait]]
        points = np.flatnonzero(waited | (events.step == int(Step.RESUME)))
        self.points: dict[int, tuple[list[int], list[int]]] = {}
        for lane in np.unique(events.lane[points]).tolist():
            mine = points[events.lane[points] == lane]
            self.points[lane] = (events.time[mine].tolist(), mine.tolist())

    def run(self) -> None:
        """Collect the stretches."""
        place: tuple[str, int] | None = ("activity", self.last)
        while place is not None and self.now > self.begin:
            kind, item = place
            place = self._from_activity(item) if kind == "activity" else self._from_host(item)
        if self.now > self.begin:
            self._take(
                self.begin, Resource.HOST if self.replay.events.lane.max(initial=-1) >= 0 else Resource.UNEXPLAINED
            )

    def _take(self, since: int, resource: Resource, activity: int = -1, lane: int = -1) -> None:
        since = max(min(since, self.now), self.begin)
        if since < self.now:
            self.rows.append((since, self.now, int(resource), activity, lane))
            self.now = since

    def _from_activity(self, item: int) -> tuple[str, int] | None:
        replay = self.replay
        activities, constraints = replay.activities, replay.constraints
        self._take(int(activities.start[item]), Resource(int(activities.work[item])), activity=item)
        binding = Binding(int(constraints.binding[item]))
        self._take(self.now - int(constraints.slack[item]), Resource.UNEXPLAINED)
        if binding is Binding.LAUNCH:
            taken = int(replay.schedule.launch_start[item])
            self._take(taken, Resource.LAUNCH)
            return "host", int(replay.tree.lane[activities.launch[item]])
        if binding is Binding.DEPENDENCY:
            other = int(replay.schedule.dependency[item])
            self._take(int(activities.end[other]), Resource.DEPENDENCY)
            return "activity", other
        if binding is Binding.QUEUE:
            before = int(replay.schedule.previous[item] if constraints.beside[item] else replay.schedule.reach[item])
            self._take(int(activities.end[before]), Resource.DEVICE)
            return "activity", before
        return self._from_carry_in(item)

    def _from_carry_in(self, item: int) -> tuple[str, int] | None:
        """Launched before the window, or with nothing known before it: only the queues tell."""
        schedule, ends = self.replay.schedule, self.replay.activities.end
        before, other = int(schedule.reach[item]), int(schedule.dependency[item])
        if other >= 0 and (before < 0 or ends[other] > ends[before]):
            self._take(int(ends[other]), Resource.DEPENDENCY)
            return "activity", other
        if before < 0:
            return None
        self._take(max(int(ends[before]), self.now - schedule.usual_gap_ns), Resource.DEVICE)
        self._take(int(ends[before]), Resource.UNEXPLAINED)
        return "activity", before

    def _from_host(self, lane: int) -> tuple[str, int] | None:
        """Back along a thread to where it last waited for something."""
        times, positions = self.points.get(lane, ([], []))
        at = int(np.searchsorted(times, self.now, side="right")) - 1
        if at < 0:
            self._take(self.begin, Resource.HOST, lane=lane)
            return None
        events, schedule = self.replay.events, self.replay.schedule
        position = positions[at]
        item = int(events.item[position])
        self._take(times[at], Resource.HOST, lane=lane)
        if events.step[position] == int(Step.RESUME):
            self._take(int(schedule.handovers.from_end[item]), Resource.HOST, lane=lane)
            return "host", int(schedule.handovers.from_lane[item])
        activity = int(schedule.waits.activity[item])
        self._take(int(self.replay.activities.end[activity]), Resource.SYNCHRONISATION, lane=lane)
        return "activity", activity


def slack_ns(paths: list[Path]) -> int:
    """Time on the critical paths that no constraint explains, ns."""
    return sum(path.by_resource()["unexplained"] for path in paths)
