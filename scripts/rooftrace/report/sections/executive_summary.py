"""The whole report on half a page: what bounds the run, how much each part takes, how steps differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.contracts.report import BOUND_BY
from rooftrace.report.cells import Cell, ns, pct, share
from rooftrace.report.impact import on_path
from rooftrace.report.markdown import Safe, code
from rooftrace.report.view import PARTS, by_time, part_ns

if TYPE_CHECKING:
    from rooftrace.contracts.ledger import StepLedger
    from rooftrace.contracts.report import Finding
    from rooftrace.report.view import View

STEPS_SHOWN = 12
_CAUSES_NAMED = 3
# A stretch before the first step that takes more of the span than this is named in the summary, per cent.
BEFORE_STEPS_PCT = 5.0
_EDGE = 5
# A resource with less of the critical path is in the table alone, per cent.
PATH_SHOWN_PCT = 0.1


def context(view: View) -> dict[str, object]:
    """Parts of the span, the bounds of rated kernels, steps and the first finding."""
    report, totals = view.report, view.totals
    others = [(part, totals.parts[part]) for part in PARTS if part != totals.bounding]
    others.sort(key=lambda item: -item[1])
    rated = sum(view.time_by_bound.values())
    return {
        "bounding": totals.bounding,
        "bounding_ns": totals.parts[totals.bounding],
        "others": [(part, share(time, totals.span_ns)) for part, time in others if time],
        "shares": {part: share(totals.parts[part], totals.span_ns) for part in PARTS},
        "top_category": totals.categories[0] if totals.categories else None,
        "top_chain": _top_chain(view),
        "bounds": [(bound, share(time, rated)) for bound, time in by_time(view.time_by_bound)],
        "first": report.findings[0] if report.findings else None,
        "metrics": _metrics(view),
        "path_shares": _path_shares(view),
        "free_spans": _free_spans(view),
        "path_rows": _path_rows(view),
        "causes": [(cause, share(time, totals.parts["idle"])) for cause, time in by_time(totals.idle_by_cause)][
            :_CAUSES_NAMED
        ],
        **_steps(view),
        "top_cpu_op": report.cpu_ops[0] if report.cpu_ops else None,
    }


def _top_chain(view: View) -> Finding | None:
    """A fusion finding with more time than any category: its kernels stand under several of them."""
    found = max(view.of_tier("fusion"), key=_time_share_pct, default=None)
    top = units.pct(view.totals.categories[0][1], view.totals.span_ns) if view.totals.categories else 0.0
    return found if found and _time_share_pct(found) > top else None


def _time_share_pct(finding: Finding) -> float:
    value = finding.evidence.get("time_share_pct")
    return float(value) if isinstance(value, int | float) else 0.0


def _path_shares(view: View) -> list[tuple[str, Safe]]:
    span = view.totals.span_ns
    shown = [(name, time) for name, time in by_time(on_path(view)) if units.pct(time, span) >= PATH_SHOWN_PCT]
    return [(name, share(time, span)) for name, time in shown]


def _free_spans(view: View) -> list[tuple[str, int]]:
    """Span without each resource, least first."""
    replay = view.report.replay
    free = [] if replay is None else [(str(name), span) for name, span in replay.if_free.items() if name in BOUND_BY]
    return sorted(free, key=lambda item: (item[1], item[0]))[:2]


def _path_rows(view: View) -> list[list[Cell]]:
    """Resource, time on the critical path, share of the span, span were it free."""
    replay, span, spent = view.report.replay, view.totals.span_ns, on_path(view)
    if replay is None:
        return []
    free = dict(replay.if_free.items())
    rows: list[list[Cell]] = [
        [name, ns(time), share(time, span), ns(free.get(name))]  # type: ignore[call-overload]
        for name, time in by_time(spent)
    ]
    absent = [name for name in free if name not in spent and free[name] < replay.baseline_ns]
    return rows + [[name, None, None, ns(free[name])] for name in absent]


def _steps(view: View) -> dict[str, object]:
    """Rows of the steps' table, with the stretch before the first step where there is one."""
    steps = shown_steps(view.steps.rows) if view.steps else []
    before = view.before_first_step
    share_pct = units.pct(before[1].span_ns, before[0].span_ns) if before else 0.0
    leading = view.steps.leading if view.steps else []
    return {
        "step_rows": [_step_row(step) for step in [*leading, *steps]],
        "steps_left_out": len(view.steps.rows) - len(steps) if view.steps else 0,
        "has_leading": bool(leading),
        "before_steps_pct": share_pct if share_pct > BEFORE_STEPS_PCT else None,
    }


def shown_steps(rows: list[StepLedger]) -> list[StepLedger]:
    """All steps, or of many the first ones and the slowest, in the order of time."""
    if len(rows) <= STEPS_SHOWN:
        return rows
    slowest = sorted(range(_EDGE, len(rows)), key=lambda index: (-rows[index].span_ns, index))[:_EDGE]
    return [*rows[:_EDGE], *(rows[index] for index in sorted(slowest))]


def _metrics(view: View) -> list[list[Cell]]:
    """Metric, value, share of the span, field of ``report.json``."""
    totals = view.totals
    span = totals.span_ns
    rows: list[list[Cell]] = [_metric("span", span, span)]
    rows += [_metric(part, totals.parts[part], span) for part in PARTS]
    for name, time in (("total_comm", totals.total_comm_ns), ("total_copy", totals.total_copy_ns)):
        if time:
            rows.append(_metric(name, time, span))
    if view.rated_efficiency_pct is not None:
        rows.append(["rated", pct(view.rated_efficiency_pct), None, Safe("`ops[].efficiency_pct`")])
    return rows


def _metric(name: str, time: int, span: int) -> list[Cell]:
    return [name, ns(time), share(time, span), Safe(f"`ledger.devices[].{name}_ns`")]


def _step_row(step: StepLedger) -> list[Cell]:
    return [
        step.name if step.name == BEFORE_FIRST_STEP else code(step.name, 40),
        ns(step.span_ns),
        *(share(part_ns(step, part), step.span_ns) for part in PARTS),
    ]
