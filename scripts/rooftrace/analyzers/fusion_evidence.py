"""What is known of a fusion finding's instances and of the kernel that could replace them, as evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.fusion import Candidate, FusionInputs, FusionResult, describe
from rooftrace.fusion.today import Today, caveats
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.contracts.base import EvidenceValue


def reached_evidence(group: Sequence[Candidate], reached: Sequence[Today], least: int) -> dict[str, EvidenceValue]:
    """What the estimate assumes: the fused kernel, beside what the calls of the first candidate reach today."""
    slow = sum(t.slow_ns * c.first.size for c, t in zip(group, reached, strict=True))
    return {
        "fused_us": ns_to_us(group[0].fused_ns),
        "longest_us": ns_to_us(reached[0].longest_ns),
        "best_member_pct": round(100.0 * reached[0].best_share, 2),
        "slow_fused_ms": ns_to_ms(slow),
        "least_saving_ms": ns_to_ms(least),
    }


def _notes(group: Sequence[Candidate]) -> list[str]:
    return list(dict.fromkeys(note for candidate in group for note in candidate.notes))


def example_evidence(
    workload: RatedRun, run: FusionInputs, result: FusionResult, group: Sequence[Candidate]
) -> dict[str, EvidenceValue]:
    """What is known of every finding with recorded calls; of the largest group where they differ."""
    top, calls = group[0], result.calls
    matrices = [result.activities(candidate) for candidate in group]
    instances = sum(int(candidate.first.size) for candidate in group)
    kernels = sum(int(matrix.size) for matrix in matrices)
    time = sum(int(candidate.time_ns.sum()) for candidate in group)
    kept = sum(candidate.kept_launches * int(candidate.first.size) for candidate in group)
    composition = top.composition
    optimizer = describe.optimizer(run, calls, top)
    early = sum(result.before_window.get(candidate.example, 0) for candidate in group)
    return {
        **machine_evidence(workload),
        "pattern": composition.identity if composition else "novel",
        "pattern_name": composition.file.name if composition else "a chain of kernels",
        "instances_count": instances,
        "kinds_count": len(group),
        "shown_count": int(top.first.size),
        "before_window_count": early,
        "kernels_per_instance": round(kernels / instances, 2),
        "launches_removed_count": kernels - kept,
        "time_ms": ns_to_ms(time),
        "time_share_pct": pct(time, workload.span_ns),
        "modules": ", ".join(dict.fromkeys(candidate.scope for candidate in group)),
        "op_chain": describe.op_chain(top),
        "kernel_chain": describe.kernel_chain(run, calls, top),
        "shapes": describe.shapes(top),
        "source": describe.source(run, calls, top),
        "phase": describe.phase(run, calls, top),
        "kept_op": top.calls[0].name if top.anchor else "",
        "epilogue": describe.epilogue(top),
        "optimizer": optimizer,
        "one_move": "",
        "graph_replayed": False,
        "notes": "; ".join([*_notes(group), *caveats(group)]),
        "confidence": describe.confidence(run, calls, top),
        "replacement": describe.replacements(
            composition,
            workload.platform.vendor if workload.platform else "",
            [*(call.name for call in top.calls), *(candidate.scope for candidate in group)],
            optimizer,
        ),
    }


def machine_evidence(workload: RatedRun) -> dict[str, EvidenceValue]:
    """The GPU, by name and vendor; "" where it is not known."""
    platform = workload.platform
    return {
        "gpu_name": platform.product if platform else "",
        "gpu_vendor": platform.vendor if platform else "",
    }
