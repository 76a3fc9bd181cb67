"""What pinned memory would change: copies at the link's bandwidth, and calls to the GPU that return at once.

A blocking copy has two parts on the host: the call that copies, which waits where the memory is pageable, and the
synchronising call that the same op makes after it. `non_blocking=True` with pinned memory does away with both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace import platforms
from rooftrace.analyzers.idle_edits import cuts
from rooftrace.replay.edits import Edit
from rooftrace.schedule import WaitKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload


def blocked_ns(workload: Workload) -> NDArray[np.int64]:
    """Of each activity, how long the call that launched it stood until it had ended, ns."""
    waits, numbers = workload.schedule.waits, _copy_waits(workload)
    node = waits.node[numbers]
    stood = np.maximum(workload.tree.dur[node] - waits.tail_ns[numbers], 0)
    blocked = np.zeros(workload.activities.row.size, dtype=np.int64)
    np.add.at(blocked, waits.activity[numbers], stood)
    return blocked


def pinned_edit(
    workload: Workload, copies: NDArray[np.int64], way: str, *, link_gbps: float | None, shortest_ns: int
) -> Edit | None:
    """The change if some copies of one direction used pinned memory; None where bytes or link are not known.

    ``shortest_ns`` is the time of the fastest copy of that direction: none gets faster. A call that brings data to the
    host still has to wait for it.
    """
    nbytes, dur = workload.activities.nbytes[copies], workload.activities.dur[copies]
    if workload.platform is None or link_gbps is None or not copies.size or (nbytes < 0).any():
        return None
    latency = min(shortest_ns, platforms.latency_floor_ns(workload.platform))
    needed = np.maximum(np.ceil(nbytes / link_gbps).astype(np.int64), latency)
    saved = np.maximum(dur - needed, 0)
    if way != "HtoD":
        return Edit(activities=copies, saved_ns=saved)
    own, after = _calls_of(workload, copies)
    node, tree = workload.schedule.waits.node[after], workload.tree
    return Edit(
        activities=copies,
        saved_ns=saved,
        unblocked=np.union1d(own, after),
        host=cuts(tree.lane[node].astype(np.int64), tree.start[node], tree.end[node]),
    )


def _copy_waits(workload: Workload) -> NDArray[np.int64]:
    """Numbers of the calls that waited for the copy that they launched."""
    waits = workload.schedule.waits
    return np.flatnonzero((waits.kind == int(WaitKind.COPY)) & (waits.activity >= 0))


def _calls_of(workload: Workload, copies: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Numbers of the waits of some copies: of the calls that launched them, and of others that the same op makes."""
    waits, op = workload.schedule.waits, workload.context.op
    numbers = _copy_waits(workload)
    own = numbers[np.isin(waits.activity[numbers], copies)]
    launch = workload.activities.launch[copies]
    ops = op[launch[launch >= 0]]
    others = np.isin(op[waits.node], ops[ops >= 0]) & (waits.kind != int(WaitKind.QUEUE))
    return own, np.setdiff1d(np.flatnonzero(others), own)
