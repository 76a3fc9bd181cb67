"""The rows of a comparison: every nanosecond of both spans in exactly one, with what was measured on either side."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from rooftrace.causes import CAUSE_NAMES, Cause
from rooftrace.compare.names import same_op
from rooftrace.contracts.base import BEFORE_FIRST_STEP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.compare.alignment import Pair
    from rooftrace.compare.leaves import Leaf, Slots
    from rooftrace.compare.side import Side
    from rooftrace.compare.steps import Window

IDLE, LEFT_OUT = "idle", "steps left out"
# Causes of idle time of which the op says where it comes from.
_NAMED = (Cause.SYNCHRONISATION, Cause.MEMORY_MANAGEMENT)


class Half(Struct, kw_only=True):
    """One side of a row. Times are over the compared window, ns; ``steps_ns`` has one entry a steady step."""

    ns: int = 0
    raw_ns: int = 0  # summed durations
    calls: int = 0
    launches: int = 0
    activities: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # of all steps
    gaps: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # of all steps
    call_numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    steps_ns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    leaves: tuple[Leaf, ...] = ()

    @property
    def leaf(self) -> Leaf | None:
        """An example: the slot that launches most."""
        return max(self.leaves, key=lambda leaf: len(leaf.kernels)) if self.leaves else None

    @property
    def per_call_ns(self) -> float:
        """Summed durations of a call, ns."""
        return self.raw_ns / self.calls if self.calls else 0.0


class Row(Struct, kw_only=True):
    """A row; ``kind`` is ``op``, ``block``, ``idle`` or ``left_out``."""

    path: tuple[str, ...]
    kind: str
    base: Half
    target: Half
    scope: tuple[str, ...] = ()
    label: str = ""
    idle: Cause | None = None

    @property
    def delta_ns(self) -> int:
        """What the target takes more."""
        return self.target.ns - self.base.ns


class Measured(Struct, frozen=True, kw_only=True):
    """A side with its slots, shares and window."""

    slots: Slots
    shares: NDArray[np.int64]
    window: Window

    @property
    def side(self) -> Side:
        """The run."""
        return self.slots.side

    def in_window(self, steps: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of the given steps are compared."""
        if not self.window.by_step:
            return np.ones(steps.size, dtype=bool)
        return np.isin(steps, np.asarray(self.window.compared))


def make_rows(base: Measured, target: Measured, pairs: Sequence[Pair]) -> list[Row]:
    """All rows: of kernels, idle time by cause, and the steps that are not compared."""
    rows = [*_call_rows(base, target, pairs), *_idle_rows(base, target)]
    left_out = Row(path=(LEFT_OUT,), kind="left_out", base=_left_out(base), target=_left_out(target), label=LEFT_OUT)
    if left_out.base.ns or left_out.target.ns:
        rows.append(left_out)
    return rows


def _call_rows(base: Measured, target: Measured, pairs: Sequence[Pair]) -> list[Row]:
    """Pairs of one parent that look alike make one row."""
    merged: dict[tuple[Any, ...], list[Pair]] = defaultdict(list)
    for pair in pairs:
        merged[(pair.path, pair.scope, pair.is_block, _look(pair.base), _look(pair.target))].append(pair)
    rows = []
    for key, alike in merged.items():
        ours = [leaf for pair in alike for leaf in pair.base]
        theirs = [leaf for pair in alike for leaf in pair.target]
        example = _example(alike[0])
        label = " + ".join(dict.fromkeys(leaf.op or leaf.name for leaf in example))
        rows.append(
            Row(
                path=(*key[0], label),
                kind="block" if key[2] else "op",
                base=_half(base, ours),
                target=_half(target, theirs),
                scope=key[1],
                label=label,
            )
        )
    return rows


def _example(pair: Pair) -> tuple[Leaf, ...]:
    """The side that names a row: the target, but a side that has ops before one that has none."""
    return next(
        (side for side in (pair.target, pair.base) if any(leaf.op is not None for leaf in side)),
        pair.target or pair.base,
    )


def _look(leaves: Sequence[Leaf]) -> tuple[Any, ...]:
    return tuple((leaf.op, leaf.name, leaf.shapes, leaf.dtypes, leaf.kernels) for leaf in leaves)


