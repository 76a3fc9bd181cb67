"""The time that one kernel in place of several would take (METHODS: fusion).

The largest of external bytes over bandwidth, FLOPs over each ceiling and the latency floor, plus 15 % of the others,
which overlap with it but not wholly. An epilogue leaves the product's measured time as it is and adds the traffic of
its further operands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import platforms
from rooftrace.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooftrace.platforms import Platform

_SHARE_OF_OTHERS = 0.15


class Machine(Struct, frozen=True, kw_only=True):
    """What fused kernels run on."""

    platform: Platform
    latency_ns: int


class Work(Struct, frozen=True, kw_only=True):
    """What a fused kernel has to do: bytes of external tensors, FLOPs by (unit, precision)."""

    nbytes: int
    flops: Mapping[tuple[str, str], int]


class FusedTime(Struct, frozen=True, kw_only=True):
    """Estimated time of the fused kernel, its own floor (the largest term alone) and what bounds it."""

    ns: int
    floor_ns: int
    bound: str


def fused_time(machine: Machine, work: Work) -> FusedTime | str:
    """Time of a kernel of its own, or why it has none."""
    terms = _terms(machine, work)
    if isinstance(terms, str):
        return terms
    terms["latency"] = float(machine.latency_ns)
    return _combined(terms)


def epilogue_time(machine: Machine, work: Work) -> FusedTime | str:
    """What an epilogue adds to the kernel that it joins."""
    terms = _terms(machine, work)
    return terms if isinstance(terms, str) else _combined(terms)


def _terms(machine: Machine, work: Work) -> dict[str, float] | str:
    terms = {"memory": work.nbytes / platforms.bandwidth_ceiling(machine.platform).bytes_per_s * NS_PER_S}
    for (unit, precision), flops in sorted(work.flops.items()):
        ceiling = platforms.compute_ceiling(machine.platform, precision, unit)
        if ceiling is None:
            return f"no {precision} {unit} ceiling for this GPU"
        name = "compute" if unit == "matrix" else "vector"
        terms[name] = terms.get(name, 0.0) + flops / ceiling.flops_per_s * NS_PER_S
    return terms


def _combined(terms: Mapping[str, float]) -> FusedTime:
    bound = max(sorted(terms), key=lambda name: terms[name])
    largest, total = terms[bound], sum(terms.values())
    return FusedTime(
        ns=round(largest + _SHARE_OF_OTHERS * (total - largest)),
        floor_ns=round(largest),
        bound="compute" if bound == "vector" else bound,
    )
