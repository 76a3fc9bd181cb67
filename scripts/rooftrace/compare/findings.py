"""Findings: rows that changed for one reason, ranked by what reaching the other side would save in the slower run."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import module_class
from rooftrace.causes import HOST_CAUSES, Cause
from rooftrace.compare.edits import Fix, fix_of
from rooftrace.compare.noise import is_beyond_noise
from rooftrace.contracts.base import Score
from rooftrace.contracts.compare import listing_order
from rooftrace.replay.edits import Edit
from rooftrace.replay.facts import LEAST_EXPLAINED_PCT, describe_replay
from rooftrace.replay.run import Replay
from rooftrace.units import pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.compare.table import Measured, Row
    from rooftrace.replay.scenarios import Scenario

# Shares of the difference that are taken to be reached (METHODS: impact).
CLOSURES = (0.75, 0.875, 1.0)
# Findings that change less than this share of the slower side's span are left to the rows.
LEAST_PCT = 0.5
_MOST_REPLAYED = 40
# Causes that concern what runs at the same time or on the same clock: their rows are one finding.
_TOGETHER = ("lost_overlap", "clock_or_power")
_NAMED = 3
# Kernels of which only the template arguments say what they do.
_LAUNCHERS = frozenset(
    (
        "elementwise_kernel",
        "vectorized_elementwise_kernel",
        "unrolled_elementwise_kernel",
        "elementwise_kernel_manual_unroll",
        "reduce_kernel",
        "multi_tensor_apply_kernel",
        "index_elementwise_kernel",
        "Kernel",
        "kernel",
        "device_kernel",
    )
)
# Gaps whose mean differs by less are as long as before.
_SAME_GAP = 0.2
# Of a change of host-caused idle time, the least that a change of the host's own time explains.
_OWN_CHANGE = 0.2


class Found(Struct, kw_only=True):
    """Rows of one cause and subject; ``numbers`` are their places in the table."""

    cause: str
    subject: str
    is_regression: bool
    numbers: list[int]
    delta_ns: int
    beyond_noise: bool | None
    score: Score
    basis: str = "gap_share"
    at_floor: bool = False


def find(rows: Sequence[Row], causes: Sequence[str], base: Measured, target: Measured) -> list[Found]:
    """Regressions, then improvements, each most gain first; last those not worth telling.

    A gain is a share of the slower side's compared window.
    """
    groups: dict[tuple[bool, str, str], list[int]] = defaultdict(list)
    for number, (row, cause) in enumerate(zip(rows, causes, strict=True)):
        if row.kind != "left_out" and cause != "unchanged" and row.delta_ns:
            groups[(row.delta_ns > 0, cause, _subject(row, cause))].append(number)
    spans = {False: window_ns(base), True: window_ns(target)}
    found = [
        item
        for key, numbers in groups.items()
        for item in [_found(key, numbers, rows, spans[key[0]])]
        if item.score.high >= LEAST_PCT and item.beyond_noise is not False
    ]
    same_gpu = base.side.platform == target.side.platform
    replays = {worse: _Replayed(side, same_gpu=same_gpu) for worse, side in ((False, base), (True, target))}
    found = [item for item in found if not _is_consequence(item, rows, replays)]
    for worse, replayed in replays.items():
        _replay([item for item in found if item.is_regression == worse], rows, replayed, is_target=worse)
    return sorted(found, key=_order)


def _order(item: Found) -> tuple[tuple[bool, bool, float], int, str, str]:
    direction = "regression" if item.is_regression else "improvement"
    return listing_order(direction, item.score.high), -abs(item.delta_ns), item.cause, item.subject


def _found(key: tuple[bool, str, str], numbers: list[int], rows: Sequence[Row], span: int) -> Found:
    delta = sum(rows[number].delta_ns for number in numbers)
    share = pct(abs(delta), span)
    low, mid, high = (round(closure * share, 2) for closure in CLOSURES)
    return Found(
        cause=key[1],
        subject=key[2] or _named(numbers, rows),
        is_regression=key[0],
        numbers=numbers,
        delta_ns=delta,
        beyond_noise=_noise([rows[number] for number in numbers]),
        score=Score(low=low, mid=mid, high=high),
    )


class _Replayed:
    """A side and its replay, made when first asked for."""

    def __init__(self, measured: Measured, *, same_gpu: bool) -> None:
        self.measured, self.same_gpu = measured, same_gpu

    @cached_property
    def replay(self) -> Replay:
        """The replay of the whole run."""
        side = self.measured.side
        return Replay(side.tree, side.activities, side.schedule)

    @cached_property
    def is_believed(self) -> bool:
        """Whether the run's constraints explain enough of it."""
        return describe_replay(self.replay).explained_pct >= LEAST_EXPLAINED_PCT

    @cached_property
    def host_ns(self) -> int:
        """Span if all GPU work took no time: what the host alone needs."""
        activities = self.measured.side.activities
        everything = np.arange(activities.row.size)
        return self.replay.spans([((Edit(activities=everything, saved_ns=activities.dur), 1.0),)])[0]


