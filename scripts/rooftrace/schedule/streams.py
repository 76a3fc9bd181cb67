"""Dependencies between queues: what an activity waited for on another stream, and how that is known.

Recorded: the synchronisation event of a stream-wait call names the record call it waits for. From calls: between
a thread's last launch before the record call and its next launch after the wait call. Inferred: an activity that
neither its launch nor its own queue explains, and that starts as an activity of another queue ends, or as one that
had filled the device drains.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.intervals import union
from rooftrace.schedule.calls import nodes_by_correlation, sync_rows
from rooftrace.schedule.model import Source
from rooftrace.schedule.queues import LONG_AGO, reach_end
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.calls import Calls, Launches
    from rooftrace.schedule.queues import Queues
    from rooftrace.trace import Trace

# A kernel that starts within this of another stream's end, while its own stream was empty, waited for it. Between
# the end of a collective and the copies that waited for its event 15 µs were measured (MI300X), 1 to 8 µs on NVIDIA.
_NEAR_NS = 20_000
# A kernel that finds the device full starts as the last blocks of the one that fills it drain: 1 to 70 µs before its
# end were measured. It counts as having waited if other queues were busy for nearly all of its delay.
_DRAIN_NS = 100_000
_COVERED = 0.95
# Clocks of a device's queues agree to about this.
_TOLERANCE_NS = 1_000
# Activities looked at first, of those that end near a time.
_FEW = 64
# Less than this beyond launch and queue needs no further explanation.
_UNEXPLAINED_NS = 2_000


class Dependencies(Struct, frozen=True, kw_only=True):
    """For each activity, the one of another queue that it waited for, and how that is known.

    Of several the one that ended last; the others are ``joined``, rows of (activity, the one it waited for).
    """

    activity: NDArray[np.int64]
    source: NDArray[np.uint8]
    joined: NDArray[np.int64]


class _Scene(Struct, frozen=True, kw_only=True):
    trace: Trace
    tree: CallTree
    activities: Activities
    queues: Queues
    calls: Calls
    launches: Launches


def find_dependencies(
    trace: Trace, tree: CallTree, activities: Activities, queues: Queues, parts: tuple[Calls, Launches]
) -> Dependencies:
    """Dependencies between queues that calls tell of; ``parts`` holds the calls and the launches."""
    calls, launches = parts
    found = np.full(activities.row.size, -1, dtype=np.int64)
    source = np.zeros(activities.row.size, dtype=np.uint8)
    joined: list[tuple[int, int]] = []
    if queues.bounds.size > 2:  # at least two queues
        scene = _Scene(trace=trace, tree=tree, activities=activities, queues=queues, calls=calls, launches=launches)
        for waiting, waited_for, how in sorted(_from_calls(scene), key=lambda row: int(activities.end[row[1]])):
            if found[waiting] >= 0:
                joined.append((waiting, int(found[waiting])))
            found[waiting], source[waiting] = waited_for, int(how)
    return Dependencies(activity=found, source=source, joined=np.array(joined, dtype=np.int64).reshape(-1, 2))


def infer_dependencies(activities: Activities, queues: Queues, known: Dependencies, latency: int) -> Dependencies:
    """The same with what times alone tell, given the usual launch latency, ns."""
    found = Dependencies(activity=known.activity.copy(), source=known.source.copy(), joined=known.joined)
    if queues.bounds.size > 2:  # as above
        _from_times(activities, queues, found, latency)
    return found


def _from_calls(scene: _Scene) -> Iterator[tuple[int, int, Source]]:
    """(activity that waits, the one waited for, how that is known) of every stream-wait call."""
    recorded = sync_rows(scene.trace)
    record_calls = nodes_by_correlation(scene.trace, scene.tree, scene.calls.record)
    for node in scene.calls.stream_wait.tolist():
        row = recorded.get(int(scene.trace.correlation[scene.tree.row[node]]), -1)
        if row >= 0:
            waited_for, waiting = _recorded_ends(scene, row, record_calls)
        else:
            waited_for, waiting = _ends_by_order(scene, node)
        if waited_for < 0 or waiting < 0:
            continue
        if scene.activities.end[waited_for] <= scene.activities.start[waiting] + _TOLERANCE_NS:
            yield waiting, waited_for, Source.RECORDED if row >= 0 else Source.CALLS


def _recorded_ends(scene: _Scene, row: int, record_calls: dict[int, int]) -> tuple[int, int]:
    """The activity waited for and the first one that waits, of a recorded stream-wait; -1 where unknown."""
    trace, queues = scene.trace, scene.queues
    device = max(int(trace.device[row]), 0)
    record = record_calls.get(int(trace.wait_record[row]), -1)
    source = queues.find(device, int(trace.wait_stream[row]))
    target = queues.find(device, int(trace.stream[row]))
    if record < 0 or source < 0 or target < 0 or source == target:
        return -1, -1
    when = np.array([scene.tree.start[record]])
    return int(queues.launched_before(source, when)[0]), _first_after(queues, target, int(trace.start[row]))


def _first_after(queues: Queues, number: int, time: int) -> int:
    low, high = int(queues.bounds[number]), int(queues.bounds[number + 1])
    at = low + int(np.searchsorted(queues.taken[low:high], time, side="right"))
    return int(queues.order[at]) if at < high else -1


def _ends_by_order(scene: _Scene, node: int) -> tuple[int, int]:
    """The same from the order of calls on the thread: last launch before the record, next launch after the wait."""
    tree, queues = scene.tree, scene.queues
    lane, time = int(tree.lane[node]), int(tree.start[node])
    records = scene.calls.record
    record = int(records[np.searchsorted(records, node) - 1]) if records.size and records[0] < node else -1
    recorded_at = int(tree.start[record]) if record >= 0 and tree.lane[record] == lane else time
    waited_for = scene.launches.around(lane, recorded_at, after=False)
    waiting = scene.launches.around(lane, time, after=True)
    if waited_for < 0 or waiting < 0 or queues.queue[waited_for] == queues.queue[waiting]:
        return -1, -1
    last = queues.launched_before(int(queues.queue[waited_for]), np.array([recorded_at]))
    return int(last[0]), waiting


def _from_times(activities: Activities, queues: Queues, found: Dependencies, latency: int) -> None:
    launch = queues.launch_start
    own = np.maximum(reach_end(activities, queues.reach), np.where(launch > LONG_AGO, launch + latency, LONG_AGO))
    unexplained = (own > LONG_AGO) & (activities.start - own > _UNEXPLAINED_NS) & (found.activity < 0)
    candidates = np.flatnonzero(unexplained)
    ends = _Ends(activities, queues)
    full = ends.device_was_full(candidates, own[candidates]).tolist()
    for index, ready, was_full in zip(candidates.tolist(), own[candidates].tolist(), full, strict=True):
        other = ends.ended_near(index, ready)
        if other < 0 and was_full:
            other = ends.drained_at(index)
        if other >= 0:
            found.activity[index] = other
            found.source[index] = int(Source.INFERRED)


class _Ends:
    """Activities by end, to find what happened on other queues of a device around a time."""

    def __init__(self, activities: Activities, queues: Queues) -> None:
        self.activities = activities
        self.queues = queues
        self.by_end = np.argsort(activities.end, kind="stable")
        self.ends = activities.end[self.by_end]

    def ended_near(self, index: int, ready: int) -> int:
        """The activity of another queue that ended last before a start, and shortly before it; -1: none did."""
        start = int(self.activities.start[index])
        return self._first_other(index, self._within(max(start - _NEAR_NS, ready), start)[::-1])

    def drained_at(self, index: int) -> int:
        """The running activity of another queue whose end was nearest when one started; -1: none was near its end."""
        start = int(self.activities.start[index])
        return self._first_other(index, self._within(start, start + _DRAIN_NS), begun_before=start)

    def device_was_full(self, indices: NDArray[np.int64], ready: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether other queues kept the device busy for nearly all of the time from being ready to the start."""
        activities = self.activities
        result = np.zeros(indices.size, dtype=bool)
        for device in sorted_unique(activities.device[indices]).tolist():
            mine = np.flatnonzero(activities.device[indices] == device)
            here = activities.device == device  # its own queue was empty all that time
            busy = union(activities.start[here], activities.end[here])
            start = activities.start[indices[mine]]
            covered = busy.covered_before(start) - busy.covered_before(ready[mine])
            result[mine] = covered >= _COVERED * (start - ready[mine])
        return result

    def _within(self, low: int, high: int) -> NDArray[np.int64]:
        """Activities that end between two times, in the order of their ends."""
        first, last = np.searchsorted(self.ends, low, side="left"), np.searchsorted(self.ends, high, side="right")
        return self.by_end[first:last]

    def _first_other(self, index: int, among: NDArray[np.int64], begun_before: int | None = None) -> int:
        """The first that another queue of the device ran, launched before this one; -1: none.

        Looked for in parts that grow: it is mostly among the first few, and thousands can end at once.
        """
        queue, launch, device = self.queues.queue, self.queues.launch_start, self.activities.device
        low, size = 0, _FEW
        while low < among.size:
            near = among[low : low + size]
            fits = (queue[near] != queue[index]) & (device[near] == device[index]) & (launch[near] <= launch[index])
            if begun_before is not None:
                fits &= self.activities.start[near] < begun_before
            if fits.any():
                return int(near[fits.argmax()])
            low, size = low + size, 4 * size
        return -1
