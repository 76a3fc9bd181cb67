"""Why a device was idle: the closed list of causes, and one entry a gap with what was found responsible."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.causes.spans import Spans


class Cause(IntEnum):
    """Why no activity ran; every gap has exactly one."""

    DEVICE = 0  # the next activity was queued: launch processing, graph-node overhead, work that is not recorded
    DEPENDENCY = 1  # it was queued and waited for another queue
    SYNCHRONISATION = 2  # a blocking call kept the host from launching ahead
    LAUNCH_BOUND = 3  # the host dispatched back to back and could not keep up
    DATA_LOADING = 4
    HOST_CODE = 5  # the host ran something else than ops and runtime calls
    MEMORY_MANAGEMENT = 6
    COMPILATION = 7  # of code, of graphs, or loading of modules
    GARBAGE_COLLECTION = 8
    GRAPH_LAUNCH = 9  # the call that launches a graph
    COMMUNICATION_SETUP = 10
    PROFILER = 11
    BEFORE_WINDOW = 12  # the gap ends at an activity launched before the window
    UNKNOWN = 13


class Reason(IntEnum):
    """Why a cause is not known."""

    NONE = 0
    NO_LAUNCH = 1
    NO_OPS = 2
    CLOCK = 3
    CLOCKS_APART = 4


CAUSE_NAMES = tuple(cause.name.lower() for cause in Cause)
REASON_NAMES = (
    "",
    "no launch recorded",
    "no ops recorded on the launching thread",
    "launch recorded after its activity began",
    "host and GPU have clocks of their own",
)
# Causes of which a stretch of the host's own time is to blame.
HOST_CAUSES = (
    Cause.LAUNCH_BOUND,
    Cause.DATA_LOADING,
    Cause.HOST_CODE,
    Cause.MEMORY_MANAGEMENT,
    Cause.COMPILATION,
    Cause.GARBAGE_COLLECTION,
    Cause.GRAPH_LAUNCH,
    Cause.COMMUNICATION_SETUP,
    Cause.PROFILER,
)


class Pieces(Struct, frozen=True, kw_only=True):
    """Stretches of host threads that gaps are blamed on; several a gap where several calls are responsible."""

    gap: NDArray[np.int64]  # index of the gap
    row: NDArray[np.int64]  # the event, a row of the trace; -1: none
    lane: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


class IdleCauses(Struct, frozen=True, kw_only=True):
    """Gaps by (device, start), one entry each; -1 stands for "none". Rows are rows of the trace.

    Rows rather than nodes of the tree, since Python frames without events in them have no node.
    """

    device: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]  # the activity that ended last before the gap
    after: NDArray[np.int64]  # the activity that ended the gap
    cause: NDArray[np.uint8]  # Cause
    reason: NDArray[np.uint8]  # Reason, where the cause is unknown
    row: NDArray[np.int64]  # the responsible event: blocking call, allocator call, data loading, launch …
    op: NDArray[np.int64]  # node of the innermost op round it
    frame: NDArray[np.int64]  # row of a user frame: the deepest that covers half of the gap, or that round the event
    lane: NDArray[np.int64]  # the thread that launched the activity after the gap
    ready: NDArray[np.int64]  # when that activity could have started, had only its launch decided, ns
    blocked_ns: NDArray[np.int64]  # time for which that thread stood in blocking calls before the launch
    covered_ns: NDArray[np.int64]  # time of the gap in which it ran ops or runtime calls
    pieces: Pieces
    special: tuple[Spans, ...]  # host time with a cause of its own (allocator, compilation, data …), by cause
    overheads: tuple[Spans, ...]  # the profiler's and the driver's, on lane 0
    wait_gap: NDArray[np.int64]  # pairs of a gap caused by synchronisation …
    wait: NDArray[np.int64]  # … and a wait (number in `Schedule.waits`) that drained the queue before it

    @property
    def dur(self) -> NDArray[np.int64]:
        """Length of each gap, ns."""
        return self.end - self.start

    def of_device(self, device: int) -> NDArray[np.int64]:
        """Indices of a device's gaps, by start: they come by device."""
        low, high = np.searchsorted(self.device, (device, device + 1)).tolist()
        return np.arange(low, high)

    def of_cause(self, device: int, cause: Cause) -> NDArray[np.int64]:
        """Indices of a device's gaps of one cause, by start."""
        return np.flatnonzero((self.device == device) & (self.cause == int(cause)))

    def idle_ns(self, device: int) -> dict[Cause, int]:
        """Idle time of a device by cause, largest first."""
        mine = self.of_device(device)
        spent = np.zeros(len(Cause), dtype=np.int64)
        np.add.at(spent, self.cause[mine], self.dur[mine])
        ranked = sorted(Cause, key=lambda cause: (-int(spent[cause]), int(cause)))
        return {cause: int(spent[cause]) for cause in ranked if spent[cause]}
