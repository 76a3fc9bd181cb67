"""Blocking calls: which GPU work each waited for, how long the call takes by itself, how soon it returns.

What a call waits for is recorded (synchronisation events), told by its name (whole device, the copy it launched
itself), or taken from the thread's last launch. Times decide where names leave it open: a call cannot have waited
for work that was still running when it returned.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Work
from rooftrace.kernelnames import describe_copy
from rooftrace.schedule.calls import nodes_by_correlation, sync_rows
from rooftrace.schedule.ends import find_ends
from rooftrace.schedule.model import WaitKind, Waits
from rooftrace.sorted_unique import grouped, sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.calls import Calls, Launches
    from rooftrace.schedule.ends import Ends
    from rooftrace.schedule.queues import Queues
    from rooftrace.trace import Trace

# Clocks of host and device agree to about this.
_TOLERANCE_NS = 2_000
# A call returns within this of the end of the work it waited for (observed: 4 to 20 µs).
_PROMPT_NS = 100_000
# The time from that end to the return, where no call of the run shows it.
_USUAL_TAIL_NS = 5_000
# Time of a blocking call by itself, where every call of its name waited: about that of a launch call.
_USUAL_OWN_NS = 5_000
_HOST_COPIES = ("HtoD", "DtoH")


class Scene(Struct, frozen=True, kw_only=True):
    """What the search looks at."""

    trace: Trace
    tree: CallTree
    activities: Activities
    queues: Queues
    calls: Calls
    launches: Launches


class Wait(Struct, frozen=True):
    """A blocking call and the activity it waits for (-1: none); ``queue`` is -1 for all queues."""

    node: int
    kind: WaitKind
    queue: int
    activity: int
    guessed: bool = False


def find_waits(scene: Scene, full: list[Wait]) -> Waits:
    """All blocking calls; those of full queues are given."""
    ends = find_ends(scene.activities, scene.queues)
    found = [*full, *_synchronisations(scene, ends), *_copies(scene), *_drains(scene, ends)]
    taken: dict[int, Wait] = {}
    for wait in found:
        taken.setdefault(wait.node, wait)
    for outer in _around_others(scene.tree, np.array(sorted(taken), dtype=np.int64)):
        del taken[outer]
    ordered = [taken[node] for node in sorted(taken)]
    return _columns(scene, ordered)


def _around_others(tree: CallTree, nodes: NDArray[np.int64]) -> list[int]:
    """Those of some calls that enclose another of them: the inner one is where the thread stands."""
    among = np.zeros(tree.row.size + 1, dtype=bool)  # the last entry serves the parent of a root
    among[nodes] = True
    nearest = np.r_[tree.innermost(among[:-1]), -1]
    outer = nearest[tree.parent[nodes]]
    around: list[int] = sorted_unique(outer[outer >= 0]).tolist()
    return around


def _synchronisations(scene: Scene, ends: Ends) -> list[Wait]:
    recorded = sync_rows(scene.trace)
    record_calls = nodes_by_correlation(scene.trace, scene.tree, scene.calls.record)
    found = _device_waits(scene, ends)
    for kind in (WaitKind.STREAM, WaitKind.EVENT):
        nodes = scene.calls.waits[kind]
        ended = _ended_in(scene, nodes, ends).tolist()
        for node, activity in zip(nodes.tolist(), ended, strict=True):
            row = recorded.get(int(scene.trace.correlation[scene.tree.row[node]]), -1)
            if kind is WaitKind.STREAM:
                found.append(_stream_wait(scene, node, row, activity))
            else:
                found.append(_event_wait(scene, node, (row, record_calls), activity))
    return found


def _device_waits(scene: Scene, ends: Ends) -> list[Wait]:
    """Waits for a device; one with work left at the return is another one, unless all have."""
    nodes = scene.calls.waits[WaitKind.DEVICE]
    if not scene.activities.row.size:
        return [Wait(node, WaitKind.DEVICE, -1, -1) for node in nodes.tolist()]
    last = _last_of_done(scene, nodes, ends)
    before, limit = scene.tree.start[nodes], scene.tree.end[nodes] + _TOLERANCE_NS
    contradicted = np.flatnonzero(last < 0)
    if contradicted.size:
        last[contradicted] = ends.ended.last_by(before[contradicted], limit[contradicted])
    return [Wait(node, WaitKind.DEVICE, -1, at) for node, at in zip(nodes.tolist(), last.tolist(), strict=True)]


def _last_of_done(scene: Scene, nodes: NDArray[np.int64], ends: Ends) -> NDArray[np.int64]:
    """The last activity of those devices on which all work launched before a call had ended at its return; -1: none."""
    before, limit = scene.tree.start[nodes], scene.tree.end[nodes] + _TOLERANCE_NS
    end, found = scene.activities.end, ends.launched.last(before)
    left = np.flatnonzero((found >= 0) & (end[found] > limit))  # not all devices were done
    found[left] = -1
    for device in ends.devices if left.size else ():
        last = device.last(before[left])
        done = end[last] <= limit[left]
        found[left] = _later(scene.activities, found[left], np.where(done, last, -1))
    return found


def _later(activities: Activities, one: NDArray[np.int64], other: NDArray[np.int64]) -> NDArray[np.int64]:
    """Of each two activities (-1: none) the one that ends last."""
    better = (other >= 0) & ((one < 0) | (activities.end[other] > activities.end[one]))
    return np.where(better, other, one)


def _stream_wait(scene: Scene, node: int, row: int, ended: int) -> Wait:
    """A wait for a stream: the recorded one, else that of the thread's last launch or of what ended in the call."""
    trace, queues = scene.trace, scene.queues
    if row >= 0:
        queue = queues.find(max(int(trace.device[row]), 0), int(trace.stream[row]))
        activity = _last_before(scene, node, queue) if queue >= 0 else -1
        return Wait(node, WaitKind.STREAM, queue, activity)
    launched = scene.launches.around(int(scene.tree.lane[node]), int(scene.tree.start[node]), after=False)
    queue = int(queues.queue[launched]) if launched >= 0 else -1
    activity = _last_before(scene, node, queue) if queue >= 0 else -1
    if activity >= 0 and scene.activities.end[activity] > scene.tree.end[node] + _TOLERANCE_NS:
        activity, queue = ended, int(queues.queue[ended]) if ended >= 0 else -1
        return Wait(node, WaitKind.STREAM, queue, activity, guessed=True)
    return Wait(node, WaitKind.STREAM, queue, activity, guessed=queue < 0 or not queues.alone[queue])


