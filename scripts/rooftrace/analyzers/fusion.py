"""Kernels in a row that one kernel could replace.

What it finds: real instances of known compositions (attention by separate products, norms and activations written out,
rotary embeddings, epilogues of matrix products, loops over parameters …) and of other chains of elementwise ops and
reductions; grouped, each kernel in at most one finding.

Why it matters: what one kernel hands to the next goes through memory and back, and every launch costs host time.

How it is computed: saving of an instance = its kernels' time less the fused kernel's (METHODS: fusion), whose traffic
is what comes from outside and what others need; the launches it saves are cut from the host's time in the replay.

What it cannot see: which tensor a call really reads (taken from shapes and element types), register pressure, and
whether a library offers the fused kernel for just this shape.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.fusion_evidence import example_evidence, machine_evidence, reached_evidence
from rooftrace.analyzers.fusion_summary import summary_of
from rooftrace.analyzers.workload import CLOSURES, RatedRun, Workload, gap_score
from rooftrace.contracts.base import RANKING_LIMIT_PCT, Score
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.fusion import Candidate, FusionInputs, FusionResult, describe, find_candidates
from rooftrace.fusion.compositions import load_compositions
from rooftrace.fusion.eager import OneMove, find_one_move
from rooftrace.fusion.edits import HostCalls, kernel_edit
from rooftrace.fusion.find import machine_of
from rooftrace.fusion.instances import median_instance, median_named
from rooftrace.fusion.owners import optimizer_in
from rooftrace.fusion.today import least_saving_ns, today
from rooftrace.intervals import union
from rooftrace.patterns import matching_patterns
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.contracts.base import EvidenceValue, FindingKind
    from rooftrace.fusion.calls import Calls
    from rooftrace.fusion.names import NamedRun

    Cut = tuple[int, NDArray[np.int64], NDArray[np.int64]]  # a thread, starts and ends of what is cut from it

_MAX_MEMBERS = 50
# Findings whose kernels save less of the span, and that cannot reach the ranking limit with the host's time, are
# counted in the summary, not listed one by one.
_LISTED_PCT = 0.05
_MAX_UNRATED = 5
_UNRATED_PCT = 0.5
# From this share of the span on, a host that launches too slowly is a reason of its own (as for idle findings).
_LATE_PCT = 3.0
_LAUNCH_BOUND = "launch_bound"
_NAMES_ONLY = "known from kernel names alone: no ops and no shapes recorded"


class Example(Struct, frozen=True, kw_only=True):
    """Equal instances that stand for a finding: those of the candidate that saves or takes most."""

    candidate: Candidate
    calls: Calls


class FusionDraft(Draft, frozen=True, kw_only=True):
    """A draft and the activities it claims, whose own gaps no other finding may count then."""

    claims: NDArray[np.int64]
    example: Example | None = None  # None where no calls are recorded
    closures: tuple[float, float, float] = CLOSURES  # the first is no more than the least saving, a share of the whole


class Fused(Struct, frozen=True, kw_only=True):
    """What is found before it is known how late the host launches, which decides whether one move is told of."""

    summary: dict[str, EvidenceValue]
    drafts: list[Draft]
    move: OneMove


def analyze(workload: Workload) -> tuple[dict[str, EvidenceValue], list[Draft]]:
    """Summary and findings, most saved first; those without a time to claim last."""
    return settled(find(workload), workload)


def find(run: RatedRun) -> Fused:
    """Summary and findings, which of them the one move for all may be told in still open."""
    inputs = inputs_of(run)
    result = find_candidates(inputs)
    host = HostCalls(inputs, result.calls)
    rated = [_rated(run, inputs, result, (group, host.cuts(group))) for group in _findings(result.candidates)]
    rated.sort(key=lambda draft: (-draft.finding.score.mid, draft.finding.subject, int(draft.claims[0])))
    listed = [draft for draft in rated if _is_listed(run, draft)]
    unrated = [_unrated(run, inputs, result, group) for group in _findings(result.unrated)]
    unrated += [_named(run, inputs, result, named) for named in result.named]
    unrated = [draft for draft in unrated if _time_share(draft) >= _UNRATED_PCT]
    unrated.sort(key=lambda draft: (-_time_share(draft), draft.finding.subject))
    drafts = [*listed, *unrated[:_MAX_UNRATED]]
    return Fused(
        summary=summary_of(run, result, len(rated) - len(listed)),
        drafts=[_numbered(inputs, draft, number) for number, draft in enumerate(drafts, start=1)],
        move=find_one_move(inputs, [_told_by(draft) for draft in drafts]),
    )


def settled(fused: Fused, workload: Workload) -> tuple[dict[str, EvidenceValue], list[Draft]]:
    """Summary and findings, the first of several about one eager model with the move that covers them all."""
    late = sum(ledger.idle_by_cause.get(_LAUNCH_BOUND, 0) for ledger in workload.ledgers)
    is_late = pct(late, workload.span_ns) >= _LATE_PCT
    first, move = fused.move.of_any if is_late else fused.move.of_several, fused.move.text
    if first is None:
        return fused.summary, fused.drafts
    drafts = list(fused.drafts)
    drafts[first] = _with_one_move(drafts[first], move)
    return {**fused.summary, "one_move": move}, drafts


def _told_by(draft: FusionDraft) -> tuple[Calls, Candidate] | None:
    """The example of a finding about a model's own code, not about a loop over its parameters."""
    example = draft.example
    if example is None or draft.finding.evidence["phase"] == "optimizer" or _is_loop(draft):
        return None
    return example.calls, example.candidate


