"""Full launch queues: a launch call that stands still until the oldest launch of its queue has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Work
from rooftrace.schedule.model import WaitKind
from rooftrace.schedule.waits import Wait

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.queues import Queues

# A queue that holds fewer is not full (CUDA streams hold about a thousand launches: observed, not documented).
_LEAST_DEPTH = 64
# A launch call that takes this many times the usual stood still.
_SLOW_FACTOR = 5
_LEAST_SLOW_NS = 20_000
_LEAST_SEEN = 3
_SPREAD = 0.05


def find_full_queues(tree: CallTree, activities: Activities, queues: Queues) -> tuple[int, list[Wait]]:
    """Depth of the launch queues (0: none was seen full) and the waits of launch calls for room in them."""
    long = np.flatnonzero(np.diff(queues.bounds) > _LEAST_DEPTH).tolist()
    tables = {number: _launches(activities, queues, number) for number in long}
    seen: list[int] = []
    for nodes, last, ends in tables.values():
        if nodes.size > _LEAST_DEPTH:
            copies = activities.work[last] == int(Work.COPY)  # their calls may last until the copy is done
            seen += _depths(tree, nodes, ends, ~copies)
    if len(seen) < _LEAST_SEEN:
        return 0, []
    depth = int(np.median(seen))
    if np.mean(np.abs(np.array(seen) - depth) <= _SPREAD * depth) < 0.5:
        return 0, []
    waits = [
        Wait(int(nodes[place]), WaitKind.QUEUE, number, int(last[place - depth]), guessed=True)
        for number, (nodes, last, _) in tables.items()
        for place in range(depth, nodes.size)
    ]
    return depth, waits


def _launches(
    activities: Activities, queues: Queues, number: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Launching calls of a queue in order, the last activity of each and when everything up to it has ended."""
    members = queues.members(number)
    members = members[activities.launch[members] >= 0]
    launch = activities.launch[members]
    if not launch.size:
        return launch, members, members
    lasts = np.r_[np.flatnonzero(np.diff(launch)), launch.size - 1]
    ends = np.maximum.accumulate(activities.end[members])
    return launch[lasts], members[lasts], ends[lasts]


def _depths(tree: CallTree, nodes: NDArray[np.int64], ends: NDArray[np.int64], counts: NDArray[np.bool_]) -> list[int]:
    """Launches in the queue, by each slow call that had many ahead of it, when it was let in."""
    dur = tree.end[nodes] - tree.start[nodes]
    usual = float(np.median(dur))
    slow = np.flatnonzero(counts & (dur > max(_SLOW_FACTOR * usual, _LEAST_SLOW_NS)))
    # The call returned about one usual duration after the oldest launch had ended.
    ended = np.searchsorted(ends, tree.end[nodes[slow]] - int(usual) + 1, side="right")
    depth = slow - ended + 1
    return [value for value in depth.tolist() if value >= _LEAST_DEPTH]
