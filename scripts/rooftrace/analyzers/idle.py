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
from rooftrace.calltree import Link, Work, is_step_name, is_user_frame
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.ledger import Gap, find_gaps
from rooftrace.patterns import matching_patterns
from rooftrace.trace import Kind
from rooftrace.units import NS_PER_MS, ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.ledger import DeviceLedger

# A tenth of the span, or three per cent in one cause (METHODS: system analyzers); all idle is one cause so far.
_MIN_IDLE_PCT = 3.0
_SHORT_GAP_NS = 20_000
# Back-to-back kernels stand a rounding of the clock apart: no gap a reader would call one.
_ROUNDING_NS = 100
# Below this a busy device with a short queue is no sign of a slow host.
_HOST_BOUND_IDLE_PCT = 10.0
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
        known = {**evidence, "kind": "upper_bound", "category": "idle", "analyzer": "idle"}
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
                patterns=matching_patterns("idle", known),
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
    gaps = [gap for gap in gaps if gap.dur >= _ROUNDING_NS] or gaps
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
        "queued_pct": pct(_queued_time(workload, members, gaps), idle),
        **_top_gap_evidence(workload, after, longest),
        "kernels_count": int(kernels.size),
        "launches_per_ms": round(members.size / (ledger.span_ns / NS_PER_MS), 2) if ledger.span_ns else 0.0,
    }
    if kernels.size:
        evidence["mean_kernel_us"] = ns_to_us(float(activities.dur[kernels].mean()))
    share = empty_queue_share(workload, kernels)
    if share is not None:
        evidence |= {
            "empty_queue_pct": round(100 * share, 1),
            "host_bound": share > 0.5 and pct(idle, ledger.span_ns) >= _HOST_BOUND_IDLE_PCT,
        }
    return evidence


def _queued_time(workload: Workload, members: NDArray[np.int64], gaps: list[Gap]) -> int:
    """Idle time during which the next activity had long been launched: the device waited, not for the host, ns."""
    after = members[[gap.after for gap in gaps]]
    start = np.array([gap.start for gap in gaps], dtype=np.int64)
    end = start + np.array([gap.dur for gap in gaps], dtype=np.int64)
    launch = workload.activities.launch[after]
    known = launch >= 0
    usual = _usual_latency(workload, members)
    # A launch may itself be slow; a copy's call may last until the copy is done and tells only when it began.
    is_kernel = workload.activities.work[after[known]] != int(Work.COPY)
    called = np.where(is_kernel, workload.tree.end[launch[known]], workload.tree.start[launch[known]])
    ready = np.maximum(called + usual, workload.tree.start[launch[known]] + 2 * usual)
    return int(np.maximum(0, end[known] - np.maximum(start[known], ready)).sum())


def _top_gap_evidence(workload: Workload, after: int, gap: Gap) -> dict[str, EvidenceValue]:
    """What the launching thread did in the middle of the longest gap: its annotation and innermost user frame."""
    trace, launch = workload.trace, int(workload.activities.launch[after])
    nothing: dict[str, EvidenceValue] = {"top_gap_annotation": "", "top_gap_frame": "", "data_loading": False}
    if launch < 0:
        return nothing
    middle = gap.start + gap.dur // 2
    on_thread = trace.lane == workload.tree.lane[launch]
    open_then = np.flatnonzero(on_thread & (trace.start <= middle) & (trace.end > middle))
    open_then = open_then[np.lexsort((-trace.dur[open_then], trace.start[open_then]))][::-1]  # innermost first
    annotations = [trace.names[code] for code in trace.name[open_then[trace.kind[open_then] == int(Kind.ANNOTATION)]]]
    frames = [trace.names[code] for code in trace.name[open_then[trace.kind[open_then] == int(Kind.PYTHON)]]]
    return {
        "top_gap_annotation": next((name for name in annotations if not is_step_name(name)), ""),
        "top_gap_frame": next((name for name in frames if is_user_frame(name)), ""),
        "data_loading": any("dataloader" in name.lower() for name in annotations),
    }


def empty_queue_share(workload: Workload, kernels: NDArray[np.int64]) -> float | None:
    """Share of the kernels that started as soon as a launch allows; None without launches."""
    delay = _launch_delays(workload, kernels)
    return float((delay <= 2 * _usual_latency(workload, kernels)).mean()) if delay.size else None


def _launch_delays(workload: Workload, kernels: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from launch to start of each kernel launched by a call of its own, ns."""
    activities = workload.activities
    own = kernels[(activities.link[kernels] == int(Link.CORRELATION)) & ~activities.graph[kernels]]
    delays: NDArray[np.int64] = activities.start[own] - workload.tree.start[activities.launch[own]]
    return delays


def _usual_latency(workload: Workload, kernels: NDArray[np.int64]) -> int:
    """Launch latency of kernels that found an empty queue: a low percentile of all delays, ns."""
    delays = _launch_delays(workload, kernels)
    return max(int(np.percentile(delays, _LAUNCH_LATENCY_PERCENTILE)), 1) if delays.size else 1


def launching_op(workload: Workload, activity: int) -> str | None:
    """Name of the innermost op that was open when an activity was launched."""
    launch = int(workload.activities.launch[activity])
    op = int(workload.context.op[launch]) if launch >= 0 else -1
    return workload.trace.names[workload.tree.name[op]] if op >= 0 else None
