"""Queues over time: how many activities are launched and not yet begun, how long launches take and calls block."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Link
from rooftrace.schedule import WaitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule import Schedule
    from rooftrace.schedule.model import Waits


def queue_depths(activities: Activities, schedule: Schedule, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """At each launch of the given activities: how many of them are launched, this one included, and not yet begun.

    Graph-launched ones are left out, since one launch queues all of them.
    """
    own = _own(activities, members)
    launched = np.sort(schedule.launch_start[own])
    return _waiting(launched, np.sort(activities.start[own]), launched)


def queue_curve(
    activities: Activities, schedule: Schedule, device: int, points: int = 50
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Times, evenly over a device's span, ns, and the depth of its queues then."""
    members = np.flatnonzero(activities.device == device)
    own = _own(activities, members)
    if not members.size:
        return members, members
    low, high = int(activities.start[members].min()), int(activities.end[members].max())
    times = np.linspace(low, high, points).astype(np.int64)
    return times, _waiting(np.sort(schedule.launch_start[own]), np.sort(activities.start[own]), times)


def launch_delays(activities: Activities, schedule: Schedule, members: NDArray[np.int64]) -> NDArray[np.int64]:
    """From launch to start of those of the given activities that found an empty queue, ns."""
    chosen = members[schedule.found_empty[members]]
    delays: NDArray[np.int64] = np.maximum(activities.start[chosen] - schedule.launch_start[chosen], 0)
    return delays


def blocked_times(tree: CallTree, activities: Activities, waits: Waits) -> NDArray[np.int64]:
    """Of each blocking call, the time until what it waited for had ended, ns; a full launch queue counts as none."""
    start, end = tree.start[waits.node], tree.end[waits.node]
    real = waits.waited & (waits.activity >= 0) & (waits.kind != int(WaitKind.QUEUE))
    finished = activities.end[waits.activity] if activities.end.size else start
    blocked: NDArray[np.int64] = np.where(real, np.clip(finished, start, end) - start, 0)
    return blocked


def _own(activities: Activities, members: NDArray[np.int64]) -> NDArray[np.int64]:
    own: NDArray[np.int64] = members[(activities.link[members] == int(Link.CORRELATION)) & ~activities.graph[members]]
    return own


def _waiting(launched: NDArray[np.int64], begun: NDArray[np.int64], times: NDArray[np.int64]) -> NDArray[np.int64]:
    depth = np.searchsorted(launched, times, side="right") - np.searchsorted(begun, times, side="right")
    waiting: NDArray[np.int64] = np.maximum(depth, 0).astype(np.int64)
    return waiting
