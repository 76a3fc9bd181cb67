"""Communication and copies that nothing hides.

What it finds: exposed communication by kind, small collectives that could be one, exposed copies by direction and
memory, transfers that repeat.

Why it matters: their exposed part adds to the span like idle time does.

How it is computed: differences of unions (the time ledger), each instant shared by what runs then; sizes from what the
trace records of collectives and copies; bandwidths against the platform's links. Hiding a collective saves at most the
compute of the device that runs beside no communication. Communication that was launched before the recorded window is
counted in the summary and is no finding: nothing tells what asked for it.

What it cannot see: how long a collective waited for other ranks, from one rank's trace; whether two transfers of equal
size move the same data; what depends on a result. So exposed communication is scored by the remedy that its times
point to (less waiting, a faster link), and by all of it, an upper bound, where they point to none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from rooftrace.analyzers import batching, claims, collectives, transfers
from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.workload import Workload, bound_score, gap_score
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.patterns import matching_patterns
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from rooftrace.contracts.base import EvidenceValue

# Communication of one per cent that overlaps less than 70 % is analysed however little is exposed (METHODS).
_MIN_COMM_PCT = 1.0
_POOR_OVERLAP_PCT = 70.0


def analyze(workload: Workload) -> tuple[dict[str, EvidenceValue], list[Draft]]:
    """Summary, and what to do about exposed communication and copies, the largest saving first."""
    ledgers, span = workload.ledgers, workload.span_ns
    exposed_comm = sum(ledger.exposed_comm_ns for ledger in ledgers)
    total_comm = sum(ledger.total_comm_ns for ledger in ledgers)
    exposed_copy = sum(ledger.exposed_copy_ns for ledger in ledgers)
    summary: dict[str, EvidenceValue] = {
        "exposed_comm_pct": pct(exposed_comm, span),
        "exposed_copy_pct": pct(exposed_copy, span),
        "time_ms": ns_to_ms(exposed_comm + exposed_copy),
        "time_share_pct": pct(exposed_comm + exposed_copy, span),
    }
    poor = pct(total_comm, span) >= _MIN_COMM_PCT
    poor = poor and pct(total_comm - exposed_comm, total_comm) < _POOR_OVERLAP_PCT
    communicates = bool(total_comm) and (pct(exposed_comm, span) >= claims.MIN_EXPOSED_PCT or poor)
    copies = pct(exposed_copy, span) >= claims.MIN_COPY_PCT
    found: list[claims.Claim] = []
    if communicates:
        found += _about_communication(workload, summary)
    if copies or (communicates and exposed_copy):
        found += _about_copies(workload, summary, exposed=copies)
    found.sort(key=lambda claim: (-claim.gap_ns, claim.category, claim.subject))
    return summary, [_draft(workload, number, claim) for number, claim in enumerate(found, start=1)]


def _about_communication(workload: Workload, summary: dict[str, EvidenceValue]) -> list[claims.Claim]:
    found = collectives.find_collectives(workload)
    for kind, ns in sorted(collectives.exposed_by_kind(workload, found).items()):
        summary[f"exposed_{kind}_ms"] = ns_to_ms(ns)
    merged = batching.batching_claim(workload, found)
    if merged is not None:
        found = replace(found, told=batching.mostly_saved(workload, found))
    return [*collectives.exposed_claims(workload, found), *([merged] if merged else [])]


def _about_copies(workload: Workload, summary: dict[str, EvidenceValue], *, exposed: bool) -> list[claims.Claim]:
    found = transfers.find_transfers(workload)
    for kind, ns in sorted(transfers.exposed_by_class(workload, found).items()):
        summary[f"exposed_{kind.lower().replace(' ', '_')}_ms"] = ns_to_ms(ns)
    repeated = transfers.repeated_claim(workload, found)
    return [
        *(transfers.exposed_claims(workload, found) if exposed else []),
        *([repeated] if repeated else []),
    ]


def _draft(workload: Workload, number: int, claim: claims.Claim) -> Draft:
    known = {**claim.evidence, "kind": claim.kind, "category": claim.category, "analyzer": "multi_kernel"}
    gap: dict[str, EvidenceValue] = {"gap_ms": ns_to_ms(claim.gap_ns)} if claim.kind == "modelled" else {}
    score = gap_score if claim.kind == "modelled" else bound_score
    finding = FindingEvidence(
        id=f"multi_kernel.F{number}",
        tier="system",
        category=claim.category,
        subject=claim.subject,
        score=score(claim.gap_ns, workload.span_ns),
        score_basis="gap_share",
        gpu_time_score=pct(claim.gap_ns, workload.span_ns),
        kind=claim.kind,
        members=claim.members,
        evidence={**claim.evidence, **gap},
        patterns=matching_patterns("multi_kernel", known),
        confidence=claim.confidence,
    )
    return Draft(finding=finding, edit=claim.edit, most_ns=claim.most_ns)
