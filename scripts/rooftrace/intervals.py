"""Interval arithmetic on integer nanoseconds: half-open intervals in two parallel arrays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Union:
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
        total = np.r_[0, np.cumsum(self.end - self.start)]
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
    opens = np.r_[True, start[1:] > reach[:-1]]
    closes = np.r_[opens[1:], True]
    return Union(start[opens], reach[closes])


def shared_time(
    start: NDArray[np.int64], end: NDArray[np.int64], group: NDArray[np.int64], bounds: NDArray[np.int64]
) -> dict[int, list[list[tuple[int, int]]]]:
    """Time in which intervals of each group run, shared among all that run at the same instant.

    For each group, one list per stretch between consecutive ``bounds``: pairs (length times intervals of the group,
    number of intervals running), whose sum of quotients is the group's exact share of the stretch.
    """
    if not start.size:
        return {}
    edges = np.unique(np.r_[start, end, bounds])
    lengths = np.diff(edges)
    running = _running(start, end, edges)
    at = np.searchsorted(edges, bounds)
    levels = np.unique(running)
    shares: dict[int, list[list[tuple[int, int]]]] = {}
    for code in np.unique(group).tolist():
        mine = group == code
        count = _running(start[mine], end[mine], edges)
        stretches: list[list[tuple[int, int]]] = [[] for _ in range(bounds.size - 1)]
        for level in levels[levels > 0].tolist():
            weighted = np.where(running == level, lengths * count, 0)
            total = np.r_[0, np.cumsum(weighted)]
            for stretch, amount in enumerate((total[at[1:]] - total[at[:-1]]).tolist()):
                if amount:
                    stretches[stretch].append((amount, level))
        shares[code] = stretches
    return shares


def _running(start: NDArray[np.int64], end: NDArray[np.int64], edges: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of intervals that run in each stretch between consecutive edges."""
    opened = np.searchsorted(np.sort(start), edges[:-1], side="right")
    closed = np.searchsorted(np.sort(end), edges[:-1], side="right")
    return opened - closed
