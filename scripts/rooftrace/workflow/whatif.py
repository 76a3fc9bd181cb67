"""What-if questions from the command line, as edits of a run, and their answers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.calltree import Work
from rooftrace.contracts.base import Category
from rooftrace.errors import UsageError, unknown_name
from rooftrace.replay.edits import Edit
from rooftrace.replay.facts import everywhere
from rooftrace.replay.path import critical_paths
from rooftrace.replay.run import Replay
from rooftrace.schedule import WaitKind
from rooftrace.sorted_unique import sorted_unique
from rooftrace.workflow.prepare import device_ledgers_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rooftrace.analyzers import Workload
    from rooftrace.contracts.ledger import DeviceLedger

CATEGORIES: tuple[str, ...] = tuple(Category.__args__)  # type: ignore[attr-defined]
# Beyond it no question is meant; times stay far from the limit of 64 bits.
_MOST = 1_000.0
_SCALE_HINT = "Write it as NAME=FACTOR with a factor from 0 to 1000, such as gemm=0.5"
_WITHOUT_HINT = "One of: sync, sync:OP (such as sync:aten::item), communication, copies, host"


class Questions(Struct, frozen=True, kw_only=True):
    """What is to be different."""

    scale: Sequence[str] = ()  # CATEGORY=FACTOR
    scale_kernel: Sequence[str] = ()  # REGEX=FACTOR
    without: Sequence[str] = ()
    host_scale: float | None = None
    no_launch_gaps: bool = False


class Answer(Struct, frozen=True, kw_only=True):
    """A run replayed with something different; times in ns, spans summed over devices."""

    measured_ns: int
    baseline_ns: int
    span_ns: int
    ledgers: list[DeviceLedger]
    by_resource: dict[str, int]  # of the critical paths of all devices


def answer(workload: Workload, questions: Questions) -> Answer:
    """The run with everything asked for made at once."""
    replay = Replay(workload.tree, workload.activities, workload.schedule)
    scenario = [(edit, 1.0) for edit in _edits(workload, replay, questions)]
    baseline, span = replay.spans([(), scenario])
    timeline = replay.timeline(scenario)
    by_resource: dict[str, int] = {}
    for path in critical_paths(replay, timeline):
        for resource, spent in path.by_resource().items():
            by_resource[resource] = by_resource.get(resource, 0) + spent
    changed = replace(workload.activities, start=timeline.start, end=timeline.end, dur=timeline.end - timeline.start)
    return Answer(
        measured_ns=replay.measured_ns,
        baseline_ns=baseline,
        span_ns=span,
        ledgers=device_ledgers_of(changed, workload.groups, workload.steps),
        by_resource=by_resource,
    )


def _edits(workload: Workload, replay: Replay, questions: Questions) -> list[Edit]:
    factor = np.ones(workload.activities.row.size)  # of several for one kernel, the product
    for members, value in (
        *(_category(workload, text) for text in questions.scale),
        *(_kernels(workload, text) for text in questions.scale_kernel),
    ):
        factor[members] = np.minimum(factor[members] * value, _MOST)
    edits = [_scaled(workload, factor)]
    edits += [_without(workload, replay, what) for what in questions.without]
    if questions.host_scale is not None:
        edits.append(Edit(host=everywhere(replay, 1 - questions.host_scale)))
    if questions.no_launch_gaps:
        edits.append(Edit(host=everywhere(replay, 1.0)))
    return edits


def _pair(text: str) -> tuple[str, float]:
    """The two sides of NAME=FACTOR."""
    name, _, factor = text.rpartition("=")
    try:
        value = float(factor)
    except ValueError:
        value = -1.0
    if not name or not 0 <= value <= _MOST:
        raise UsageError(f"`{text}` is no scale", hint=_SCALE_HINT)
    return name, value


def _category(workload: Workload, text: str) -> tuple[NDArray[np.int64], float]:
    name, factor = _pair(text)
    if name not in CATEGORIES:
        raise unknown_name("category", name, CATEGORIES)
    activities = workload.activities
    if name == "communication":
        return np.flatnonzero(activities.work == int(Work.COMMUNICATION)), factor
    groups = [group.activities for group in workload.groups if group.category == name]
    return np.concatenate(groups) if groups else np.empty(0, dtype=np.int64), factor


def _kernels(workload: Workload, text: str) -> tuple[NDArray[np.int64], float]:
    name, factor = _pair(text)
    matches = _matcher(name)
    activities = workload.activities
    codes = [code for code in sorted_unique(activities.name).tolist() if matches(workload.trace.names[code])]
    found = np.flatnonzero(np.isin(activities.name, codes))
    if not found.size:
        raise UsageError(f"no kernel's name matches `{name}`", hint="Run `rooftrace ops TRACE` to see them")
    return found, factor


def _matcher(pattern: str) -> Callable[[str], bool]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(
            f"`{pattern}` is no regular expression: {error}", hint="Escape characters like ( and ["
        ) from None
    return lambda name: compiled.search(name) is not None


def _scaled(workload: Workload, factor: NDArray[np.float64]) -> Edit:
    members = np.flatnonzero(factor != 1)
    saved = np.rint(workload.activities.dur[members] * (1 - factor[members]))
    return Edit(activities=members, saved_ns=saved.astype(np.int64))


def _without(workload: Workload, replay: Replay, what: str) -> Edit:
    activities = workload.activities
    kind, _, op = what.partition(":")
    if kind == "sync":
        return Edit(unblocked=_waits(workload, op))
    if what == "host":
        return Edit(host=everywhere(replay, 1.0))
    work = {"communication": Work.COMMUNICATION, "copies": Work.COPY}.get(what)
    if work is None:
        raise UsageError(f"`{what}` cannot be left out", hint=_WITHOUT_HINT)
    members = np.flatnonzero(activities.work == int(work))
    return Edit(activities=members, saved_ns=activities.dur[members])


def _waits(workload: Workload, op: str) -> NDArray[np.int64]:
    """Numbers of the waits issued under an op or call of this name; all of them without one."""
    waits, tree, names = workload.schedule.waits, workload.tree, workload.trace.names
    chosen = np.flatnonzero(waits.kind != int(WaitKind.QUEUE))
    if not op:
        return chosen
    wanted = np.array([names[code] == op for code in range(len(names))], dtype=bool)
    under = tree.innermost(wanted[tree.name]) >= 0
    found = chosen[under[waits.node[chosen]]]
    if not found.size:
        raise UsageError(f"nothing blocks under `{op}`", hint="Run `rooftrace idle TRACE` to see what does")
    return found
