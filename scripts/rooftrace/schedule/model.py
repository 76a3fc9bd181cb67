"""What a run waited for: the constraints that decide when each GPU activity starts and each blocking call returns."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Source(IntEnum):
    """How a dependency is known."""

    NONE = 0
    RECORDED = 1  # arguments of the synchronisation event name stream and event
    CALLS = 2  # from the order of record and wait calls on the launching thread
    INFERRED = 3  # from times alone: it started as another stream's activity ended


class WaitKind(IntEnum):
    """What a blocking call waits for."""

    STREAM = 0  # everything launched to one stream before it
    DEVICE = 1  # everything launched before it
    EVENT = 2  # one activity
    COPY = 3  # the copy it launched itself
    QUEUE = 4  # room in the launch queue of a stream


class Waits(Struct, frozen=True, kw_only=True):
    """Calls that block until GPU work has ended, by (thread, start)."""

    node: NDArray[np.int64]  # the call, a node of the tree
    kind: NDArray[np.uint8]  # WaitKind
    stream: NDArray[np.int64]  # queue number (Schedule.queue) waited for; -1: all of them
    activity: NDArray[np.int64]  # of what was launched before it, the activity that ends last; -1: nothing
    waited: NDArray[np.bool_]  # whether that was still running or queued when the call began
    own_ns: NDArray[np.int64]  # host time of the call itself, had it nothing to wait for
    tail_ns: NDArray[np.int64]  # from the end of the activity to the return of the call; below 0 by clock errors
    work_ns: NDArray[np.int64]  # of the tail, what exceeds the usual return: host time of the call after the wait
    guessed: NDArray[np.bool_]  # the stream is not recorded but taken from the last launch, and the device has several


class Handovers(Struct, frozen=True, kw_only=True):
    """Where a thread went on because another one had finished something, by time at which it went on."""

    lane: NDArray[np.int64]  # the thread that went on
    start: NDArray[np.int64]  # when, ns
    from_lane: NDArray[np.int64]  # the thread it had waited for
    from_end: NDArray[np.int64]  # when that one was done, ns


class Schedule(Struct, frozen=True, kw_only=True):
    """Constraints of a run; arrays with one entry an activity hold indices of activities, -1 stands for none."""

    queue: NDArray[np.int64]  # number of the activity's queue: one a (device, stream)
    previous: NDArray[np.int64]  # the activity before it in its queue
    dependency: NDArray[np.int64]  # an activity of another queue that it waited for
    dependency_source: NDArray[np.uint8]  # Source
    joined: NDArray[np.int64]  # further dependencies that ended earlier: rows (activity, the one it waited for)
    reach: NDArray[np.int64]  # the activity before it in its queue that ends last
    launch_start: NDArray[np.int64]  # when its queue took the launch, ns; meaningless where `activities.launch` is -1
    found_empty: NDArray[np.bool_]  # it was launched after everything before it in its queue had ended
    latency_ns: int  # low percentile of (start - launch start) where the queue was empty
    usual_latency_ns: int  # its median
    usual_gap_ns: int  # median distance of two activities that were queued back to back
    depth: int  # launches that a queue holds before a launch call blocks; 0: never seen to be full
    waits: Waits
    handovers: Handovers
