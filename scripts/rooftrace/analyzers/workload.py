"""What every analyzer is given: the run, linked, grouped, rated, and its ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.contracts.base import Score
from rooftrace.intervals import union
from rooftrace.sorted_unique import grouped

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.calltree import Activities, CallTree, Context, OpGroup, Steps
    from rooftrace.causes import IdleCauses
    from rooftrace.contracts.ledger import DeviceLedger
    from rooftrace.platforms import Platform
    from rooftrace.roofline import Rating, Unrated
    from rooftrace.schedule import Schedule
    from rooftrace.trace import Trace

# Shares of a gap that a fix is taken to close (METHODS: impact).
CLOSURES = (0.75, 0.875, 1.0)


class RatedRun(Struct, frozen=True, kw_only=True):
    """A run as far as its kernels are concerned; groups, ratings and op_ids are parallel.

    ``span_ns``: spans of all devices, summed: what every score is a share of.
    """

    trace: Trace
    tree: CallTree
    context: Context
    activities: Activities
    steps: Steps
    groups: list[OpGroup]
    ratings: list[Rating | Unrated]
    op_ids: list[str]
    platform: Platform | None
    schedule: Schedule
    span_ns: int


class Workload(RatedRun, frozen=True, kw_only=True):
    """A run ready to be analysed: with the causes of its idle time and its ledgers."""

    ledgers: list[DeviceLedger]
    causes: IdleCauses


def covered_ns(workload: RatedRun, groups: Sequence[OpGroup]) -> int:
    """Time in which any kernel of the groups runs, over all devices: no fix of them can save more."""
    activities = workload.activities
    members = np.concatenate([group.activities for group in groups])
    start, end = activities.start[members], activities.end[members]
    return sum(union(start[mine], end[mine]).length for _, mine in grouped(activities.device[members]))


def gap_score(gap_ns: float, span_ns: int) -> Score:
    """Share of the span that closing 75, 87.5 and 100 % of a gap is worth."""
    low, mid, high = (round(100.0 * closure * gap_ns / span_ns, 2) if span_ns else 0.0 for closure in CLOSURES)
    return Score(low=low, mid=mid, high=high)


def bound_score(time_ns: float, span_ns: int) -> Score:
    """An upper bound: the whole time, since no part of it can be told to be saved."""
    share = round(100.0 * time_ns / span_ns, 2) if span_ns else 0.0
    return Score(low=share, mid=share, high=share)
