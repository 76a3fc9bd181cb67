"""Blocking calls: which GPU work each waited for, how long the call takes by itself, how soon it returns.

What a call waits for is recorded (synchronisation events), told by its name (whole device, the copy it launched
itself), or taken from the thread's last launch. Times decide where names leave it open: a call cannot have waited
for work that was still running when it returned.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import Work
from rooftrace.kernelnames import describe_copy
from rooftrace.schedule.calls import nodes_by_correlation, sync_rows
from rooftrace.schedule.model import WaitKind, Waits

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.schedule.calls import Calls, Launches
    from rooftrace.schedule.queues import Queues
    from rooftrace.trace import Trace

# Clocks of host and device agree to about this.
_TOLERANCE_NS = 2_000
# A call returns within this of the end of the work it waited for (observed: 4 to 20 µs).
_PROMPT_NS = 100_000
# The time from that end to the return, where no call of the run shows it.
_USUAL_TAIL_NS = 5_000
_HOST_COPIES = ("HtoD", "DtoH")


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What the search looks at."""

    trace: Trace
    tree: CallTree
    activities: Activities
    queues: Queues
    calls: Calls
    launches: Launches


@dataclass(frozen=True, slots=True)
class Wait:
    """A blocking call and the activity it waits for (-1: none); ``queue`` is -1 for all queues."""

    node: int
    kind: WaitKind
    queue: int
    activity: int
    guessed: bool = False


def find_waits(scene: Scene, full: list[Wait]) -> Waits:
    """All blocking calls; those of full queues are given."""
    found = [*full, *_synchronisations(scene), *_copies(scene), *_drains(scene)]
    taken: dict[int, Wait] = {}
    for wait in found:
        taken.setdefault(wait.node, wait)
    ordered = [taken[node] for node in sorted(taken)]
    return _columns(scene, ordered)


def _synchronisations(scene: Scene) -> list[Wait]:
    recorded = sync_rows(scene.trace)
    record_calls = nodes_by_correlation(scene.trace, scene.tree, scene.calls.record)
    found = []
    for kind, nodes in scene.calls.waits.items():
        for node in nodes.tolist():
            row = recorded.get(int(scene.trace.correlation[scene.tree.row[node]]), -1)
            if kind is WaitKind.DEVICE:
                found.append(Wait(node, kind, -1, _last_before(scene, node, None)))
            elif kind is WaitKind.STREAM:
                found.append(_stream_wait(scene, node, row))
            else:
                found.append(_event_wait(scene, node, row, record_calls))
    return found


def _stream_wait(scene: Scene, node: int, row: int) -> Wait:
    """A wait for one stream: the recorded one, else that of the thread's last launch."""
    trace, queues = scene.trace, scene.queues
    if row >= 0:
        queue = queues.find(max(int(trace.device[row]), 0), int(trace.stream[row]))
        activity = _last_before(scene, node, queue) if queue >= 0 else -1
        return Wait(node, WaitKind.STREAM, queue, activity)
    launched = scene.launches.around(int(scene.tree.lane[node]), int(scene.tree.start[node]), after=False)
    queue = int(queues.queue[launched]) if launched >= 0 else -1
    activity = _last_before(scene, node, queue) if queue >= 0 else -1
    if activity >= 0 and scene.activities.end[activity] > scene.tree.end[node] + _TOLERANCE_NS:
        activity, queue = _ended_in(scene, node), -1
        queue = int(queues.queue[activity]) if activity >= 0 else -1
    return Wait(node, WaitKind.STREAM, queue, activity, guessed=True)


def _event_wait(scene: Scene, node: int, row: int, record_calls: dict[int, int]) -> Wait:
    """A wait for an event: what was launched to its stream before it was recorded, else what ended in the call."""
    trace, queues = scene.trace, scene.queues
    record = record_calls.get(int(trace.wait_record[row]), -1) if row >= 0 else -1
    if record >= 0:
        queue = queues.find(max(int(trace.device[row]), 0), int(trace.wait_stream[row]))
        if queue >= 0:
            when = np.array([scene.tree.start[record]])
            return Wait(node, WaitKind.EVENT, queue, int(queues.launched_before(queue, when)[0]))
    activity = _ended_in(scene, node)
    queue = int(queues.queue[activity]) if activity >= 0 else -1
    return Wait(node, WaitKind.EVENT, queue, activity, guessed=True)


