"""Ledger shares: each activity's part of its device's timeline, so that all parts and the gaps make up the span.

At each instant the time belongs in equal parts to the compute activities then running, else to the communication then
running, else to the copies. With F(t) the integral of 1 / (number running), an activity's share is F(end) - F(start).
Shares are whole nanoseconds: rounded down, and the rest of each kind to the largest remainders.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.intervals import Union, union
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities

# Sums of quotients that are whole numbers may come out this much too small.
_ROUNDING = 1e-6


def activity_shares(activities: Activities) -> NDArray[np.int64]:
    """Share of every activity, ns: those of a device sum to its span less its idle time."""
    shares = np.zeros(activities.row.size, dtype=np.int64)
    for device in sorted_unique(activities.device).tolist():
        members = np.flatnonzero(activities.device == device)
        start, end, work = activities.start[members], activities.end[members], activities.work[members]
        shares[members] = shares_of(start, end, work)
    return shares


def shares_of(start: NDArray[np.int64], end: NDArray[np.int64], work: NDArray[np.uint8]) -> NDArray[np.int64]:
    """The shares on one device; ``work`` is 0 compute, 1 communication, 2 copy."""
    shares = np.zeros(start.size, dtype=np.int64)
    nothing = np.empty(0, dtype=np.int64)
    covered = Union(nothing, nothing)
    for kind in (0, 1, 2):
        mine = np.flatnonzero(work == kind)
        with_mine = union(start[work <= kind], end[work <= kind])
        exact = _exact(start[mine], end[mine], covered)
        shares[mine] = _whole(exact, with_mine.length - covered.length)
        covered = with_mine
    return shares


def _exact(start: NDArray[np.int64], end: NDArray[np.int64], covered: Union) -> NDArray[np.float64]:
    """Shares of activities of one kind in what the kinds before it leave."""
    edges = sorted_unique(np.concatenate([start, end, covered.start, covered.end]))
    if edges.size < 2 or not start.size:
        return np.zeros(start.size)
    at = edges[:-1]
    running = np.searchsorted(np.sort(start), at, side="right") - np.searchsorted(np.sort(end), at, side="right")
    taken = np.zeros(at.size, dtype=bool)
    if covered.start.size:
        last = np.searchsorted(covered.start, at, side="right") - 1
        taken = (last >= 0) & (at < covered.end[np.maximum(last, 0)])
    counts = (running > 0) & ~taken
    pieces = np.where(counts, np.diff(edges) / np.maximum(running, 1), 0.0)
    until = np.r_[0.0, np.cumsum(pieces)]
    result: NDArray[np.float64] = until[np.searchsorted(edges, end)] - until[np.searchsorted(edges, start)]
    return result


def _whole(exact: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Integers that sum to ``total``: floors, the rest one by one to the largest remainders, ties in order."""
    floors = np.floor(exact + _ROUNDING).astype(np.int64)
    missing = total - int(floors.sum())
    if not missing:
        return floors
    order = np.argsort(floors - exact, kind="stable")
    if missing < 0:  # rounding went up too often: take it back where the remainder is least
        order = order[::-1]
        order = order[floors[order] > 0]
    chosen = np.resize(order, abs(missing))
    np.add.at(floors, chosen, 1 if missing > 0 else -1)
    return floors
