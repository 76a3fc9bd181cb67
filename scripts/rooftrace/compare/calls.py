"""The calls of a side in time order: an op with all it launched, or a kernel, copy or collective by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import PHASES, Link
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.compare.side import Side

BEFORE_WINDOW = "launched before the window"
UNKNOWN_LAUNCH = "launch not recorded"
# Heads of paths: the phases of the run, and where there is no launch to tell one.
HEADS = (*PHASES, BEFORE_WINDOW, UNKNOWN_LAUNCH)
_GRAPH = "graphlaunch"


class Calls(Struct, frozen=True, kw_only=True):
    """One entry a call, by the time of its first launch; -1 stands for none."""

    of_activity: NDArray[np.int64]  # the call of each activity
    members: tuple[NDArray[np.int64], ...]  # activities of each call, in order of launch
    node: NDArray[np.int64]  # the op
    group: NDArray[np.int64]  # op group
    module: NDArray[np.int64]  # module path id
    head: NDArray[np.int64]  # index into HEADS
    step: NDArray[np.int64]


def find_calls(side: Side, *, single: bool) -> Calls:
    """The calls of a side; ``single``: every activity is a call of its own."""
    activities, context = side.activities, side.context
    count = activities.row.size
    launch, known = activities.launch, activities.launch >= 0
    node = np.full(count, -1, dtype=np.int64)
    node[known] = context.unit[launch[known]]
    node[_replayed(side)] = -1
    instance = _instances(side)
    key = np.where(instance >= 0, 2 * instance, np.where(node >= 0, 2 * (3 * node + activities.work) + 1, -1))
    alone = (key < 0) | single
    key[alone] = -1 - np.flatnonzero(alone)
    launched = np.where(known, side.tree.start[launch], activities.start)
    order = np.lexsort((activities.start, launched, key))
    cuts = np.flatnonzero(np.diff(key[order])) + 1
    parts = np.split(order, cuts) if count else []
    firsts = np.array([part[0] for part in parts], dtype=np.int64)
    by_time = np.lexsort((activities.start[firsts], launched[firsts])) if firsts.size else firsts
    members = tuple(parts[at] for at in by_time.tolist())
    firsts = firsts[by_time]
    of_activity = np.empty(count, dtype=np.int64)
    for number, part in enumerate(members):
        of_activity[part] = number
    first_launch = launch[firsts]
    module = np.where(known[firsts], context.module[first_launch], 0)
    return Calls(
        of_activity=of_activity,
        members=members,
        node=node[firsts],
        group=side.group_of[firsts],
        module=module,
        head=_heads(side, firsts),
        step=side.steps.of_activity[firsts],
    )


def _replayed(side: Side) -> NDArray[np.bool_]:
    """Activities of a graph's launch: the op round it says nothing of them."""
    activities, tree = side.activities, side.tree
    result = np.zeros(activities.row.size, dtype=bool)
    marked = np.flatnonzero(activities.graph & (activities.launch >= 0))
    names = tree.name[activities.launch[marked]]
    is_graph = {code: _GRAPH in side.trace.names[code].lower() for code in sorted_unique(names).tolist()}
    result[marked] = [is_graph[code] for code in names.tolist()]
    return result


def _instances(side: Side) -> NDArray[np.int64]:
    """Number of the op-group instance of each activity; -1 where it belongs to no op of a group."""
    number = np.full(side.activities.row.size, -1, dtype=np.int64)
    offset = 0
    for group in side.groups:
        if group.node >= 0:
            sizes = np.diff(np.r_[group.firsts, group.activities.size])
            number[group.activities] = offset + np.repeat(np.arange(group.count), sizes)
        offset += group.count
    return number


def _heads(side: Side, firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    activities = side.activities
    launch, link = activities.launch[firsts], activities.link[firsts]
    head = np.where(launch >= 0, side.context.phase[launch].astype(np.int64), HEADS.index(UNKNOWN_LAUNCH))
    head[link == int(Link.CARRY_IN)] = HEADS.index(BEFORE_WINDOW)
    head[link == int(Link.LOST)] = HEADS.index(UNKNOWN_LAUNCH)
    return head
