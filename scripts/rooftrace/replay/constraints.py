"""The run as constraints: what bounds the start of every activity, and by how much.

An activity starts at the latest of: the end of everything before it in its queue plus a gap, its launch plus a
latency, the end of an activity of another queue plus a lag. Of the three the one that held it back (`binding`) keeps
its measured distance; the others get the usual one, as far as the measured start allows. So the unchanged run is
reproduced, and a run with something changed is predicted with usual distances where another constraint takes over.
What the start exceeded all three by, taken at their usual distances, is `slack`: time that no constraint explains.
"""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Link
from rooftrace.schedule.distances import MEDIAN, gap_samples, latency_samples, typical

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities
    from rooftrace.schedule import Schedule

# A constraint that does not exist never holds anything back.
NEVER = -(1 << 61)


class Binding(IntEnum):
    """What held an activity back."""

    NOTHING = 0  # nothing is known before it
    QUEUE = 1
    LAUNCH = 2
    DEPENDENCY = 3
    FIXED = 4  # launched before the window


class Distances(Struct, frozen=True, kw_only=True):
    """Usual distances of a run, ns: what a constraint adds where it was not the one that held."""

    latency: int
    gap: int
    lag: int


class Constraints(Struct, frozen=True, kw_only=True):
    """Per activity: the distance each constraint adds, ns (`NEVER` where there is no such constraint)."""

    gap: NDArray[np.int64]
    latency: NDArray[np.int64]
    lag: NDArray[np.int64]
    binding: NDArray[np.uint8]
    slack: NDArray[np.int64]
    beside: NDArray[np.bool_]  # started well before the activity before it ended: follows that one's start


def usual_distances(activities: Activities, schedule: Schedule, chosen: NDArray[np.bool_] | None = None) -> Distances:
    """The usual distances of a run, or of the chosen part of it: medians over what each constraint alone held back."""
    use = np.ones(activities.row.size, dtype=bool) if chosen is None else chosen
    waiting = np.flatnonzero(use & (schedule.dependency >= 0))
    other = activities.end[schedule.dependency[waiting]]
    lags = (activities.start[waiting] - other)[other > _ready_alone(activities, schedule)[waiting]]
    lags = lags[lags >= 0]
    latency, gap = schedule.usual_latency_ns, schedule.usual_gap_ns
    if chosen is not None:
        depends = schedule.dependency >= 0
        launched = latency_samples(activities, schedule.reach, schedule.launch_start, depends)
        launched = launched[use[launched]]
        latency = typical(activities.start[launched] - schedule.launch_start[launched], MEDIAN, latency)
        queued = gap_samples(activities, schedule.reach, schedule.launch_start, depends)
        queued = queued[use[queued]]
        gap = typical(activities.start[queued] - activities.end[schedule.reach[queued]], MEDIAN, gap)
    return Distances(latency=latency, gap=gap, lag=int(np.median(lags)) if lags.size else 0)


def _ready_alone(activities: Activities, schedule: Schedule) -> NDArray[np.int64]:
    """When each activity could have started but for other queues, ns."""
    reach = np.where(schedule.reach >= 0, activities.end[schedule.reach] + schedule.usual_gap_ns, NEVER)
    launched = np.where(activities.launch >= 0, schedule.launch_start + schedule.usual_latency_ns, NEVER)
    ready: NDArray[np.int64] = np.maximum(reach, launched)
    return ready


def fit(activities: Activities, schedule: Schedule) -> Constraints:
    """The constraints of a run as it was measured."""
    usual = usual_distances(activities, schedule)
    start, end = activities.start, activities.end
    reach = np.where(schedule.reach >= 0, end[schedule.reach], NEVER)
    beside = _runs_beside(activities, schedule)
    before = np.where(beside, start[schedule.previous], reach)
    launched = activities.launch >= 0
    launch = np.where(launched, schedule.launch_start, NEVER)
    other = np.where(schedule.dependency >= 0, end[schedule.dependency], NEVER)
    ready = np.stack([before + usual.gap, launch + usual.latency, other + usual.lag])
    holds = ready.argmax(axis=0)
    latest = ready.max(axis=0)
    known = latest > NEVER // 2
    distances = [
        np.where(base > NEVER, _distance(start, base, holds == row, usual_ns), NEVER)
        for row, (base, usual_ns) in enumerate(((before, usual.gap), (launch, usual.latency), (other, usual.lag)))
    ]
    binding = np.where(known, holds + int(Binding.QUEUE), int(Binding.NOTHING)).astype(np.uint8)
    binding[activities.link == int(Link.CARRY_IN)] = int(Binding.FIXED)
    slack = np.where(known, np.maximum(0, start - latest), 0)
    slack[binding == int(Binding.FIXED)] = 0
    return Constraints(
        gap=distances[0], latency=distances[1], lag=distances[2], binding=binding, slack=slack, beside=beside
    )


def predict(activities: Activities, schedule: Schedule, usual: Distances, chosen: NDArray[np.bool_]) -> Constraints:
    """Constraints with usual distances for the chosen activities: measured are only their durations and launches.

    All others stay where they were measured.
    """
    kept = fit(activities, schedule)
    known = chosen & (activities.launch >= 0)
    lag = np.where(kept.lag < 0, kept.lag, usual.lag)  # a negative one is a device that drains, not an event
    return Constraints(
        gap=np.where(known & (schedule.reach >= 0), usual.gap, kept.gap),
        latency=np.where(known, usual.latency, kept.latency),
        lag=np.where(known & (schedule.dependency >= 0), lag, kept.lag),
        binding=np.where(chosen, kept.binding, int(Binding.FIXED)).astype(np.uint8),
        slack=np.where(chosen, 0, kept.slack),
        beside=kept.beside,
    )


def _distance(
    start: NDArray[np.int64], base: NDArray[np.int64], holds: NDArray[np.bool_], usual: int
) -> NDArray[np.int64]:
    """Measured where the constraint held, else the usual one, never more than there was room for."""
    measured = start - base
    return np.where(holds, measured, np.minimum(measured, usual))


def _runs_beside(activities: Activities, schedule: Schedule) -> NDArray[np.bool_]:
    """Activities that share a stream but not an order: branches of a graph.

    A start shortly before the predecessor's end is the order itself (programmatic dependent launch, rounding).
    """
    inner = schedule.previous >= 0
    overlap = np.where(inner, activities.end[schedule.previous] - activities.start, 0)
    beside: NDArray[np.bool_] = inner & (2 * overlap > activities.dur[schedule.previous]) & (overlap > 0)
    return beside