def _is_listed(workload: RatedRun, draft: FusionDraft) -> bool:
    """Whether a finding saves enough to stand alone: by its kernels, or with the host time of its launches."""
    most = pct(draft.most_ns, workload.span_ns)
    return draft.finding.score.mid >= _LISTED_PCT or most >= RANKING_LIMIT_PCT


def _is_loop(draft: Draft) -> bool:
    loops = {composition.identity for composition in load_compositions() if composition.file.kind == "loop"}
    return draft.finding.evidence["pattern"] in loops


def _with_one_move(draft: Draft, move: str) -> Draft:
    evidence: dict[str, EvidenceValue] = {**draft.finding.evidence, "one_move": move}
    patterns = matching_patterns("fusion", _known(evidence, draft.finding.kind))
    return replace(draft, finding=draft.finding.model_copy(update={"evidence": evidence, "patterns": patterns}))


def inputs_of(workload: RatedRun) -> FusionInputs:
    """What candidates are found from."""
    return FusionInputs(
        trace=workload.trace,
        tree=workload.tree,
        context=workload.context,
        activities=workload.activities,
        platform=workload.platform,
    )


def _findings(candidates: Sequence[Candidate]) -> list[list[Candidate]]:
    """Candidates of one finding: of one composition, or of one chain in one class of module; most saved first."""
    groups: dict[tuple[str, str], list[Candidate]] = defaultdict(list)
    for candidate in candidates:
        composition = candidate.composition
        if composition is None:
            key = (candidate.scope, describe.word_chain(candidate))
        else:
            by_words = composition.file.kind == "epilogue" or composition.identity == "same_op_loop"
            words = tuple(dict.fromkeys(describe.word_chain(candidate).split())) if by_words else ()
            is_undone = "undone" * candidate.is_undone
            key = (f"={composition.identity}", " ".join((*words, optimizer_in(candidate.scope), is_undone)))
        groups[key].append(candidate)
    return [groups[key] for key in sorted(groups)]


def _rated(
    workload: RatedRun, run: FusionInputs, result: FusionResult, found: tuple[list[Candidate], Sequence[Cut]]
) -> FusionDraft:
    group, cuts = found
    claims = np.sort(np.concatenate([result.activities(candidate).reshape(-1) for candidate in group]))
    saving = min(sum(int(c.saving_ns.sum()) for c in group), _covered(workload, claims))
    edit = _edit(result, workload, group, cuts)
    removed_host = sum(int((end - start).sum()) for _, start, end in cuts)
    top, span = group[0], workload.span_ns
    estimate = top.estimate
    fused = sum(c.fused_ns * c.first.size for c in group)
    evidence = example_evidence(workload, run, result, group)
    reached = [today(result.calls, candidate, machine_of(run)) for candidate in group]
    least = min(saving, sum(least_saving_ns(c, t.slow_ns) for c, t in zip(group, reached, strict=True)))
    if estimate is not None:
        evidence |= reached_evidence(group, reached, least)
        evidence |= {
            "fused_ms": ns_to_ms(fused),
            "saving_ms": ns_to_ms(saving),
            "floor_us": ns_to_us(estimate.time.floor_ns),
            "bound": estimate.time.bound,
            "external_bytes": estimate.nbytes,
            "inner_bytes": estimate.inner_bytes,
            "separate_bytes": sum(call.cost.bytes_total for call in top.replaced if call.cost),
            "host_cut_ms": ns_to_ms(removed_host),
            "dtype": estimate.dtype,
        }
    closures = (min(CLOSURES[0], least / saving if saving else 0.0), *CLOSURES[1:])
    score = gap_score(saving, span).model_copy(update={"low": pct(closures[0] * saving, span)})
    finding = _finding(evidence, group[0], score, "modelled")
    return FusionDraft(
        finding=finding.model_copy(update={"gpu_time_score": pct(saving, span)}),
        closures=closures,
        edit=edit,
        most_ns=saving + removed_host,
        claims=claims,
        example=Example(candidate=top, calls=result.calls),
    )


