"""What products in float32 would take on faster matrix units: the score of such a finding is that of its remedy.

A float32 product that is close to the float32 ceiling is no good one where the GPU multiplies several times faster in
TF32, or in a 16-bit format. Only products that FLOPs bound gain so; which precision a model needs, a trace cannot tell.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import platforms
from rooftrace.roofline import Rating
from rooftrace.units import NS_PER_S, ns_to_ms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.analyzers.workload import RatedRun
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.platforms import Platform

_CATEGORIES = frozenset({"gemm", "convolution"})
_FLOAT = "float32"
# Formats by how little a program changes: TF32 is a setting and keeps the data as they are, the others are autocast and
# halve the bytes. Only what has a rate of its own and a higher one than float32 counts.
_FORMATS = (("tfloat32", 1.0), ("bfloat16", 0.5), ("float16", 0.5))


class Remedy(Struct, frozen=True, kw_only=True):
    """The precision that a product could have, and its floor there, of one instance."""

    precision: str
    floor_ns: int


def faster_precision(workload: RatedRun, index: int) -> Remedy | None:
    """The remedy of an op group; None where it is no float32 product bound by FLOPs, or no format is faster."""
    group, rating = workload.groups[index], workload.ratings[index]
    if workload.platform is None or group.category not in _CATEGORIES or not isinstance(rating, Rating):
        return None
    if rating.precision != _FLOAT or rating.bound != "compute" or rating.cost.unit != "matrix":
        return None
    return _remedy(rating, workload.platform)


def _remedy(rating: Rating, platform: Platform) -> Remedy | None:
    own = platforms.compute_ceiling(platform, _FLOAT, "matrix")
    memory_ns = rating.cost.bytes_total / platforms.bandwidth_ceiling(platform).bytes_per_s * NS_PER_S
    for precision, share in _FORMATS:
        found = platforms.compute_ceiling(platform, precision, "matrix")
        if own is not None and found is not None and found.flops_per_s > own.flops_per_s:
            compute_ns = rating.cost.flops / found.flops_per_s * NS_PER_S
            least = min(platforms.latency_floor_ns(platform), rating.floor_ns)
            return Remedy(precision=precision, floor_ns=round(max(compute_ns, share * memory_ns, least)))
    return None


def target_ns(workload: RatedRun, index: int) -> int:
    """What an instance of a rated group takes after the fix: its floor, or that of a faster precision."""
    rating, remedy = workload.ratings[index], faster_precision(workload, index)
    if not isinstance(rating, Rating):
        return 0
    return rating.floor_ns if remedy is None else min(remedy.floor_ns, rating.floor_ns)


def remedy_evidence(workload: RatedRun, indices: Sequence[int], saved_ns: int) -> dict[str, EvidenceValue]:
    """What a faster precision would give, if the first group has one; ``saved_ns`` is what the finding saves."""
    remedy = faster_precision(workload, indices[0])
    if remedy is None:
        return {}
    floor = sum(target_ns(workload, index) * workload.groups[index].count for index in indices)
    return {
        "gap_ms": ns_to_ms(saved_ns),
        "remedy_precision": remedy.precision,
        "remedy_floor_ms": ns_to_ms(floor),
    }
