"""What ended last: of the activities launched before a time, and by another time.

Searches answer for many calls at once, in a time that grows with the logarithm of the activities and not with the
number of queues. Of several that end at once, that of the first device counts, and of one device the last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Link
from rooftrace.intervals import farthest
from rooftrace.sorted_unique import distinct_rows, grouped

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities
    from rooftrace.schedule.queues import Queues


class Launched:
    """Activities by launch."""

    def __init__(self, launched: NDArray[np.int64], ends: NDArray[np.int64], members: NDArray[np.int64]) -> None:
        by_launch = members[np.lexsort((members, launched[members]))]
        self._launches = launched[by_launch]
        self._last = by_launch[farthest(ends[by_launch])]

    def last(self, before: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of what was launched before each time, the activity that ends last; -1 where nothing was."""
        at = np.searchsorted(self._launches, before, side="left") - 1
        return np.where(at >= 0, self._last[at], -1)


class Ended:
    """Activities by end."""

    def __init__(self, launched: NDArray[np.int64], order: NDArray[np.int64], end: NDArray[np.int64]) -> None:
        self._by_end = np.lexsort((np.arange(order.size), order))
        self._ends = end[self._by_end]
        self._earliest = [launched[self._by_end]]  # launch in every stretch of 1, 2, 4, 8 … activities by end
        while self._earliest[-1].size > 1:
            below = self._earliest[-1]
            self._earliest.append(np.minimum.reduceat(below, np.arange(0, below.size, 2)))

    def last_by(self, before: NDArray[np.int64], limit: NDArray[np.int64]) -> NDArray[np.int64]:
        """Of what was launched before a time and ended by another one, the activity that ends last; -1: nothing."""
        place = np.searchsorted(self._ends, limit, side="right")
        block = np.zeros(place.size, dtype=np.int64)
        height = np.full(place.size, -1, dtype=np.int64)  # of the stretch that holds the answer
        for level, earliest in enumerate(self._earliest):
            aligned = np.flatnonzero((height < 0) & ((place >> level) & 1 == 1))
            beside = (place[aligned] >> level) - 1
            hit = earliest[beside] < before[aligned]
            block[aligned[hit]], height[aligned[hit]] = beside[hit], level
            place[aligned[~hit]] -= 1 << level
        for level in range(len(self._earliest) - 1, 0, -1):
            mine = np.flatnonzero(height == level)
            right = 2 * block[mine] + 1
            block[mine] = right - (self._earliest[level - 1][right] >= before[mine])
            height[mine] = level - 1
        return np.where(height == 0, self._by_end[block], -1)


class Ends(Struct, frozen=True, kw_only=True):
    """The activities of a run, and those of each device, by its number."""

    launched: Launched
    ended: Ended
    devices: tuple[Launched, ...]


def find_ends(activities: Activities, queues: Queues) -> Ends:
    """The activities of a run by launch and by end."""
    launched = np.empty(activities.row.size, dtype=np.int64)
    launched[queues.order] = queues.taken
    lost = activities.link == int(Link.LOST)
    launched[lost] = np.maximum(launched[lost], activities.start[lost])  # not known to be launched before it ran
    _, order = distinct_rows(activities.end, -activities.device)
    return Ends(
        launched=Launched(launched, order, np.arange(order.size)),
        ended=Ended(launched, order, activities.end),
        devices=tuple(Launched(launched, order, members) for _, members in grouped(activities.device)),
    )
