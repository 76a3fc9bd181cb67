"""The constraints of a run as columns, in the order in which a replay computes them.

The shift of a thread is replayed less measured time. At each of its events it becomes
``max(shift + change, known[source] + after)``; at a launch, the shift is when its queue takes the launch.
An activity starts at ``max(reach + gap, launched + latency, known[slot] + lag)``, where ``reach`` is when everything
before it in its queue has ended.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.replay.blocks import cut_into_blocks
from rooftrace.replay.constraints import NEVER, Binding
from rooftrace.replay.events import Step
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities
    from rooftrace.replay.blocks import Blocks
    from rooftrace.replay.constraints import Constraints
    from rooftrace.replay.events import Events
    from rooftrace.schedule import Schedule


class Threads(Struct, frozen=True, kw_only=True):
    """One entry an event of a thread, by rank in `Blocks.threads`; times in ns."""

    position: NDArray[np.int64]
    step: NDArray[np.uint8]
    item: NDArray[np.int64]
    time: NDArray[np.int64]
    change: NDArray[np.int64]
    source: NDArray[np.int64]  # -1: nothing is waited for
    after: NDArray[np.int64]
    joints: NDArray[np.int64]  # ranks of the events that have a source
    launches: NDArray[np.int64]  # ranks of launches
    leaves: NDArray[np.int64]  # ranks at which another thread is let go on


class Queues(Struct, frozen=True, kw_only=True):
    """One entry an activity, by rank in `Blocks.queues`; times in ns."""

    item: NDArray[np.int64]
    dur: NDArray[np.int64]
    gap: NDArray[np.int64]  # `NEVER` for the first of a queue and for what stays where it was recorded
    launch: NDArray[np.int64]  # number of its launch, -1: none
    latency: NDArray[np.int64]
    alone: NDArray[np.int64]  # its recorded start if nothing else decides it
    first: NDArray[np.bool_]  # of its queue
    beside: NDArray[np.int64]  # ranks of activities that follow the start, not the end, of the one before
    edges: NDArray[np.int64]  # rows (rank, slot, lag), by rank: what it waits for in other queues
    kept: NDArray[np.int64]  # ranks of activities whose ends are known to others
    kept_slot: NDArray[np.int64]


class Program(Struct, frozen=True, kw_only=True):
    """A run to be replayed. ``known`` has a slot for each end that others need, then one for each hand-over."""

    blocks: Blocks
    threads: Threads
    queues: Queues
    launches: int
    slots: int
    first_handover: int  # its slot


class Recorded(Struct, frozen=True, kw_only=True):
    """What a program is made from."""

    events: Events
    activities: Activities
    schedule: Schedule
    constraints: Constraints
    usual_lag: int  # ns


def compile_program(run: Recorded) -> Program:
    """The constraints of a run in working order."""
    events, schedule = run.events, run.schedule
    blocks = cut_into_blocks(events, schedule)
    depends, joined = _dependencies(run)
    awaited = schedule.waits.activity[events.usable_wait]
    needed = sorted_unique(np.r_[awaited, schedule.dependency[depends], joined[:, 1]])
    return Program(
        blocks=blocks,
        threads=_threads(run, blocks, needed),
        queues=_queues(run, blocks, needed),
        launches=int(events.launch_of.max(initial=-1)) + 1,
        slots=needed.size + schedule.handovers.lane.size,
        first_handover=needed.size,
    )


def _dependencies(run: Recorded) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Activities held by their dependency, and rows of further ones (activity, the one it waits for)."""
    fixed = run.constraints.binding == int(Binding.FIXED)
    held = run.events.usable_dependency & ~fixed & (run.constraints.lag > NEVER)
    joined = run.schedule.joined
    return np.flatnonzero(held), joined[run.events.usable_joined & ~fixed[joined[:, 0]]]