def _edit(
    result: FusionResult,
    workload: RatedRun,
    group: Sequence[Candidate],
    cuts: Sequence[Cut],
) -> Edit:
    parts = [
        kernel_edit(result.activities(c), workload.activities.dur, c.fused_ns) for c in group if c.estimate is not None
    ]
    return Edit(
        activities=np.concatenate([shortened for shortened, _, _ in parts]),
        saved_ns=np.concatenate([saved for _, saved, _ in parts]),
        removed=np.concatenate([removed for _, _, removed in parts]),
        host=tuple(HostCut(lane=lane, start=start, end=end) for lane, start, end in cuts),
    )


def _unrated(workload: RatedRun, run: FusionInputs, result: FusionResult, group: list[Candidate]) -> FusionDraft:
    """Candidates whose fused time is not known: what they take is told, nothing is claimed."""
    evidence = example_evidence(workload, run, result, group) | {"unmodelled": group[0].reason or ""}
    finding = _finding(evidence, group[0], Score(low=0, mid=0, high=0), "upper_bound")
    return _unclaimed(finding, Example(candidate=group[0], calls=result.calls))


def _named(workload: RatedRun, run: FusionInputs, result: FusionResult, named: NamedRun) -> FusionDraft:
    infos = workload.activities.infos
    composition = named.composition
    time = int(named.time_ns.sum())
    vendor = workload.platform.vendor if workload.platform else ""
    evidence: dict[str, EvidenceValue] = {
        **machine_evidence(workload),
        "pattern": composition.identity if composition else "novel",
        "pattern_name": composition.file.name if composition else "a chain of kernels",
        "instances_count": int(named.first.size),
        "kinds_count": 1,
        "shown_count": int(named.first.size),
        "before_window_count": 0,
        "kernels_per_instance": len(named.kernels),
        "launches_removed_count": 0 if named.graph else int(named.first.size) * (len(named.kernels) - 1),
        "time_ms": ns_to_ms(time),
        "time_share_pct": pct(time, workload.span_ns),
        "modules": "",
        "op_chain": "",
        "kernel_chain": describe.chain([infos[code].short for code in named.kernels]),
        "shapes": "",
        "source": "",
        "phase": "forward",
        "kept_op": "",
        "epilogue": "",
        "optimizer": "",
        "one_move": "",
        "graph_replayed": named.graph,
        "notes": _NAMES_ONLY,
        "confidence": "low",
        "replacement": describe.replacements(composition, vendor),
        "unmodelled": _NAMES_ONLY,
    }
    name = composition.file.name if composition else "a recurring chain of kernels"
    finding = _finding_of(evidence, name, Score(low=0, mid=0, high=0), "upper_bound")
    return _unclaimed(finding.model_copy(update={"instance": median_named(run, result.calls, named)}))


def _unclaimed(finding: FindingEvidence, example: Example | None = None) -> FusionDraft:
    claims = np.empty(0, dtype=np.int64)
    return FusionDraft(finding=finding, edit=Edit(), most_ns=0, claims=claims, example=example)


def _finding(evidence: dict[str, EvidenceValue], top: Candidate, score: Score, kind: FindingKind) -> FindingEvidence:
    name = top.composition.file.name if top.composition else f"a chain of kernels in {top.scope}"
    return _finding_of(evidence, name, score, kind)


def _finding_of(evidence: dict[str, EvidenceValue], subject: str, score: Score, kind: FindingKind) -> FindingEvidence:
    """A finding whose id is still to be given."""
    count = min(int(evidence["instances_count"]), _MAX_MEMBERS)
    return FindingEvidence(
        id="fusion.F1",
        tier="fusion",
        category="fusion",
        subject=subject,
        score=score,
        score_basis="gap_share",
        gpu_time_score=0.0,
        kind=kind,
        members=[f"i{number}" for number in range(1, count + 1)],
        evidence=evidence,
        patterns=matching_patterns("fusion", _known(evidence, kind)),
        confidence=str(evidence["confidence"]),
    )


def _known(evidence: dict[str, EvidenceValue], kind: FindingKind) -> dict[str, EvidenceValue]:
    return {**evidence, "kind": kind, "category": "fusion", "analyzer": "fusion"}


def _numbered(run: FusionInputs, draft: FusionDraft, number: int) -> Draft:
    identity, example = f"fusion.F{number}", draft.example
    changes: dict[str, object] = {
        "id": identity,
        "members": [f"{identity}.{member}" for member in draft.finding.members],
    }
    if example is not None:
        changes["instance"] = median_instance(run, example.calls, example.candidate)
    return replace(draft, finding=draft.finding.model_copy(update=changes))


def _time_share(draft: Draft) -> float:
    return float(draft.finding.evidence["time_share_pct"])


def _covered(workload: RatedRun, members: NDArray[np.int64]) -> int:
    """Time in which any of the activities runs, over all devices."""
    activities = workload.activities
    return sum(
        union(activities.start[mine], activities.end[mine]).length
        for device in sorted_unique(activities.device[members]).tolist()
        for mine in (members[activities.device[members] == device],)
    )
