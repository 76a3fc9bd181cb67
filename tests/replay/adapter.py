"""The one place where the tests of the replay meet the package: a case's trace is replayed, a change is an edit."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evals.workshop.whatif.cases import Case
from evals.workshop.whatif.changes import (
    COLLECTIVE,
    Both,
    Change,
    DropSpans,
    FreeCollectives,
    FreeCopies,
    RemoveWaits,
    ScaleHost,
    ScaleKernels,
    Single,
)
from rooftrace.calltree import Activities, CallTree, build_tree, collect_activities, quarantine
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.run import Replay
from rooftrace.schedule import Schedule, build_schedule
from rooftrace.trace import Kind, Trace, load


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the package says about a case: span as recorded, replayed without a change, and with it."""

    measured_ns: int
    unchanged_ns: int
    changed_ns: int


@dataclass(frozen=True, kw_only=True)
class Run:
    """A trace as the replay sees it."""

    trace: Trace
    tree: CallTree
    activities: Activities
    schedule: Schedule


def replayed(case: Case) -> Answer:
    """Writes the trace of a case, reads it with the package and replays it."""
    run = read(case.trace())
    replay = Replay(run.tree, run.activities, run.schedule)
    unchanged, changed = replay.spans([(), ((edit_of(run, case.change), 1.0),)])
    return Answer(measured_ns=replay.measured_ns, unchanged_ns=unchanged, changed_ns=changed)


def read(text: str) -> Run:
    """The run of a trace, by the steps that prepare a workload."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(text, encoding="utf-8")
        trace, _ = load(path)
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    quarantine(activities, trace.names)
    schedule = build_schedule(trace, tree, activities)
    return Run(trace=trace, tree=tree, activities=activities, schedule=schedule)


def edit_of(run: Run, change: Change) -> Edit:
    """The edit that a change asks for; of two changes, the second acts on what the first left."""
    left = run.activities.dur.copy()
    waits = run.schedule.waits.node
    unblocked = np.zeros(waits.size, dtype=bool)
    host: list[HostCut] = []
    for part in (change.first, change.second) if isinstance(change, Both) else (change,):
        if isinstance(part, RemoveWaits):
            unblocked |= inside(run, part.op)[waits]
        elif isinstance(part, (ScaleHost, DropSpans)):
            host += cuts(run, part)
        else:
            left = np.where(touched(run, part), np.rint(left * factor(part)).astype(np.int64), left)
    saved = run.activities.dur - left
    return Edit(
        activities=np.flatnonzero(saved),
        saved_ns=saved[saved != 0],
        host=tuple(host),
        unblocked=np.flatnonzero(unblocked),
    )


def factor(part: Single) -> float:
    return part.factor if isinstance(part, ScaleKernels) else 0.0


def touched(run: Run, part: Single) -> NDArray[np.bool_]:
    """The activities that a change makes shorter, by kind and name."""
    trace, activities = run.trace, run.activities
    kind = trace.kind[activities.row]
    if isinstance(part, FreeCopies):
        return kind == int(Kind.MEMCPY)
    names = [trace.names[code] for code in activities.name.tolist()]
    if isinstance(part, FreeCollectives):
        matches = [name.startswith(COLLECTIVE) for name in names]
    else:
        assert isinstance(part, ScaleKernels)
        matches = [part.name in name for name in names]
    return (kind == int(Kind.KERNEL)) & np.array(matches, dtype=bool)


def named(run: Run, name: str) -> NDArray[np.bool_]:
    """The host nodes of a name."""
    codes = [code for code, text in enumerate(run.trace.names) if text == name]
    return np.isin(run.tree.name, codes)


def inside(run: Run, name: str) -> NDArray[np.bool_]:
    """Whether each host node is, or lies in, one of this name."""
    return run.tree.innermost(named(run, name)) >= 0


def cuts(run: Run, part: ScaleHost | DropSpans) -> list[HostCut]:
    """Host time to take out: a share of all of it, or all of some spans."""
    tree = run.tree
    if isinstance(part, ScaleHost):
        low, high = np.array([tree.start.min()]), np.array([tree.end.max()])
        lanes = np.unique(tree.lane).tolist()
        return [HostCut(lane=lane, start=low, end=high, share=1.0 - part.factor) for lane in lanes]
    mine = named(run, part.name)
    nodes = np.flatnonzero(mine & (tree.outermost(mine) == np.arange(mine.size)))
    return [
        HostCut(lane=lane, start=tree.start[nodes[here]], end=tree.end[nodes[here]])
        for lane in np.unique(tree.lane[nodes]).tolist()
        for here in (tree.lane[nodes] == lane,)
    ]
