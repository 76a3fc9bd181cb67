"""Rows of the CSV artifacts and of the report's op list."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from rooftrace.analyzers.compute_evidence import source_of
from rooftrace.calltree import LINK_NAMES, Link, Work, kernel_totals
from rooftrace.causes import CAUSE_NAMES
from rooftrace.roofline import Rating

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.analyzers import RatedRun, Workload
    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.tables import Cell
    from rooftrace.kernelnames import KernelFacts

_MAX_MODULES = 5
_MAX_PATH = 8
_MAX_GAPS = 1_000
_KIND_NAMES = {int(Work.COMPUTE): "kernel", int(Work.COMMUNICATION): "communication", int(Work.COPY): "copy"}


def op_rows(workload: RatedRun) -> Iterator[list[Cell]]:
    """Rows of `ops.csv`, most kernel time first."""
    for identity, group, rating in zip(workload.op_ids, workload.groups, workload.ratings, strict=True):
        busy = group.instance_busy
        inputs = group.inputs
        mean = float(busy.mean())
        yield [
            identity,
            group.name,
            group.category,
            group.phase,
            _json(inputs.dims if inputs else None),
            _json(inputs.types if inputs else None),
            group.count,
            group.kernel_ns,
            group.busy_ns,
            int(busy.min()),
            round(float(np.median(busy))),
            round(mean, 1),
            int(busy.max()),
            round(float(busy.std()) / mean, 4) if mean else 0.0,
            int(group.activities.size),
            _json(_kernels(workload, group)),
            _json(_modules(workload, group)),
            source_of(workload, group) or None,
            _call_path(workload, group.node) or None,
            group.link is Link.CARRY_IN,
            group.graph,
            group.recompute_ns,
            *_rating_cells(rating),
        ]


def _rating_cells(rating: Any) -> list[Cell]:
    cost = rating.cost
    known: list[Cell] = [None, None, None, None]
    if cost is not None:
        known = [cost.flops, cost.bytes_total, cost.precision, cost.unit]
    notes = _json(list(cost.notes) if cost is not None else [])
    if isinstance(rating, Rating):
        known[2] = rating.precision
        return [
            *known,
            rating.bound,
            rating.floor_ns,
            rating.efficiency_pct,
            rating.datasheet_efficiency_pct,
            rating.gap_ns,
            rating.flag,
            None,
            notes,
        ]
    return [*known, None, None, None, None, None, rating.flag, rating.reason, notes]


def _kernels(workload: RatedRun, group: OpGroup) -> list[dict[str, Any]]:
    activities, names = workload.activities, workload.trace.names
    rows = kernel_totals(activities.name[group.activities], activities.dur[group.activities])
    return [
        {"name": names[code], "count": count, "ns": ns, "library": activities.infos[code].library}
        for code, count, ns in rows
    ]


def _modules(workload: RatedRun, group: OpGroup) -> list[str]:
    paths = workload.context.module_paths
    ranked = sorted(group.module_ns, key=lambda path: (-group.module_ns[path], paths[path]))
    return [".".join(paths[path]) for path in ranked if paths[path]][:_MAX_MODULES]


def _call_path(workload: RatedRun, node: int) -> str:
    """Enclosing ops, outermost first."""
    op, tree, names = workload.context.op, workload.tree, workload.trace.names
    path: list[str] = []
    while node >= 0 and len(path) < _MAX_PATH:
        path.append(names[tree.name[node]])
        above = int(tree.parent[node])
        node = int(op[above]) if above >= 0 else -1
    return " > ".join(reversed(path))


def kernel_rows(workload: RatedRun) -> Iterator[list[Cell]]:
    """Rows of `kernels.csv`: GPU activities by device, stream, name, owner op, op group and link; most time first."""
    activities = workload.activities
    owner, op_index = _owners(workload)
    columns = (
        activities.device,
        activities.stream,
        activities.name,
        owner,
        op_index,
        activities.link,
        activities.graph,
        activities.work,
    )
    order = np.lexsort(columns[::-1])
    if not order.size:
        return
    changes = np.zeros(order.size - 1, dtype=bool)
    for column in columns:
        changes |= np.diff(column[order].astype(np.int64)) != 0
    parts = np.split(order, np.flatnonzero(changes) + 1)
    parts.sort(key=lambda part: (-int(activities.dur[part].sum()), int(part[0])))
    for part in parts:
        yield _kernel_row(workload, part, int(owner[part[0]]), int(op_index[part[0]]))


def _owners(workload: RatedRun) -> tuple[Any, Any]:
    """Name code of the innermost op at each activity's launch, and its op group; -1 where there is none."""
    activities = workload.activities
    owner = np.full(activities.row.size, -1, dtype=np.int64)
    linked = np.flatnonzero(activities.linked)
    op = workload.context.op[activities.launch[linked]]
    owner[linked[op >= 0]] = workload.tree.name[op[op >= 0]]
    op_index = np.full(activities.row.size, -1, dtype=np.int64)
    for number, group in enumerate(workload.groups):
        op_index[group.activities] = number
    return owner, op_index


def _kernel_row(workload: RatedRun, part: Any, owner: int, op_index: int) -> list[Cell]:
    activities, names = workload.activities, workload.trace.names
    first = int(part[0])
    code = int(activities.name[first])
    info, dur = activities.infos[code], activities.dur[part]
    work = int(activities.work[first])
    return [
        int(activities.device[first]),
        int(activities.stream[first]),
        names[code],
        info.short,
        "fill" if info.kind == "fill" or names[code].startswith("Memset") else _KIND_NAMES[work],
        info.category,
        info.library,
        names[owner] if owner >= 0 else None,
        workload.op_ids[op_index] if op_index >= 0 else None,
        LINK_NAMES[int(activities.link[first])],
        bool(activities.graph[first]),
        int(part.size),
        int(dur.sum()),
        int(dur.min()),
        round(float(np.median(dur))),
        int(dur.max()),
        _json(_spelled(info.facts)),
    ]


def _spelled(facts: KernelFacts) -> dict[str, Any]:
    return {name: value for name in facts.__struct_fields__ if (value := getattr(facts, name)) not in (None, False)}


def gap_rows(workload: Workload) -> Iterator[list[Cell]]:
    """Rows of `gaps.csv`: the longest gaps of each device, in time order."""
    activities, steps, idle, names = workload.activities, workload.steps, workload.causes, workload.trace.names
    dur = idle.dur
    for ledger in workload.ledgers:
        gaps = idle.of_device(ledger.device)
        longest = gaps[np.argsort(-dur[gaps], kind="stable")[:_MAX_GAPS]]
        for gap in np.sort(longest).tolist():
            before, after = int(idle.before[gap]), int(idle.after[gap])
            step, op, frame = int(steps.of_activity[after]), int(idle.op[gap]), int(idle.frame[gap])
            yield [
                ledger.device,
                int(idle.start[gap]),
                int(dur[gap]),
                CAUSE_NAMES[int(idle.cause[gap])],
                steps.names[step] if step >= 0 else None,
                activities.infos[int(activities.name[before])].short,
                activities.infos[int(activities.name[after])].short,
                names[workload.tree.name[op]] if op >= 0 else None,
                names[workload.trace.name[frame]] if frame >= 0 else None,
            ]


def _json(value: Any) -> str:
    try:
        return orjson.dumps(value).decode()
    except TypeError:  # an integer beyond 64 bits, which only damage can make
        return json.dumps(value, separators=(",", ":"))
