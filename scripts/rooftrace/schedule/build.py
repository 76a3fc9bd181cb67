"""Puts the schedule of a run together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.schedule import queues as queueing
from rooftrace.schedule.calls import find_calls, find_launches
from rooftrace.schedule.full import find_full_queues
from rooftrace.schedule.handovers import find_handovers
from rooftrace.schedule.model import Schedule, WaitKind
from rooftrace.schedule.streams import find_dependencies
from rooftrace.schedule.waits import Scene, find_waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.model import Waits
    from rooftrace.trace import Trace


def build_schedule(trace: Trace, tree: CallTree, activities: Activities) -> Schedule:
    """What every activity and every blocking call of a run waited for."""
    queues = queueing.build_queues(tree, activities)
    latency, usual_latency = queueing.usual_latency(queueing.launch_latencies(activities, queues))
    calls, launches = find_calls(trace, tree), find_launches(tree, activities)
    depth, full = find_full_queues(tree, activities, queues)
    scene = Scene(trace=trace, tree=tree, activities=activities, queues=queues, calls=calls, launches=launches)
    waits = find_waits(scene, full)
    dependencies = find_dependencies(trace, tree, activities, queues, (calls, launches, usual_latency))
    lanes = np.unique(np.r_[launches.lane, tree.lane[waits.node].astype(np.int64)])
    return Schedule(
        queue=queues.queue,
        previous=queues.previous,
        reach=queues.reach,
        dependency=dependencies.activity,
        dependency_source=dependencies.source,
        launch_start=_taken(tree, activities, queues.launch_start, waits),
        found_empty=queueing.found_empty(activities, queues),
        latency_ns=latency,
        usual_latency_ns=usual_latency,
        usual_gap_ns=queueing.usual_gap(queueing.queue_gaps(activities, queues)),
        depth=depth,
        waits=waits,
        handovers=find_handovers(tree, lanes),
    )


def _taken(tree: CallTree, activities: Activities, launch_start: NDArray[np.int64], waits: Waits) -> NDArray[np.int64]:
    """Start of each launch; of a call that stood before a full queue, the time at which there was room."""
    stood = (waits.kind == int(WaitKind.QUEUE)) & waits.waited
    if not stood.any():
        return launch_start
    shift = np.zeros(tree.row.size, dtype=np.int64)
    nodes = waits.node[stood]
    shift[nodes] = tree.end[nodes] - waits.own_ns[stood] - tree.start[nodes]
    launched = activities.launch >= 0
    taken: NDArray[np.int64] = launch_start.copy()
    taken[launched] += np.maximum(shift[activities.launch[launched]], 0)
    return taken
