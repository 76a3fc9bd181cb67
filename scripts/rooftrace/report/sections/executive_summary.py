"""The whole report on half a page: what bounds the run, how much each part takes, how steps differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.contracts.report import BOUND_BY
from rooftrace.report.cells import Cell, ns, pct, share
from rooftrace.report.markdown import Safe, code
from rooftrace.report.view import PARTS, by_time, part_ns

if TYPE_CHECKING:
    from rooftrace.contracts.ledger import StepLedger
    from rooftrace.report.view import View

STEPS_SHOWN = 12
# What a critical path's resources are summed to, and the name under which each could be free.
_RESOURCES = {
    "host": ("host", "launch", "synchronisation"),
    "compute": ("compute",),
    "communication": ("communication",),
    "copy": ("copy",),
    "between": ("device", "dependency"),
    "unexplained": ("unexplained",),
}
_CAUSES_NAMED = 3
# A stretch before the first step that takes more of the span than this is named in the summary, per cent.
BEFORE_STEPS_PCT = 5.0
_EDGE = 5


def context(view: View) -> dict[str, object]:
    """Parts of the span, the bounds of rated kernels, steps and the first finding."""
    report, totals = view.report, view.totals
    others = [(part, totals.parts[part]) for part in PARTS if part != totals.bounding]
    others.sort(key=lambda item: -item[1])
    rated = sum(view.time_by_bound.values())
    return {
        "bounding": totals.bounding,
        "bounding_ns": totals.parts[totals.bounding],
        "others": [(part, share(time, totals.span_ns)) for part, time in others],
        "shares": {part: share(totals.parts[part], totals.span_ns) for part in PARTS},
        "top_category": totals.categories[0] if totals.categories else None,
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


def _on_path(view: View) -> dict[str, int]:
    """Time on the critical paths of all devices by resource, ns; empty without a replay."""
    paths = view.report.replay.paths if view.report.replay else []
    return {
        name: time
        for name, parts in _RESOURCES.items()
        if (time := sum(path.by_resource.get(part, 0) for path in paths for part in parts))  # type: ignore[call-overload]
    }


def _path_shares(view: View) -> list[tuple[str, Safe]]:
    return [(name, share(time, view.totals.span_ns)) for name, time in by_time(_on_path(view))]


def _free_spans(view: View) -> list[tuple[str, int]]:
    """Span without each resource, least first."""
    replay = view.report.replay
    free = [] if replay is None else [(str(name), span) for name, span in replay.if_free.items() if name in BOUND_BY]
    return sorted(free, key=lambda item: (item[1], item[0]))[:2]


def _path_rows(view: View) -> list[list[Cell]]:
    """Resource, time on the critical path, share of the span, span were it free."""
    replay, span, spent = view.report.replay, view.totals.span_ns, _on_path(view)
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
