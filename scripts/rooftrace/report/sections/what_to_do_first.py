"""The single ranked list over all tiers."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.report.cells import finding_row, ident, marked_row, pct, share
from rooftrace.report.impact import Worth, worth

if TYPE_CHECKING:
    from rooftrace.contracts.report import Finding, OpGroup
    from rooftrace.report.markdown import Safe
    from rooftrace.report.view import View

FINDINGS_IN_FULL = 8
DETAILS_IN_FULL = 5
# Rows of findings not written out, of which ranked ones are always shown; and rows of a tier's table.
ROWS_SHOWN = 10
TIER_ROWS_SHOWN = 8
TOGETHER_SHOWN = 4
LATER_SHOWN = 4
# A step that shortens the run by less than this share of the span adds nothing that is shown.
_NOTHING = 0.0005
# A run of which less is explained has scores to be taken with care (METHODS: impact).
WELL_EXPLAINED_PCT = 90.0
# A text that has been shown this often is referred to from then on.
TOLD_OFTEN = 2
# A longer note is read in the finding's details.
NOTES_SHOWN = 120
# Who waits, in the evidence of a blocking call; and by which names a measurement is known.
_OF_A_WAIT = ("sync_op", "frame", "call", "sync1_op", "sync1_call", "sync1_frame")
_MASK_AT = 3  # queries, keys, values, then the mask (PyTorch's `scaled_dot_product_attention`)
_HARNESS = re.compile(r"profiler|benchmark|timeit", re.IGNORECASE)


class Item(Struct, frozen=True, kw_only=True):
    """A finding written out; `same_as` names, for a field whose text was told often, where it was told first.

    `worth` is what its impact says, `reason` says why the confidence is not high, `caveats` what its impact depends on.
    """

    finding: Finding
    worth: Worth
    same_as: dict[str, str]
    page: str
    reason: str
    caveats: list[str]


def context(view: View) -> dict[str, object]:
    """Findings written out, and the rest as rows."""
    report = view.report
    ranked_rest = report.findings[FINDINGS_IN_FULL:]
    unranked = report.unranked[: max(0, ROWS_SHOWN - len(ranked_rest))]
    return {
        "items": items(report.findings[:FINDINGS_IN_FULL], ("insight", "action", "verify"), view),
        "has_ranked_rest": bool(ranked_rest),
        "rest_rows": [*map(marked_row, ranked_rest), *map(finding_row, unranked)],
        "left_out": len(report.unranked) - len(unranked),
        "has_gap_shares": any(finding.score_basis == "gap_share" for finding in view.all_findings),
        "weakly_explained": report.replay is not None and report.replay.explained_pct < WELL_EXPLAINED_PCT,
        "together": _together(view),
        "idle_step": _idle_step(view),
        "later": _later(view),
        "has_removed": any(f.tier == "fusion" and f.score_basis == "replay" for f in report.findings),
        "has_floors": any(finding.kind == "modelled" for finding in report.findings),
        "has_upper_bounds": any(finding.kind == "upper_bound" for finding in view.all_findings),
    }


class Left(Struct, frozen=True, kw_only=True):
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


class IdleStep(Struct, frozen=True, kw_only=True):
    """The first finding that saves nothing once those before it are fixed; `graph` replays its launches, if any."""

    finding: Safe
    graph: str


def _idle_step(view: View) -> IdleStep | None:
    rows, findings, span = view.report.together or [], view.report.findings, view.totals.span_ns
    for before, row in pairwise(rows):
        if row.after <= len(findings) and before.span_ns - row.span_ns < span * _NOTHING:
            found = findings[row.after - 1]
            earlier = findings[: row.after - 1]
            graph = next((one.id for one in earlier if one.evidence.get("graph_candidate") is True), "")
            return IdleStep(finding=ident(found.id), graph=graph if found.tier == "fusion" else "")
    return None


def _later(view: View) -> list[tuple[str, str, Safe]]:
    """Unranked findings that are worth more once the first one is fixed: (first, finding, gain)."""
    found = [
        (str(finding.evidence["first_id"]), finding.id, gain)
        for finding in view.report.unranked
        if isinstance(gain := finding.evidence.get("after_first_pct"), int | float)
    ]
    found.sort(key=lambda row: (-row[2], row[1]))
    return [(first, name, pct(gain)) for first, name, gain in found[:LATER_SHOWN]]


def items(findings: list[Finding], fields: tuple[str, ...], view: View) -> list[Item]:
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
        written.append(
            Item(
                finding=finding,
                worth=worth(view, finding),
                same_as=same_as,
                page=page,
                reason=doubt(finding),
                caveats=caveats(finding, [view.ops[name] for name in finding.members if name in view.ops]),
            )
        )
    return written


def doubt(finding: Finding) -> str:
    """Why a confidence is not high: `notes` of the evidence, or a word for which the template has the sentence."""
    if finding.confidence not in ("low", "medium"):
        return ""
    notes, aspect = finding.evidence.get("notes"), str(finding.evidence.get("aspect", ""))
    if isinstance(notes, str) and 0 < len(notes) <= NOTES_SHOWN:
        return "notes"
    if finding.tier == "fusion":
        return "composition" if finding.confidence == "medium" else "chain"
    return aspect if aspect in ("small_collectives", "repeated_transfers") else ""


def caveats(finding: Finding, members: list[OpGroup]) -> list[str]:
    """What an impact depends on that no number of it shows."""
    evidence = finding.evidence
    found = []
    waits = [str(evidence.get(name, "")) for name in _OF_A_WAIT] if "sync_op" in evidence else []
    if any(map(_HARNESS.search, waits)):
        found.append("harness")
    if finding.category == "attention" and any(map(_has_unread_mask, members)):
        found.append("mask")
    return found


def _has_unread_mask(op: OpGroup) -> bool:
    """Whether an attention op takes a mask as a tensor, or may have taken a causal one without a record of it."""
    if "causal" in (op.unmodelled or ""):
        return True
    shapes = op.shapes or []
    is_forward = "scaled_dot_product" in op.name and "backward" not in op.name
    return is_forward and len(shapes) > _MASK_AT and isinstance(shapes[_MASK_AT], list) and bool(shapes[_MASK_AT])


def tier_rows(view: View, tier: str) -> dict[str, object]:
    """Rows of a tier's heaviest ranked findings, how many more there are, and how many below the ranking limit."""
    unranked = sum(finding.tier == tier for finding in view.report.unranked)
    rows = [finding_row(finding) for finding in view.report.findings if finding.tier == tier]
    shown = rows[:TIER_ROWS_SHOWN]
    return {"finding_rows": shown, "rows_left_out": len(rows) - len(shown), "unranked": unranked}
