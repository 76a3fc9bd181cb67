"""Interval arithmetic on integer nanoseconds: half-open intervals in two parallel arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Union(Struct, frozen=True):
    """Disjoint intervals in time order; intervals that touch are one."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]

    @property
    def length(self) -> int:
        """Total length, ns."""
        return int((self.end - self.start).sum())

    def covered_before(self, times: NDArray[np.int64]) -> NDArray[np.int64]:
        """Length of the union that lies before each of the given times."""
        if not self.start.size:
            return np.zeros(times.shape, dtype=np.int64)
        total = np.zeros(self.start.size + 1, dtype=np.int64)
        np.cumsum(self.end - self.start, out=total[1:])
        at = np.searchsorted(self.start, times, side="right")
        last = np.maximum(at - 1, 0)
        inside = np.minimum(times, self.end[last]) - self.start[last]
        return np.where(at == 0, 0, total[last] + inside)


def union(start: NDArray[np.int64], end: NDArray[np.int64]) -> Union:
    """The union of intervals given in any order; empty ones vanish."""
    keep = end > start
    start, end = start[keep], end[keep]
    if not start.size:
        return Union(start, end)
    order = np.argsort(start, kind="stable")
    start, reach = start[order], np.maximum.accumulate(end[order])
    opens = np.ones(start.size + 1, dtype=bool)
    np.greater(start[1:], reach[:-1], out=opens[1:-1])
    return Union(start[opens[:-1]], reach[opens[1:]])


def farthest(end: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each entry, the index of the one up to it that ends last; the last of equal ones."""
    reach = np.maximum.accumulate(end)
    latest: NDArray[np.int64] = np.maximum.accumulate(np.where(end == reach, np.arange(end.size), 0))
    return latest


def shared_time(
    start: NDArray[np.int64], end: NDArray[np.int64], group: NDArray[np.int64], bounds: NDArray[np.int64]
) -> dict[int, list[list[tuple[int, int]]]]:
    """Time in which intervals of each group run, shared among all that run at the same instant.

    For each group, one list per stretch between consecutive ``bounds``: pairs (length times intervals of the group,
    number of intervals running), whose sum of quotients is the group's exact share of the stretch.
    """
    if not start.size:
        return {}
    edges = sorted_unique(np.r_[start, end, bounds])
    lengths, running = np.diff(edges), _running(start, end, edges)
    stretch = np.searchsorted(bounds, edges[:-1], side="right") - 1
    inside = (stretch >= 0) & (stretch < bounds.size - 1) & (running > 0)
    width = int(running.max(initial=0)) + 1
    shares: dict[int, list[list[tuple[int, int]]]] = {}
    for code in sorted_unique(group).tolist():
        mine = group == code
        count = _running(start[mine], end[mine], edges)
        used = np.flatnonzero(inside & (count > 0))
        keys, at = np.unique(stretch[used] * width + running[used], return_inverse=True)
        amounts = np.zeros(keys.size, dtype=np.int64)
        np.add.at(amounts, at.reshape(-1), lengths[used] * count[used])
        stretches: list[list[tuple[int, int]]] = [[] for _ in range(bounds.size - 1)]
        for key, amount in zip(keys.tolist(), amounts.tolist(), strict=True):
            if amount:
                stretches[key // width].append((amount, key % width))
        shares[code] = stretches
    return shares


def _running(start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of intervals that run in each stretch between consecutive edges."""
    opened = np.searchsorted(np.sort(start), edges[:-1], side="right")
    closed = np.searchsorted(np.sort(end), edges[:-1], side="right")
    return opened - closed
