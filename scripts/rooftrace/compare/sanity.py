"""Whether two traces can be compared at all, and what makes the comparison weaker."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.compare.kernelwise import unlike_owned
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind
from rooftrace.units import format_pct, pct

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rooftrace.compare.alignment import Pair
    from rooftrace.compare.leaves import Leaf
    from rooftrace.compare.side import Side
    from rooftrace.compare.table import Measured

# Below these shares of aligned kernel time the work is another, or much of it is.
NOTHING_PCT, OTHER_MODEL_PCT, PARTLY_PCT = 30.0, 50.0, 80.0
# Ops of two runs of one model, counted: less in common is another model.
_SAME_MODEL = 0.3


class Note(Struct, frozen=True, kw_only=True):
    """One thing to know; ``limit`` and ``severe`` weaken the verdict."""

    code: str
    text: str
    severity: str


class Aligned(Struct, frozen=True, kw_only=True):
    """How much of the kernel time has a counterpart, per cent of each side's."""

    base_pct: float
    target_pct: float
    block_pct: float  # of both sides, matched only as a block of several calls
    base_copies_pct: float  # without a counterpart, but only moving data
    target_copies_pct: float
    named_pct: float  # of both sides, under the same name or with the same kernels

    @property
    def least_pct(self) -> float:
        """The smaller of the two."""
        return min(self.base_pct, self.target_pct)

    @property
    def least_but_copies_pct(self) -> float:
        """The smaller of the two if copies that one side makes more are left out of it."""
        return min(
            pct(aligned, 100.0 - copies)
            for aligned, copies in (
                (self.base_pct, self.base_copies_pct),
                (self.target_pct, self.target_copies_pct),
            )
        )


def aligned_share(base: Measured, target: Measured, pairs: Sequence[Pair]) -> Aligned:
    """Shares of summed durations in the compared window, communication and copies included."""
    spent = {"base": 0, "target": 0, "block": 0, "named": 0, "base copies": 0, "target copies": 0}
    for pair in pairs:
        ours, theirs = _time(base, pair.base), _time(target, pair.target)
        if not pair.base or not pair.target:
            spent["base copies" if pair.base else "target copies"] += (ours + theirs) if _only_moves(pair) else 0
        else:
            spent["base"] += ours
            spent["target"] += theirs
            spent["block"] += (ours + theirs) if pair.is_block else 0
            spent["named"] += (ours + theirs) if _is_named(pair) else 0
    totals = [_window_time(measured) for measured in (base, target)]
    return Aligned(
        base_pct=pct(spent["base"], totals[0]),
        target_pct=pct(spent["target"], totals[1]),
        block_pct=pct(spent["block"], sum(totals)),
        base_copies_pct=pct(spent["base copies"], totals[0]),
        target_copies_pct=pct(spent["target copies"], totals[1]),
        named_pct=pct(spent["named"], sum(totals)),
    )


def _is_named(pair: Pair) -> bool:
    one, two = pair.base[0], pair.target[0]
    if one.op is None or two.op is None:
        return True
    return not pair.is_block and (one.name == two.name or one.kernels == two.kernels)


def _only_moves(pair: Pair) -> bool:
    return not pair.scope and all(leaf.moves for leaf in (*pair.base, *pair.target))


def _time(measured: Measured, leaves: Sequence[Leaf]) -> int:
    calls, dur = measured.slots.calls, measured.side.activities.dur
    numbers = np.array([number for leaf in leaves for number in leaf.calls], dtype=np.int64)
    compared = numbers[measured.in_window(calls.step[numbers])].tolist()
    return sum(int(dur[calls.members[number]].sum()) for number in compared)


def _window_time(measured: Measured) -> int:
    side = measured.side
    return int(side.activities.dur[measured.in_window(side.steps.of_activity)].sum())


def notes(base: Measured, target: Measured, aligned: Aligned, level: str) -> list[Note]:
    """Most severe first."""
    found = [
        *_of_work(base, target, aligned),
        *_of_machines(base.side, target.side),
        *_of_steps(base, target),
        *_of_recording(base.side, target.side, level),
    ]
    order = ("severe", "limit", "info")
    return sorted(found, key=lambda note: order.index(note.severity))


def verdict(found: Sequence[Note]) -> str:
    """``comparable``, ``partly`` or ``not_comparable``."""
    worst = {note.severity for note in found}
    return "not_comparable" if "severe" in worst else "partly" if "limit" in worst else "comparable"