def _event_wait(scene: Scene, node: int, source: tuple[int, dict[int, int]], ended: int) -> Wait:
    """A wait for an event: what was launched to its stream before it was recorded, else what ended in the call."""
    trace, queues = scene.trace, scene.queues
    row, record_calls = source
    record = record_calls.get(int(trace.wait_record[row]), -1) if row >= 0 else -1
    if record >= 0:
        queue = queues.find(max(int(trace.device[row]), 0), int(trace.wait_stream[row]))
        if queue >= 0:
            when = np.array([scene.tree.start[record]])
            return Wait(node, WaitKind.EVENT, queue, int(queues.launched_before(queue, when)[0]))
    queue = int(queues.queue[ended]) if ended >= 0 else -1
    return Wait(node, WaitKind.EVENT, queue, ended, guessed=True)


def _last_before(scene: Scene, node: int, queue: int) -> int:
    """Of what was launched to a queue before a call, the activity that ends last."""
    queues, ends = scene.queues, scene.activities.end
    last = int(queues.launched_before(queue, np.array([scene.tree.start[node]]))[0])
    before = int(queues.reach[last]) if last >= 0 else -1
    # The last of a queue need not end last, where activities of one stream overlap.
    return before if before >= 0 and ends[before] > ends[last] else last


def _ended_in(scene: Scene, nodes: NDArray[np.int64], ends: Ends) -> NDArray[np.int64]:
    """For each call the activity, launched before it, that ended last in it and shortly before its return; -1: none."""
    tree, activities = scene.tree, scene.activities
    start, end = tree.start[nodes], tree.end[nodes]
    if not activities.row.size:
        return np.full(nodes.size, -1, dtype=np.int64)
    found = ends.ended.last_by(start, end + _TOLERANCE_NS)
    finished = activities.end[found]
    prompt = (found >= 0) & (finished > start) & (end - finished <= _PROMPT_NS)
    return np.where(prompt, found, -1)


def _copies(scene: Scene) -> list[Wait]:
    """Calls that return only after the copy between host and device that they launched."""
    activities = scene.activities
    launched = np.flatnonzero((activities.work == int(Work.COPY)) & (activities.launch >= 0))
    names = {code: scene.trace.names[code] for code in sorted_unique(activities.name[launched]).tolist()}
    host = [code for code, name in names.items() if describe_copy(name).direction in _HOST_COPIES]
    launched = launched[np.isin(activities.name[launched], host)]
    nodes = activities.launch[launched]
    covers = activities.end[launched] <= scene.tree.end[nodes] + _TOLERANCE_NS
    return [
        Wait(node, WaitKind.COPY, int(scene.queues.queue[activity]), activity)
        for node, activity in zip(nodes[covers].tolist(), launched[covers].tolist(), strict=True)
    ]