def _last_before(scene: Scene, node: int, queue: int | None) -> int:
    """Of what was launched before a call (to one queue or to all), the activity that ends last before its return."""
    queues, ends = scene.queues, scene.activities.end
    when = np.array([scene.tree.start[node]])
    numbers = range(queues.bounds.size - 1) if queue is None else (queue,)
    found = [int(queues.launched_before(number, when)[0]) for number in numbers]
    found = [activity for activity in found if activity >= 0]
    # The last of a queue need not end last, where activities of one stream overlap.
    found += [int(queues.reach[activity]) for activity in found if queues.reach[activity] >= 0]
    if queue is None:  # another device's work is not waited for, nor what outlasts the call
        found = [activity for activity in found if ends[activity] <= scene.tree.end[node] + _TOLERANCE_NS]
    return max(found, key=lambda activity: (int(ends[activity]), activity), default=-1)


def _ended_in(scene: Scene, node: int) -> int:
    """The activity that ended last within a call and shortly before its return; -1 if none did."""
    start, end = int(scene.tree.start[node]), int(scene.tree.end[node])
    best = -1
    for number in range(scene.queues.bounds.size - 1):
        activity = int(scene.queues.launched_before(number, np.array([start]))[0])
        if activity < 0:
            continue
        finished = int(scene.activities.end[activity])
        prompt = start < finished <= end + _TOLERANCE_NS and end - finished <= _PROMPT_NS
        if prompt and (best < 0 or finished > scene.activities.end[best]):
            best = activity
    return best


def _copies(scene: Scene) -> list[Wait]:
    """Calls that return only after the copy between host and device that they launched."""
    activities = scene.activities
    launched = np.flatnonzero((activities.work == int(Work.COPY)) & (activities.launch >= 0))
    names = {code: scene.trace.names[code] for code in np.unique(activities.name[launched]).tolist()}
    host = [code for code, name in names.items() if describe_copy(name).direction in _HOST_COPIES]
    launched = launched[np.isin(activities.name[launched], host)]
    nodes = activities.launch[launched]
    covers = activities.end[launched] <= scene.tree.end[nodes] + _TOLERANCE_NS
    return [
        Wait(node, WaitKind.COPY, int(scene.queues.queue[activity]), activity)
        for node, activity in zip(nodes[covers].tolist(), launched[covers].tolist(), strict=True)
    ]


def _drains(scene: Scene) -> list[Wait]:
    """Allocator and similar calls during which the last queued work ended: they waited for the device."""
    found = []
    for node in scene.calls.draining.tolist():
        activity = _last_before(scene, node, None)
        started = int(scene.tree.start[node]) + _TOLERANCE_NS
        if activity >= 0 and started < int(scene.activities.end[activity]) and _nothing_left(scene, node):
            found.append(Wait(node, WaitKind.DEVICE, -1, activity, guessed=True))
    return found


def _nothing_left(scene: Scene, node: int) -> bool:
    """Whether all work launched before a call had ended when it returned."""
    when = np.array([scene.tree.start[node]])
    limit = int(scene.tree.end[node]) + _TOLERANCE_NS
    last = [int(scene.queues.launched_before(n, when)[0]) for n in range(scene.queues.bounds.size - 1)]
    return all(int(scene.activities.end[activity]) <= limit for activity in last if activity >= 0)


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
    return Waits(
        node=node,
        kind=kind,
        stream=np.array([wait.queue for wait in waits], dtype=np.int64),
        activity=activity,
        waited=waited,
        own_ns=_own_times(tree.name[node], end - start, waited),
        tail_ns=_tails(kind, end - finished, waited),
        guessed=np.array([wait.guessed for wait in waits], dtype=bool),
    )


def _own_times(name: NDArray[np.int32], dur: NDArray[np.int64], waited: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Time of each call without waiting: its duration if it did not wait, else the usual one of its name."""
    own: NDArray[np.int64] = dur.copy()
    for code in np.unique(name).tolist():
        mine = name == code
        free = dur[mine & ~waited]
        usual = int(np.median(free)) if free.size else int(dur[mine].min())
        own[mine & waited] = np.minimum(dur[mine & waited], usual)
    return own


def _tails(kind: NDArray[np.uint8], after: NDArray[np.int64], waited: NDArray[np.bool_]) -> NDArray[np.int64]:
    """Time from the end of the work to the return; for calls that did not wait, the usual one as far as it fits."""
    tail: NDArray[np.int64] = after.copy()
    for code in np.unique(kind).tolist():
        mine = kind == code
        seen = after[mine & waited]
        usual = int(np.median(seen)) if seen.size else _USUAL_TAIL_NS
        tail[mine & ~waited] = np.minimum(after[mine & ~waited], usual)
    return tail
