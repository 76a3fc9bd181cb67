"""The points and ceilings of the roofline plot, taken from the rated op groups alone.

A floor is FLOPs over a compute ceiling or bytes over a bandwidth, so a rated op group names the ceiling it was
set against; a run needs no platform file to be drawn.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import units

if TYPE_CHECKING:
    from rooftrace.contracts.report import OpGroup, ReportFile

POINTS_SHOWN = 12


class Point(Struct, frozen=True, kw_only=True):
    """A rated op group: FLOPs per byte and achieved FLOP/s of its mean instance."""

    op_id: str
    name: str
    category: str
    intensity: float
    rate: float
    kernel_ns: int
    efficiency_pct: float


class Roofline(Struct, frozen=True, kw_only=True):
    """Points, compute ceilings by precision (FLOP/s) and the memory bandwidth (byte/s)."""

    points: list[Point]
    ceilings: list[tuple[str, float]]
    bandwidth: float | None


def roofline(report: ReportFile) -> Roofline | None:
    """What can be drawn; None without a platform, without rated op groups or without any ceiling."""
    if report.platform is None:
        return None
    rated = [op for op in report.ops if op.flops and op.bytes and op.floor_ns and op.busy_ns and op.efficiency_pct]
    points = [_point(op) for op in rated[:POINTS_SHOWN]]
    ceilings = _ceilings(rated)
    rates = [
        op.bytes * units.NS_PER_S / op.floor_ns for op in rated if op.bound == "memory" and op.bytes and op.floor_ns
    ]
    if not points or not (ceilings or rates):
        return None
    return Roofline(points=points, ceilings=ceilings, bandwidth=max(rates, default=None))


def _point(op: OpGroup) -> Point:
    flops, moved = op.flops or 0, op.bytes or 1
    return Point(
        op_id=op.id,
        name=op.name,
        category=op.category,
        intensity=flops / moved,
        rate=flops * op.count * units.NS_PER_S / op.busy_ns,
        kernel_ns=op.kernel_ns,
        efficiency_pct=op.efficiency_pct or 0.0,
    )


def _ceilings(rated: list[OpGroup]) -> list[tuple[str, float]]:
    """Highest rate that a compute-bound floor implies, by precision, highest first."""
    highest: dict[str, float] = {}
    for op in rated:
        if op.bound == "compute" and op.flops and op.floor_ns:
            name = op.precision or "unknown precision"
            highest[name] = max(highest.get(name, 0.0), op.flops * units.NS_PER_S / op.floor_ns)
    return sorted(highest.items(), key=lambda item: (-item[1], item[0]))
