"""Kernels against their ceilings.

What it finds: op groups that take longer than their floor, gathered by category, bound, library and efficiency band;
and kernel time that cannot be rated, as an upper bound.

Why it matters: the gap is what a better kernel, a better shape or a better precision could give at most.

How it is computed: gap = sum over instances of max(0, time - floor), less what a fusion finding claims already. The
edit takes each instance's gap from its kernels, so that the replay tells what the run would gain.

What it cannot see: why a kernel is slow inside (occupancy, bank conflicts, cache hits).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np

from rooftrace import platforms
from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.gemm_shapes import gemm_evidence
from rooftrace.analyzers.workload import Workload, bound_score, covered_ns, gap_score
from rooftrace.calltree import Link
from rooftrace.contracts.base import ANALYZER_OF_CATEGORY, COMPUTE_ANALYZERS
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.patterns import matching_patterns
from rooftrace.replay.edits import Edit
from rooftrace.roofline import Rating, Unrated
from rooftrace.units import NS_PER_S, ns_to_ms, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue, FindingKind, Score

_BANDS = ((30.0, "below 30 %"), (60.0, "30 to 60 %"), (float("inf"), "above 60 %"))
_MAX_NAMES = 6
# Faster than the ceiling they are rated against: nothing to win that the rating could tell.
_FASTER_THAN_RATED = ("inconsistent", "above-achievable")


def analyze(
    workload: Workload, claimed: NDArray[np.bool_] | None = None
) -> dict[str, tuple[dict[str, EvidenceValue], list[Draft]]]:
    """Summary and findings of each compute analyzer that has kernel time.

    The gaps of ``claimed`` activities belong to fusion findings and are left out here.
    """
    free = np.ones(workload.activities.row.size, dtype=bool) if claimed is None else ~claimed
    members: dict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(workload.groups):
        if group.kernel_ns > 0:
            members[ANALYZER_OF_CATEGORY.get(group.category, "generic")].append(index)
    return {
        analyzer: (_summary(workload, members[analyzer]), _findings(workload, analyzer, members[analyzer], free))
        for analyzer in COMPUTE_ANALYZERS
        if members[analyzer]
    }


def _summary(workload: Workload, indices: Sequence[int]) -> dict[str, EvidenceValue]:
    time = sum(workload.groups[i].kernel_ns for i in indices)
    rated = [(workload.groups[i], r) for i in indices if isinstance(r := workload.ratings[i], Rating)]
    rated_ns = sum(group.kernel_ns for group, _ in rated)
    summary: dict[str, EvidenceValue] = {
        "time_ms": ns_to_ms(time),
        "time_share_pct": pct(time, workload.span_ns),
        "rated_pct": pct(rated_ns, time),
        "groups_count": len(indices),
    }
    busy = sum(group.busy_ns for group, _ in rated)
    if busy:
        summary["efficiency_pct"] = pct(sum(rating.floor_ns * group.count for group, rating in rated), busy)
    return summary


def _findings(workload: Workload, analyzer: str, indices: Sequence[int], free: NDArray[np.bool_]) -> list[Draft]:
    clusters: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index in indices:
        key = _cluster_key(workload, index)
        if key is not None:
            clusters[key].append(index)
    drafts = [_draft(workload, analyzer, key, (clusters[key], free)) for key in sorted(clusters)]
    drafts.sort(key=lambda draft: (-draft.finding.score.mid, draft.finding.members))
    return [draft.named(f"{analyzer}.F{number}") for number, draft in enumerate(drafts, start=1)]


def _cluster_key(workload: Workload, index: int) -> tuple[str, ...] | None:
    group, rating = workload.groups[index], workload.ratings[index]
    if group.link is Link.CARRY_IN or rating.flag in _FASTER_THAN_RATED:
        return None
    if isinstance(rating, Unrated):
        return (group.category, "unrated")
    band = next(name for limit, name in _BANDS if rating.efficiency_pct < limit)
    return (group.category, rating.bound, _library(workload, group), band)


def _library(workload: Workload, group: OpGroup) -> str:
    return workload.activities.infos[group.kernel_codes[0]].library or "unknown"


def _draft(
    workload: Workload, analyzer: str, key: tuple[str, ...], members: tuple[list[int], NDArray[np.bool_]]
) -> Draft:
    """A finding whose id is still to be given."""
    indices, free = members
    indices = sorted(indices, key=lambda i: (-_weight(workload, i), workload.op_ids[i]))
    time = sum(workload.groups[i].kernel_ns for i in indices)
    ratings = [r for i in indices if isinstance(r := workload.ratings[i], Rating)]
    evidence = _common_evidence(workload, indices, time) | _machine_evidence(workload)
    span = workload.span_ns
    edit = _edit(workload, indices, free)
    saved = int(edit.saved_ns.sum())
    most = min(saved, covered_ns(workload, [workload.groups[i] for i in indices]))
    score: Score
    kind: FindingKind = "modelled" if ratings else "upper_bound"
    if ratings:
        evidence |= _rated_evidence(workload, indices, ratings)
        score, gap_share = gap_score(most, span), pct(most, span)
        subject = f"{key[0]} kernels of {key[2]}, {key[1]}-bound, {key[3]} of the ceiling"
    else:
        reasons = Counter[str]()
        for i in indices:
            rating = workload.ratings[i]
            if isinstance(rating, Unrated):
                reasons[rating.reason] += workload.groups[i].kernel_ns
        evidence["unmodelled"] = max(sorted(reasons), key=lambda reason: reasons[reason])
        spelled = workload.activities.infos[workload.groups[indices[0]].kernel_codes[0]].facts.precision
        evidence |= {"precision": spelled} if spelled else {}
        score, gap_share = bound_score(most, span), pct(most, span)
        subject = f"{key[0]} kernels without a rating"
    claimed = _claimed_ns(workload, indices, free)
    evidence |= {"claimed_by_fusion_ms": ns_to_ms(claimed)} if claimed else {}
    known = {**evidence, "kind": kind, "category": key[0], "analyzer": analyzer}
    finding = FindingEvidence(
        id=f"{analyzer}.F1",
        tier="compute",
        category=key[0],
        subject=subject,
        score=score,
        score_basis="gap_share",
        gpu_time_score=gap_share,
        kind=kind,
        members=[workload.op_ids[i] for i in indices],
        evidence=evidence,
        patterns=matching_patterns(analyzer, known),
    )
    return Draft(finding=finding, edit=edit, most_ns=most)


def _edit(workload: Workload, indices: list[int], free: NDArray[np.bool_]) -> Edit:
    """Every instance brought to its floor, or to nothing where no floor is known; its kernels give in proportion."""
    activities = [workload.groups[i].activities for i in indices]
    saved = [_saved(workload, i) for i in indices]
    members, savings = np.concatenate(activities), np.concatenate(saved)
    keep = free[members] & (savings > 0)
    return Edit(activities=members[keep], saved_ns=savings[keep])


def _saved(workload: Workload, index: int) -> NDArray[np.int64]:
    """What each activity of a group gives, ns."""
    group, rating = workload.groups[index], workload.ratings[index]
    dur = workload.activities.dur[group.activities]
    if isinstance(rating, Unrated):
        whole: NDArray[np.int64] = dur
        return whole
    gap = np.maximum(0, group.instance_busy - rating.floor_ns)
    kernels = np.add.reduceat(dur, group.firsts)
    sizes = np.diff(np.r_[group.firsts, dur.size])
    share = np.repeat(gap / np.maximum(kernels, 1), sizes)
    given: NDArray[np.int64] = np.floor(dur * np.minimum(share, 1.0)).astype(np.int64)
    return given


def _claimed_ns(workload: Workload, indices: list[int], free: NDArray[np.bool_]) -> int:
    """Kernel time of the members whose gap a fusion finding holds, ns."""
    members = np.concatenate([workload.groups[i].activities for i in indices])
    return int(workload.activities.dur[members[~free[members]]].sum())


def _weight(workload: Workload, index: int) -> int:
    """What an op group adds to its finding: its gap, or its time where that is unknown."""
    rating = workload.ratings[index]
    return rating.gap_ns if isinstance(rating, Rating) else workload.groups[index].kernel_ns


def _common_evidence(workload: Workload, indices: list[int], time: int) -> dict[str, EvidenceValue]:
    groups = [workload.groups[i] for i in indices]
    top = groups[0]
    infos = workload.activities.infos
    kernels = sum(int(group.activities.size) for group in groups)
    instances = sum(group.count for group in groups)
    phases = {group.phase for group in groups}
    names = list(dict.fromkeys(group.name for group in groups))
    return {
        "time_ms": ns_to_ms(time),
        "time_share_pct": pct(time, workload.span_ns),
        "instances_count": instances,
        "kernels_count": kernels,
        "members_count": len(groups),
        "mean_kernel_us": round(time / kernels / 1000, 3),
        "kernels_per_instance": round(kernels / instances, 2),
        "library": _library(workload, top),
        "top_op": top.name,
        "top_op_id": workload.op_ids[indices[0]],
        "top_share_pct": pct(top.kernel_ns, time),
        "top_kernel": infos[top.kernel_codes[0]].short,
        "op_names": ", ".join(names[:_MAX_NAMES]),
        "phase": phases.pop() if len(phases) == 1 else "mixed",
        "modules": _module_class(workload, top),
        "attention_module": _is_in_attention(workload, top),
        "source": source_of(workload, top),
        "graph_replayed": top.graph,
        "variation_pct": _variation_pct(top),
        "tf32": any(infos[code].facts.precision == "tfloat32" for code in top.kernel_codes),
        "fused": infos[top.kernel_codes[0]].fused,
        **_layout_evidence(workload, groups, time),
        **gemm_evidence(top),
    }


def _layout_evidence(workload: Workload, groups: Sequence[OpGroup], time: int) -> dict[str, EvidenceValue]:
    """Time of layout and copy kernels inside ops that are not copies themselves, and their names."""
    activities = workload.activities
    spent: Counter[str] = Counter()
    for group in groups:
        if group.category == "memory":
            continue
        for code in group.kernel_codes:
            info = activities.infos[code]
            if info.category == "memory":
                mine = activities.name[group.activities] == code
                spent[info.short] += int(activities.dur[group.activities][mine].sum())
    names = sorted(spent, key=lambda name: (-spent[name], name))
    return {
        "extra_kernels": ", ".join(names[:_MAX_NAMES]),
        "layout_ms": ns_to_ms(spent.total()),
        "layout_pct": pct(spent.total(), time),
    }


def _machine_evidence(workload: Workload) -> dict[str, EvidenceValue]:
    """What the GPU has, for advice that must fit it."""
    platform = workload.platform
    if platform is None:
        return {"gpu_name": "", "gpu_vendor": "", "gpu_tf32": False, "gpu_bf16": False}
    return {
        "gpu_name": platform.product,
        "gpu_vendor": platform.vendor,
        "gpu_tf32": platforms.compute_ceiling(platform, "tfloat32", "matrix") is not None,
        "gpu_bf16": platforms.compute_ceiling(platform, "bfloat16", "matrix") is not None,
    }


def _rated_evidence(workload: Workload, indices: list[int], ratings: list[Rating]) -> dict[str, EvidenceValue]:
    groups = [workload.groups[i] for i in indices]
    pairs = list(zip(groups, ratings, strict=True))
    busy = sum(group.busy_ns for group in groups)
    floor = sum(rating.floor_ns * group.count for group, rating in pairs)
    sheet = sum(rating.datasheet_floor_ns * group.count for group, rating in pairs)
    flops = sum(rating.cost.flops * group.count for group, rating in pairs)
    moved = sum(rating.cost.bytes_total * group.count for group, rating in pairs)
    kinds = {rating.ceilings_kind for rating in ratings}
    return {
        "gap_ms": ns_to_ms(sum(rating.gap_ns for rating in ratings)),
        "floor_ms": ns_to_ms(floor),
        "bound": ratings[0].bound,
        "precision": ratings[0].precision,
        "efficiency_pct": pct(floor, busy),
        "datasheet_efficiency_pct": min(pct(sheet, busy), pct(floor, busy)),
        "ceilings_kind": kinds.pop() if len(kinds) == 1 else "mixed",
        "achieved_tflops": round(flops / busy * NS_PER_S / 1e12, 3),
        "achieved_gbps": round(moved / busy * NS_PER_S / 1e9, 1),
    }


def _module_class(workload: Workload, group: OpGroup) -> str:
    """Class of the module with most of the group's time, without its instance number."""
    paths = workload.context.module_paths
    named = {path: ns for path, ns in group.module_ns.items() if paths[path]}
    if not named:
        return ""
    heaviest = max(sorted(named), key=lambda path: named[path])
    name, _, number = paths[heaviest][-1].rpartition("_")
    return name if name and number.isdigit() else paths[heaviest][-1]


def _is_in_attention(workload: Workload, group: OpGroup) -> bool:
    """Whether most of the group's time was launched inside a module that names attention."""
    paths = workload.context.module_paths
    inside = sum(ns for path, ns in group.module_ns.items() if any("attention" in name.lower() for name in paths[path]))
    return 2 * inside > group.kernel_ns


def source_of(workload: Workload, group: OpGroup) -> str:
    """User frame of the group's slowest instance."""
    frame = int(workload.context.frame[group.node]) if group.node >= 0 else -1
    return workload.trace.names[workload.tree.name[frame]] if frame >= 0 else ""


def _variation_pct(group: OpGroup) -> float:
    mean = float(group.instance_busy.mean())
    return round(100.0 * float(group.instance_busy.std()) / mean, 1) if mean else 0.0
