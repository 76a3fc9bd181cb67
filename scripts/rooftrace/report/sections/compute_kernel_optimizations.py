"""Compute by category and the compute tier's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.report.cells import Cell, ns, pct, share, spaced
from rooftrace.report.sections.what_to_do_first import tier_rows

if TYPE_CHECKING:
    from rooftrace.report.view import View

CATEGORIES_SHOWN = 12


def context(view: View) -> dict[str, object]:
    """Categories by time and the findings of the tier."""
    names = [name for name, _ in view.totals.categories]
    return {
        "category_rows": [_category_row(view, name) for name in names[:CATEGORIES_SHOWN]],
        "left_out": len(names[CATEGORIES_SHOWN:]),
        **tier_rows(view, "compute"),
    }


def _category_row(view: View, name: str) -> list[Cell]:
    """Ledger time, share of the span, kernel time, op groups, rated share, floor over time, gap."""
    groups = [op for op in view.report.ops if op.category == name]
    rated = [op for op in groups if op.efficiency_pct is not None and op.floor_ns is not None]
    busy = sum(op.busy_ns for op in rated)
    floor = sum(min(op.floor_ns * op.count, op.busy_ns) for op in rated if op.floor_ns is not None)
    kernel_ns = sum(op.kernel_ns for op in groups)
    ledger_ns = view.totals.compute_by_category[name]
    return [
        spaced(name),
        ns(ledger_ns),
        share(ledger_ns, view.totals.span_ns),
        ns(kernel_ns),
        len(groups),
        share(sum(op.kernel_ns for op in rated), kernel_ns),
        pct(units.pct(floor, busy) if busy else None),
        ns(sum(op.gap_ns or 0 for op in rated) if rated else None),
    ]
