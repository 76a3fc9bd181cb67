"""`compare.md` from `compare.json`: words are in ``templates/compare``."""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.report import cells
from rooftrace.report.environment import template_environment
from rooftrace.report.markdown import Safe, code, token
from rooftrace.report.render import environment as report_environment
from rooftrace.units import format_ns, format_pct, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jinja2 import Environment

    from rooftrace.contracts.compare import CompareFile, CompareFinding, CompareRow, GateCheck
    from rooftrace.report.cells import Cell

_INSTANCE = re.compile(r"_\d+$")
_BLANK_LINES = re.compile(r"\n{3,}")
_TOP_ROWS, _LISTED_ROWS = 12, 60
_MOST_FINDINGS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A finding as the page tells it."""

    finding: CompareFinding
    marker: Safe
    example: CompareRow
    modules: str
    base_ns: int
    target_ns: int

    @property
    def is_regression(self) -> bool:
        """Whether the target takes longer."""
        return self.finding.direction == "regression"


def render_compare(result: CompareFile) -> str:
    """The page."""
    by_id = {row.id: row for row in result.rows}
    told = [_told(finding, [by_id[member] for member in finding.members]) for finding in result.findings]
    ranked = [item for item in told if item.finding.score.high >= RANKING_LIMIT_PCT]
    rest = [item for item in told if item.finding.score.high < RANKING_LIMIT_PCT]
    changed = [row for row in result.rows if row.delta_ns]
    text = (
        _environment()
        .get_template("compare/compare.md.j2")
        .render(
            result=result,
            base=result.base,
            target=result.target,
            scale=_scale(result),
            by_part=_by_part(result),
            top_rows=_rolled_up(result)[:_TOP_ROWS],
            rows=_rows(changed[:_LISTED_ROWS]),
            not_listed=len(changed) - min(len(changed), _LISTED_ROWS),
            unchanged=len(result.rows) - len(changed),
            regressions=[item for item in ranked if item.is_regression][:_MOST_FINDINGS],
            improvements=[item for item in ranked if not item.is_regression][:_MOST_FINDINGS],
            rest_rows=[_rest_row(item) for item in rest],
            steps_rows=_steps_rows(result),
        )
    )
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"


@lru_cache(maxsize=1)
def _environment() -> Environment:
    """That of the report, with differences."""
    environment = report_environment().overlay()
    environment.filters = {**environment.filters, "signed_ns": signed_ns, "signed_pct": _signed_pct}
    return environment


def _signed_pct(value: float) -> Safe:
    return Safe(_percent(value))


def _scale(result: CompareFile) -> int:
    """Number of steps that the rows sum over; 1 for whole spans."""
    return max(1, len(result.base.compared_steps))


def _told(finding: CompareFinding, rows: Sequence[CompareRow]) -> Told:
    score = finding.score
    words = {
        "id": finding.id,
        "tier": finding.tier,
        "category": finding.category,
        "rank": str(finding.rank),
        "direction": finding.direction,
        "cause": finding.cause,
    }
    numbers = {"low": score.low, "mid": score.mid, "high": score.high, "gpu_time": finding.gpu_time_score}
    fields = [f"{name}={token(text)}" for name, text in words.items()]
    fields += [f"{name}={cells.marker(value)}" for name, value in numbers.items()]
    heaviest = max(rows, key=lambda row: abs(row.delta_ns))
    return Told(
        finding=finding,
        marker=Safe(f"<!-- finding {' '.join(fields)} -->"),
        example=heaviest,
        modules=" > ".join(heaviest.path[1:-1]),
        base_ns=sum(row.base_ns for row in rows),
        target_ns=sum(row.target_ns for row in rows),
    )


def _by_part(result: CompareFile) -> list[list[Cell]]:
    """T1: both sides by category, most difference first, then the whole."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for row in result.rows:
        name = f"idle: {row.path[1]}" if row.kind == "idle" else row.category
        sums[name][0] += row.base_ns
        sums[name][1] += row.target_ns
    ordered = sorted(sums.items(), key=lambda item: (-abs(item[1][1] - item[1][0]), item[0]))
    rows = [_part_row(name, ours, theirs, result) for name, (ours, theirs) in ordered]
    return [*rows, _part_row("whole span", result.base.span_ns, result.target.span_ns, result)]