def _threads(run: Recorded, blocks: Blocks, needed: NDArray[np.int64]) -> Threads:
    events, waits = run.events, run.schedule.waits
    position = blocks.threads.position
    step, item = events.step[position], events.item[position]
    time, begin = events.time[position], events.begin[position]
    change, after = np.zeros(position.size, dtype=np.int64), np.zeros(position.size, dtype=np.int64)
    source = np.full(position.size, -1, dtype=np.int64)
    at = np.flatnonzero((step == int(Step.WAIT)) | (step == int(Step.ROOM)))
    at = at[events.usable_wait[item[at]]]
    number, inside = item[at], step[at] == int(Step.WAIT)
    own = waits.own_ns[number]
    change[at] = begin[at] - time[at] + np.where(inside, own, 0)
    after[at] = waits.tail_ns[number] - time[at] - np.where(inside, 0, own)
    source[at] = np.searchsorted(needed, waits.activity[number])
    at = np.flatnonzero(step == int(Step.RESUME))
    before = time_before(events)[position[at]]
    change[at] = np.where(before > NEVER, before - time[at], NEVER)
    after[at] = -run.schedule.handovers.from_end[item[at]]
    source[at] = needed.size + item[at]
    return Threads(
        position=position,
        step=step,
        item=item,
        time=time,
        change=change,
        source=source,
        after=after,
        joints=np.flatnonzero(source >= 0),
        launches=np.flatnonzero(step == int(Step.LAUNCH)),
        leaves=np.flatnonzero(step == int(Step.LEAVE)),
    )


def time_before(events: Events) -> NDArray[np.int64]:
    """Of each event, the measured time of its thread's last event before it; `NEVER` for the first."""
    order = np.argsort(events.lane, kind="stable")
    before = np.full(order.size, NEVER, dtype=np.int64)
    same = np.diff(events.lane[order]) == 0
    before[order[1:][same]] = events.time[order[:-1][same]]
    return before


def _queues(run: Recorded, blocks: Blocks, needed: NDArray[np.int64]) -> Queues:
    activities, constraints = run.activities, run.constraints
    item = run.events.item[blocks.queues.position]
    rank = np.empty(item.size, dtype=np.int64)
    rank[item] = np.arange(item.size)
    fixed = constraints.binding[item] == int(Binding.FIXED)
    first = _first_of_queue(run.schedule.queue[item])
    gap = np.where(fixed | first, NEVER, constraints.gap[item])
    launch = np.where(fixed, -1, run.events.launch_of[item])
    edges = _edges(run, needed, rank)
    alone = (gap == NEVER) & (launch < 0)
    alone[edges[:, 0]] = False
    kept = rank[needed]
    order = np.argsort(kept)
    return Queues(
        item=item,
        dur=activities.dur[item],
        gap=gap,
        launch=launch,
        latency=constraints.latency[item],
        alone=np.where(alone, activities.start[item], NEVER),
        first=first,
        beside=np.flatnonzero(constraints.beside[item] & ~fixed & ~first),
        edges=edges,
        kept=kept[order],
        kept_slot=order,
    )


def _first_of_queue(queue: NDArray[np.int64]) -> NDArray[np.bool_]:
    first = np.zeros(queue.size, dtype=bool)
    first[np.unique(queue, return_index=True)[1]] = True
    return first


def _edges(run: Recorded, needed: NDArray[np.int64], rank: NDArray[np.int64]) -> NDArray[np.int64]:
    """What activities wait for in other queues; of what ended earlier, no more than a usual lag is believed."""
    depends, joined = _dependencies(run)
    room = run.activities.start[joined[:, 0]] - run.activities.end[joined[:, 1]]
    item = np.r_[depends, joined[:, 0]]
    other = np.r_[run.schedule.dependency[depends], joined[:, 1]]
    lag = np.r_[run.constraints.lag[depends], np.minimum(room, run.usual_lag)]
    edges = np.stack([rank[item], np.searchsorted(needed, other), lag], axis=1)
    return edges[np.lexsort((edges[:, 1], edges[:, 0]))]
