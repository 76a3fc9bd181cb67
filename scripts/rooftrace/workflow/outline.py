"""The call tree as an outline: siblings of one name merged, GPU time summed upwards."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers import Workload


class Row(Struct, kw_only=True):
    """One line of the outline."""

    name: str
    depth: int
    count: int = 0
    host_ns: int = 0
    gpu_ns: int = 0
    gpu_events: int = 0
    children: dict[int, Row] = field(default_factory=dict)

    def as_dict(self) -> dict[str, str | int]:
        """The line without its children."""
        return {
            "name": self.name,
            "depth": self.depth,
            "count": self.count,
            "host_ns": self.host_ns,
            "gpu_ns": self.gpu_ns,
            "gpu_events": self.gpu_events,
        }


def outline(workload: Workload, *, depth: int, python: bool) -> list[Row]:
    """Lines in depth-first order, heaviest GPU time first; branches without GPU work are left out if there is any."""
    tree = workload.tree
    kinds = [Kind.CPU_OP, Kind.ANNOTATION, *([Kind.PYTHON] if python else [])]
    shown = np.isin(tree.kind, [int(kind) for kind in kinds])
    gpu_ns, gpu_events = _gpu_below(workload)
    if gpu_events.any():
        shown &= gpu_events > 0
    root = Row(name="", depth=-1)
    row_of: dict[int, Row] = {-1: root}
    parents, names, durations = tree.parent.tolist(), tree.name.tolist(), tree.dur.tolist()
    nearest = tree.innermost(shown).tolist()
    for node in np.flatnonzero(shown).tolist():
        above = row_of.get(nearest[parents[node]] if parents[node] >= 0 else -1)
        if above is None or above.depth + 1 >= depth:
            continue  # deeper than asked for
        row = above.children.get(names[node])
        if row is None:
            row = above.children[names[node]] = Row(name=workload.trace.names[names[node]], depth=above.depth + 1)
        row_of[node] = row
        row.count += 1
        row.host_ns += durations[node]
        row.gpu_ns += int(gpu_ns[node])
        row.gpu_events += int(gpu_events[node])
    return _depth_first(root)


def _gpu_below(workload: Workload) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """GPU time and events launched at or below each node."""
    tree, activities = workload.tree, workload.activities
    time, events = np.zeros(tree.row.size, dtype=np.int64), np.zeros(tree.row.size, dtype=np.int64)
    linked = activities.linked
    np.add.at(time, activities.launch[linked], activities.dur[linked])
    np.add.at(events, activities.launch[linked], 1)
    for low, high in reversed(list(pairwise(tree.level_bounds[1:].tolist()))):  # deepest first
        nodes = tree.by_depth[low:high]
        np.add.at(time, tree.parent[nodes], time[nodes])
        np.add.at(events, tree.parent[nodes], events[nodes])
    return time, events


def _depth_first(root: Row) -> list[Row]:
    lines: list[Row] = []
    waiting = [root]
    while waiting:
        row = waiting.pop()
        if row is not root:
            lines.append(row)
        ordered = sorted(row.children.values(), key=lambda child: (-child.gpu_ns, -child.host_ns, child.name))
        waiting += reversed(ordered)
    return lines
