"""Launch queues: the order of activities in each, and when each was taken from the host.

A queue is a stream of a device. Streams are first in, first out, so the order of starts is the order of launches.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Link, Work

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree

# Percentile of launch latencies that stands for the least one (METHODS: replay).
_LOW_PERCENTILE = 10
# What to assume where no launch or no queued pair was seen; rule of thumb for today's GPUs.
_USUAL_LATENCY_NS = 6_000
_USUAL_GAP_NS = 1_000
LONG_AGO = -(1 << 62)


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """Activities by queue. ``order`` lists them queue by queue, by start; ``bounds`` cuts it."""

    queue: NDArray[np.int64]
    order: NDArray[np.int64]
    bounds: NDArray[np.int64]
    device: NDArray[np.int64]  # of each queue
    stream: NDArray[np.int64]  # of each queue
    previous: NDArray[np.int64]
    reach: NDArray[np.int64]  # activity before it in its queue that ends last
    launch_start: NDArray[np.int64]
    taken: NDArray[np.int64]  # by place in `order`: running maximum of launch starts in the queue

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
        found = np.flatnonzero((self.device == device) & (self.stream == stream))
        return int(found[0]) if found.size else -1


def build_queues(tree: CallTree, activities: Activities) -> Queues:
    """The queues of a run."""
    pairs = np.stack([activities.device, activities.stream], axis=1)
    distinct, queue = np.unique(pairs, axis=0, return_inverse=True)
    queue = queue.reshape(-1).astype(np.int64)
    order = np.lexsort((np.arange(queue.size), activities.start, queue))
    bounds = np.searchsorted(queue[order], np.arange(distinct.shape[0] + 1))
    launched = activities.launch >= 0
    launch_start = np.full(queue.size, LONG_AGO, dtype=np.int64)
    launch_start[launched] = tree.start[activities.launch[launched]]
    previous = np.full(queue.size, -1, dtype=np.int64)
    previous[order[1:]] = np.where(queue[order[1:]] == queue[order[:-1]], order[:-1], -1)
    reach = np.full(queue.size, -1, dtype=np.int64)
    taken = np.empty(queue.size, dtype=np.int64)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        members = order[low:high]
        ends = activities.end[members]
        farthest = np.maximum.accumulate(ends)
        reach[members[1:]] = members[np.maximum.accumulate(np.where(ends == farthest, np.arange(ends.size), 0))[:-1]]
        taken[low:high] = np.maximum.accumulate(launch_start[members])
    return Queues(
        queue=queue,
        order=order,
        bounds=bounds,
        device=distinct[:, 0] if distinct.size else np.empty(0, dtype=np.int64),
        stream=distinct[:, 1] if distinct.size else np.empty(0, dtype=np.int64),
        previous=previous,
        reach=reach,
        launch_start=launch_start,
        taken=taken,
    )


def reach_end(activities: Activities, reach: NDArray[np.int64]) -> NDArray[np.int64]:
    """When everything before each activity in its queue had ended, ns."""
    return np.where(reach >= 0, activities.end[reach], LONG_AGO)


def found_empty(activities: Activities, queues: Queues) -> NDArray[np.bool_]:
    """Whether an activity was launched after everything before it in its queue had ended."""
    result: NDArray[np.bool_] = (activities.launch >= 0) & (queues.launch_start >= reach_end(activities, queues.reach))
    return result


def launch_latencies(activities: Activities, queues: Queues) -> NDArray[np.int64]:
    """Start less launch of every kernel with a call of its own that found an empty queue, ns."""
    own = (activities.link == int(Link.CORRELATION)) & ~activities.graph & (activities.work == int(Work.COMPUTE))
    chosen = own & found_empty(activities, queues)
    if not chosen.any():
        return np.empty(0, dtype=np.int64)
    delays: NDArray[np.int64] = np.maximum(activities.start[chosen] - queues.launch_start[chosen], 0)
    return delays


def queue_gaps(activities: Activities, queues: Queues) -> NDArray[np.int64]:
    """Distance of each activity to the one before it, where it had been launched well before that one ended, ns."""
    reach = reach_end(activities, queues.reach)
    queued = (activities.launch >= 0) & (queues.reach >= 0)
    ahead = queued & (queues.launch_start + 4 * _USUAL_LATENCY_NS < reach) & (activities.start >= reach)
    gaps: NDArray[np.int64] = activities.start[ahead] - reach[ahead]
    return gaps


def usual(values: NDArray[np.int64], *, low: bool = False, otherwise: int) -> int:
    """Median of some times, or their low percentile."""
    if not values.size:
        return otherwise
    return int(np.percentile(values, _LOW_PERCENTILE if low else 50))


def usual_latency(latencies: NDArray[np.int64]) -> tuple[int, int]:
    """Low percentile and median of the launch latency, ns."""
    return usual(latencies, low=True, otherwise=_USUAL_LATENCY_NS), usual(latencies, otherwise=_USUAL_LATENCY_NS)


def usual_gap(gaps: NDArray[np.int64]) -> int:
    """Median gap between activities queued back to back, ns."""
    return usual(gaps, otherwise=_USUAL_GAP_NS)
