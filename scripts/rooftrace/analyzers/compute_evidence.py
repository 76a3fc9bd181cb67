"""What compute findings say of their kernels: time, place, machine, and how far they are from their ceilings."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import platforms
from rooftrace.analyzers.compute_kernels import kernel_evidence
from rooftrace.analyzers.gemm_shapes import gemm_evidence
from rooftrace.analyzers.op_shapes import attention_evidence, convolution_evidence, lookup_evidence
from rooftrace.analyzers.parts import is_fill
from rooftrace.calltree import Link, module_class
from rooftrace.fusion.eager import is_causal_lm
from rooftrace.roofline import Rating, Unrated
from rooftrace.units import NS_PER_S, ns_to_ms, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue

_MAX_NAMES = 6
# Serving engines by a word that names of their ops and source files hold.
_ENGINES = (("vllm", "vLLM"), ("sglang", "SGLang"), ("sgl_kernel", "SGLang"))


class RunFacts(Struct, frozen=True, kw_only=True):
    """What is told of a run once and said of each finding, and the layout copies of each op group, ns."""

    evidence: dict[str, EvidenceValue]
    copies_ns: dict[int, int]

    def of(self, indices: Sequence[int]) -> dict[str, EvidenceValue]:
        """For a finding about some groups, which are rated without their layout copies."""
        apart = sum(self.copies_ns.get(index, 0) for index in indices)
        return {**self.evidence, **({"layout_apart_ms": ns_to_ms(apart)} if apart else {})}


def run_facts(workload: RatedRun, rest: RatedRun) -> RunFacts:
    """Whether the run trains, which model kind and engine it names; ``rest`` is it without layout copies."""
    context, names = workload.context, workload.trace.names
    engine = next((name for word, name in _ENGINES if any(word in text for text in names)), "")
    pairs = enumerate(zip(workload.groups, rest.groups, strict=True))
    return RunFacts(
        evidence={
            "training": context.has_backward or context.has_optimizer,
            "causal_lm": is_causal_lm(context),
            "engine": engine,
        },
        copies_ns={at: taken for at, (whole, left) in pairs if (taken := whole.kernel_ns - left.kernel_ns)},
    )


def library_of(workload: RatedRun, group: OpGroup) -> str:
    """Library of the kernel with most of a group's time."""
    return workload.activities.infos[group.kernel_codes[0]].library or "unknown"


def common_evidence(workload: RatedRun, indices: list[int], time: int) -> dict[str, EvidenceValue]:
    """What every finding about kernels tells; the first of the groups stands for all, ``time`` is theirs, ns."""
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
        "library": library_of(workload, top),
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
        **kernel_evidence(workload, groups),
        **layout_evidence(workload, groups, time),
        **gemm_evidence(top),
        **attention_evidence(top, workload.platform),
        **convolution_evidence(top),
        **lookup_evidence(groups, workload.platform),
    }


def layout_evidence(workload: RatedRun, groups: Sequence[OpGroup], time: int) -> dict[str, EvidenceValue]:
    """Time of kernels that move or clear data inside ops that are not copies themselves, and their names."""
    activities = workload.activities
    spent: Counter[str] = Counter()
    cleared = 0
    for group in groups:
        if group.category == "memory":
            continue
        for code in group.kernel_codes:
            info = activities.infos[code]
            if info.category == "memory":
                mine = activities.name[group.activities] == code
                took = int(activities.dur[group.activities][mine].sum())
                spent[info.short] += took
                cleared += took if is_fill(info) else 0
    names = sorted(spent, key=lambda name: (-spent[name], name))
    return {
        "extra_kernels": ", ".join(names[:_MAX_NAMES]),
        "layout_ms": ns_to_ms(spent.total() - cleared),
        "layout_pct": pct(spent.total() - cleared, time),
        "cleared_ms": ns_to_ms(cleared),
    }


def machine_evidence(workload: RatedRun) -> dict[str, EvidenceValue]:
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


def rated_evidence(workload: RatedRun, indices: list[int], ratings: list[Rating]) -> dict[str, EvidenceValue]:
    """How far groups are from their ceilings; ``ratings`` are theirs, in the same order."""
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
        "top_efficiency_pct": round(ratings[0].efficiency_pct, 2),
        "datasheet_efficiency_pct": min(pct(sheet, busy), pct(floor, busy)),
        "ceilings_kind": kinds.pop() if len(kinds) == 1 else "mixed",
        "achieved_tflops": round(flops / busy * NS_PER_S / 1e12, 3),
        "achieved_gbps": round(moved / busy * NS_PER_S / 1e9, 1),
    }


def unrated_evidence(workload: RatedRun, indices: list[int]) -> dict[str, EvidenceValue]:
    """The reason of most of the time, and how much of what the run has no rating for this is."""
    reasons: Counter[str] = Counter()
    for i in indices:
        rating = workload.ratings[i]
        if isinstance(rating, Unrated):
            reasons[rating.reason] += workload.groups[i].kernel_ns
    unrated = sum(
        group.kernel_ns
        for group, rating in zip(workload.groups, workload.ratings, strict=True)
        if isinstance(rating, Unrated) and group.link is not Link.CARRY_IN
    )
    spelled = workload.activities.infos[workload.groups[indices[0]].kernel_codes[0]].facts.precision
    return {
        "unmodelled": max(sorted(reasons), key=lambda reason: reasons[reason]),
        "unmodelled_share_pct": pct(reasons.total(), unrated),
        **({"precision": spelled} if spelled else {}),
    }


def _module_class(workload: RatedRun, group: OpGroup) -> str:
    """Class of the module with most of the group's time, without its instance number."""
    paths = workload.context.module_paths
    named = {path: ns for path, ns in group.module_ns.items() if paths[path]}
    if not named:
        return ""
    heaviest = max(sorted(named), key=lambda path: named[path])
    return module_class(paths[heaviest][-1])


def _is_in_attention(workload: RatedRun, group: OpGroup) -> bool:
    """Whether most of the group's time was launched inside a module that names attention."""
    paths = workload.context.module_paths
    inside = sum(ns for path, ns in group.module_ns.items() if any("attention" in name.lower() for name in paths[path]))
    return 2 * inside > group.kernel_ns


def source_of(workload: RatedRun, group: OpGroup) -> str:
    """User frame of the group's slowest instance."""
    frame = int(workload.context.frame[group.node]) if group.node >= 0 else -1
    return workload.trace.names[workload.tree.name[frame]] if frame >= 0 else ""


def _variation_pct(group: OpGroup) -> float:
    mean = float(group.instance_busy.mean())
    return round(100.0 * float(group.instance_busy.std()) / mean, 1) if mean else 0.0
