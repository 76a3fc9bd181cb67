"""The order in which a replay works: launches, activities, waits and hand-overs by the time they were measured at.

Every constraint points backwards in this order, so one pass computes every time.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Link
from rooftrace.schedule import WaitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule import Schedule


class Step(IntEnum):
    """What happens; at one time, in this order: a thread goes on before it launches."""

    WAIT = 0  # a blocking call returns: `item` is its number in `Schedule.waits`
    LEAVE = 1  # a thread is done with what another waits for: `item` is the number of the hand-over
    RESUME = 2  # that other thread goes on
    ROOM = 3  # a full queue has room again for the launch that stood before it: `item` is the number of the wait
    LAUNCH = 4  # a thread reaches a launching call: `item` is the call's number
    ACTIVITY = 5  # `item` is the activity


class Events(Struct, frozen=True, kw_only=True):
    """All steps of a run in working order, and what they refer to."""

    step: NDArray[np.uint8]
    item: NDArray[np.int64]
    lane: NDArray[np.int64]  # of the host thread, -1 for activities
    time: NDArray[np.int64]  # measured, ns: of a launch when its queue took it
    begin: NDArray[np.int64]  # of waits, when the call began; else `time`
    launch_of: NDArray[np.int64]  # of each activity, the number of its launch; -1: none
    usable_wait: NDArray[np.bool_]  # whether a wait's activity comes before it in the order
    usable_dependency: NDArray[np.bool_]
    usable_joined: NDArray[np.bool_]  # the same of each row of `Schedule.joined`


def order_events(tree: CallTree, activities: Activities, schedule: Schedule) -> Events:
    """The steps of a run, sorted."""
    waits, handovers = schedule.waits, schedule.handovers
    bound = (activities.launch >= 0) & (activities.link != int(Link.CARRY_IN))
    nodes, first, launch_of = np.unique(activities.launch[bound], return_index=True, return_inverse=True)
    launch_time = schedule.launch_start[np.flatnonzero(bound)[first]] if nodes.size else nodes
    numbers = np.full(activities.row.size, -1, dtype=np.int64)
    numbers[bound] = launch_of
    key = _activity_keys(activities, schedule, numbers, launch_time)
    room = waits.kind == int(WaitKind.QUEUE)
    wait_time = tree.end[waits.node] - np.where(room, waits.own_ns, 0)
    wait_step = np.where(room, int(Step.ROOM), int(Step.WAIT))
    columns = [
        (_all(Step.LAUNCH, nodes), tree.lane[nodes], launch_time, launch_time),
        (_all(Step.ACTIVITY, key), np.full(key.size, -1), key, key),
        (wait_step, tree.lane[waits.node], wait_time, tree.start[waits.node]),
        (_all(Step.LEAVE, handovers.lane), handovers.from_lane, handovers.from_end, handovers.from_end),
        (_all(Step.RESUME, handovers.lane), handovers.lane, handovers.start, handovers.start),
    ]
    step = np.concatenate([steps for steps, _, _, _ in columns]).astype(np.uint8)
    time = np.concatenate([times for _, _, times, _ in columns]).astype(np.int64)
    item = np.concatenate([np.arange(times.size) for _, _, times, _ in columns])
    order = np.lexsort((item, step, time))
    keys = np.r_[key, 0]  # the last entry serves index -1
    return Events(
        step=step[order],
        item=item[order],
        lane=np.concatenate([lanes for _, lanes, _, _ in columns]).astype(np.int64)[order],
        time=time[order],
        begin=np.concatenate([begins for _, _, _, begins in columns]).astype(np.int64)[order],
        launch_of=numbers,
        usable_wait=(waits.activity >= 0) & (keys[waits.activity] < wait_time),
        usable_joined=key[schedule.joined[:, 1]] < key[schedule.joined[:, 0]],
        usable_dependency=(schedule.dependency >= 0) & (keys[schedule.dependency] < key),
    )


def _all(step: Step, items: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.full(items.size, int(step))


def _activity_keys(
    activities: Activities, schedule: Schedule, launch_of: NDArray[np.int64], launch_time: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Start of each activity, moved behind its launch and its queue's order where clocks disagree."""
    key: NDArray[np.int64] = activities.start.copy()
    bound = launch_of >= 0
    key[bound] = np.maximum(key[bound], launch_time[launch_of[bound]])
    order = np.lexsort((np.arange(key.size), activities.start, schedule.queue))
    bounds = np.concatenate([[0], np.flatnonzero(np.diff(schedule.queue[order])) + 1, [key.size]])
    for at in np.flatnonzero(np.diff(bounds) > 1).tolist():
        members = order[bounds[at] : bounds[at + 1]]
        key[members] = np.maximum.accumulate(key[members])
    return key
