"""Launch queues: the order of activities in each, and when each was taken from the host.

A queue is a stream of a device. Streams are first in, first out, so the order of starts is the order of launches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.intervals import farthest
from rooftrace.sorted_unique import distinct_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree

LONG_AGO = -(1 << 62)


class Queues(Struct, frozen=True, kw_only=True):
    """Activities by queue. ``order`` lists them queue by queue, by start; ``bounds`` cuts it."""

    queue: NDArray[np.int64]
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    device: NDArray[np.int64]  # of each queue
    stream: NDArray[np.int64]  # of each queue
    alone: NDArray[np.bool_]  # of each queue, whether it is the only one of its device
    previous: NDArray[np.int64]
    reach: NDArray[np.int64]  # activity before it in its queue that ends last
    launch_start: NDArray[np.int64]
    taken: NDArray[np.int64]  # by place in `order`: running maximum of launch starts in the queue
    number: dict[tuple[int, int], int]  # of the queue of a (device, stream)

    def members(self, number: int) -> NDArray[np.int64]:
        """Activities of a queue, in order."""
        return self.order[self.bounds[number] : self.bounds[number + 1]]

    def launched_before(self, number: int, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """The last activity of a queue that was launched before each of the times; -1 where none was."""
        low, high = self.bounds[number], self.bounds[number + 1]
        at = np.searchsorted(self.taken[low:high], times, side="left")
        return np.where(at > 0, self.order[np.maximum(low + at - 1, low)], -1)

    def find(self, device: int, stream: int) -> int:
        """Number of the queue of a stream; -1 if it ran nothing."""
        return self.number.get((device, stream), -1)


def build_queues(tree: CallTree, activities: Activities) -> Queues:
    """The queues of a run."""
    first, queue = distinct_rows(activities.device, activities.stream)
    devices, streams = activities.device[first], activities.stream[first]  # they come by device
    low, high = (np.searchsorted(devices, devices, side=side) for side in ("left", "right"))
    order = np.lexsort((np.arange(queue.size), activities.start, queue))
    bounds = np.searchsorted(queue[order], np.arange(first.size + 1))
    launched = activities.launch >= 0
    launch_start = np.full(queue.size, LONG_AGO, dtype=np.int64)
    launch_start[launched] = tree.start[activities.launch[launched]]
    previous = np.full(queue.size, -1, dtype=np.int64)
    previous[order[1:]] = np.where(queue[order[1:]] == queue[order[:-1]], order[:-1], -1)
    reach = np.full(queue.size, -1, dtype=np.int64)
    taken = launch_start[order]
    for number in np.flatnonzero(np.diff(bounds) > 1).tolist():
        mine = slice(bounds[number], bounds[number + 1])
        members = order[mine]
        reach[members[1:]] = members[farthest(activities.end[members])[:-1]]
        taken[mine] = np.maximum.accumulate(taken[mine])
    return Queues(
        queue=queue,
        order=order,
        bounds=bounds,
        device=devices,
        stream=streams,
        alone=high - low == 1,
        previous=previous,
        reach=reach,
        launch_start=launch_start,
        taken=taken,
        number={pair: at for at, pair in enumerate(zip(devices.tolist(), streams.tolist(), strict=True))},
    )


def reach_end(activities: Activities, reach: NDArray[np.int64]) -> NDArray[np.int64]:
    """When everything before each activity in its queue had ended, ns."""
    return np.where(reach >= 0, activities.end[reach], LONG_AGO)