def _drains(scene: Scene, ends: Ends) -> list[Wait]:
    """Allocator and similar calls during which the last queued work ended: they waited for the device.

    A free before which that work had ended waits for nothing as recorded, but does so once the work ends later. It is
    left out where one of its name returned while work was still running.
    """
    nodes, finish, name = scene.calls.draining, scene.activities.end, scene.tree.name
    start, limit = scene.tree.start[nodes], scene.tree.end[nodes] + _TOLERANCE_NS
    if not finish.size:
        return []
    last = ends.launched.last(start)
    waited = (last >= 0) & (start + _TOLERANCE_NS < finish[last]) & (finish[last] <= limit)
    returned = (last >= 0) & (finish[last] > limit)
    ended = (last >= 0) & (start + _TOLERANCE_NS >= finish[last]) & np.isin(nodes, scene.calls.freeing)
    ended &= ~np.isin(name[nodes], name[nodes[returned]])
    return [
        Wait(node, WaitKind.DEVICE, -1, activity, guessed=True)
        for node, activity in zip(nodes[waited | ended].tolist(), last[waited | ended].tolist(), strict=True)
    ]


def _columns(scene: Scene, waits: list[Wait]) -> Waits:
    tree, ends = scene.tree, scene.activities.end
    node = np.array([wait.node for wait in waits], dtype=np.int64)
    activity = np.array([wait.activity for wait in waits], dtype=np.int64)
    start, end = tree.start[node], tree.end[node]
    finished = np.where(activity >= 0, ends[activity] if ends.size else 0, start)
    activity = np.where(finished <= end + _TOLERANCE_NS, activity, -1)  # what outlasts the call was not waited for
    finished = np.where(activity >= 0, np.minimum(finished, end), start)
    waited = (activity >= 0) & (finished > start)
    kind = np.array([int(wait.kind) for wait in waits], dtype=np.uint8)
    after = end - np.where(activity >= 0, ends[activity] if ends.size else 0, start)
    tail = _tails(kind, after, waited)
    return Waits(
        node=node,
        kind=kind,
        stream=np.array([wait.queue for wait in waits], dtype=np.int64),
        activity=activity,
        waited=waited,
        own_ns=_own_times(scene, node, waited),
        tail_ns=tail,
        work_ns=_work_after(kind, tail, waited),
        guessed=np.array([wait.guessed for wait in waits], dtype=bool),
    )


def _own_times(scene: Scene, node: NDArray[np.int64], waited: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Time of each call without waiting: its duration if it did not wait, else the usual one of its name.

    Calls before the first launch or after the last end may have waited for work that is not among the activities.
    """
    tree = scene.tree
    own: NDArray[np.int64] = tree.dur[node]
    did_not = np.zeros(tree.row.size, dtype=bool)
    if waited.any():
        last = scene.activities.end.max()
        first = scene.launches.start.min(initial=last)
        did_not = (tree.start >= first) & (tree.start < last)
    did_not[node[waited]] = False
    held = np.flatnonzero(waited)
    free = np.flatnonzero(did_not & np.isin(tree.name, sorted_unique(tree.name[node[held]])))
    usual = {code: int(np.median(tree.dur[free[alike]])) for code, alike in grouped(tree.name[free])}
    for code, alike in grouped(tree.name[node[held]]):
        own[held[alike]] = np.minimum(own[held[alike]], usual.get(code, _USUAL_OWN_NS))
    return own


def _tails(kind: NDArray[np.uint8], after: NDArray[np.int64], waited: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Time from the end of the work to the return; for calls that did not wait, the usual one as far as it fits."""
    tail: NDArray[np.int64] = after.copy()
    for code in sorted_unique(kind).tolist():
        mine = kind == code
        seen = after[mine & waited]
        usual = max(0, int(np.median(seen))) if seen.size else _USUAL_TAIL_NS
        tail[mine & ~waited] = np.minimum(after[mine & ~waited], usual)
    return tail


def _work_after(kind: NDArray[np.uint8], tail: NDArray[np.int64], waited: NDArray[np.bool_]) -> NDArray[np.int64]:
    """What the tail of each call has beyond the usual return: the usual one is that of the promptest calls."""
    work: NDArray[np.int64] = np.zeros(tail.size, dtype=np.int64)
    for code in sorted_unique(kind[waited]).tolist():
        mine = waited & (kind == code)
        usual = min(max(0, int(np.percentile(tail[mine], 25))), 2 * _USUAL_TAIL_NS)
        work[mine] = np.maximum(0, tail[mine] - usual)
    return work
