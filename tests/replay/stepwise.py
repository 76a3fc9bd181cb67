"""A second replay, for one scenario: event after event in measured order, in Python integers.

It reads the same constraints as the package and shares no code with its computation in blocks.
"""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction
from itertools import pairwise

import numpy as np

from rooftrace.replay.constraints import NEVER, Binding, usual_distances
from rooftrace.replay.events import Step
from rooftrace.replay.run import Replay


class Stepwise:
    """Every time of a run in one scenario, ns."""

    def __init__(self, replay: Replay, scenario) -> None:
        self.replay = replay
        self.scenario = scenario
        self.shift: dict[int, int] = defaultdict(int)
        self.position: dict[int, int] = {}
        self.launched: dict[int, int] = {}
        self.left: dict[int, int] = {}
        self.reach: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.firsts: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.times: list[int] = []
        self.held: list[bool] = []
        self.lag = usual_distances(replay.activities, replay.schedule).lag
        self.run()

    @property
    def span(self) -> int:
        """Last end less first start, summed over devices."""
        total = 0
        queues = self.replay.schedule.queue
        for device in np.unique(self.replay.activities.device):
            mine = {int(queue) for queue in queues[self.replay.activities.device == device]}
            total += max(self.reach[queue] for queue in mine) - min(self.firsts[queue] for queue in mine)
        return total

    def run(self) -> None:
        events = self.replay.events
        for at in range(events.step.size):
            step, item, lane = int(events.step[at]), int(events.item[at]), int(events.lane[at])
            time = int(events.time[at])
            self.held.append(False)
            if step == Step.ACTIVITY:
                self.activity(item)
                self.times.append(self.starts[item])
                continue
            if step != Step.RESUME:
                before = min(self.position.get(lane, -(10**18)), int(events.begin[at]))
                self.shift[lane] -= self.gone(lane, before, int(events.begin[at]))
            if step == Step.LAUNCH:
                self.launched[item] = time + self.shift[lane]
            elif step == Step.LEAVE:
                self.left[item] = time + self.shift[lane]
            elif step == Step.RESUME:
                self.resume(item, lane, time)
            else:
                self.wait(at, item, lane, time)
            self.position[lane] = time
            self.times.append(time + self.shift[lane])

    def resume(self, item: int, lane: int, time: int) -> None:
        ready = self.left[item] + time - int(self.replay.schedule.handovers.from_end[item])
        if lane in self.position:
            ready = max(ready, self.position[lane] + self.shift[lane])
        self.shift[lane] = ready - time

    def wait(self, at: int, item: int, lane: int, time: int) -> None:
        events, waits = self.replay.events, self.replay.schedule.waits
        begin, inside = int(events.begin[at]), events.step[at] == Step.WAIT
        own = int(waits.own_ns[item])
        own_gone = self.gone(lane, begin, begin + own) if inside else 0
        if not events.usable_wait[item]:
            self.shift[lane] -= own_gone
            return
        free = self.shift[lane] + begin + (own if inside else 0) - own_gone
        returned = self.ends[int(waits.activity[item])] + int(waits.tail_ns[item]) - (0 if inside else own)
        if inside:
            returned -= self.gone(lane, time - int(waits.work_ns[item]), time)
        waited = max(0, returned - free)
        self.held[at] = waited > 0
        shares = [closure for edit, closure in self.scenario if item in edit.unblocked.tolist()]
        kept = round((1 - Fraction(max(shares, default=0.0))) * waited)
        self.shift[lane] = free + kept - time

    def activity(self, item: int) -> None:
        activities, schedule = self.replay.activities, self.replay.schedule
        queue = int(schedule.queue[item])
        bounds, waited = self.ready(item, queue)
        start = max([*bounds, *waited], default=int(activities.start[item]))
        dur = int(activities.dur[item])
        for edit, closure in self.scenario:
            for member, saved in zip(edit.activities.tolist(), edit.saved_ns.tolist(), strict=True):
                if member == item:
                    dur -= round(Fraction(closure) * saved)
        end = start + max(dur, 0)
        before = self.reach.get(queue)
        gone = max((closure for edit, closure in self.scenario if item in edit.removed.tolist()), default=0.0)
        if gone > 0:
            start = start if before is None else min(start, max([before, *waited]))
            end = start + round((1 - Fraction(gone)) * max(dur, 0))
        self.starts[item], self.ends[item], self.last[queue] = start, end, start
        self.reach[queue] = end if before is None else max(before, end)
        self.firsts[queue] = min(self.firsts.get(queue, start), start)

    def ready(self, item: int, queue: int) -> tuple[list[int], list[int]]:
        """What holds an activity back: its queue and its launch; other queues, for which its queue waits without it."""
        activities, schedule, events = self.replay.activities, self.replay.schedule, self.replay.events
        constraints = self.replay.constraints
        bounds: list[int] = []
        waited: list[int] = []
        if constraints.binding[item] == Binding.FIXED:
            return bounds, waited
        if queue in self.reach and constraints.gap[item] > NEVER:
            base = self.last[queue] if constraints.beside[item] else self.reach[queue]
            bounds.append(base + int(constraints.gap[item]))
        if events.launch_of[item] >= 0:
            bounds.append(self.launched[int(events.launch_of[item])] + int(constraints.latency[item]))
        if events.usable_dependency[item]:
            waited.append(self.ends[int(schedule.dependency[item])] + int(constraints.lag[item]))
        for (member, other), usable in zip(schedule.joined.tolist(), events.usable_joined.tolist(), strict=True):
            if member == item and usable:
                room = int(activities.start[item] - activities.end[other])
                waited.append(self.ends[other] + min(room, self.lag))
        return bounds, waited

    def gone(self, lane: int, low: int, high: int) -> int:
        """Host time gone between two instants; where cuts overlap the larger share counts."""
        return self.gone_until(lane, high) - self.gone_until(lane, low)

    def gone_until(self, lane: int, instant: int) -> int:
        cuts = [
            (int(start), int(end), Fraction(min(cut.share * closure, 1.0)))
            for edit, closure in self.scenario
            for cut in edit.host
            if cut.lane == lane
            for start, end in zip(cut.start, cut.end, strict=True)
        ]
        edges = sorted({edge for start, end, _ in cuts for edge in (start, end) if edge < instant} | {instant})
        total = Fraction(0)
        for low, high in pairwise(edges):
            total += (high - low) * max((share for start, end, share in cuts if start <= low < end), default=0)
        return round(total)