def _half(measured: Measured, leaves: Sequence[Leaf]) -> Half:
    if not leaves:
        return Half(steps_ns=np.zeros(len(measured.window.kept), dtype=np.int64))
    calls, activities = measured.slots.calls, measured.side.activities
    numbers = np.array(sorted(number for leaf in leaves for number in leaf.calls), dtype=np.int64)
    members = np.concatenate([calls.members[number] for number in numbers.tolist()])
    steps = measured.side.steps.of_activity[members]
    inside = measured.in_window(steps)
    compared = members[inside]
    return Half(
        ns=int(measured.shares[compared].sum()),
        raw_ns=int(activities.dur[compared].sum()),
        calls=int(measured.in_window(calls.step[numbers]).sum()),
        launches=int(compared.size),
        activities=members,
        call_numbers=numbers,
        steps_ns=_by_step(measured, steps, measured.shares[members]),
        leaves=tuple(leaves),
    )


def _by_step(measured: Measured, steps: NDArray[np.int64], amounts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Sums of the steady steps."""
    kept = np.asarray(measured.window.kept, dtype=np.int64)
    totals = np.zeros(len(measured.side.steps.names) + 1, dtype=np.int64)
    np.add.at(totals, steps, amounts)
    result: NDArray[np.int64] = totals[:-1][kept]
    return result


def _idle_rows(base: Measured, target: Measured) -> list[Row]:
    ours, theirs = _idle(base), _idle(target)
    rows = []
    for key in sorted(set(ours) | set(theirs)):
        cause, name = key
        path = (IDLE, CAUSE_NAMES[cause], name) if name else (IDLE, CAUSE_NAMES[cause])
        rows.append(
            Row(
                path=path,
                kind="idle",
                base=_idle_half(base, ours.get(key)),
                target=_idle_half(target, theirs.get(key)),
                label=name or CAUSE_NAMES[cause],
                idle=Cause(cause),
            )
        )
    return rows


def _idle(measured: Measured) -> dict[tuple[int, str], NDArray[np.int64]]:
    """Gaps by cause and, where it tells, the op in which they arose."""
    causes, tree, names = measured.side.causes, measured.side.tree, measured.side.trace.names
    found: dict[tuple[int, str], list[int]] = defaultdict(list)
    ops, kinds = causes.op.tolist(), causes.cause.tolist()
    for gap, (op, cause) in enumerate(zip(ops, kinds, strict=True)):
        name = same_op(names[int(tree.name[op])]) if cause in _NAMED and op >= 0 else ""
        found[(cause, name)].append(gap)
    return {key: np.array(gaps, dtype=np.int64) for key, gaps in found.items()}


def _idle_half(measured: Measured, gaps: NDArray[np.int64] | None) -> Half:
    if gaps is None:
        return Half(steps_ns=np.zeros(len(measured.window.kept), dtype=np.int64))
    causes = measured.side.causes
    steps = measured.side.steps.of_activity[causes.after[gaps]]
    inside = measured.in_window(steps)
    return Half(
        ns=int(causes.dur[gaps][inside].sum()),
        raw_ns=int(causes.dur[gaps][inside].sum()),
        calls=int(inside.sum()),
        gaps=gaps,
        steps_ns=_by_step(measured, steps, causes.dur[gaps]),
    )


def _left_out(measured: Measured) -> Half:
    side = measured.side
    outside = ~measured.in_window(side.steps.of_activity)
    gaps = ~measured.in_window(side.steps.of_activity[side.causes.after])
    total = int(measured.shares[outside].sum()) + int(side.causes.dur[gaps].sum())
    return Half(ns=total, raw_ns=int(side.activities.dur[outside].sum()))


def names_left_out(measured: Measured) -> list[str]:
    """Steps of a side that are not compared, with the reason."""
    window, steps = measured.window, measured.side.steps
    if not window.by_step:
        return []
    spare = [f"{steps.names[at]} (no counterpart)" for at in window.kept if at not in window.compared]
    before = [BEFORE_FIRST_STEP] if (steps.of_activity < 0).any() else []
    return [*before, *window.left_out, *spare]
