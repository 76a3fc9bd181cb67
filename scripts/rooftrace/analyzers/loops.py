"""Loops of equal small products: runs of one product after the other that one batched product could replace.

A run is a string of calls of one matrix product with equal shapes: they follow each other on one queue and in one step,
their thread launches nothing else and waits for nothing in between, and none can be given the result of another, whose
number of elements no operand has. A call is small where its result has fewer tiles than half the GPU's units, so that
the GPU stays mostly empty. The batched product does all their work in one launch: its floor is that of their FLOPs and
bytes together. It cannot be seen whether the calls share an operand; then it moves less.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace import platforms
from rooftrace.analyzers.gemm_shapes import gemm_evidence
from rooftrace.analyzers.idle_graphs import interruptions_before
from rooftrace.analyzers.merging import Merged, callers_of, chain_ns, merged_edit
from rooftrace.calltree import Link, part_of
from rooftrace.roofline import Rating
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import NS_PER_S, ns_to_ms, ns_to_us

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.calltree import Callers, OpGroup
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.replay.edits import Edit

_PRODUCTS = frozenset({"aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm", "aten::linear"})
# Two or three equal products in a row are queries, keys and values, which one wider weight serves; a loop has more.
_LEAST_CALLS = 4
# Rows and columns of a result that one block of a usual kernel works on: the middle of what libraries have.
_TILE = 128


class Run(Struct, frozen=True, kw_only=True):
    """Calls of one group in a row: their activities, and the batched product's time.

    ``gap_ns`` is what the batched product saves of calls that are queued, ``most_ns`` what it can save in this run.
    """

    group: int
    activities: NDArray[np.int64]
    calls: int
    batched_ns: int
    gap_ns: int
    most_ns: int


class Loops(Struct, frozen=True, kw_only=True):
    """All runs: the workload cut down to their calls, its groups, and the change of the run."""

    workload: RatedRun
    groups: list[int]
    activities: NDArray[np.int64]
    edit: Edit
    gap_ns: int
    most_ns: int
    evidence: dict[str, EvidenceValue]


def find_loops(workload: RatedRun, free: NDArray[np.bool_]) -> Loops | None:
    """The runs of ``free`` activities; None without any."""
    callers = callers_of(workload)
    runs = [run for index in range(len(workload.groups)) for run in _runs_of(workload, callers, index, free)]
    if not runs:
        return None
    activities = np.sort(np.concatenate([run.activities for run in runs]))
    kept = np.zeros(workload.activities.row.size, dtype=bool)
    kept[activities] = True
    edit = merged_edit(workload, [Merged(activities=run.activities, time_ns=run.batched_ns) for run in runs])
    groups, mine = list(workload.groups), sorted({run.group for run in runs})
    for at in mine:
        groups[at] = part_of(groups[at], workload.activities, workload.context, kept[groups[at].activities])
    heaviest = max(runs, key=lambda run: (run.most_ns, -int(run.activities[0])))
    return Loops(
        workload=replace(workload, groups=groups),
        groups=mine,
        activities=activities,
        edit=edit,
        gap_ns=sum(run.gap_ns for run in runs),
        most_ns=sum(run.most_ns for run in runs),
        evidence={
            "part": "loop",
            "loops_count": len(runs),
            "calls_per_loop": heaviest.calls,
            "batched_us": ns_to_us(heaviest.batched_ns),
            "batched_ms": ns_to_ms(sum(run.batched_ns for run in runs)),
            "gap_ms": ns_to_ms(sum(run.gap_ns for run in runs)),
            "launches_removed_count": sum(run.calls - 1 for run in runs),
            "host_cut_ms": ns_to_ms(sum(int((cut.end - cut.start).sum()) for cut in edit.host)),
        },
    )


def _runs_of(workload: RatedRun, callers: Callers, index: int, free: NDArray[np.bool_]) -> list[Run]:
    group, rating = workload.groups[index], workload.ratings[index]
    if group.name not in _PRODUCTS or group.link is not Link.CORRELATION or not isinstance(rating, Rating):
        return []
    if group.graph or group.count < _LEAST_CALLS or not _is_small(workload, group) or not _is_independent(group):
        return []
    bounds = np.r_[group.firsts, group.activities.size]
    first, last = group.activities[bounds[:-1]], group.activities[bounds[1:] - 1]
    order = np.argsort(workload.activities.launch[first], kind="stable")
    first, last = first[order], last[order]
    splits = np.flatnonzero(~_follows(workload, first, last)) + 1
    found = [
        _run(workload, callers, index, (bounds, part)) for part in np.split(order, splits) if part.size >= _LEAST_CALLS
    ]
    return [run for run in found if run is not None and free[run.activities].all()]


def _is_small(workload: RatedRun, group: OpGroup) -> bool:
    """Whether one call leaves half the GPU's units or more without a tile."""
    shape = gemm_evidence(group)
    if not shape or workload.platform is None:
        return False
    tiles = math.ceil(int(shape["m"]) / _TILE) * math.ceil(int(shape["n"]) / _TILE) * _batch_of(group)
    return 2 * tiles <= workload.platform.compute_units