def _of_work(base: Measured, target: Measured, aligned: Aligned) -> Iterator[Note]:
    if not base.side.activities.row.size or not target.side.activities.row.size:
        yield Note(code="no_gpu_work", text="One of the traces holds no GPU activity.", severity="severe")
        return
    text = f"{format_pct(aligned.base_pct)} of the base's and {format_pct(aligned.target_pct)} of the target's GPU time"
    common = _common_ops(base, target)
    if common < _SAME_MODEL and aligned.named_pct < OTHER_MODEL_PCT:
        yield Note(
            code="different_model",
            text=f"The two runs call different ops ({format_pct(100 * common)} in common): these are different models. "
            f"{text} has a counterpart.",
            severity="severe",
        )
    elif aligned.least_pct < NOTHING_PCT:
        yield Note(
            code="nothing_aligns",
            text=f"Only {text} has a counterpart: the rest is different work.",
            severity="severe",
        )
    elif aligned.least_pct < PARTLY_PCT:
        yield Note(
            code="partly_aligned",
            text=f"{text} has a counterpart; the rest is listed by itself.",
            severity="limit",
        )


def _common_ops(base: Measured, target: Measured) -> float:
    """Ops that both sides call, counted, over all; kinds of kernels where one side has no ops for them."""
    leaves = [measured.slots.leaves for measured in (base, target)]
    if unlike_owned(*leaves):
        counts = [Counter(kind for leaf in side for kind in leaf.kinds if not leaf.moves) for side in leaves]
    else:
        counts = [Counter(leaf.name if leaf.op else leaf.category for leaf in side) for side in leaves]
    either = sum((counts[0] | counts[1]).values())
    return sum((counts[0] & counts[1]).values()) / either if either else 1.0


def _of_machines(base: Side, target: Side) -> Iterator[Note]:
    ours, theirs = _gpu(base), _gpu(target)
    if ours != theirs:
        yield Note(
            code="different_gpu",
            text=f"The base ran on {ours}, the target on {theirs}: each side is rated on its own GPU.",
            severity="info",
        )
    devices = [sorted_unique(side.activities.device).size for side in (base, target)]
    if devices[0] != devices[1]:
        yield Note(
            code="different_devices",
            text=f"The base shows {devices[0]} GPUs, the target {devices[1]}: spans are summed over them.",
            severity="limit",
        )
    ranks = [_rank(side) for side in (base, target)]
    if None not in ranks and ranks[0] != ranks[1]:
        yield Note(
            code="different_ranks",
            text=f"The base is rank {ranks[0]}, the target rank {ranks[1]}: collectives hold the wait for other ranks.",
            severity="info",
        )
    sizes = [_world(side) for side in (base, target)]
    if None not in sizes and sizes[0] != sizes[1]:
        yield Note(
            code="different_world",
            text=f"The base ran on {sizes[0]} ranks, the target on {sizes[1]}: their shares of the work differ.",
            severity="limit",
        )


def _gpu(side: Side) -> str:
    listed = side.trace.header.get("deviceProperties")
    names = (
        {str(entry.get("name")) for entry in listed if isinstance(entry, dict)} if isinstance(listed, list) else set()
    )
    return " and ".join(sorted(names)) or "an unknown GPU"


def _distributed(side: Side, key: str) -> int | None:
    info = side.trace.header.get("distributedInfo")
    value = info.get(key) if isinstance(info, dict) else None
    return value if isinstance(value, int) else None


def _rank(side: Side) -> int | None:
    return _distributed(side, "rank")


def _world(side: Side) -> int | None:
    return _distributed(side, "world_size")


def _of_steps(base: Measured, target: Measured) -> Iterator[Note]:
    if base.window.by_step:
        counts = [len(measured.side.steps.names) for measured in (base, target)]
        if counts[0] != counts[1]:
            number = len(base.window.compared)
            text = f"The base has {counts[0]} steps, the target {counts[1]}: the last {number} are compared."
            yield Note(code="different_steps", text=text, severity="info")
        return
    counts = [len(measured.side.steps.names) for measured in (base, target)]
    if max(counts) > 1:
        text = f"The base has {counts[0]} steps, the target {counts[1]}: too few to compare steps, so whole spans are."
        yield Note(code="different_steps", text=text, severity="limit")
    else:
        text = "There is one step a side, so noise cannot be told from change."
        yield Note(code="one_step", text=text, severity="info")


def _of_recording(base: Side, target: Side, level: str) -> Iterator[Note]:
    if level != "modules":
        words = {
            "ops": "no modules (stacks) on both sides",
            "kernels": "no ops for the kernels of both sides",
        }
        text = f"There are {words[level]}: {level} are aligned by order."
        yield Note(code="no_modules" if level == "ops" else "no_ops", text=text, severity="info")
    recorded = [
        (bool((side.trace.inputs >= 0).any()), bool((side.trace.kind == int(Kind.PYTHON)).any()))
        for side in (base, target)
    ]
    if recorded[0] != recorded[1]:
        text = "Only one side recorded stacks or shapes: they slow the host, so idle time does not compare."
        yield Note(code="unlike_recording", text=text, severity="limit")
