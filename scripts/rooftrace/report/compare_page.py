"""``compare.md`` from the evidence and the words of ``compare.json``; fixed words are in ``templates/compare``."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.report import cells
from rooftrace.report.compare_ids import pair_values
from rooftrace.report.compare_parts import asked_of_pair, by_part, cause_words, ranked_findings, rolled_up
from rooftrace.report.compare_told import pair_environment, signed_ns
from rooftrace.report.compare_words import summary_of
from rooftrace.report.markdown import Safe, code, token
from rooftrace.units import format_pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.compare import CompareEvidence, CompareFile, CompareFinding, CompareRow, ToldFinding
    from rooftrace.report.cells import Cell
    from rooftrace.report.compare_parts import Summed
    from rooftrace.report.grounding.judge import Chosen

_BLANK_LINES = re.compile(r"\n{3,}")
_LISTED_ROWS = 60
_MOST_FINDINGS = 20


class Told(Struct, frozen=True, kw_only=True):
    """A finding as the page tells it."""

    finding: CompareFinding
    said: ToldFinding
    marker: Safe
    is_detailed: bool  # reasoning and resolution are told too

    @property
    def is_regression(self) -> bool:
        """Whether the target takes longer."""
        return self.finding.direction == "regression"


def render_compare(result: CompareEvidence, words: CompareFile, chosen: Chosen | None = None) -> str:
    """The page. `words` is the deliverable of the same comparison; `chosen` tells whose words they are."""
    told = _all_told(result, words, chosen)
    ranked = ranked_findings(result)
    rest = [finding for finding in result.findings if finding.score.high < RANKING_LIMIT_PCT]
    changed = [row for row in result.rows if row.delta_ns]
    text = (
        pair_environment()
        .get_template("compare/compare.md.j2")
        .render(
            result=result,
            base=result.base,
            target=result.target,
            scale=max(1, len(result.base.compared_steps)),
            summary=summary_of(chosen, pair_values(result)) if chosen else None,
            outcome=_outcome(chosen),
            by_part=_part_rows(result),
            top_rows=_top_rows(result),
            rows=_rows(changed[:_LISTED_ROWS]),
            not_listed=len(changed) - min(len(changed), _LISTED_ROWS),
            unchanged=len(result.rows) - len(changed),
            regressions=[told[finding.id] for finding in ranked if finding.direction == "regression"][:_MOST_FINDINGS],
            improvements=[told[f.id] for f in ranked if f.direction == "improvement"][:_MOST_FINDINGS],
            rest_rows=[_rest_row(finding) for finding in rest],
            steps_rows=_steps_rows(result),
        )
    )
    return _BLANK_LINES.sub("\n\n", text).strip() + "\n"


def _all_told(result: CompareEvidence, words: CompareFile, chosen: Chosen | None) -> dict[str, Told]:
    """Ranked findings by id."""
    said = {finding.id: finding for finding in words.findings}
    detailed = {finding.id for finding in asked_of_pair(result)} | set(chosen.findings if chosen else ())
    return {
        finding.id: Told(
            finding=finding,
            said=said[finding.id],
            marker=finding_marker(finding),
            is_detailed=finding.id in detailed,
        )
        for finding in ranked_findings(result)
    }


def finding_marker(finding: CompareFinding | ToldFinding) -> Safe:
    """The opening marker of a finding: a comment that programs read."""
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
    return Safe(f"<!-- finding {' '.join(fields)} -->")


def _outcome(chosen: Chosen | None) -> str | None:
    """Whose words the page has, where a writer was asked."""
    if chosen is None or not chosen.outcomes:
        return None
    outcome = chosen.outcomes[0]
    if not outcome.used and not chosen.summaries:
        kept = "the pack's own"
    elif outcome.fell_back:
        kept = f"a writer's, the pack's own for {', '.join(outcome.fell_back)}"
    else:
        kept = "a writer's"
    return f"{kept} ({', '.join(outcome.codes)})" if outcome.codes else kept


def _part_rows(result: CompareEvidence) -> list[list[Cell]]:
    """T1: both sides by category, most difference first, then the whole."""
    rows = [_part_row(part.where, part.base_ns, part.target_ns, result) for part in by_part(result)]
    return [*rows, _part_row("whole span", result.base.span_ns, result.target.span_ns, result)]


def _part_row(name: str, ours: int, theirs: int, result: CompareEvidence) -> list[Cell]:
    return [
        name,
        cells.ns(ours),
        cells.ns(theirs),
        signed_ns(theirs - ours),
        cells.share(ours, result.base.span_ns),
        cells.share(theirs, result.target.span_ns),
    ]


def _top_rows(result: CompareEvidence) -> list[list[Cell]]:
    """T2."""
    return [_top_row(entry, result) for entry in rolled_up(result)]


def _top_row(entry: Summed, result: CompareEvidence) -> list[Cell]:
    return [
        code(entry.where, 90),
        cause_words(entry.cause, entry.delta_ns),
        entry.rows,
        cells.ns(entry.base_ns),
        cells.ns(entry.target_ns),
        signed_ns(entry.delta_ns),
        cells.share(entry.delta_ns, result.base.span_ns),
    ]


def _rows(rows: Sequence[CompareRow]) -> list[list[Cell]]:
    return [
        [
            cells.ident(row.id),
            code(" > ".join(row.path[-3:]), 90),
            cause_words(row.cause, row.delta_ns),
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


def _rest_row(finding: CompareFinding) -> list[Cell]:
    return [
        finding.rank,
        cells.ident(finding.id),
        cause_words(finding.cause, finding.delta_ns),
        code(finding.subject, 80),
        signed_ns(finding.delta_ns),
        cells.pct(finding.score.high),
    ]


def _steps_rows(result: CompareEvidence) -> list[list[Cell]]:
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
