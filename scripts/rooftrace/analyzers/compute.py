"""Kernels against their ceilings.

What it finds: op groups that take longer than their floor, gathered by category, bound, library and efficiency band
(bands that call for the same remedy in one finding); layout copies inside calls and forward work that is run again,
whose whole time can go; loops of equal small products that one batched product can replace; and kernel time that cannot
be rated, as an upper bound.

Why it matters: the gap is what a better kernel, a better shape or a better precision could give at most.

How it is computed: gap = sum over instances of max(0, time - floor), less what a fusion finding claims already; the
floor of float32 products is that of the faster precision which would be their remedy (`precision`). The edit takes each
instance's gap from its kernels, so that the replay tells what the run would gain.

What it cannot see: why a kernel is slow inside (occupancy, bank conflicts, cache hits).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.analyzers.compute_evidence import (
    RunFacts,
    common_evidence,
    layout_evidence,
    library_of,
    machine_evidence,
    rated_evidence,
    run_facts,
    unrated_evidence,
)
from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.gemm_shapes import is_batched
from rooftrace.analyzers.loops import Loops, find_loops
from rooftrace.analyzers.parts import (
    LAYOUT_ANALYZERS,
    only_layout_copies,
    only_recomputed,
    without_activities,
    without_layout_copies,
)
from rooftrace.analyzers.precision import faster_precision, remedy_evidence, target_ns
from rooftrace.analyzers.workload import RatedRun, bound_score, covered_ns, gap_score
from rooftrace.calltree import Link
from rooftrace.contracts.base import ANALYZER_OF_CATEGORY, COMPUTE_ANALYZERS, RANKING_LIMIT_PCT
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.patterns import matching_patterns
from rooftrace.replay.edits import Edit
from rooftrace.roofline import Rating, Unrated
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue, FindingKind

_BANDS = ((30.0, "below 30 %"), (60.0, "30 to 60 %"), (float("inf"), "above 60 %"))
# Kernels that a compiler wrote: another compilation changes them, so they stand apart from hand-written ones.
_GENERATED = "Inductor"
_ANALYZER_OF_RECOMPUTED = "generic"
_ANALYZER_OF_LOOPS = "gemm"
# Faster than the ceiling they are rated against: nothing to win that the rating could tell.
_FASTER_THAN_RATED = ("inconsistent", "above-achievable")


class _Free(Struct, frozen=True, kw_only=True):
    """Which activities no fusion finding claims, and what is said of the run in each finding."""

    activities: NDArray[np.bool_]
    facts: RunFacts


def analyze(
    workload: RatedRun, claimed: NDArray[np.bool_] | None = None
) -> dict[str, tuple[dict[str, EvidenceValue], list[Draft]]]:
    """Summary and findings of each compute analyzer that has kernel time.

    The gaps of ``claimed`` activities belong to fusion findings and are left out here.
    """
    mask = np.ones(workload.activities.row.size, dtype=bool) if claimed is None else ~claimed
    members: dict[str, list[int]] = defaultdict(list)
    for index, group in enumerate(workload.groups):
        if group.kernel_ns > 0:
            members[ANALYZER_OF_CATEGORY.get(group.category, "generic")].append(index)
    rest = without_layout_copies(workload)
    free = _Free(activities=mask, facts=run_facts(workload, rest))
    loops = _loops_worth_telling(workload, mask)
    rest, emptied = without_activities(rest, loops.activities) if loops else (rest, frozenset[int]())
    results: dict[str, tuple[dict[str, EvidenceValue], list[Draft]]] = {}
    for analyzer in COMPUTE_ANALYZERS:
        drafts = _clustered(rest, analyzer, [at for at in members[analyzer] if at not in emptied], free)
        if loops and analyzer == _ANALYZER_OF_LOOPS:
            drafts.append(_loop_draft(loops, free))
        if analyzer in LAYOUT_ANALYZERS:
            drafts += _layout_drafts(workload, analyzer, free)
        if analyzer == _ANALYZER_OF_RECOMPUTED:
            drafts += _recomputed_drafts(workload, free)
        if members[analyzer] or drafts:
            results[analyzer] = (_summary(workload, members[analyzer]), _named(analyzer, drafts))
    return results


def _summary(workload: RatedRun, indices: Sequence[int]) -> dict[str, EvidenceValue]:
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


def _named(analyzer: str, drafts: list[Draft]) -> list[Draft]:
    drafts = sorted(drafts, key=lambda draft: (-draft.finding.score.mid, draft.finding.members))
    return [draft.named(f"{analyzer}.F{number}") for number, draft in enumerate(drafts, start=1)]


def _clustered(workload: RatedRun, analyzer: str, indices: Sequence[int], free: _Free) -> list[Draft]:
    clusters: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for index in indices:
        key = _cluster_key(workload, index)
        if key is not None:
            clusters[key].append(index)
    drafts = {key: _draft(workload, analyzer, key, (clusters[key], free)) for key in sorted(clusters)}
    alike: dict[tuple[tuple[str, ...], str], list[tuple[str, ...]]] = defaultdict(list)
    for key, draft in drafts.items():
        alike[(*key[:3], *key[4:]), draft.finding.patterns[0]].append(key)
    for (shared, pattern), keys in alike.items():
        if len(keys) > 1:
            bands = " and ".join(name for _, name in _BANDS if name in {key[3] for key in keys})
            members = [index for key in keys for index in clusters[key]]
            whole = _draft(workload, analyzer, (*shared[:3], bands, *shared[3:]), (members, free))
            if whole.finding.patterns[0] == pattern:
                drafts = {key: draft for key, draft in drafts.items() if key not in keys} | {keys[0]: whole}
    return [drafts[key] for key in sorted(drafts)]


def _cluster_key(workload: RatedRun, index: int) -> tuple[str, ...] | None:
    group, rating = workload.groups[index], workload.ratings[index]
    if group.link is Link.CARRY_IN or rating.flag in _FASTER_THAN_RATED:
        return None
    if isinstance(rating, Unrated):
        return (group.category, "unrated", _GENERATED if library_of(workload, group) == _GENERATED else "")
    band = next(name for limit, name in _BANDS if rating.efficiency_pct < limit)
    wide = "" if faster_precision(workload, index) is None else f"{rating.precision} "
    # Advice about batched products is about two activations: no product with a weight may be among them.
    batched = "batched " if is_batched(group) else ""
    return (group.category, rating.bound, library_of(workload, group), band, wide, batched)


def _draft(workload: RatedRun, analyzer: str, key: tuple[str, ...], members: tuple[list[int], _Free]) -> Draft:
    """A finding whose id is still to be given."""
    indices = sorted(members[0], key=lambda i: (-_weight(workload, i), workload.op_ids[i]))
    ratings = [r for i in indices if isinstance(r := workload.ratings[i], Rating)]
    edit = _edit([(workload.groups[i], _saved(workload, i)) for i in indices], members[1].activities)
    if ratings:
        subject = f"{key[5]}{key[0]} kernels of {key[2]}, {key[1]}-bound, {key[3]} of the {key[4]}ceiling"
        evidence = rated_evidence(workload, indices, ratings)
        evidence |= remedy_evidence(workload, indices, int(edit.saved_ns.sum()))
    else:
        subject = f"{key[0]} kernels {f'of {key[2]} ' if key[2] else ''}without a rating"
        evidence = unrated_evidence(workload, indices)
    kind: FindingKind = "modelled" if ratings else "upper_bound"
    return _with_evidence(workload, (indices, members[1]), edit, (analyzer, key[0], subject, kind), evidence)


def _with_evidence(
    workload: RatedRun,
    members: tuple[list[int], _Free],
    edit: Edit,
    labels: tuple[str, str, str, FindingKind],
    own: dict[str, EvidenceValue],
) -> Draft:
    """A finding about some groups, the most important first; ``labels``: analyzer, category, subject, kind."""
    indices, free = members
    analyzer, category, subject, kind = labels
    groups = [workload.groups[i] for i in indices]
    most = min(int(edit.saved_ns.sum()), covered_ns(workload, groups))
    time = sum(group.kernel_ns for group in groups)
    evidence = common_evidence(workload, indices, time) | machine_evidence(workload) | own
    evidence |= free.facts.evidence if "part" in own else free.facts.of(indices)
    claimed = _claimed_ns(workload, indices, free.activities)
    evidence |= {"claimed_by_fusion_ms": ns_to_ms(claimed)} if claimed else {}
    known = {**evidence, "kind": kind, "category": category, "analyzer": analyzer}
    patterns = matching_patterns(analyzer, known)
    finding = FindingEvidence(
        id=f"{analyzer}.F1",
        tier="compute",
        category=category,
        subject=subject,
        score=(bound_score if kind == "upper_bound" else gap_score)(most, workload.span_ns),
        score_basis="gap_share",
        gpu_time_score=pct(most, workload.span_ns),
        kind=kind,
        members=[workload.op_ids[i] for i in indices],
        evidence=evidence,
        # What is said of the kernels of a category does not hold for a part of them that is there for no work.
        patterns=patterns[:1] if "part" in evidence else patterns,
    )
    return Draft(finding=finding, edit=edit, most_ns=most)


def _layout_drafts(workload: RatedRun, analyzer: str, free: _Free) -> list[Draft]:
    """What the calls of an analyzer spend on moving data before and after their own work, if anything."""
    copies, indices = only_layout_copies(workload, analyzer)
    time = sum(workload.groups[i].kernel_ns for i in indices)
    told = layout_evidence(copies, [copies.groups[i] for i in indices], time)
    own: dict[str, EvidenceValue] = {"part": "layout", "calls_ms": ns_to_ms(time), **told}
    labels: tuple[str, str, str, FindingKind] = (analyzer, analyzer, f"layout copies in {analyzer} calls", "measured")
    return _part_drafts(copies, (indices, free), labels, own)


def _loops_worth_telling(workload: RatedRun, free: NDArray[np.bool_]) -> Loops | None:
    """Loops of small products, if one batched product in the place of each could save enough for a rank."""
    loops = find_loops(workload, free)
    return loops if loops is not None and pct(loops.most_ns, workload.span_ns) >= RANKING_LIMIT_PCT else None


def _loop_draft(loops: Loops, free: _Free) -> Draft:
    workload = loops.workload
    indices = sorted(loops.groups, key=lambda i: (-workload.groups[i].kernel_ns, workload.op_ids[i]))
    labels: tuple[str, str, str, FindingKind] = (_ANALYZER_OF_LOOPS, "gemm", "loops of small products", "modelled")
    draft = _with_evidence(workload, (indices, free), loops.edit, labels, loops.evidence)
    score, share = gap_score(loops.gap_ns, workload.span_ns), pct(loops.gap_ns, workload.span_ns)
    finding = draft.finding.model_copy(update={"score": score, "gpu_time_score": share})
    return replace(draft, finding=finding, most_ns=loops.most_ns)


def _recomputed_drafts(workload: RatedRun, free: _Free) -> list[Draft]:
    """Forward work that a backward pass runs again, if any; of the category with most of its time."""
    again, indices = only_recomputed(workload)
    by_category: Counter[str] = Counter()
    for i in indices:
        by_category[again.groups[i].category] += again.groups[i].kernel_ns
    category = max(sorted(by_category), key=lambda name: by_category[name], default="")
    ratable = sum(group.kernel_ns for group in workload.groups if group.link is not Link.CARRY_IN)
    own: dict[str, EvidenceValue] = {"part": "recomputation", "ratable_pct": pct(by_category.total(), ratable)}
    subject = "forward work run again in backward (activation checkpointing)"
    return _part_drafts(again, (indices, free), (_ANALYZER_OF_RECOMPUTED, category, subject, "measured"), own)


def _part_drafts(
    workload: RatedRun,
    members: tuple[list[int], _Free],
    labels: tuple[str, str, str, FindingKind],
    own: dict[str, EvidenceValue],
) -> list[Draft]:
    """The finding about groups that are cut down to a part whose whole time can go; none without such groups."""
    indices = sorted(members[0], key=lambda i: (-workload.groups[i].kernel_ns, workload.op_ids[i]))
    if not indices:
        return []
    groups = [workload.groups[i] for i in indices]
    edit = _edit([(group, workload.activities.dur[group.activities]) for group in groups], members[1].activities)
    return [_with_evidence(workload, (indices, members[1]), edit, labels, own)]


def _edit(given: list[tuple[OpGroup, NDArray[np.int64]]], free: NDArray[np.bool_]) -> Edit:
    """What each activity of some groups gives, but those that a fusion finding holds."""
    members = np.concatenate([group.activities for group, _ in given])
    savings = np.concatenate([saved for _, saved in given])
    keep = free[members] & (savings > 0)
    return Edit(activities=members[keep], saved_ns=savings[keep])


def _saved(workload: RatedRun, index: int) -> NDArray[np.int64]:
    """What each activity of a group gives, ns: an instance brought to its target, or to nothing where none is known.

    The kernels of an instance give in proportion to their time.
    """
    group, rating = workload.groups[index], workload.ratings[index]
    dur = workload.activities.dur[group.activities]
    if isinstance(rating, Unrated):
        whole: NDArray[np.int64] = dur
        return whole
    gap = np.maximum(0, group.instance_busy - target_ns(workload, index))
    kernels = np.add.reduceat(dur, group.firsts)
    sizes = np.diff(np.r_[group.firsts, dur.size])
    share = np.repeat(gap / np.maximum(kernels, 1), sizes)
    given: NDArray[np.int64] = np.floor(dur * np.minimum(share, 1.0)).astype(np.int64)
    return given


def _claimed_ns(workload: RatedRun, indices: list[int], free: NDArray[np.bool_]) -> int:
    """Kernel time of the members whose gap a fusion finding holds, ns."""
    members = np.concatenate([workload.groups[i].activities for i in indices])
    return int(workload.activities.dur[members[~free[members]]].sum())


def _weight(workload: RatedRun, index: int) -> int:
    """What an op group adds to its finding: its gap to what a fix reaches, or its time where that is unknown."""
    group = workload.groups[index]
    if isinstance(workload.ratings[index], Unrated):
        return group.kernel_ns
    return int(np.maximum(0, group.instance_busy - target_ns(workload, index)).sum())
