"""The cause of each row, one of a closed list, decided by what the two sides measured and recorded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, get_args

import numpy as np
from msgspec import Struct

from rooftrace.causes import CAUSE_NAMES
from rooftrace.compare.leaves import MOVING_KINDS
from rooftrace.contracts.compare import RowCause
from rooftrace.opmodels import Cost
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.compare.leaves import Leaf
    from rooftrace.compare.side import Side
    from rooftrace.compare.table import Half, Measured, Row

# Rows that change by less than this share of themselves, and by less than this share of the span, are unchanged.
_SAME_ROW, _SAME_SPAN = 0.01, 0.001
# If durations explain less than this share of a row's difference, its overlap with other work changed.
_EXPLAINED = 0.5
# FLOPs (bytes where there are none) within this share are the same work.
_SAME_WORK = 0.01
# A uniform slowdown: so much of the time of kernels that did not change lies this near the common ratio, in kernels
# and categories enough to be unrelated.
_UNIFORM_SHARE, _UNIFORM_BAND, _LEAST_SLOWDOWN = 0.7, 0.02, 0.02
_LEAST_KERNELS, _LEAST_CATEGORIES = 4, 2
CAUSES: tuple[str, ...] = get_args(RowCause)


class Judge(Struct, frozen=True, kw_only=True):
    """Decides causes; ``pace`` is the common ratio of a uniform slowdown, None without one."""

    base: Measured
    target: Measured
    span_ns: int
    pace: float | None
    comparable: bool

    def cause(self, row: Row) -> str:
        """The cause of a row."""
        if row.kind == "left_out":
            return _one_sided(row) or ("different_work" if row.delta_ns else "unchanged")
        if row.idle is not None:
            return CAUSE_NAMES[row.idle] if not self._is_unchanged(row) else "unchanged"
        alone = _one_sided(row)
        if alone is not None:
            return "layout_or_copy" if _moves(row) and self.comparable else alone
        if self._is_unchanged(row):
            return "unchanged"
        return self._paired(row)

    def _is_unchanged(self, row: Row) -> bool:
        larger = max(row.base.ns, row.target.ns)
        return abs(row.delta_ns) <= _SAME_ROW * larger and abs(row.delta_ns) <= _SAME_SPAN * self.span_ns

    def _paired(self, row: Row) -> str:
        ours, theirs = row.base, row.target
        if ours.leaf is None or theirs.leaf is None:
            return "different_work"
        early = _before_work(row)
        if early is not None:
            return early
        if _precisions(self.base.side, ours) != _precisions(self.target.side, theirs):
            return "precision"
        return self._work(row) or _number(row) or self._kernels(row, ours.leaf, theirs.leaf)

    def _work(self, row: Row) -> str | None:
        """``shape`` or ``different_work`` where the calls did not do the same, else None."""
        ours, theirs = row.base.leaf, row.target.leaf
        if ours is None or theirs is None or row.kind == "block":
            return None
        costs = [_work_of(measured.side, half) for measured, half in ((self.base, row.base), (self.target, row.target))]
        known = costs[0] is not None and costs[1] is not None
        if known and not _close(float(costs[0] or 0), float(costs[1] or 0)):
            return "shape"
        if not known and ours.op == theirs.op and ours.shapes and theirs.shapes and ours.shapes != theirs.shapes:
            return "shape"
        if ours.op is not None and theirs.op is not None and ours.name != theirs.name and not _same_kinds(ours, theirs):
            return "different_work"
        return None

    def _kernels(self, row: Row, ours: Leaf, theirs: Leaf) -> str:
        if set(ours.kernels) == set(theirs.kernels):
            if self.pace is not None and abs(_ratio(row) - self.pace) <= _band(self.pace):
                return "clock_or_power"
            return "slower_kernel"
        if ours.op == theirs.op and ours.shapes == theirs.shapes and ours.strides != theirs.strides:
            return "layout_or_copy"
        return "different_kernel"


def _one_sided(row: Row) -> str | None:
    if row.base.ns == row.base.raw_ns == row.base.calls == 0:
        return "only_in_target"
    if row.target.ns == row.target.raw_ns == row.target.calls == 0:
        return "only_in_base"
    return None


def _moves(row: Row) -> bool:
    """Whether what only one side has moves data, by itself and not as part of a module."""
    leaf = row.base.leaf or row.target.leaf
    return leaf is not None and not row.scope and leaf.moves


def _lost_overlap(row: Row) -> bool:
    """Whether the row takes more of the timeline although its activities take as long."""
    if row.base.launches != row.target.launches:
        return False
    by_duration = row.target.raw_ns - row.base.raw_ns
    return abs(row.delta_ns - by_duration) > _EXPLAINED * abs(row.delta_ns)


def _precisions(side: Side, half: Half) -> tuple[str, ...]:
    """Element types of the inputs (those of floats), and what the kernels' names spell of them."""
    if half.leaf is None:
        return ()
    found = {word for word in re.findall(r"[A-Za-z_:0-9]+", half.leaf.dtypes) if _is_float(word)}
    if found:
        spelled = {"tf32"} if _spells_tf32(side, half) else set()
        return tuple(sorted(found | spelled))
    return tuple(sorted({p for p in _facts(side, half, "precision") if p}))


