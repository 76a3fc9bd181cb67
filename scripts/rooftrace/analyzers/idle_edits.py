"""The change of the run that removing a cause of idle time would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.causes import HOST_CAUSES, Cause, is_memory_call
from rooftrace.causes.first_use import first_use
from rooftrace.intervals import union
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.sorted_unique import grouped
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.idle_graphs import Sequences
    from rooftrace.analyzers.workload import Workload


def edit_of(workload: Workload, cause: Cause, gaps: NDArray[np.int64], graphs: Sequences | None) -> Edit:
    """Host time that is gone; nothing for what the host cannot change."""
    if cause not in HOST_CAUSES:
        return Edit()
    if cause is Cause.LAUNCH_BOUND:
        return Edit(host=_launchcuts(workload, gaps, graphs))
    if cause is Cause.MEMORY_MANAGEMENT:
        return _without_allocator(workload, gaps)
    lane, start, end = _pieces(workload, gaps)
    return Edit(host=cuts(lane, start, end))


def _without_allocator(workload: Workload, gaps: NDArray[np.int64]) -> Edit:
    """Every call of the allocator is gone, with its waiting: else the next ones would make gaps instead.

    What sets a library up for the first time stays.
    """
    tree, trace = workload.tree, workload.trace
    calls = np.flatnonzero(np.isin(tree.kind, (int(Kind.RUNTIME), int(Kind.DRIVER))))
    calls = calls[is_memory_call(trace, tree.row[calls])]
    calls = calls[~first_use(trace, tree, tree.row[calls])[tree.row[calls]]]
    lane, start, end = _pieces(workload, gaps)
    return Edit(
        host=cuts(np.r_[lane, tree.lane[calls]], np.r_[start, tree.start[calls]], np.r_[end, tree.end[calls]]),
        unblocked=np.flatnonzero(np.isin(workload.schedule.waits.node, calls)),
    )


def _launchcuts(workload: Workload, gaps: NDArray[np.int64], graphs: Sequences | None) -> tuple[HostCut, ...]:
    """Sequences become one launch each; where none repeats, all dispatch in the gaps but one launch goes."""
    causes = workload.causes
    if graphs is None:
        lane, start, end = _pieces(workload, gaps)
        launch = workload.activities.launch[causes.after[gaps[:1]]]
        end[:1] = np.minimum(end[:1], np.maximum(workload.tree.start[launch], start[:1]))
        return cuts(lane, start, end)
    alone = gaps[~np.isin(causes.after[gaps], graphs.activities)]
    lane, start, end = _pieces(workload, alone)
    kept = np.minimum(graphs.start + graphs.call_ns, graphs.end)
    return cuts(np.r_[lane, graphs.lane], np.r_[start, kept], np.r_[end, graphs.end])


def _pieces(workload: Workload, gaps: NDArray[np.int64]) -> tuple[NDArray[np.int64], ...]:
    pieces = workload.causes.pieces
    mine = np.isin(pieces.gap, gaps)
    return pieces.lane[mine], pieces.start[mine], pieces.end[mine]


def cuts(lane: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> tuple[HostCut, ...]:
    """Stretches of threads as cuts of a whole."""
    found = []
    for number, mine in grouped(lane):
        whole = union(start[mine], end[mine])
        if whole.start.size:
            found.append(HostCut(lane=number, start=whole.start, end=whole.end))
    return tuple(found)
