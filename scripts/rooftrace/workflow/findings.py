"""Runs the analyzers and scores what they found by replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.analyzers import compute, fusion, idle, multi_kernel
from rooftrace.analyzers.scoring import score
from rooftrace.causes.quiet import long_calls
from rooftrace.contracts.base import COMPUTE_ANALYZERS, RANKING_LIMIT_PCT
from rooftrace.contracts.report import Remaining
from rooftrace.replay.facts import LEAST_EXPLAINED_PCT, describe_replay, host_lanes, without_profiler
from rooftrace.replay.run import Replay
from rooftrace.trace import Kind
from rooftrace.workflow.timing import stage

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers import Workload
    from rooftrace.analyzers.draft import Draft
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.evidence import FindingEvidence


class Results(Struct, frozen=True, kw_only=True):
    """What the analyzers say, by analyzer, and the fields of ``evidence/replay.json`` (None without GPU activity)."""

    summaries: dict[str, dict[str, EvidenceValue]]
    findings: dict[str, list[FindingEvidence]]
    drafts: list[Draft]
    replay: dict[str, Any] | None


def find_and_score(workload: Workload) -> Results:
    """Summary and findings of every analyzer that has something to look at, scored by replay where that is possible."""
    summaries, drafts = run_analyzers(workload)
    listed = [(name, draft) for name, found in drafts.items() for draft in found]
    scored = [draft.finding for _, draft in listed]
    fields: dict[str, Any] | None = None
    if workload.activities.row.size:
        with stage("replay"):
            replay = Replay(workload.tree, workload.activities, workload.schedule)
            halved = without_profiler(replay, long_calls(workload.trace, workload.tree, host_lanes(replay)))
            facts = describe_replay(replay, halved)
        with stage("scores"):
            scores = score([draft for _, draft in listed], replay, halved=halved if is_inflated(workload) else None)
        believed = facts.explained_pct >= LEAST_EXPLAINED_PCT
        scored = scores.findings if believed else scored
        left = [Remaining(after=count, span_ns=span) for count, span in enumerate(scores.together, start=1)]
        fields = {"replay": facts, "together": left if believed else None}
    findings: dict[str, list[FindingEvidence]] = {name: [] for name in summaries}
    for (name, _), finding in zip(listed, scored, strict=True):
        findings[name].append(finding)
    return Results(summaries=summaries, findings=findings, drafts=[draft for _, draft in listed], replay=fields)


def run_analyzers(workload: Workload) -> tuple[dict[str, dict[str, EvidenceValue]], dict[str, list[Draft]]]:
    """Summaries and unscored findings of every analyzer that has something to look at."""
    with stage("fusion"):
        fused = fusion.analyze(workload)
    results: dict[str, tuple[dict[str, EvidenceValue], list[Draft]]] = {
        **compute.analyze(workload, _claimed(workload, fused[1])),
        "fusion": fused,
        "idle": idle.analyze(workload),
        "multi_kernel": multi_kernel.analyze(workload),
    }
    results = {name: result for name, result in results.items() if result[1] or name in COMPUTE_ANALYZERS}
    return {name: summary for name, (summary, _) in results.items()}, {
        name: found for name, (_, found) in results.items()
    }


def _claimed(workload: Workload, drafts: list[Draft]) -> NDArray[np.bool_]:
    """Activities whose gaps belong to a fusion finding that may be ranked."""
    claimed = np.zeros(workload.activities.row.size, dtype=bool)
    for draft in drafts:
        if isinstance(draft, fusion.FusionDraft) and draft.finding.score.mid >= RANKING_LIMIT_PCT:
            claimed[draft.claims] = True
    return claimed


def is_inflated(workload: Workload) -> bool:
    """Whether the profiler recorded stacks or shapes, which takes host time."""
    trace = workload.trace
    return bool((trace.inputs >= 0).any() or np.any(trace.kind == int(Kind.PYTHON)))
