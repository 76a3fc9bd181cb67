"""Runs the analyzers and scores what they found by replay."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.analyzers import compute, fusion, idle, multi_kernel
from rooftrace.analyzers.fusion import FusionDraft
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

    from rooftrace.analyzers import RatedRun, Workload
    from rooftrace.analyzers.draft import Draft
    from rooftrace.analyzers.fusion import Fused
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.evidence import FindingEvidence
    from rooftrace.contracts.report import Replay as ReplayFacts
    from rooftrace.replay.edits import Edit

    Said = tuple[dict[str, EvidenceValue], list[Draft]]  # an analyzer's summary and its findings, not scored yet


class OfKernels(Struct, frozen=True, kw_only=True):
    """What the analyzers of kernels say: the compute ones, by name, and fusion."""

    compute: dict[str, Said]
    fused: Fused

    @property
    def drafts(self) -> list[Draft]:
        """All findings, in the order in which they are listed."""
        return [*(draft for _, found in self.compute.values() for draft in found), *self.fused.drafts]


class Replayed(Struct, frozen=True, kw_only=True):
    """What a run's own replay tells, and what would be half of its host time."""

    halved: Edit
    facts: ReplayFacts


class Results(Struct, frozen=True, kw_only=True):
    """What the analyzers say, by analyzer, and the fields of ``evidence/replay.json`` (None without GPU activity)."""

    summaries: dict[str, dict[str, EvidenceValue]]
    findings: dict[str, list[FindingEvidence]]
    replay: dict[str, Any] | None


def find_and_score(workload: Workload) -> Results:
    """Summary and findings of every analyzer that has something to look at, scored by replay where that is possible."""
    return score_findings(workload, analyze_kernels(workload), analyze_system(workload), replayed(workload))


def score_findings(workload: Workload, kernels: OfKernels, system: dict[str, Said], replay: Replayed | None) -> Results:
    """All that the analyzers have said, scored where there is a replay."""
    summaries, drafts = _combined(workload, kernels, system)
    listed = [(name, draft) for name, found in drafts.items() for draft in found]
    scored = [draft.finding for _, draft in listed]
    fields: dict[str, Any] | None = None
    if replay is not None:
        halved = replay.halved if is_inflated(workload) else None
        with stage("scores"):
            scores = score([draft for _, draft in listed], replay_of(workload), halved=halved)
        believed = replay.facts.explained_pct >= LEAST_EXPLAINED_PCT
        scored = scores.findings if believed else scored
        left = [Remaining(after=count, span_ns=span) for count, span in enumerate(scores.together, start=1)]
        fields = {"replay": replay.facts, "together": left if believed else None}
    findings: dict[str, list[FindingEvidence]] = {name: [] for name in summaries}
    for (name, _), finding in zip(listed, scored, strict=True):
        findings[name].append(finding)
    return Results(summaries=summaries, findings=findings, replay=fields)


def replayed(run: RatedRun) -> Replayed | None:
    """What the replay of a run as it was tells; None without GPU activity."""
    if not run.activities.row.size:
        return None
    with stage("replay"):
        replay = replay_of(run)
        halved = without_profiler(replay, long_calls(run.trace, run.tree, host_lanes(replay)))
        return Replayed(halved=halved, facts=describe_replay(replay, halved))


def replay_of(run: RatedRun) -> Replay:
    """The run, ready to be replayed with changes."""
    return Replay(run.tree, run.activities, run.schedule)


def run_analyzers(workload: Workload) -> tuple[dict[str, dict[str, EvidenceValue]], dict[str, list[Draft]]]:
    """Summaries and unscored findings of every analyzer that has something to look at."""
    return _combined(workload, analyze_kernels(workload), analyze_system(workload))


def analyze_kernels(run: RatedRun) -> OfKernels:
    """What is said of kernels alone, for which the causes of idle time need not be known."""
    with stage("fusion"):
        fused = fusion.find(run)
    with stage("compute"):
        return OfKernels(compute=compute.analyze(run, _claimed(run, fused.drafts)), fused=fused)


def without_examples(said: OfKernels) -> OfKernels:
    """The same without the calls that stand for fusion findings, which are large."""
    drafts = [replace(draft, example=None) if isinstance(draft, FusionDraft) else draft for draft in said.fused.drafts]
    return replace(said, fused=replace(said.fused, drafts=drafts))


def analyze_system(workload: Workload) -> dict[str, Said]:
    """What is said of idle time, communication and copies."""
    return {"idle": idle.analyze(workload), "multi_kernel": multi_kernel.analyze(workload)}


def _combined(
    workload: Workload, kernels: OfKernels, system: dict[str, Said]
) -> tuple[dict[str, dict[str, EvidenceValue]], dict[str, list[Draft]]]:
    results = {**kernels.compute, "fusion": fusion.settled(kernels.fused, workload), **system}
    results = {name: result for name, result in results.items() if result[1] or name in COMPUTE_ANALYZERS}
    return {name: summary for name, (summary, _) in results.items()}, {
        name: found for name, (_, found) in results.items()
    }


def _claimed(run: RatedRun, drafts: list[Draft]) -> NDArray[np.bool_]:
    """Activities whose gaps belong to a fusion finding that may be ranked."""
    claimed = np.zeros(run.activities.row.size, dtype=bool)
    for draft in drafts:
        if isinstance(draft, FusionDraft) and draft.finding.score.mid >= RANKING_LIMIT_PCT:
            claimed[draft.claims] = True
    return claimed


def is_inflated(workload: Workload) -> bool:
    """Whether the profiler recorded stacks or shapes, which takes host time."""
    trace = workload.trace
    return bool((trace.inputs >= 0).any() or np.any(trace.kind == int(Kind.PYTHON)))
