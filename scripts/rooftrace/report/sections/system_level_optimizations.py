"""The system tier: idle time, exposed communication, exposed copies."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.cells import Cell, frame, ns
from rooftrace.report.markdown import code
from rooftrace.report.sections.what_to_do_first import tier_rows
from rooftrace.report.view import by_time

if TYPE_CHECKING:
    from rooftrace.report.files import GapRow
    from rooftrace.report.view import View


def context(view: View) -> dict[str, object]:
    """Findings of the tier and the longest gaps."""
    return {
        **tier_rows(view, "system"),
        "gap_rows": [_gap_row(view, gap) for gap in view.gaps],
        "causes": by_time(view.totals.idle_by_cause),
    }


def _gap_row(view: View, gap: GapRow) -> list[Cell]:
    names = [code(gap.before, 50), code(gap.after, 50), code(gap.op, 40), frame(gap.source)]
    return [ns(view.since_start(gap.device, gap.start_ns)), ns(gap.dur_ns), *names]
