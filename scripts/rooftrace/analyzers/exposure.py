"""What of some activities nothing else covers: alone, or shared among those that run at the same time.

Everything is by device: what runs on another device hides nothing.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Work
from rooftrace.intervals import Union, union
from rooftrace.ledger.parts import apportion
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities


def members_of(activities: Activities, work: Work) -> NDArray[np.int64]:
    """The activities of one kind of work."""
    return np.flatnonzero(activities.work == int(work))


def covering(activities: Activities, device: int, below: Work) -> Union:
    """When activities of a kind of work before ``below`` run on a device (the ledger's order of parts)."""
    mine = (activities.device == device) & (activities.work < int(below))
    return union(activities.start[mine], activities.end[mine])


def uncovered_ns(activities: Activities, members: NDArray[np.int64], below: Work) -> NDArray[np.int64]:
    """Time of each member in which no work before ``below`` runs on its device, ns."""
    left: NDArray[np.int64] = activities.dur[members].copy()
    for device in sorted_unique(activities.device[members]).tolist():
        mine = activities.device[members] == device
        cover, chosen = covering(activities, device, below), members[mine]
        ends = cover.covered_before(activities.end[chosen])
        left[mine] -= ends - cover.covered_before(activities.start[chosen])
    return left


def shared_ns(activities: Activities, members: NDArray[np.int64], below: Work) -> NDArray[np.float64]:
    """The same, each instant divided equally among the members that run then: sums to the ledger's exposed part."""
    share = np.zeros(members.size)
    for device in sorted_unique(activities.device[members]).tolist():
        mine = activities.device[members] == device
        chosen = members[mine]
        share[mine] = _shares(activities.start[chosen], activities.end[chosen], covering(activities, device, below))
    return share


def _shares(start: NDArray[np.int64], end: NDArray[np.int64], cover: Union) -> NDArray[np.float64]:
    edges = sorted_unique(np.r_[start, end, cover.start, cover.end])
    low = edges[:-1]
    running = np.searchsorted(np.sort(start), low, side="right") - np.searchsorted(np.sort(end), low, side="right")
    covered = np.searchsorted(cover.start, low, side="right") > np.searchsorted(cover.end, low, side="right")
    each = np.where(covered, 0.0, np.diff(edges) / np.maximum(running, 1))
    total = np.r_[0.0, np.cumsum(each)]
    shares: NDArray[np.float64] = total[np.searchsorted(edges, end)] - total[np.searchsorted(edges, start)]
    return shares


def divided(share: NDArray[np.float64], keys: Sequence[str], whole: int) -> dict[str, int]:
    """``whole`` ns, divided among the keys of the shares; integers that sum to it exactly."""
    spent: dict[str, float] = {}
    for key, ns in zip(keys, share.tolist(), strict=True):
        spent[key] = spent.get(key, 0.0) + ns
    exact = {key: Fraction(ns) for key, ns in spent.items()}
    return apportion(exact, whole) if exact else {}


def uncovered_compute_ns(activities: Activities, device: int) -> int:
    """Time of a device in which something computes and nothing communicates."""
    mine = activities.device == device
    busy = mine & (activities.work < int(Work.COPY))
    comm = mine & (activities.work == int(Work.COMMUNICATION))
    both = union(activities.start[busy], activities.end[busy])
    return both.length - union(activities.start[comm], activities.end[comm]).length


def neighbours(activities: Activities, members: NDArray[np.int64]) -> dict[int, int]:
    """Compute near some collectives by code of its name, ns: what runs up to one duration before or after each of them.

    Time in which anything communicates is left out: that compute hides something already.
    """
    spent: dict[int, int] = {}
    for device in sorted_unique(activities.device[members]).tolist():
        near = members[activities.device[members] == device]
        dur = activities.dur[near]
        window = union(activities.start[near] - dur, activities.end[near] + dur)
        mine = activities.device == device
        comm = np.flatnonzero(mine & (activities.work == int(Work.COMMUNICATION)))
        busy = union(activities.start[comm], activities.end[comm])
        kernels = np.flatnonzero(mine & (activities.work == int(Work.COMPUTE)))
        free = _difference(window, busy)
        low, high = activities.start[kernels], activities.end[kernels]
        time = free.covered_before(high) - free.covered_before(low)
        codes, at = np.unique(activities.name[kernels], return_inverse=True)
        total = np.zeros(codes.size, dtype=np.int64)
        np.add.at(total, at, time)
        for code, ns in zip(codes.tolist(), total.tolist(), strict=True):
            if ns:
                spent[code] = spent.get(code, 0) + ns
    return spent


def _difference(one: Union, other: Union) -> Union:
    """What of the first lies outside the second."""
    edges = sorted_unique(np.r_[one.start, one.end, other.start, other.end])
    low = edges[:-1]

    def inside(part: Union) -> NDArray[np.bool_]:
        opened = np.searchsorted(part.start, low, side="right")
        return opened > np.searchsorted(part.end, low, side="right")

    keep = inside(one) & ~inside(other)
    return union(low[keep], edges[1:][keep])
