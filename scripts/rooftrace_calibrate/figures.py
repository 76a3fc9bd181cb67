"""What a measurement gives, and which of it is believed."""

from __future__ import annotations

import math
from dataclasses import dataclass

from rooftrace_calibrate.timing import MOST_SPREAD_PCT, Sample

# A boost clock above the datasheet's explains that much of a rate; nothing explains a faster memory or link.
MOST_ABOVE_DATASHEET = 1.05


@dataclass(frozen=True, kw_only=True)
class Figure:
    """A measured value in ``unit``, with its statistic and the spread of its batches."""

    value: float
    unit: str
    statistic: str
    spread_pct: float


@dataclass(frozen=True, kw_only=True)
class NoFigure:
    """Why there is none."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class Limit:
    """What a figure must not exceed: a datasheet's value times a margin."""

    value: float
    margin: float
    of: str


def rate(sample: Sample, amount: float, unit: str, what: str) -> Figure | NoFigure:
    """The figure of a sample in which one call does ``amount`` of work, in 10^12 FLOP or 10^9 bytes."""
    if not (math.isfinite(sample.seconds) and sample.seconds > 0):
        return NoFigure(reason="the clock gave no time for it")
    return Figure(
        value=amount / sample.seconds,
        unit=unit,
        statistic=f"{what}; {sample.method}",
        spread_pct=sample.spread_pct,
    )


def believed(figure: Figure | NoFigure, limit: Limit | None) -> Figure | NoFigure:
    """The figure, or why it is refused."""
    if isinstance(figure, NoFigure):
        return figure
    if not math.isfinite(figure.value) or figure.value <= 0:
        return NoFigure(reason=f"{figure.value:g} {figure.unit} is no measurement")
    if figure.spread_pct > MOST_SPREAD_PCT:
        return NoFigure(
            reason=f"its batches spread by {figure.spread_pct:g} %, more than {MOST_SPREAD_PCT:g} %: "
            "something else uses this device"
        )
    if limit is not None and figure.value > limit.value * limit.margin:
        most = f"{limit.margin:g} times " if limit.margin != 1 else ""
        return NoFigure(
            reason=f"{figure.value:.4g} {figure.unit} is more than {most}the {limit.value:g} of {limit.of}'s datasheet"
        )
    return figure
