"""Communication and copies that nothing hides.

What it finds: exposed communication and exposed copies, with what they consist of.

Why it matters: their exposed part adds to the span like idle time does.

How it is computed: differences of unions (the time ledger); copies by the direction their names tell.

What it cannot see: how long a collective waited for other ranks, from one rank's trace.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers.workload import Workload, bound_score
from rooftrace.calltree import Work
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.kernelnames import describe_copy
from rooftrace.patterns import matching_patterns
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.contracts.base import EvidenceValue

# Exposed parts of two per cent; or communication of one per cent that overlaps less than 70 % (METHODS).
_MIN_EXPOSED_PCT = 2.0
_MIN_COMM_PCT = 1.0
_POOR_OVERLAP_PCT = 70.0


def analyze(workload: Workload) -> tuple[dict[str, EvidenceValue], list[FindingEvidence]]:
    """Summary, and findings for exposed communication and exposed copies, the larger first."""
    ledgers, span = workload.ledgers, workload.span_ns
    exposed_comm = sum(ledger.exposed_comm_ns for ledger in ledgers)
    total_comm = sum(ledger.total_comm_ns for ledger in ledgers)
    exposed_copy = sum(ledger.exposed_copy_ns for ledger in ledgers)
    overlap = pct(total_comm - exposed_comm, total_comm)
    poor = pct(total_comm, span) >= _MIN_COMM_PCT and overlap < _POOR_OVERLAP_PCT
    found: list[tuple[int, str, dict[str, EvidenceValue]]] = []
    if total_comm and (pct(exposed_comm, span) >= _MIN_EXPOSED_PCT or poor):
        found.append((exposed_comm, "communication", _communication(workload, exposed_comm, total_comm)))
    if pct(exposed_copy, span) >= _MIN_EXPOSED_PCT:
        found.append((exposed_copy, "copy", _copies(workload, exposed_copy)))
    found.sort(key=lambda item: (-item[0], item[1]))
    findings = [_finding(workload, f"multi_kernel.F{number}", item) for number, item in enumerate(found, start=1)]
    summary: dict[str, EvidenceValue] = {
        "exposed_comm_pct": pct(exposed_comm, span),
        "exposed_copy_pct": pct(exposed_copy, span),
        "time_ms": ns_to_ms(exposed_comm + exposed_copy),
        "time_share_pct": pct(exposed_comm + exposed_copy, span),
    }
    return summary, findings


def _finding(workload: Workload, identity: str, item: tuple[int, str, dict[str, EvidenceValue]]) -> FindingEvidence:
    exposed, category, evidence = item
    known = {**evidence, "kind": "upper_bound", "category": category, "analyzer": "multi_kernel"}
    return FindingEvidence(
        id=identity,
        tier="system",
        category=category,
        subject=f"exposed {category}",
        score=bound_score(exposed, workload.span_ns),
        score_basis="gap_share",
        gpu_time_score=pct(exposed, workload.span_ns),
        kind="upper_bound",
        members=[],
        evidence=evidence,
        patterns=matching_patterns("multi_kernel", known),
    )


def _communication(workload: Workload, exposed: int, total: int) -> dict[str, EvidenceValue]:
    activities = workload.activities
    members = np.flatnonzero(activities.work == int(Work.COMMUNICATION))
    kinds = {activities.infos[code].facts.collective for code in np.unique(activities.name[members]).tolist()}
    return {
        "exposed_comm_ms": ns_to_ms(exposed),
        "exposed_comm_pct": pct(exposed, workload.span_ns),
        "total_comm_ms": ns_to_ms(total),
        "overlap_pct": pct(total - exposed, total),
        "collectives": ", ".join(sorted(kind for kind in kinds if kind)) or "not named",
        "top_collective": activities.infos[_heaviest(workload, members)].short,
        "comm_kernels_count": int(members.size),
    }


def _copies(workload: Workload, exposed: int) -> dict[str, EvidenceValue]:
    activities = workload.activities
    members = np.flatnonzero(activities.work == int(Work.COPY))
    facts = {code: describe_copy(workload.trace.names[code]) for code in np.unique(activities.name[members]).tolist()}
    codes, dur = activities.name[members], activities.dur[members]

    def time_where(test: object) -> int:
        chosen = [code for code, fact in facts.items() if test(fact)]  # type: ignore[operator]
        return int(dur[np.isin(codes, chosen)].sum())

    evidence: dict[str, EvidenceValue] = {
        "exposed_copy_ms": ns_to_ms(exposed),
        "exposed_copy_pct": pct(exposed, workload.span_ns),
        "total_copy_ms": ns_to_ms(int(dur.sum())),
        "htod_ms": ns_to_ms(time_where(lambda fact: fact.direction == "HtoD")),
        "dtoh_ms": ns_to_ms(time_where(lambda fact: fact.direction == "DtoH")),
        "dtod_ms": ns_to_ms(time_where(lambda fact: fact.direction == "DtoD")),
        "pageable_ms": ns_to_ms(time_where(lambda fact: "pageable" in (fact.source, fact.destination))),
        "copies_count": int(members.size),
        "top_copy": _named_with_ends(workload, members),
        "top_copy_op": _top_copy_op(workload, members),
    }
    sizes = activities.nbytes[members]
    if members.size and (sizes >= 0).all() and int(dur.sum()):
        evidence |= {
            "copy_bytes": int(sizes.sum()),
            "achieved_gbps": round(int(sizes.sum()) / int(dur.sum()), 2),
        }
    return evidence


def _heaviest(workload: Workload, members: NDArray[np.int64]) -> int:
    """Code of the name with most time among some activities."""
    activities = workload.activities
    totals: dict[int, int] = {}
    for code, dur in zip(activities.name[members].tolist(), activities.dur[members].tolist(), strict=True):
        totals[code] = totals.get(code, 0) + dur
    return min(totals, key=lambda code: (-totals[code], workload.trace.names[code]))


def _named_with_ends(workload: Workload, members: NDArray[np.int64]) -> str:
    """The heaviest copy, with the kinds of memory it goes between where its name tells them."""
    code = _heaviest(workload, members)
    short, facts = workload.activities.infos[code].short, describe_copy(workload.trace.names[code])
    if not (facts.source and facts.destination):
        return short
    return f"{short} ({facts.source.capitalize()} -> {facts.destination.capitalize()})"


def _top_copy_op(workload: Workload, members: NDArray[np.int64]) -> str:
    """Name of the op that launched most of the copies' time."""
    launch = workload.activities.launch[members]
    names = np.full(members.size, -1, dtype=np.int64)
    launched = np.flatnonzero(launch >= 0)
    op = workload.context.op[launch[launched]]
    names[launched[op >= 0]] = workload.tree.name[op[op >= 0]]
    distinct, at = np.unique(names, return_inverse=True)
    totals = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(totals, at, workload.activities.dur[members])
    spent = {workload.trace.names[c] if c >= 0 else "none recorded": t for c, t in zip(distinct, totals, strict=True)}
    return min(spent, key=lambda name: (-spent[name], name)) if spent else "none recorded"
