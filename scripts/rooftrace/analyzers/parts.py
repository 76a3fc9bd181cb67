"""Parts of op groups that are findings of their own: layout copies inside calls, and forward work run again.

A part is told apart where its whole time can go by another remedy than the rest needs: a layout copy with the layout,
a forward pass run again with the memory to keep its results. What is left of a call is set against the call's floor.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rooftrace.calltree import Link, Work, part_of
from rooftrace.contracts.base import ANALYZER_OF_CATEGORY
from rooftrace.roofline import Rating
from rooftrace.units import pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.calltree import OpGroup
    from rooftrace.kernelnames import KernelInfo

# Whose calls transpose or copy what they are given; elsewhere a copy inside a call is the call's own work.
LAYOUT_ANALYZERS = ("attention", "convolution")
# MIOpen sets a result to zero before it adds to it with `SubTensorOpWithScalar`.
_FILL = re.compile(r"memset|fill|SubTensorOpWithScalar", re.IGNORECASE)


def without_layout_copies(workload: RatedRun) -> RatedRun:
    """The same run with calls of attention and convolution rated by what they do beside their layout copies."""
    groups, ratings = list(workload.groups), list(workload.ratings)
    for at in sorted(set().union(*(layout_groups(workload, analyzer) for analyzer in LAYOUT_ANALYZERS))):
        copies = _is_layout_copy(workload, groups[at])
        groups[at] = part_of(groups[at], workload.activities, workload.context, ~copies)
        rating = ratings[at]
        if isinstance(rating, Rating):
            ratings[at] = _rated_again(groups[at], rating)
    return replace(workload, groups=groups, ratings=ratings)


def without_activities(workload: RatedRun, gone: NDArray[np.int64]) -> tuple[RatedRun, frozenset[int]]:
    """The same run with groups rated by their other calls, and which groups have none left; calls go as a whole."""
    groups, ratings = list(workload.groups), list(workload.ratings)
    emptied: set[int] = set()
    for at, group in enumerate(workload.groups):
        keep = ~np.isin(group.activities, gone)
        if keep.all():
            continue
        if not keep.any():
            emptied.add(at)
            continue
        groups[at] = part_of(group, workload.activities, workload.context, keep)
        rating = ratings[at]
        if isinstance(rating, Rating):
            ratings[at] = _rated_again(groups[at], rating)
    return replace(workload, groups=groups, ratings=ratings), frozenset(emptied)


def only_layout_copies(workload: RatedRun, analyzer: str) -> tuple[RatedRun, list[int]]:
    """The same run with an analyzer's groups cut down to their layout copies, and which those groups are."""
    indices = layout_groups(workload, analyzer)
    return _cut_down(workload, {at: _is_layout_copy(workload, workload.groups[at]) for at in indices}), indices


def only_recomputed(workload: RatedRun) -> tuple[RatedRun, list[int]]:
    """The same run with groups cut down to forward work that a backward pass runs again, and which those groups are."""
    kept: dict[int, NDArray[np.bool_]] = {}
    activities = workload.activities
    for at, group in enumerate(workload.groups):
        if group.recompute_ns > 0:
            launch = activities.launch[group.activities]
            mine = (launch >= 0) & (activities.work[group.activities] == int(Work.COMPUTE))
            mine[mine] = workload.context.recompute[launch[mine]]
            kept[at] = mine
    return _cut_down(workload, kept), sorted(kept)


def layout_groups(workload: RatedRun, analyzer: str) -> list[int]:
    """Groups of an analyzer whose calls copy or transpose beside their own work."""
    found: list[int] = []
    for at, group in enumerate(workload.groups):
        if ANALYZER_OF_CATEGORY.get(group.category) == analyzer and group.link is not Link.CARRY_IN and group.kernel_ns:
            copies = _is_layout_copy(workload, group)
            if copies.any() and not copies.all():
                found.append(at)
    return found


def is_fill(info: KernelInfo) -> bool:
    """Whether a kernel only sets data to a value."""
    return _FILL.search(info.short) is not None


def _cut_down(workload: RatedRun, kept: dict[int, NDArray[np.bool_]]) -> RatedRun:
    groups = list(workload.groups)
    for at, keep in kept.items():
        groups[at] = part_of(groups[at], workload.activities, workload.context, keep)
    return replace(workload, groups=groups)


def _is_layout_copy(workload: RatedRun, group: OpGroup) -> NDArray[np.bool_]:
    """Of each activity of a group, whether it only moves data; what zeroes a result is part of the work."""
    infos = workload.activities.infos
    codes = [code for code in group.kernel_codes if infos[code].category == "memory" and not is_fill(infos[code])]
    moves: NDArray[np.bool_] = np.isin(workload.activities.name[group.activities], codes)
    return moves


def _rated_again(group: OpGroup, rating: Rating) -> Rating:
    """The rating of what is left of a group's calls; faster than the floor it has no gap."""
    floor = rating.floor_ns * group.count
    return replace(
        rating,
        efficiency_pct=min(pct(floor, group.busy_ns), 100.0),
        datasheet_efficiency_pct=min(pct(rating.datasheet_floor_ns * group.count, group.busy_ns), 100.0),
        gap_ns=int(np.maximum(0, group.instance_busy - rating.floor_ns).sum()),
    )