def _is_float(word: str) -> bool:
    return any(part in word.lower() for part in ("float", "half", "double", "fp8"))


def _spells_tf32(side: Side, half: Half) -> bool:
    return "tfloat32" in _facts(side, half, "precision")


def _facts(side: Side, half: Half, name: str) -> set[str | None]:
    codes = sorted_unique(side.activities.name[half.activities]).tolist()
    return {getattr(side.activities.infos[code].facts, name) for code in codes}


def _work_of(side: Side, half: Half) -> float | None:
    """FLOPs of a call (bytes where there are none); None without a cost."""
    groups = sorted_unique(side.group_of[half.activities])
    costs = {side.ratings[at].cost for at in groups.tolist() if at >= 0}
    known = [cost for cost in costs if isinstance(cost, Cost)]
    if len(known) != 1 or len(costs) != 1:
        return None
    return float(known[0].flops or known[0].bytes_total)


def _close(ours: float, theirs: float) -> bool:
    return abs(ours - theirs) <= _SAME_WORK * max(ours, theirs)


def _same_kinds(ours: Leaf, theirs: Leaf) -> bool:
    return bool(set(ours.kinds) & set(theirs.kinds)) or ours.category == theirs.category


def _per_call(half: Half) -> float:
    return round(half.launches / half.calls, 3) if half.calls else 0.0


def _before_work(row: Row) -> str | None:
    """What shows without a look at the calls: a block of another length, or time that overlap explains."""
    if row.kind == "block" and row.base.launches != row.target.launches:
        return _more_or_fewer(row)
    return "lost_overlap" if _lost_overlap(row) else None


def _number(row: Row) -> str | None:
    """What a different number of launches or calls comes to; None where it is the same."""
    ours, theirs = row.base, row.target
    if row.kind == "block" or _per_call(ours) != _per_call(theirs):
        return _more_or_fewer(row)
    if ours.calls != theirs.calls and not _by_time_alone(row):
        return "more_launches" if theirs.calls > ours.calls else "fewer_launches"
    return None


def _more_or_fewer(row: Row) -> str:
    """Launches of the same work; where only copies and layout changes were added or dropped, that."""
    ours, theirs = row.base.leaf, row.target.leaf
    if ours is not None and theirs is not None and row.kind == "op":
        extra = (set(ours.kinds) ^ set(theirs.kinds)) - {"fill"}
        if extra and extra <= MOVING_KINDS:
            return "layout_or_copy"
        if len(_without_fills(ours)) == len(_without_fills(theirs)):
            return "different_kernel"
    if row.base.launches == row.target.launches:
        return "different_kernel"
    return "more_launches" if row.target.launches > row.base.launches else "fewer_launches"


def _without_fills(leaf: Leaf) -> list[str]:
    return [kind for kind in leaf.kinds if kind != "fill"]


def _by_time_alone(row: Row) -> bool:
    """Whether calls differ in number, but hardly so."""
    return abs(row.base.calls - row.target.calls) <= 0.02 * max(row.base.calls, row.target.calls)


def _ratio(row: Row) -> float:
    return row.target.per_call_ns / row.base.per_call_ns if row.base.per_call_ns else 1.0


def _band(pace: float) -> float:
    return max(_UNIFORM_BAND, abs(pace - 1) / 4)


def common_pace(rows: Sequence[Row]) -> float | None:
    """Ratio at which unrelated kernels of the same work all changed; None where they did not."""
    alike = [
        row
        for row in rows
        if row.kind == "op" and row.base.leaf is not None and row.target.leaf is not None
        if row.base.leaf.part == "compute" and row.base.leaf.kernels == row.target.leaf.kernels
        if row.base.leaf.shapes == row.target.leaf.shapes and row.base.raw_ns and row.target.raw_ns
    ]
    kernels = {kernel for row in alike if row.base.leaf is not None for kernel in row.base.leaf.kernels}
    categories = {row.base.leaf.category for row in alike if row.base.leaf is not None}
    if len(kernels) < _LEAST_KERNELS or len(categories) < _LEAST_CATEGORIES:
        return None
    ratios = np.array([_ratio(row) for row in alike])
    weights = np.array([row.base.raw_ns for row in alike], dtype=float)
    order = np.argsort(ratios, kind="stable")
    middle = float(ratios[order][np.searchsorted(np.cumsum(weights[order]), weights.sum() / 2)])
    near = np.abs(ratios - middle) <= _band(middle)
    if abs(middle - 1) < _LEAST_SLOWDOWN or weights[near].sum() < _UNIFORM_SHARE * weights.sum():
        return None
    return middle
