"""Impossible GPU durations: found, kept as recorded, and cut at their successor for every total.

ROCm writers are known to stamp a kernel with an end seconds after its successors began; one such event would
otherwise be most of the trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree.activities import Activities, Work
from rooftrace.units import NS_PER_MS, NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MIN_COVERED = 3
_TIMES_TYPICAL = 20
_MIN_SEEN = 5
# 1 % of the slowest plausible link (PCIe 3 x1, about 1 GB/s), plus a latency no copy exceeds.
_SLOWEST_COPY_BYTES_PER_S = 10_000_000
_COPY_LATENCY_NS = NS_PER_MS


class Quarantined(Struct, frozen=True, kw_only=True):
    """An activity whose recorded duration cannot be true."""

    index: int
    name: str
    raw_ns: int
    counted_ns: int


def quarantine(activities: Activities, names: list[str]) -> tuple[Quarantined, ...]:
    """Clip impossible durations in place; what was clipped, longest first."""
    found: list[int] = []
    order = np.lexsort((activities.start, activities.stream, activities.device))
    stream, device = activities.stream[order], activities.device[order]
    cuts = np.flatnonzero((np.diff(stream) != 0) | (np.diff(device) != 0)) + 1
    bounds = np.concatenate([[0], cuts, [order.size]])
    typical, longest = _typical_of_name(activities), _longest_of_slow_copies(activities)
    slow = np.maximum.reduceat(longest[order], bounds[:-1]) >= 0 if order.size else longest >= 0
    may = np.flatnonzero(slow | (np.diff(bounds) > _MIN_COVERED)) if order.size else bounds[:0]
    for members in (order[bounds[at] : bounds[at + 1]] for at in may.tolist()):
        for at, plausible in _suspects(activities, members, typical, longest):
            index = int(members[at])
            end = int(activities.start[index]) + plausible
            if at + 1 < members.size:
                end = min(end, int(activities.start[members[at + 1]]))
            activities.clip(index, max(int(activities.start[index]), min(int(activities.end[index]), end)))
            found.append(index)
    result = [
        Quarantined(
            index=index,
            name=names[activities.name[index]],
            raw_ns=int(activities.raw_dur[index]),
            counted_ns=int(activities.dur[index]),
        )
        for index in found
    ]
    return tuple(sorted(result, key=lambda item: (-item.raw_ns, item.index)))


def _typical_of_name(activities: Activities) -> NDArray[np.float64]:
    """Median duration of each activity's name, or NaN for names seen too rarely."""
    typical = np.full(activities.row.size, np.nan)
    order = np.argsort(activities.name, kind="stable")
    cuts = np.flatnonzero(np.diff(activities.name[order])) + 1
    for members in np.split(order, cuts):
        if members.size >= _MIN_SEEN:
            typical[members] = np.median(activities.raw_dur[members])
    return typical


def _longest_of_slow_copies(activities: Activities) -> NDArray[np.int64]:
    """The longest that each copy over a link that is too slow to be true can have taken, ns; -1 for all else."""
    size = activities.nbytes
    slowest = _COPY_LATENCY_NS + size * (NS_PER_S // _SLOWEST_COPY_BYTES_PER_S)
    slow = (activities.work == int(Work.COPY)) & (size >= 0) & (activities.raw_dur > slowest)
    return np.where(slow, slowest, -1)


def _suspects(
    activities: Activities, members: NDArray[np.int64], typical: NDArray[np.float64], longest: NDArray[np.int64]
) -> list[tuple[int, int]]:
    """Impossible durations of a stream: position in start order, and the longest the activity can have taken, ns."""
    start, dur = activities.start[members], activities.raw_dur[members]
    covered = np.searchsorted(start, start + dur, side="left") - np.arange(members.size) - 1
    limit = typical[members]
    # Not interpolated: on a short stream the suspect itself would raise the percentile beyond all suspicion.
    limit = np.where(np.isnan(limit), np.percentile(dur, 99, method="lower"), limit) * _TIMES_TYPICAL
    covers = (covered >= _MIN_COVERED) & (dur > limit)
    plausible = np.where(longest[members] >= 0, longest[members], dur)
    suspect = covers | (longest[members] >= 0)
    return [(at, int(plausible[at])) for at in np.flatnonzero(suspect).tolist()]