def _batch_of(group: OpGroup) -> int:
    """Number of products of one call: of batched ones the size of the first dimension."""
    dims = group.inputs.dims if group.inputs is not None else None
    factor = {"aten::bmm": 0, "aten::baddbmm": 1}.get(group.name)
    if factor is None or not isinstance(dims, list):
        return 1
    return int(dims[factor][0])


def _is_independent(group: OpGroup) -> bool:
    """Whether no operand has as many elements as the result, so that no call can be given what another one made."""
    shape = gemm_evidence(group)
    if not shape:
        return False
    m, n, k = (int(shape[name]) for name in ("m", "n", "k"))
    return m * n not in (m * k, k * n) and not _adds_to(group, m * n * _batch_of(group))


def _adds_to(group: OpGroup, elements: int) -> bool:
    """Whether a whole result is handed in to be added to."""
    dims = group.inputs.dims if group.inputs is not None else None
    if group.name not in ("aten::addmm", "aten::baddbmm") or not isinstance(dims, list):
        return False
    return isinstance(dims[0], list) and math.prod(dims[0]) == elements


def _follows(workload: RatedRun, first: NDArray[np.int64], last: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Of each call but the first, whether it comes right after the one before: on GPU and thread, in its step."""
    activities, tree, schedule = workload.activities, workload.tree, workload.schedule
    step, launch = workload.steps.of_activity[first], activities.launch
    follows = schedule.previous[first[1:]] == last[:-1]
    follows &= (step[1:] == step[:-1]) & (tree.lane[launch[first[1:]]] == tree.lane[launch[first[:-1]]])
    launching = sorted_unique(launch[launch >= 0])
    place = np.searchsorted(launching, launch[first])
    follows &= place[1:] == np.searchsorted(launching, launch[last[:-1]]) + 1
    passed = interruptions_before(workload, launch[first])
    result: NDArray[np.bool_] = follows & (passed[1:] == passed[:-1])
    return result


def _run(
    workload: RatedRun, callers: Callers, index: int, part: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> Run | None:
    """The run of some calls in their order; None where one batched product would not be faster."""
    group, activities, tree = workload.groups[index], workload.activities, workload.tree
    bounds, calls = part
    members = np.concatenate([group.activities[bounds[call] : bounds[call + 1]] for call in calls.tolist()])
    batched = _batched_ns(workload, index, calls.size)
    if batched is None or (chain := int(chain_ns(workload, members)[-1])) <= batched:
        return None
    ends = tree.end[callers.outermost(activities.launch[members[[0, -1]]])]
    took = int(activities.end[members].max() - activities.start[members].min())
    return Run(
        group=index,
        activities=members,
        calls=int(calls.size),
        batched_ns=batched,
        gap_ns=chain - batched,
        most_ns=max(took - batched, int(ends[1] - ends[0])),
    )


def _batched_ns(workload: RatedRun, index: int, calls: int) -> int | None:
    """Floor of one product that does the work of some calls; None where a ceiling is missing."""
    rating, platform = workload.ratings[index], workload.platform
    if not isinstance(rating, Rating) or platform is None:
        return None
    compute = platforms.compute_ceiling(platform, rating.precision, rating.cost.unit)
    if compute is None:
        return None
    compute_ns = calls * rating.cost.flops / compute.flops_per_s * NS_PER_S
    memory_ns = calls * rating.cost.bytes_total / platforms.bandwidth_ceiling(platform).bytes_per_s * NS_PER_S
    return round(max(compute_ns, memory_ns, rating.floor_ns))
