"""Sets the measured time of an op group against the least time its platform allows (METHODS: ceilings and efficiency).

t_floor = max(FLOPs / compute ceiling, bytes / bandwidth, latency floor); the largest term names the bound.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace import platforms
from rooftrace.calltree import INFERRED, Link
from rooftrace.contracts.base import CREDIBLE_PCT, Bound
from rooftrace.opmodels import Cost, Unmodelled
from rooftrace.opmodels.op import MALFORMED
from rooftrace.units import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, OpGroup
    from rooftrace.platforms import Platform

_TENSOR_FLOAT = "tfloat32"
_TOO_MUCH = 1 << 63  # no run of such an op would have ended


class Rating(Struct, frozen=True, kw_only=True):
    """An op group against its ceilings. Times are of one instance, ``gap_ns`` of all."""

    cost: Cost
    precision: str
    bound: Bound
    floor_ns: int
    datasheet_floor_ns: int
    efficiency_pct: float
    datasheet_efficiency_pct: float
    gap_ns: int
    ceilings_kind: str
    flag: str | None


class Unrated(Struct, frozen=True, kw_only=True):
    """Why there is no rating; the cost where at least that is known."""

    reason: str
    cost: Cost | None = None
    flag: str | None = None


def latency_floor(platform: Platform, activities: Activities) -> int:
    """The platform's, or the trace's shortest kernel where that is less, ns."""
    durations = activities.dur[(activities.work == 0) & (activities.dur > 0)]
    shortest = int(durations.min()) if durations.size else platforms.latency_floor_ns(platform)
    return min(platforms.latency_floor_ns(platform), shortest)


def cost_of_group(group: OpGroup) -> Cost | Unmodelled:
    """Cost of one instance, or why it has none."""
    if group.cost is None or group.graph:
        return Unmodelled(reason=_why_no_inputs(group))
    if isinstance(group.cost, Cost) and max(group.cost.flops, group.cost.bytes_total) >= _TOO_MUCH:
        return Unmodelled(reason=MALFORMED)
    return group.cost


def is_inferred(cost: Cost) -> bool:
    """Whether something of the call is not its own record."""
    return any(note.startswith(INFERRED) for note in cost.notes)


def _why_no_inputs(group: OpGroup) -> str:
    if group.link is Link.LOST:
        return "launch not recorded"
    if group.link is Link.CARRY_IN:
        return "launched before the recorded window"
    if group.graph:
        return "graph replay: no op and no shapes recorded"
    return "launched outside any op" if group.node < 0 else "no input shapes recorded"


def rate(group: OpGroup, activities: Activities, platform: Platform | None, latency_floor_ns: int) -> Rating | Unrated:
    """Rating of a group on a platform."""
    cost = cost_of_group(group)
    if isinstance(cost, Unmodelled):
        return Unrated(reason=cost.reason)
    if platform is None:
        return Unrated(reason="GPU unknown: no ceilings", cost=cost)
    precision = _precision(group, activities, cost)
    if precision is None:
        return Unrated(reason="precision unknown", cost=cost)
    return _rate_cost(group.instance_busy, cost, precision, (platform, latency_floor_ns))


def _precision(group: OpGroup, activities: Activities, cost: Cost) -> str | None:
    """Precision whose ceiling applies: TF32 where an fp32 matrix kernel's name shows it."""
    if cost.unit == "matrix" and cost.precision == "float32":
        spelled = {activities.infos[code].facts.precision for code in group.kernel_codes}
        if _TENSOR_FLOAT in spelled:
            return _TENSOR_FLOAT
    return cost.precision or ("float32" if cost.flops == 0 else None)


def _rate_cost(busy: NDArray[np.int64], cost: Cost, precision: str, machine: tuple[Platform, int]) -> Rating | Unrated:
    platform, latency_ns = machine
    bandwidth = platforms.bandwidth_ceiling(platform)
    compute = platforms.compute_ceiling(platform, precision, cost.unit) if cost.flops else None
    if cost.flops and compute is None:
        return Unrated(reason=f"no {precision} {cost.unit} ceiling for this GPU", cost=cost)
    compute_ns = cost.flops / compute.flops_per_s * NS_PER_S if compute else 0.0
    memory_ns = cost.bytes_total / bandwidth.bytes_per_s * NS_PER_S
    floor, bound = _largest(compute_ns, memory_ns, latency_ns)
    sheet_compute = cost.flops / compute.datasheet * NS_PER_S if compute else 0.0
    sheet, _ = _largest(sheet_compute, cost.bytes_total / bandwidth.datasheet * NS_PER_S, latency_ns)
    total = int(busy.sum())
    if total <= 0:
        return Unrated(reason="no duration recorded", cost=cost)
    efficiency = 100.0 * floor * busy.size / total
    if bound == "latency":
        efficiency = min(efficiency, 100.0)
    sheet_efficiency = 100.0 * sheet * busy.size / total
    explained = bound == "memory" and _fits_cache(cost, platform)
    # What is inferred may be wrong itself: only the record's own numbers can show a ceiling to be too low.
    limit = efficiency if is_inferred(cost) else sheet_efficiency
    flag = _flag(efficiency, limit, cache_resident=explained)
    if flag == "inconsistent":
        return Unrated(reason="inconsistent: faster than its ceiling allows", cost=cost, flag=flag)
    kinds = {bandwidth.kind} | ({compute.kind} if compute else set())
    return Rating(
        cost=cost,
        precision=precision,
        bound=bound,
        floor_ns=round(floor),
        datasheet_floor_ns=round(sheet),
        efficiency_pct=round(efficiency, 2),
        datasheet_efficiency_pct=round(min(sheet_efficiency, efficiency), 2),
        gap_ns=int(np.maximum(0, busy - round(floor)).sum()),
        ceilings_kind=kinds.pop() if len(kinds) == 1 else "mixed",
        flag=flag,
    )


def _largest(compute_ns: float, memory_ns: float, latency_ns: float) -> tuple[float, Bound]:
    terms: list[tuple[float, Bound]] = [
        (compute_ns, "compute"),
        (memory_ns, "memory"),
        (latency_ns, "latency"),
    ]
    return max(terms, key=lambda term: term[0])


def _flag(efficiency_pct: float, sheet_efficiency_pct: float, *, cache_resident: bool) -> str | None:
    """What explains an incredible efficiency.

    Operands in a cache can beat the memory, though not the compute units. A published measurement can be beaten by
    newer software up to the datasheet's figure. Beyond that the model, the dtype or the ceiling is wrong.
    """
    if efficiency_pct <= CREDIBLE_PCT:
        return None
    if cache_resident:
        return "cache-resident"
    return "above-achievable" if sheet_efficiency_pct <= CREDIBLE_PCT else "inconsistent"


def _fits_cache(cost: Cost, platform: Platform) -> bool:
    cache = platforms.last_level_cache_bytes(platform)
    return cache is not None and cost.bytes_total <= cache
