"""The critical path of a run: which resource decided each instant of the span, from its end backwards.

An activity was held back by its queue, its launch or another queue; a launch by the host thread since that thread
last waited; a wait by the activity it waited for. The stretches cover the span without gap or overlap.
"""

from __future__ import annotations

from bisect import bisect_right
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.replay.constraints import Binding
from rooftrace.replay.events import Step
from rooftrace.sorted_unique import grouped, sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.replay.run import Replay, Timeline


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


class Path(Struct, frozen=True, kw_only=True):
    """The critical path of one device, in time order; times in ns."""

    device: int
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    resource: NDArray[np.uint8]
    activity: NDArray[np.int64]  # of activities, which; -1: none
    lane: NDArray[np.int64]  # of host time, whose; -1: none

    def by_resource(self) -> dict[str, int]:
        """Time of each resource, ns; sums to the span."""
        spent = np.zeros(len(Resource), dtype=np.int64)
        np.add.at(spent, self.resource, self.end - self.start)
        return {resource.name.lower(): int(spent[resource]) for resource in Resource}


def critical_path(replay: Replay, device: int, timeline: Timeline | None = None) -> Path:
    """The critical path of a device, from its last end back to its first start; as recorded if no timeline is given."""
    return _path(_Host(replay, replay.measured() if timeline is None else timeline), device)


def critical_paths(replay: Replay, timeline: Timeline | None = None) -> list[Path]:
    """That of every device, in the order of their numbers."""
    host = _Host(replay, replay.measured() if timeline is None else timeline)
    return [_path(host, device) for device in sorted_unique(replay.activities.device).tolist()]


def _path(host: _Host, device: int) -> Path:
    walk = _Walk(host, device)
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


class _Host:
    """What the walks of all devices share: where threads waited or went on."""

    def __init__(self, replay: Replay, timeline: Timeline) -> None:
        self.replay = replay
        self.times = timeline
        self.runs = replay.events.lane.max(initial=-1) >= 0
        leaves = np.flatnonzero(replay.events.step == int(Step.LEAVE))
        self.left = dict(zip(replay.events.item[leaves].tolist(), timeline.event[leaves].tolist(), strict=True))
        self.points = self._points()

    def _points(self) -> dict[int, tuple[list[int], list[int]]]:
        """For each thread, where it waited or was handed something: (time, position of the event), in time order."""
        events = self.replay.events
        points = np.flatnonzero(self.times.held | (events.step == int(Step.RESUME)))
        return {
            lane: (self.times.event[points[mine]].tolist(), points[mine].tolist())
            for lane, mine in grouped(events.lane[points])
        }


class _Walk:
    """Goes back in time; ``now`` is where the stretch being looked for ends."""

    def __init__(self, host: _Host, device: int) -> None:
        self.host, self.replay, self.times = host, host.replay, host.times
        low, high = np.searchsorted(self.replay.activities.device, (device, device + 1)).tolist()
        self.begin = int(self.times.start[low:high].min())
        self.now = int(self.times.end[low:high].max())
        self.last = low + int(np.argmax(self.times.end[low:high]))
        self.rows: list[tuple[int, int, int, int, int]] = []

    def run(self) -> None:
        """Collect the stretches."""
        place: tuple[str, int] | None = ("activity", self.last)
        seen: set[tuple[str, int]] = set()  # at this time: events without a duration could lead round in a circle
        while place is not None and self.now > self.begin and place not in seen:
            kind, item = place
            seen.add(place)
            before = self.now
            place = self._from_activity(item) if kind == "activity" else self._from_host(item)
            if self.now < before:
                seen.clear()
        if self.now > self.begin:
            self._take(self.begin, Resource.HOST if self.host.runs else Resource.UNEXPLAINED)

    def _take(self, since: int, resource: Resource, activity: int = -1, lane: int = -1) -> None:
        since = max(min(since, self.now), self.begin)
        if since < self.now:
            self.rows.append((since, self.now, int(resource), activity, lane))
            self.now = since

    def _from_activity(self, item: int) -> tuple[str, int] | None:
        replay, times = self.replay, self.times
        self._take(int(times.start[item]), Resource(int(replay.activities.work[item])), activity=item)
        binding = Binding(int(times.binding[item]))
        self._take(self.now - int(times.slack[item]), Resource.UNEXPLAINED)
        if binding is Binding.LAUNCH:
            self._take(int(times.launched[item]), Resource.LAUNCH)
            return "host", int(replay.tree.lane[replay.activities.launch[item]])
        if binding is Binding.DEPENDENCY:
            other = int(replay.schedule.dependency[item])
            self._take(int(times.end[other]), Resource.DEPENDENCY)
            return "activity", other
        if binding is Binding.QUEUE:
            beside = bool(replay.constraints.beside[item])
            before = int(replay.schedule.previous[item] if beside else replay.schedule.reach[item])
            self._take(int(times.end[before]), Resource.DEVICE)
            return "activity", before
        return self._from_carry_in(item)

    def _from_carry_in(self, item: int) -> tuple[str, int] | None:
        """Launched before the window, or with nothing known before it: only the queues tell."""
        schedule, ends = self.replay.schedule, self.times.end
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
        times, positions = self.host.points.get(lane, ([], []))
        at = bisect_right(times, self.now) - 1
        if at < 0:
            self._take(self.begin, Resource.HOST, lane=lane)
            return None
        events, schedule = self.replay.events, self.replay.schedule
        item = int(events.item[positions[at]])
        self._take(times[at], Resource.HOST, lane=lane)
        if events.step[positions[at]] == int(Step.RESUME):
            giver, left = int(schedule.handovers.from_lane[item]), self.host.left[item]
            self._take(left, Resource.HOST, lane=lane)
            return "host", giver
        activity = int(schedule.waits.activity[item])
        self._take(int(self.times.end[activity]), Resource.SYNCHRONISATION, lane=lane)
        return "activity", activity
