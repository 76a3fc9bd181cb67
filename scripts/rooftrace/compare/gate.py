"""Limits on how much a metric may grow, told from noise by resampling the steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.compare.noise import lower_bound
from rooftrace.compare.records import category_of
from rooftrace.contracts.base import Category
from rooftrace.contracts.compare import GateCheck
from rooftrace.errors import UsageError, unknown_name
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rooftrace.compare.pair import Comparison
    from rooftrace.compare.table import Half, Measured, Row

CATEGORIES: tuple[str, ...] = tuple(Category.__args__)  # type: ignore[attr-defined]
_KINDS = ("span", "idle", "category:SLUG", "kernel:REGEX")


class Metric(Struct, frozen=True, kw_only=True):
    """What is watched."""

    text: str
    kind: str
    subject: str = ""


def read_metric(text: str) -> Metric:
    """A metric as the command line gives it."""
    kind, _, subject = text.partition(":")
    if text in ("span", "idle"):
        return Metric(text=text, kind=text)
    if kind == "category" and subject in (*CATEGORIES, "copy"):
        return Metric(text=text, kind=kind, subject=subject)
    if kind == "category":
        raise unknown_name("category", subject, (*CATEGORIES, "copy"))
    if kind == "kernel" and subject:
        try:
            re.compile(subject)
        except re.error as error:
            raise UsageError(f"`{subject}` is not a regular expression: {error}") from None
        return Metric(text=text, kind=kind, subject=subject)
    raise UsageError(f"unknown metric: `{text}`", hint=f"Known: {', '.join(_KINDS)}")


def check(comparison: Comparison, metrics: Sequence[Metric], limit_pct: float, min_steps: int) -> list[GateCheck]:
    """Every metric against the limit."""
    return [_check(comparison, metric, limit_pct, min_steps) for metric in metrics]


def _check(comparison: Comparison, metric: Metric, limit_pct: float, min_steps: int) -> GateCheck:
    ours, theirs = (_values(comparison, metric, is_target=is_target) for is_target in (False, True))
    whole = float(np.median(_spans(comparison)))
    growth = _growth(metric, whole)
    base, target = float(np.median(ours)), float(np.median(theirs))
    change = float(growth(np.array([base]), np.array([target]))[0])
    bound = lower_bound(ours, theirs, growth) if min(ours.size, theirs.size) >= min_steps else None
    return GateCheck(
        metric=metric.text,
        limit_pct=limit_pct,
        base_ns=round(base),
        target_ns=round(target),
        change_pct=round(change, 2),
        bound_pct=None if bound is None else round(bound, 2),
        violated=(change if bound is None else bound) > limit_pct,
    )


def _growth(metric: Metric, whole: float) -> Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]:
    """Growth in per cent of the base; of its whole step for idle time, and where the base has none of it."""

    def grown(ours: NDArray[np.float64], theirs: NDArray[np.float64]) -> NDArray[np.float64]:
        reference = np.full(ours.shape, whole) if metric.kind == "idle" else np.where(ours > 0, ours, whole)
        return 100.0 * (theirs - ours) / np.maximum(reference, 1.0)

    return grown


def _spans(comparison: Comparison) -> NDArray[np.float64]:
    return _values(comparison, Metric(text="span", kind="span"), is_target=False)


def _values(comparison: Comparison, metric: Metric, *, is_target: bool) -> NDArray[np.float64]:
    """The metric of each steady step, or one value of the whole span."""
    measured = comparison.target if is_target else comparison.base
    kept = list(measured.window.kept)
    if metric.kind == "span":
        if not kept:
            return np.array([float(measured.side.span_ns)])
        return measured.window.length_ns[kept].astype(float)
    if metric.kind == "kernel":
        return _of_kernels(measured, metric.subject, kept)
    halves = [row.target if is_target else row.base for row in comparison.rows if _is_meant(row, metric)]
    if not kept:
        return np.array([float(sum(half.ns for half in halves))])
    return _summed(halves, len(kept))


def _is_meant(row: Row, metric: Metric) -> bool:
    return category_of(row) == (metric.subject if metric.kind == "category" else "idle")


def _summed(halves: Sequence[Half], steps: int) -> NDArray[np.float64]:
    total = np.zeros(steps)
    for half in halves:
        total += half.steps_ns
    return total


def _of_kernels(measured: Measured, pattern: str, kept: Sequence[int]) -> NDArray[np.float64]:
    """Summed durations of the activities whose name matches."""
    activities, names = measured.side.activities, measured.side.trace.names
    codes = [code for code in sorted_unique(activities.name).tolist() if re.search(pattern, names[code])]
    mine = np.isin(activities.name, codes)
    if not kept:
        return np.array([float(activities.dur[mine].sum())])
    totals = np.zeros(len(measured.side.steps.names) + 1)
    np.add.at(totals, measured.side.steps.of_activity[mine], activities.dur[mine])
    result: NDArray[np.float64] = totals[:-1][list(kept)]
    return result
