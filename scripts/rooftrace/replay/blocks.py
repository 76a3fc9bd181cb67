"""Cuts a run into blocks that can be computed at once, column by column.

In a block, no event needs the time of another thread's or queue's event of the same block, but for activities, which
need their launches. So the threads of a block are computed first, each for itself, then its queues, each for itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.replay.events import Step

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.replay.events import Events
    from rooftrace.schedule import Schedule

# Events of a block and, at least, of a stretch: what is held at once is this, times the number of scenarios.
_MOST_EVENTS = 4_096
_STRETCH = 32_768


class Order(Struct, frozen=True, kw_only=True):
    """Events of threads, or of queues, in the order in which they are computed: by block, thread or queue, time.

    Those of one thread or queue in one block are a part; the place of an event in the order is its rank.
    """

    position: NDArray[np.int64]  # of each event, where `Events` has it
    low: NDArray[np.int64]  # of each part, its first rank
    high: NDArray[np.int64]  # and the one after its last
    key: NDArray[np.int64]  # of each part, the thread or queue
    bounds: NDArray[np.int64]  # of each block, its first part; then the number of parts


class Blocks(Struct, frozen=True, kw_only=True):
    """A run in blocks."""

    threads: Order
    queues: Order
    stretches: NDArray[np.int64]  # the first block of each; then the number of blocks


def cut_into_blocks(events: Events, schedule: Schedule) -> Blocks:
    """The blocks of a run, as long as they may be."""
    starts = _block_starts(_needs(events, schedule), events.step.size) if events.step.size else []
    ends = np.array([*starts, events.step.size], dtype=np.int64)
    sizes = ends[1:] - ends[:-1]
    block = np.repeat(np.arange(sizes.size), sizes)
    is_activity = events.step == int(Step.ACTIVITY)
    activities, others = np.flatnonzero(is_activity), np.flatnonzero(~is_activity)
    return Blocks(
        threads=_order(others, block, events.lane[others]),
        queues=_order(activities, block, schedule.queue[events.item[activities]]),
        stretches=np.r_[np.unique((np.cumsum(sizes) - sizes) // _STRETCH, return_index=True)[1], sizes.size],
    )


def _needs(events: Events, schedule: Schedule) -> NDArray[np.int64]:
    """Of each event, the last position whose time it needs, other than its launch's and its own thread's or queue's."""
    waits, step, item = schedule.waits, events.step, events.item
    need = np.full(step.size, -1, dtype=np.int64)
    at = np.flatnonzero(step == int(Step.ACTIVITY))
    activity = np.empty(at.size, dtype=np.int64)
    activity[item[at]] = at
    waiting = np.flatnonzero((step == int(Step.WAIT)) | (step == int(Step.ROOM)))
    waiting = waiting[events.usable_wait[item[waiting]]]
    need[waiting] = activity[waits.activity[item[waiting]]]
    left = np.full(schedule.handovers.lane.size, -1, dtype=np.int64)
    leaves = np.flatnonzero(step == int(Step.LEAVE))
    left[item[leaves]] = leaves
    resumes = np.flatnonzero(step == int(Step.RESUME))
    need[resumes] = left[item[resumes]]
    depends = np.flatnonzero(events.usable_dependency)
    need[activity[depends]] = activity[schedule.dependency[depends]]
    joined = schedule.joined[events.usable_joined]
    np.maximum.at(need, activity[joined[:, 0]], activity[joined[:, 1]])
    return need


def _block_starts(need: NDArray[np.int64], count: int) -> list[int]:
    starts = [0]
    for position in np.flatnonzero(need >= 0).tolist():
        starts += range(starts[-1] + _MOST_EVENTS, position, _MOST_EVENTS)
        if need[position] >= starts[-1] and position > starts[-1]:
            starts.append(position)
    starts += range(starts[-1] + _MOST_EVENTS, count, _MOST_EVENTS)
    return starts


def _order(position: NDArray[np.int64], block_of: NDArray[np.int64], key: NDArray[np.int64]) -> Order:
    order = np.lexsort((position, key, block_of[position]))
    position, key = position[order], key[order]
    block = block_of[position]
    low = np.flatnonzero((np.diff(block, prepend=-1) != 0) | (np.diff(key, prepend=-2) != 0))
    count = int(block_of[-1]) + 1 if block_of.size else 0
    return Order(
        position=position,
        low=low,
        high=np.r_[low[1:], position.size] if low.size else low,
        key=key[low],
        bounds=np.searchsorted(block[low], np.arange(count + 1)),
    )
