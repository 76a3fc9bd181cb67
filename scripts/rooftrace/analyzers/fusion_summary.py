"""What fusion findings come to together, and what is no candidate."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from rooftrace.fusion.edits import claimed
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.fusion import Candidate, FusionResult


def summary_of(workload: RatedRun, result: FusionResult, below: int) -> dict[str, EvidenceValue]:
    """Totals over all findings, and why calls that look like candidates are none; ``below`` findings are not listed."""
    rated = result.candidates
    time = sum(int(candidate.time_ns.sum()) for candidate in rated)
    reasons: dict[str, list[int]] = defaultdict(lambda: [0, 0])
    for item in result.rejected:
        reasons[item.reason][0] += item.count
        reasons[item.reason][1] += item.time_ns
    return {
        "time_ms": ns_to_ms(time),
        "time_share_pct": pct(time, workload.span_ns),
        "saving_ms": ns_to_ms(sum(int(candidate.saving_ns.sum()) for candidate in rated)),
        "candidates_count": len(rated),
        "instances_count": sum(int(candidate.first.size) for candidate in rated),
        "kernels_count": int(sum(claimed(result, candidate) for candidate in rated)),
        "unfused_attention_ms": ns_to_ms(sum(int(c.time_ns.sum()) for c in rated if _is_attention(c))),
        "below_limit_count": below,
        "unrated_count": len(result.unrated) + len(result.named),
        "not_fused": "; ".join(
            f"{reason}: {count} calls, {ns_to_ms(spent)} ms"
            for reason, (count, spent) in sorted(reasons.items(), key=lambda item: (-item[1][1], item[0]))
        ),
    }


def _is_attention(candidate: Candidate) -> bool:
    return candidate.composition is not None and candidate.composition.identity.startswith("attention_")
