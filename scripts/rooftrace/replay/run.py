"""A run that can be replayed with changes."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.beside import in_two
from rooftrace.replay.constraints import NEVER, Binding, Constraints, fit, usual_distances
from rooftrace.replay.events import Step, order_events
from rooftrace.replay.program import Recorded, compile_program
from rooftrace.replay.recurrence import Kept, State, run
from rooftrace.replay.scenarios import Compiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.replay.scenarios import Scenario
    from rooftrace.schedule import Schedule

# Entries of the tables of launch times and of known ends (rows times scenarios) held at once: 8 bytes each.
_TABLE_ENTRIES = 8_000_000
# Such entries that are replayed in the time that a copy of the process costs, about 20 ms, twice over.
_WORTH_A_PROCESS = 400_000


class Timeline(Struct, frozen=True, kw_only=True):
    """When everything happened in a run, recorded or replayed; times in ns."""

    start: NDArray[np.int64]  # of each activity
    end: NDArray[np.int64]
    launched: NDArray[np.int64]  # of each activity, when its queue took it; meaningless without a launch
    event: NDArray[np.int64]  # of each event of `Events`
    held: NDArray[np.bool_]  # of each event: a blocking call that really waited
    binding: NDArray[np.uint8]  # of each activity, what held it back
    slack: NDArray[np.int64]  # of each activity, time that nothing explains


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
        self.activities = activities = activities.comparable
        self.events = order_events(tree, activities, schedule)
        usable = np.where(self.events.usable_dependency, schedule.dependency, -1)  # an unusable one held nothing back
        self.schedule = schedule = replace(schedule, dependency=usable)
        self.constraints = fit(activities, schedule) if constraints is None else constraints
        self._recorded = Recorded(
            events=self.events,
            activities=activities,
            schedule=schedule,
            constraints=self.constraints,
            usual_lag=usual_distances(activities, schedule).lag,
        )
        self._device_of_queue = dict(zip(schedule.queue.tolist(), activities.device.tolist(), strict=True))
        self._program = compile_program(self._recorded)

    @cached_property
    def measured_ns(self) -> int:
        """Spans of all devices as recorded, summed."""
        activities = self.activities
        firsts = np.flatnonzero(np.diff(activities.device, prepend=activities.device[:1] - 1))  # they come by device
        if not firsts.size:
            return 0
        spans = np.maximum.reduceat(activities.end, firsts) - np.minimum.reduceat(activities.start, firsts)
        return int(spans.sum())

    def spans(self, scenarios: Sequence[Scenario]) -> list[int]:
        """Span of the run in each scenario, summed over devices, ns."""
        rows = self._program.launches + self._program.slots
        return in_two(self._all_spans, scenarios, is_worth_it=rows * len(scenarios) >= _WORTH_A_PROCESS)

    def _all_spans(self, scenarios: Sequence[Scenario]) -> list[int]:
        width = max(1, _TABLE_ENTRIES // max(1, self._program.launches + self._program.slots))
        result: list[int] = []
        for low in range(0, len(scenarios), width):
            result += self._spans(scenarios[low : low + width])
        return result

    def _spans(self, scenarios: Sequence[Scenario]) -> list[int]:
        if not self.activities.row.size:
            return [0] * len(scenarios)
        state = self._run(scenarios)
        total = np.zeros(len(scenarios), dtype=np.int64)
        queues: dict[int, list[int]] = {}
        for queue in state.reach:
            queues.setdefault(self._device_of_queue[queue], []).append(queue)
        for mine in queues.values():
            last = np.max([state.reach[queue] for queue in mine], axis=0)
            total += last - np.min([state.first[queue] for queue in mine], axis=0)
        result: list[int] = total.tolist()
        return result

    def _run(self, scenarios: Sequence[Scenario], kept: Kept | None = None) -> State:
        return run(self._program, Compiler(self._recorded, self._program, scenarios), len(scenarios), kept)

    def timeline(self, scenario: Scenario = ()) -> Timeline:
        """Every time of the run in one scenario; a removed activity has no duration."""
        count, events = self.activities.row.size, self.events
        kept = Kept(
            event=np.empty(events.step.size, dtype=np.int64),
            held=np.zeros(events.step.size, dtype=bool),
            start=np.empty(count, dtype=np.int64),
            end=np.empty(count, dtype=np.int64),
        )
        state = self._run([scenario], kept)
        is_activity = events.step == int(Step.ACTIVITY)
        kept.event[is_activity] = kept.start[events.item[is_activity]]
        launched = state.launched[:, 0]
        return Timeline(
            start=kept.start,
            end=kept.end,
            launched=np.where(events.launch_of >= 0, launched[events.launch_of], NEVER)
            if launched.size
            else np.full(count, NEVER),
            event=kept.event,
            held=kept.held,
            binding=self._bindings(kept.start, kept.end, launched),
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
