"""Idle devices.

What it finds: the share of the span without any GPU activity, the gaps it consists of and where the largest lie.

Why it matters: while nothing runs, no kernel can be made faster; the host, a wait or the data decides.

How it is computed: gaps between the union of all activities; a kernel found an empty queue if it started within
twice the usual launch latency (10th percentile of kernel start - launch start) of its launch.

What it cannot see: what other processes did; what a host thread did that recorded no event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers.workload import Workload, bound_score
from rooftrace.calltree import Link, Work
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.ledger import Gap, find_gaps
from rooftrace.patterns import matching_patterns
from rooftrace.units import NS_PER_MS, ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.ledger import DeviceLedger

# A tenth of the span, or three per cent in one cause (METHODS: system analyzers); all idle is one cause so far.
_MIN_IDLE_PCT = 3.0
_SHORT_GAP_NS = 20_000
_LAUNCH_LATENCY_PERCENTILE = 10


def analyze(workload: Workload) -> tuple[dict[str, EvidenceValue], list[FindingEvidence]]:
    """Summary and one finding for each device that idles enough."""
    idle = sum(ledger.idle_ns for ledger in workload.ledgers)
    summary: dict[str, EvidenceValue] = {
        "time_ms": ns_to_ms(idle),
        "time_share_pct": pct(idle, workload.span_ns),
    }
    findings: list[FindingEvidence] = []
    for ledger in sorted(workload.ledgers, key=lambda item: (-item.idle_ns, item.device)):
        if pct(ledger.idle_ns, ledger.span_ns) < _MIN_IDLE_PCT:
            continue
        evidence = _evidence(workload, ledger)
        findings.append(
            FindingEvidence(
                id=f"idle.F{len(findings) + 1}",
                tier="system",
                category="idle",
                subject=f"device {ledger.device} without work",
                score=bound_score(ledger.idle_ns, workload.span_ns),
                score_basis="gap_share",
                gpu_time_score=pct(ledger.idle_ns, workload.span_ns),
                kind="upper_bound",
                members=[],
                evidence=evidence,
                patterns=matching_patterns("idle", {**evidence, "kind": "upper_bound", "category": "idle"}),
            )
        )
    return summary, findings


def device_gaps(workload: Workload, device: int) -> tuple[NDArray[np.int64], list[Gap]]:
    """Indices of a device's activities, by start, and the gaps between them."""
    members = np.flatnonzero(workload.activities.device == device)
    return members, find_gaps(workload.activities.start[members], workload.activities.end[members])


def _evidence(workload: Workload, ledger: DeviceLedger) -> dict[str, EvidenceValue]:
    members, gaps = device_gaps(workload, ledger.device)
    activities, idle = workload.activities, ledger.idle_ns
    lengths = np.array([gap.dur for gap in gaps], dtype=np.int64)
    longest = gaps[int(lengths.argmax())]
    step = workload.steps.of_activity[members]
    inside = sum(gap.dur for gap in gaps if step[gap.before] == step[gap.after])
    kernels = members[activities.work[members] == int(Work.COMPUTE)]
    after = int(members[longest.after])
    evidence: dict[str, EvidenceValue] = {
        "device": ledger.device,
        "idle_ms": ns_to_ms(idle),
        "idle_pct": pct(idle, ledger.span_ns),
        "busy_pct": pct(ledger.span_ns - idle, ledger.span_ns),
        "gaps_count": len(gaps),
        "median_gap_us": ns_to_us(float(np.median(lengths))),
        "max_gap_ms": ns_to_ms(longest.dur),
        "top_gap_before": activities.infos[int(activities.name[members[longest.before]])].short,
        "top_gap_after": activities.infos[int(activities.name[after])].short,
        "top_gap_op": launching_op(workload, after) or "none recorded",
        "gaps_over_1ms_count": int((lengths >= NS_PER_MS).sum()),
        "gaps_over_1ms_pct": pct(int(lengths[lengths >= NS_PER_MS].sum()), idle),
        "short_gaps_pct": pct(int(lengths[lengths < _SHORT_GAP_NS].sum()), idle),
        "in_step_pct": pct(inside, idle),
        "kernels_count": int(kernels.size),
        "launches_per_ms": round(members.size / (ledger.span_ns / NS_PER_MS), 2) if ledger.span_ns else 0.0,
    }
    if kernels.size:
        evidence["mean_kernel_us"] = ns_to_us(float(activities.dur[kernels].mean()))
    share = empty_queue_share(workload, kernels)
    if share is not None:
        evidence |= {"empty_queue_pct": round(100 * share, 1), "host_bound": share > 0.5}
    return evidence


def empty_queue_share(workload: Workload, kernels: NDArray[np.int64]) -> float | None:
    """Share of the kernels that started as soon as a launch allows; None without launches."""
    activities = workload.activities
    own = kernels[(activities.link[kernels] == int(Link.CORRELATION)) & ~activities.graph[kernels]]
    if not own.size:
        return None
    delay = activities.start[own] - workload.tree.start[activities.launch[own]]
    usual = max(float(np.percentile(delay, _LAUNCH_LATENCY_PERCENTILE)), 1.0)
    return float((delay <= 2 * usual).mean())


def launching_op(workload: Workload, activity: int) -> str | None:
    """Name of the innermost op that was open when an activity was launched."""
    launch = int(workload.activities.launch[activity])
    op = int(workload.context.op[launch]) if launch >= 0 else -1
    return workload.trace.names[workload.tree.name[op]] if op >= 0 else None
