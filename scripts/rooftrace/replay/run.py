"""Runs the constraints of a run again, all scenarios at once: every time is a vector with one entry a scenario.

One pass over launches, activities, waits and hand-overs in measured order, linear in their number. The shift of a
thread (replayed less measured time) only changes where it waited, was handed something, or lost host time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.replay.constraints import NEVER, Binding, Constraints, fit, usual_distances
from rooftrace.replay.events import Step, order_events
from rooftrace.replay.scenarios import Changes, compile_scenarios

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.replay.events import Events
    from rooftrace.replay.scenarios import Scenario
    from rooftrace.schedule import Schedule

# Entries of a table of changes (events times scenarios) that are held at once: 8 bytes each.
_TABLE_ENTRIES = 6_000_000
_PIECE = 100_000  # events that are held as Python integers at once


@dataclass(frozen=True, slots=True, kw_only=True)
class _Program:
    """The run in lists: the loop reads single entries, which is slow in arrays."""

    queue: list[int]
    start: list[int]
    dur: list[int]
    gap: list[int]
    latency: list[int]
    lag: list[int]
    dependency: list[int]
    joined: dict[int, list[tuple[int, int]]]  # activity -> further dependencies with their lags
    launch: list[int]
    beside: list[bool]
    fixed: list[bool]
    in_order: list[bool]  # starts after everything before it in its queue
    needed: list[bool]  # its times are read again
    wait_activity: list[int]
    own: list[int]
    tail: list[int]
    handover_from: list[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """When everything happened in a run, recorded or replayed; times in ns."""

    start: NDArray[np.int64]  # of each activity
    end: NDArray[np.int64]
    launched: NDArray[np.int64]  # of each activity, when its queue took it; meaningless without a launch
    event: NDArray[np.int64]  # of each event of `Events`
    held: NDArray[np.bool_]  # of each event: a blocking call that really waited
    binding: NDArray[np.uint8]  # of each activity, what held it back
    slack: NDArray[np.int64]  # of each activity, time that nothing explains


@dataclass(slots=True)
class _State:
    """Times so far, in all scenarios."""

    shift: dict[int, NDArray[np.int64]]  # thread -> replayed less measured time
    position: dict[int, int]  # thread -> measured time of its last event
    launched: list[NDArray[np.int64]]  # launch -> time at which its queue took it
    reach: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> end of everything so far
    start: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> start of its last activity
    first: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # queue -> its first start
    left: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # hand-over -> when its giver was done
    starts: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # activity -> start, of those kept
    ends: dict[int, NDArray[np.int64]] = field(default_factory=dict)  # activity -> end, of those kept
    event_times: list[NDArray[np.int64]] = field(default_factory=list)  # of each event, where all are kept
    held: dict[int, bool] = field(default_factory=dict)  # event -> whether a call waited in the first scenario


def _rows(events: Events) -> Iterator[tuple[int, int, int, int, int]]:
    """Step, item, lane, time and begin of each event; as lists they take ten times the memory, so piece by piece."""
    columns = (events.step, events.item, events.lane, events.time, events.begin)
    for low in range(0, events.step.size, _PIECE):
        yield from zip(*(column[low : low + _PIECE].tolist() for column in columns), strict=True)


class Replay:
    """A run that can be replayed with changes."""

    def __init__(
        self,
        tree: CallTree,
        activities: Activities,
        schedule: Schedule,
        constraints: Constraints | None = None,
    ) -> None:
        self.tree = tree
        self.activities = activities
        self.events = order_events(tree, activities, schedule)
        usable = np.where(self.events.usable_dependency, schedule.dependency, -1)  # an unusable one held nothing back
        self.schedule = schedule = replace(schedule, dependency=usable)
        self.constraints = fit(activities, schedule) if constraints is None else constraints
        self.usual = usual_distances(activities, schedule)
        self._device_of_queue = dict(zip(schedule.queue.tolist(), activities.device.tolist(), strict=True))
        self._program = self._flatten()

    @property
    def measured_ns(self) -> int:
        """Spans of all devices as recorded, summed."""
        return sum(
            int(self.activities.end[mine].max() - self.activities.start[mine].min())
            for device in np.unique(self.activities.device).tolist()
            for mine in (self.activities.device == device,)
        )

    def spans(self, scenarios: Sequence[Scenario]) -> list[int]:
        """Span of the run in each scenario, summed over devices, ns."""
        width = max(1, _TABLE_ENTRIES // max(1, self.events.step.size))
        result: list[int] = []
        for low in range(0, len(scenarios), width):
            result += self._spans(scenarios[low : low + width])
        return result

    def timeline(self, scenario: Scenario = ()) -> Timeline:
        """Every time of the run in one scenario; a removed activity has no duration."""
        state = self._run(self._compile([scenario]), keep_all=True)
        count = self.activities.row.size
        start = np.array([state.starts[at][0] for at in range(count)], dtype=np.int64)
        end = np.array([state.ends[at][0] for at in range(count)], dtype=np.int64)
        launched = np.array([times[0] for times in state.launched], dtype=np.int64)
        return Timeline(
            start=start,
            end=end,
            launched=np.where(self.events.launch_of >= 0, launched[self.events.launch_of], NEVER)
            if launched.size
            else np.full(count, NEVER),
            event=np.array([times[0] for times in state.event_times], dtype=np.int64),
            held=np.array([state.held.get(at, False) for at in range(self.events.step.size)], dtype=bool),
            binding=self._bindings(start, end, launched),
            slack=self.constraints.slack,
        )

    def measured(self) -> Timeline:
        """Every time of the run as recorded."""
        events, waits = self.events, self.schedule.waits
        held = np.zeros(events.step.size, dtype=bool)
        is_wait = (events.step == int(Step.WAIT)) | (events.step == int(Step.ROOM))
        held[is_wait] = (waits.waited & events.usable_wait)[events.item[is_wait]]
        return Timeline(
            start=self.activities.start,
            end=self.activities.end,
            launched=self.schedule.launch_start,
            event=events.time,
            held=held,
            binding=self.constraints.binding,
            slack=self.constraints.slack,
        )

    def _bindings(
        self, start: NDArray[np.int64], end: NDArray[np.int64], launched: NDArray[np.int64]
    ) -> NDArray[np.uint8]:
        """What held each activity back, given when everything ran."""
        schedule, constraints, events = self.schedule, self.constraints, self.events
        before = np.where(constraints.beside, start[schedule.previous], end[schedule.reach])
        launch = launched[events.launch_of] if launched.size else np.full(start.size, NEVER)
        ready = np.stack(
            [
                np.where(constraints.gap > NEVER, before + constraints.gap, NEVER),
                np.where(events.launch_of >= 0, launch + constraints.latency, NEVER),
                np.where(events.usable_dependency, end[schedule.dependency] + constraints.lag, NEVER),
            ]
        )
        # Of constraints that hold alike, the one that held in the recorded run.
        recorded = constraints.binding.astype(np.int64) - int(Binding.QUEUE)
        rows = np.clip(recorded, 0, 2)[None, :]
        same = np.take_along_axis(ready, rows, axis=0)[0] == ready.max(axis=0)
        holds = np.where(same, rows[0], ready.argmax(axis=0)) + int(Binding.QUEUE)
        known = (recorded >= 0) & (constraints.binding != int(Binding.FIXED))
        result: NDArray[np.uint8] = np.where(known, holds, constraints.binding).astype(np.uint8)
        return result

    def _spans(self, scenarios: Sequence[Scenario]) -> list[int]:
        if not scenarios or not self.activities.row.size:
            return [0] * len(scenarios)
        state = self._run(self._compile(scenarios), keep_all=False)
        total = np.zeros(len(scenarios), dtype=np.int64)
        queues: dict[int, list[int]] = {}
        for queue in state.reach:
            queues.setdefault(self._device_of_queue[queue], []).append(queue)
        for mine in queues.values():
            last = np.max([state.reach[queue] for queue in mine], axis=0)
            total += last - np.min([state.first[queue] for queue in mine], axis=0)
        result: list[int] = total.tolist()
        return result

    def _compile(self, scenarios: Sequence[Scenario]) -> Changes:
        return compile_scenarios(scenarios, self.activities, self.schedule, self.events)

    def _flatten(self) -> _Program:
        """The columns that the loop reads, as lists."""
        activities, schedule, waits = self.activities, self.schedule, self.schedule.waits
        constraints = self.constraints
        fixed = constraints.binding == int(Binding.FIXED)
        needed = np.zeros(activities.row.size, dtype=bool)
        needed[waits.activity[self.events.usable_wait]] = True
        needed[schedule.dependency[self.events.usable_dependency]] = True
        needed[schedule.joined[:, 1]] = True
        joined: dict[int, list[tuple[int, int]]] = {}
        for item, other in schedule.joined[self.events.usable_joined & ~fixed[schedule.joined[:, 0]]].tolist():
            room = int(activities.start[item] - activities.end[other])
            joined.setdefault(item, []).append((other, min(room, self.usual.lag)))
        return _Program(
            queue=schedule.queue.tolist(),
            start=activities.start.tolist(),
            dur=activities.dur.tolist(),
            gap=constraints.gap.tolist(),
            latency=constraints.latency.tolist(),
            lag=np.where(self.events.usable_dependency & ~fixed, constraints.lag, NEVER).tolist(),
            dependency=schedule.dependency.tolist(),
            joined=joined,
            launch=self.events.launch_of.tolist(),
            beside=constraints.beside.tolist(),
            fixed=fixed.tolist(),
            in_order=((constraints.gap >= 0) & ~constraints.beside & ~fixed).tolist(),
            needed=needed.tolist(),
            wait_activity=np.where(self.events.usable_wait, waits.activity, -1).tolist(),
            own=waits.own_ns.tolist(),
            tail=waits.tail_ns.tolist(),
            handover_from=schedule.handovers.from_end.tolist(),
        )

    def _run(self, changes: Changes, *, keep_all: bool) -> _State:
        events = self.events
        zero = np.zeros(changes.count, dtype=np.int64)
        state = _State(
            shift={lane: zero for lane in np.unique(events.lane).tolist()},
            position={},
            launched=[zero] * (int(events.launch_of.max(initial=-1)) + 1),
        )
        for at, (step, item, lane, time, begin) in enumerate(_rows(events)):
            if step == 5:  # Step.ACTIVITY, the hot path; an enum's lookup costs as much as the step
                self._activity(state, changes, item, keep_all=keep_all)
                if keep_all:
                    state.event_times.append(state.starts[item])
                continue
            if at in changes.cuts:
                state.shift[lane] = state.shift[lane] - changes.cuts[at]
            if step == Step.LAUNCH:
                state.launched[item] = state.shift[lane] + time
            elif step in (Step.WAIT, Step.ROOM):
                self._wait(state, changes, at, (step, item, lane, time, begin))
            elif step == Step.LEAVE:
                state.left[item] = state.shift[lane] + time
            else:
                self._resume(state, item, lane, time)
            state.position[lane] = time
            if keep_all:
                state.event_times.append(state.shift[lane] + time)
        return state

    def _activity(self, state: _State, changes: Changes, item: int, *, keep_all: bool) -> None:
        program = self._program
        queue = program.queue[item]
        reach = state.reach.get(queue)
        start = self._start(state, item, reach)
        duration = changes.durations.get(item)
        end = start + (program.dur[item] if duration is None else duration)
        gone = changes.removed.get(item)
        if gone is not None:
            start = start if reach is None else np.where(gone, np.minimum(start, reach), start)
            end = np.where(gone, start, end)
        if reach is None:
            state.first[queue], state.reach[queue] = start, end
        elif program.in_order[item]:
            state.reach[queue] = end
        else:
            state.first[queue] = np.minimum(state.first[queue], start)
            state.reach[queue] = np.maximum(reach, end)
        state.start[queue] = start
        if keep_all or program.needed[item]:
            state.starts[item], state.ends[item] = start, end

    def _start(self, state: _State, item: int, reach: NDArray[np.int64] | None) -> NDArray[np.int64]:
        """The latest of what holds an activity back."""
        program = self._program
        start: NDArray[np.int64] | None = None
        if reach is not None and not program.fixed[item]:
            before = state.start[program.queue[item]] if program.beside[item] else reach
            start = before + program.gap[item]
        launch = program.launch[item]
        if launch >= 0 and not program.fixed[item]:
            ready = state.launched[launch] + program.latency[item]
            start = ready if start is None else np.maximum(start, ready)
        if program.lag[item] > NEVER:
            ready = state.ends[program.dependency[item]] + program.lag[item]
            start = ready if start is None else np.maximum(start, ready)
        for other, lag in program.joined.get(item, ()):
            ready = state.ends[other] + lag
            start = ready if start is None else np.maximum(start, ready)
        if start is None:
            return state.shift[-1] + program.start[item]  # as recorded: nothing is known before it
        return start

    def _wait(self, state: _State, changes: Changes, at: int, event: tuple[int, int, int, int, int]) -> None:
        """A thread goes on once the work it waited for has ended; one before a full queue once it is let in."""
        step, item, lane, time, begin = event
        program = self._program
        activity = program.wait_activity[item]
        if activity < 0:  # it waited for nothing that is known: all of it is host time
            state.shift[lane] = state.shift[lane] - changes.own_cuts.get(at, 0)
            return
        inside = step == Step.WAIT
        free = state.shift[lane] + (begin + (program.own[item] if inside else 0))
        if at in changes.own_cuts:
            free = free - changes.own_cuts[at]
        after = program.tail[item] - (0 if inside else program.own[item])
        work = changes.work_cuts.get(at)
        returned = state.ends[activity] + after
        held = np.maximum(free, returned if work is None else returned - work)
        state.held[at] = bool((held > free)[0])
        share = changes.unblocked.get(item)
        free = held if share is None else free + np.rint((1 - share) * (held - free)).astype(np.int64)
        state.shift[lane] = free - time

    def _resume(self, state: _State, item: int, lane: int, time: int) -> None:
        """A thread goes on after what it was handed, and never before what it had done itself."""
        ready = state.left[item] + (time - self._program.handover_from[item])
        if lane in state.position:
            ready = np.maximum(ready, state.shift[lane] + state.position[lane])
        state.shift[lane] = ready - time