def _is_consequence(item: Found, rows: Sequence[Row], replays: dict[bool, _Replayed]) -> bool:
    """Whether idle time only follows from what else changed.

    Gaps of a queue that had work come with its activities: as long each as before, they are no cause; nor are they
    where waits for the host took their place, or gave it up. Time in which the GPU waits for the host shrinks where
    kernels grow: the host must have changed itself, and in that direction.
    """
    cause = rows[item.numbers[0]].idle
    if cause in (Cause.DEVICE, Cause.DEPENDENCY):
        pairs = [(rows[at].base, rows[at].target) for at in item.numbers]
        gaps = [(sum(pair[side].ns for pair in pairs), sum(pair[side].calls for pair in pairs)) for side in (0, 1)]
        by_host = sum(row.delta_ns for row in rows if row.idle in HOST_CAUSES)
        if by_host * item.delta_ns < 0 and abs(by_host) >= abs(item.delta_ns):
            return True
        means = [spent / count if count else 0.0 for spent, count in gaps]
        return abs(means[1] - means[0]) <= _SAME_GAP * max(means)
    if cause not in HOST_CAUSES:
        return False
    grown = replays[True].host_ns - replays[False].host_ns
    return grown * (1 if item.is_regression else -1) < _OWN_CHANGE * abs(item.delta_ns)


def window_ns(measured: Measured) -> int:
    """What is compared of a side, ns."""
    if measured.window.by_step:
        return int(measured.window.length_ns[list(measured.window.compared)].sum())
    return measured.side.span_ns


def _subject(row: Row, cause: str) -> str:
    """What rows must share to be one finding."""
    if row.idle is not None:
        return row.label
    if cause in _TOGETHER:
        return ""
    leaf = row.target.leaf or row.base.leaf
    if cause == "slower_kernel" and leaf is not None and len(leaf.kernels) == 1:
        return _family(leaf.kernels[0])
    return _place(row, cause)


def _place(row: Row, cause: str) -> str:
    """The module that has no counterpart; else the op, or the category of kernels without one."""
    leaf = row.target.leaf or row.base.leaf
    if row.scope:
        return module_class(row.scope[-1])
    if cause in ("only_in_base", "only_in_target") and leaf is not None and leaf.op is None:
        return f"{leaf.category} kernels"
    return row.label


def _family(kernel: str) -> str:
    """A kernel's name without template arguments, where that still tells what it does."""
    name = kernel.partition("<")[0]
    return kernel if not name or name in _LAUNCHERS else name


def _named(numbers: Sequence[int], rows: Sequence[Row]) -> str:
    """What changed most, where a finding is about several things."""
    labels = list(dict.fromkeys(rows[number].label for number in numbers))
    return ", ".join(labels[:_NAMED]) + (" and others" if len(labels) > _NAMED else "")


def _noise(rows: Sequence[Row]) -> bool | None:
    """Whether the rows together changed by more than they differ from step to step."""
    ours = np.sum([row.base.steps_ns for row in rows], axis=0)
    theirs = np.sum([row.target.steps_ns for row in rows], axis=0)
    return is_beyond_noise(ours, theirs)


def _replay(found: list[Found], rows: Sequence[Row], slower: _Replayed, *, is_target: bool) -> None:
    """Replace shares by replayed gains where the run's constraints explain it."""
    found = sorted(found, key=lambda item: -abs(item.delta_ns))[:_MOST_REPLAYED]
    if not found:
        return
    measured = slower.measured
    fixes = [
        fix_of(
            [(rows[at], item.cause) for at in item.numbers],
            measured,
            is_target=is_target,
            same_gpu=slower.same_gpu,
        )
        for item in found
    ]
    scenarios: list[Scenario] = [((fix.edit, closure),) for fix in fixes for closure in CLOSURES]
    base, *spans = slower.replay.spans([(), *scenarios])
    # The whole run was changed, of which only some steps are compared: gains are shares of the whole.
    for at, (item, fix) in enumerate(zip(found, fixes, strict=True)):
        item.at_floor = fix.at_floor
        if slower.is_believed and fix.can_replay:
            saved = [base - span for span in spans[3 * at : 3 * at + 3]]
            item.score = _score(saved, _most(item, rows, fix), slower.replay.measured_ns)
            item.basis = "replay"


def _most(item: Found, rows: Sequence[Row], fix: Fix) -> int:
    """No fix of a row saves more than what its activities lose, or its idle time is."""
    edit = fix.edit
    by_edit = int(edit.saved_ns.sum())
    halves = [rows[at].target if item.is_regression else rows[at].base for at in item.numbers]
    whole = sum(half.raw_ns for half in halves)
    return max(by_edit, whole if edit.removed.size or edit.unblocked.size or edit.host else by_edit)


def _score(saved: list[int], most: int, span: int) -> Score:
    low, mid, high = sorted(pct(max(0, min(value, most)), span) for value in saved)
    return Score(low=low, mid=mid, high=high)
