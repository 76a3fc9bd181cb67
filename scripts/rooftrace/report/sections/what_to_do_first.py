"""The single ranked list over all tiers."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from rooftrace.report.cells import finding_gap, finding_row, marked_row, pct, share

if TYPE_CHECKING:
    from rooftrace.contracts.report import Finding
    from rooftrace.report.markdown import Safe
    from rooftrace.report.view import View

FINDINGS_IN_FULL = 8
DETAILS_IN_FULL = 5
# Rows of findings not written out, of which ranked ones are always shown; and rows of a tier's table.
ROWS_SHOWN = 10
TIER_ROWS_SHOWN = 8
TOGETHER_SHOWN = 4
LATER_SHOWN = 4
# A run of which less is explained has scores to be taken with care (METHODS: impact).
WELL_EXPLAINED_PCT = 90.0
# A text that has been shown this often is referred to from then on.
TOLD_OFTEN = 2


@dataclass(frozen=True, kw_only=True)
class Item:
    """A finding written out; `same_as` names, for a field whose text was told often, where it was told first."""

    finding: Finding
    gap: Safe
    same_as: dict[str, str]
    page: str


def context(view: View) -> dict[str, object]:
    """Findings written out, and the rest as rows."""
    report = view.report
    ranked_rest = report.findings[FINDINGS_IN_FULL:]
    unranked = report.unranked[: max(0, ROWS_SHOWN - len(ranked_rest))]
    return {
        "items": items(report.findings[:FINDINGS_IN_FULL], ("insight", "action", "verify")),
        "has_ranked_rest": bool(ranked_rest),
        "rest_rows": [*map(marked_row, ranked_rest), *map(finding_row, unranked)],
        "left_out": len(report.unranked) - len(unranked),
        "has_gap_shares": any(finding.score_basis == "gap_share" for finding in view.all_findings),
        "weakly_explained": report.replay is not None and report.replay.explained_pct < WELL_EXPLAINED_PCT,
        "together": _together(view),
        "later": _later(view),
        "has_upper_bounds": any(finding.kind == "upper_bound" for finding in view.all_findings),
    }


@dataclass(frozen=True, kw_only=True)
class Left:
    """What is left when the first findings are fixed."""

    after: int
    span_ns: int
    saved: Safe


def _together(view: View) -> list[Left]:
    """The span after the first few findings and after the last, if fixing them is known to help."""
    rows, span = view.report.together or [], view.totals.span_ns
    shown = [row for row in rows if row.after <= TOGETHER_SHOWN or row is rows[-1]]
    if not rows or rows[-1].span_ns >= span:
        return []
    return [Left(after=row.after, span_ns=row.span_ns, saved=share(span - row.span_ns, span)) for row in shown]


def _later(view: View) -> list[tuple[str, str, Safe]]:
    """Unranked findings that are worth more once the first one is fixed: (first, finding, gain)."""
    found = [
        (str(finding.evidence["first_id"]), finding.id, gain)
        for finding in view.report.unranked
        if isinstance(gain := finding.evidence.get("after_first_pct"), int | float)
    ]
    found.sort(key=lambda row: (-row[2], row[1]))
    return [(first, name, pct(gain)) for first, name, gain in found[:LATER_SHOWN]]


def items(findings: list[Finding], fields: tuple[str, ...]) -> list[Item]:
    """Findings with what an earlier one of them has said already."""
    told: dict[str, list[str]] = {}
    written: list[Item] = []
    for index, finding in enumerate(findings):
        same_as: dict[str, str] = {}
        for field in fields:
            tellers = told.setdefault(getattr(finding, field), [])
            if len(tellers) >= TOLD_OFTEN:
                same_as[field] = tellers[0]
            tellers.append(finding.id)
        page = "" if index < DETAILS_IN_FULL else f"findings/{finding.id.partition('.')[0]}.md"
        written.append(Item(finding=finding, gap=finding_gap(finding), same_as=same_as, page=page))
    return written


def tier_rows(view: View, tier: str) -> dict[str, object]:
    """Rows of a tier's heaviest ranked findings, how many more there are, and how many below the ranking limit."""
    unranked = sum(finding.tier == tier for finding in view.report.unranked)
    rows = [finding_row(finding) for finding in view.report.findings if finding.tier == tier]
    shown = rows[:TIER_ROWS_SHOWN]
    return {"finding_rows": shown, "rows_left_out": len(rows) - len(shown), "unranked": unranked}
