"""Whether the run would be another one, had the profiler not cost the host so much (METHODS: replay)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.workflow.findings import is_inflated

if TYPE_CHECKING:
    from rooftrace.analyzers import Workload
    from rooftrace.contracts.evidence import FindingEvidence
    from rooftrace.workflow.findings import Results

# What a reader acts on: another order below these places changes nothing that is done first (rule of thumb).
_FIRST_PLACES = 3


def changes(workload: Workload, results: Results) -> list[str]:
    """What halving the host time that recording lengthens changes, as clauses; nothing where too little is explained.

    Long calls in which nothing is recorded stay as they are. Only where shapes or stacks were recorded, which a lighter
    capture leaves out.
    """
    if results.replay is None or results.replay["together"] is None or not is_inflated(workload):
        return []
    replay = results.replay["replay"]
    told = []
    if replay.bound_by_half_host not in (None, "unknown", replay.bound_by):
        told.append(
            f"the run would be bound by {_bound(replay.bound_by_half_host)} instead of {_bound(replay.bound_by)}"
        )
    before, after = _first_places([finding for found in results.findings.values() for finding in found])
    if before[:1] != after[:1] or set(before) != set(after):
        told.append(f"the first findings would be {_listed(after)} instead of {_listed(before)}")
    return told


def _bound(name: str) -> str:
    return "several resources together" if name == "mixed" else name


def _first_places(findings: list[FindingEvidence]) -> tuple[list[str], list[str]]:
    """Ids of the first findings as recorded, and with host time halved; those without the latter are too small."""
    orders: tuple[dict[str, float], dict[str, float]] = ({}, {})
    for finding in findings:
        half = finding.evidence.get("half_host_score_pct")
        if isinstance(half, float | int) and finding.score_basis == "replay":
            orders[0][finding.id], orders[1][finding.id] = finding.score.mid, float(half)
    ranked = [
        sorted((name for name, mid in order.items() if mid >= RANKING_LIMIT_PCT), key=lambda name: (-order[name], name))
        for order in orders
    ]
    return ranked[0][:_FIRST_PLACES], ranked[1][:_FIRST_PLACES]


def _listed(ids: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in ids) if ids else "none"
