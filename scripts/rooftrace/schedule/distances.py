"""Usual distances: from a launch to the start, and between two activities that were queued back to back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Link, Work
from rooftrace.schedule.queues import reach_end
from rooftrace.sorted_unique import grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree

# Percentile of launch latencies that stands for the least one (METHODS: replay).
LOW, MEDIAN = 10, 50
# What to assume where no launch or no queued pair was seen; rule of thumb for today's GPUs.
USUAL_LATENCY_NS = 6_000
USUAL_GAP_NS = 1_000
# An activity was queued ahead if its launch began this long before its queue was free: four launch latencies.
_AHEAD_NS = 4 * USUAL_LATENCY_NS


def latency_samples(
    activities: Activities, reach: NDArray[np.int64], launch_start: NDArray[np.int64], depends: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Indices of kernels with a launch of their own that came after everything before them in their queue had ended.

    The first of a queue is none of them: what was there before the recording began is not known. Nor is one that
    depends on another queue.
    """
    own = (activities.link == int(Link.CORRELATION)) & ~activities.graph & (activities.work == int(Work.COMPUTE))
    return np.flatnonzero(own & ~depends & (reach >= 0) & (launch_start >= reach_end(activities, reach)))


def gap_samples(
    activities: Activities, reach: NDArray[np.int64], launch_start: NDArray[np.int64], depends: NDArray[np.bool_]
) -> NDArray[np.int64]:
    """Indices of activities that had been launched well before the one before them in their queue ended.

    One that depends on another queue is none of them.
    """
    free = reach_end(activities, reach)
    queued = (activities.launch >= 0) & (reach >= 0) & (launch_start + _AHEAD_NS < free)
    return np.flatnonzero(queued & ~depends & (activities.start >= free))


def typical(values: NDArray[np.int64], percentile: int, otherwise: int) -> int:
    """A percentile of some times, ns."""
    return int(np.percentile(values, percentile)) if values.size else otherwise


def usual_durations(tree: CallTree, nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each call, the median duration of those among them that have its name, ns."""
    usual, dur = np.zeros(nodes.size, dtype=np.int64), tree.dur[nodes]
    for _, alike in grouped(tree.name[nodes]):
        usual[alike] = int(np.median(dur[alike]))
    return usual
