"""Puts the schedule of a run together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rooftrace.schedule.calls import find_calls, find_launches
from rooftrace.schedule.distances import (
    LOW,
    MEDIAN,
    USUAL_GAP_NS,
    USUAL_LATENCY_NS,
    gap_samples,
    latency_samples,
    typical,
    usual_durations,
)
from rooftrace.schedule.full import find_full_queues
from rooftrace.schedule.handovers import find_handovers
from rooftrace.schedule.model import Schedule, WaitKind
from rooftrace.schedule.queues import build_queues, reach_end
from rooftrace.schedule.streams import find_dependencies, infer_dependencies
from rooftrace.schedule.waits import Scene, find_waits
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.model import Waits
    from rooftrace.schedule.queues import Queues
    from rooftrace.trace import Trace


# A launch call that takes this many times the usual of its name did something else as well.
_SLOW_FACTOR = 5
_LEAST_SLOW_NS = 50_000


def build_schedule(trace: Trace, tree: CallTree, activities: Activities) -> Schedule:
    """What every activity and every blocking call of a run waited for."""
    queues = build_queues(tree, activities)
    calls, launches = find_calls(trace, tree), find_launches(tree, activities)
    depth, full = find_full_queues(tree, activities, queues)
    scene = Scene(trace=trace, tree=tree, activities=activities, queues=queues, calls=calls, launches=launches)
    waits = find_waits(scene, full)
    queues = replace(queues, launch_start=_taken(tree, activities, queues.launch_start, waits))
    known = find_dependencies(trace, tree, activities, queues, (calls, launches))
    latencies, _ = _distances(activities, queues, known.activity >= 0)
    dependencies = infer_dependencies(activities, queues, known, typical(latencies, MEDIAN, USUAL_LATENCY_NS))
    latencies, gaps = _distances(activities, queues, dependencies.activity >= 0)
    lanes = sorted_unique(np.r_[launches.lane, tree.lane[waits.node].astype(np.int64)])
    return Schedule(
        queue=queues.queue,
        previous=queues.previous,
        reach=queues.reach,
        dependency=dependencies.activity,
        dependency_source=dependencies.source,
        joined=dependencies.joined,
        launch_start=queues.launch_start,
        found_empty=(activities.launch >= 0) & (queues.launch_start >= reach_end(activities, queues.reach)),
        latency_ns=typical(latencies, LOW, USUAL_LATENCY_NS),
        usual_latency_ns=typical(latencies, MEDIAN, USUAL_LATENCY_NS),
        usual_gap_ns=typical(gaps, MEDIAN, USUAL_GAP_NS),
        depth=depth,
        waits=waits,
        handovers=find_handovers(tree, lanes),
    )


def _distances(
    activities: Activities, queues: Queues, depends: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Launch latencies and gaps of queued activities, ns."""
    launched = latency_samples(activities, queues.reach, queues.launch_start, depends)
    queued = gap_samples(activities, queues.reach, queues.launch_start, depends)
    return (
        np.maximum(activities.start[launched] - queues.launch_start[launched], 0),
        activities.start[queued] - activities.end[queues.reach[queued]],
    )


def _taken(tree: CallTree, activities: Activities, launch_start: NDArray[np.int64], waits: Waits) -> NDArray[np.int64]:
    """When its queue took each launch: at the start of the call, but for calls that did something else first.

    A call that stood before a full queue launched once there was room; a slow one whose work began no sooner than its
    end (it loaded a module, say) launched last.
    """
    shift = np.zeros(tree.row.size, dtype=np.int64)
    launched = np.flatnonzero(activities.launch >= 0)
    nodes = sorted_unique(activities.launch[launched])
    usual = usual_durations(tree, nodes)
    dur = tree.dur[nodes]
    slow = dur > np.maximum(_SLOW_FACTOR * usual, _LEAST_SLOW_NS)
    shift[nodes[slow]] = (dur - usual)[slow]
    early = activities.start[launched] < (tree.start + shift)[activities.launch[launched]]
    shift[activities.launch[launched[early]]] = 0
    shift[waits.node] = 0  # their time is the wait's
    stood = (waits.kind == int(WaitKind.QUEUE)) & waits.waited
    held = waits.node[stood]
    shift[held] = np.maximum(tree.dur[held] - waits.own_ns[stood], 0)
    taken: NDArray[np.int64] = launch_start.copy()
    taken[launched] += shift[activities.launch[launched]]
    return taken