def _part_row(name: str, ours: int, theirs: int, result: CompareFile) -> list[Cell]:
    return [
        name.replace("_", " "),
        cells.ns(ours),
        cells.ns(theirs),
        signed_ns(theirs - ours),
        cells.share(ours, result.base.span_ns),
        cells.share(theirs, result.target.span_ns),
    ]


def signed_ns(value: int) -> Safe:
    """A difference."""
    return Safe(f"{'+' if value > 0 else ''}{format_ns(value)}")


def _rolled_up(result: CompareFile) -> list[list[Cell]]:
    """T2: rows that are alike but for the numbers of their modules, as one; most difference first."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in result.rows:
        parts = [*(_INSTANCE.sub("_*", part) for part in row.path[:-1]), row.path[-1]]
        entry = sums[" > ".join(parts[-3:]), row.cause]
        entry[0] += 1
        entry[1] += row.base_ns
        entry[2] += row.target_ns
    ordered = sorted(sums.items(), key=lambda item: (-abs(item[1][2] - item[1][1]), item[0]))
    return [
        [
            code(where, 90),
            cause.replace("_", " "),
            count,
            cells.ns(ours),
            cells.ns(theirs),
            signed_ns(theirs - ours),
            cells.share(theirs - ours, result.base.span_ns),
        ]
        for (where, cause), (count, ours, theirs) in ordered
        if ours != theirs
    ]


def _rows(rows: Sequence[CompareRow]) -> list[list[Cell]]:
    return [
        [
            cells.ident(row.id),
            code(" > ".join(row.path[-3:]), 90),
            row.cause.replace("_", " "),
            cells.ns(row.base_ns),
            cells.ns(row.target_ns),
            signed_ns(row.delta_ns),
            _noise(row),
            _count(row),
            _efficiencies(row),
            code(_kernels(row), 90),
        ]
        for row in rows
    ]


def _noise(row: CompareRow) -> Safe:
    words = {None: "-", True: "yes", False: "no"}
    return Safe(words[row.beyond_noise])


def _count(row: CompareRow) -> Safe:
    ours, theirs = (side.calls if side else 0 for side in (row.base, row.target))
    return Safe(str(ours) if ours == theirs else f"{ours} / {theirs}")


def _efficiencies(row: CompareRow) -> Safe:
    values = [side.efficiency_pct if side else None for side in (row.base, row.target)]
    if values == [None, None]:
        return Safe("-")
    return Safe(" / ".join("-" if value is None else format_pct(value) for value in values))


def _kernels(row: CompareRow) -> str:
    names = [side.kernel if side else "" for side in (row.base, row.target)]
    return names[0] if names[0] == names[1] else " → ".join(name or "none" for name in names)


def _rest_row(item: Told) -> list[Cell]:
    finding = item.finding
    return [
        finding.rank,
        cells.ident(finding.id),
        finding.cause.replace("_", " "),
        code(finding.subject, 80),
        signed_ns(finding.delta_ns),
        cells.pct(finding.score.high),
    ]


def _steps_rows(result: CompareFile) -> list[list[Cell]]:
    """Which steps of either side stand for what."""
    rows: list[list[Cell]] = []
    for name, side in (("base", result.base), ("target", result.target)):
        rows.append(
            [
                name,
                code(side.trace.file, 80),
                side.trace.step_source,
                len(side.trace.steps),
                code(", ".join(side.compared_steps) or "whole span", 120),
                code(", ".join(side.left_out), 120),
            ]
        )
    return rows


def junit_text(checks: Sequence[GateCheck]) -> str:
    """Checks as JUnit XML, one test case a metric."""
    page = template_environment(lambda value: value, autoescape=True)
    text = page.get_template("compare/junit.xml.j2").render(
        checks=[(check, describe_check(check)) for check in checks],
        failures=sum(check.violated for check in checks),
    )
    return text.strip() + "\n"


def describe_check(check: GateCheck) -> str:
    """A check in one line."""
    said = f"{check.metric} {_percent(check.change_pct)} ({format_ns(check.base_ns)} to {format_ns(check.target_ns)})"
    if check.bound_pct is None:
        told = "too few steps to tell noise"
    else:
        told = f"at least {_percent(check.bound_pct)} beyond noise"
    return f"{said}, {told}; limit +{check.limit_pct:g} %"


def _percent(value: float) -> str:
    return f"{value:+.2f} %"


def change_pct(result: CompareFile) -> float:
    """Growth of what is compared, per cent of the base."""
    return pct(result.target.compared_ns - result.base.compared_ns, result.base.compared_ns)
