"""Whether the numbers can be trusted, and how much of the kernel time was rated."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.cells import Cell, ns, share
from rooftrace.report.view import by_time

if TYPE_CHECKING:
    from rooftrace.report.view import View

REASONS_SHOWN = 8


def context(view: View) -> dict[str, object]:
    """Coverage rows and the reasons for missing ratings, most time first."""
    coverage = view.report.coverage
    reasons = by_time(coverage.reasons)
    return {
        "health": view.report.health,
        "coverage_rows": _coverage_rows(view) if coverage.kernel_ns else [],
        "reasons": reasons[:REASONS_SHOWN],
        "other_reasons": len(reasons[REASONS_SHOWN:]),
        "other_reasons_ns": sum(time for _, time in reasons[REASONS_SHOWN:]),
    }


def _coverage_rows(view: View) -> list[list[Cell]]:
    coverage = view.report.coverage
    times = {
        "kernel": coverage.kernel_ns,
        "comm": coverage.comm_ns,
        "carry_in": coverage.carry_in_ns,
        "lost_launch": coverage.lost_launch_ns,
        "ratable": coverage.ratable_ns,
        "shaped": coverage.shaped_ns,
        "modelled": coverage.modelled_ns,
        "rated": coverage.rated_ns,
    }
    rows: list[list[Cell]] = [[name, ns(time), share(time, coverage.kernel_ns)] for name, time in times.items()]
    return [*rows, ["copy", ns(coverage.copy_ns), None]]
