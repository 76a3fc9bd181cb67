"""Drawing the roofline: logarithmic axes, ceilings, points, and labels that do not overlap."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import units
from rooftrace.report.colours import colour_of
from rooftrace.report.shapes import FAINT, Circle, Drawing, Line, Rect, Text, shortened, text_width

if TYPE_CHECKING:
    from rooftrace.report.roofline import Point, Roofline

LEFT, TOP, PLOT_WIDTH, PLOT_HEIGHT = 90.0, 48.0, 600.0, 380.0
RIGHT, BOTTOM = LEFT + PLOT_WIDTH, TOP + PLOT_HEIGHT
_GROUND, _EDGE = "#f7f8f9", "#9aa1a9"
_SMALL = 11

Box = tuple[float, float, float, float]


class Axes(Struct, frozen=True, kw_only=True):
    """Decades shown on either axis, as powers of ten."""

    x_low: int
    x_high: int
    y_low: int
    y_high: int

    def x(self, intensity: float) -> float:
        """Place of an intensity, clamped to the plot."""
        share = (math.log10(intensity) - self.x_low) / (self.x_high - self.x_low)
        return LEFT + PLOT_WIDTH * min(1.0, max(0.0, share))

    def y(self, rate: float) -> float:
        """Place of a rate, clamped to the plot."""
        share = (math.log10(rate) - self.y_low) / (self.y_high - self.y_low)
        return TOP + PLOT_HEIGHT * (1.0 - min(1.0, max(0.0, share)))


def draw_roofline(roofline: Roofline) -> Drawing:
    """Axes, ceilings, points and a legend of the points."""
    axes = axes_of(roofline)
    drawing = Drawing()
    drawing.rects.append(Rect(x=LEFT, y=TOP, width=PLOT_WIDTH, height=PLOT_HEIGHT, fill=_GROUND, stroke=_EDGE))
    _draw_grid(drawing, axes)
    _draw_levels(drawing, axes, roofline)
    if roofline.bandwidth:
        _draw_slope(drawing, axes, roofline.bandwidth, max((rate for _, rate in roofline.ceilings), default=0.0))
    _draw_points(drawing, axes, roofline.points)
    _draw_legend(drawing, roofline.points)
    return drawing


def axes_of(roofline: Roofline) -> Axes:
    """Axes that hold all points, all ceilings and the ridge."""
    intensities = [point.intensity for point in roofline.points]
    rates = [point.rate for point in roofline.points] + [rate for _, rate in roofline.ceilings]
    if roofline.bandwidth:
        intensities += [rate / roofline.bandwidth for _, rate in roofline.ceilings]
    x_low, x_high = _decades(intensities)
    y_low, y_high = _decades(rates)
    return Axes(x_low=x_low, x_high=x_high, y_low=y_low, y_high=y_high)


def _decades(values: list[float]) -> tuple[int, int]:
    low = math.floor(math.log10(min(values)) - 0.15)
    high = math.ceil(math.log10(max(values)) + 0.15)
    return low, max(high, low + 2)


def _draw_grid(drawing: Drawing, axes: Axes) -> None:
    """A line and a number for each decade."""
    for power in range(axes.x_low, axes.x_high + 1):
        x = axes.x(10.0**power)
        drawing.lines.append(Line(x1=x, y1=TOP, x2=x, y2=BOTTOM, colour=FAINT, width=1))
        drawing.texts.append(Text(x=x, y=BOTTOM + 18, text=f"{10.0**power:g}", anchor="middle", size=_SMALL))
    for power in range(axes.y_low, axes.y_high + 1):
        y = axes.y(10.0**power)
        drawing.lines.append(Line(x1=LEFT, y1=y, x2=RIGHT, y2=y, colour=FAINT, width=1))
        rate = units.format_flops_per_s(10.0**power)
        drawing.texts.append(Text(x=LEFT - 8, y=y + 4, text=rate, anchor="end", size=_SMALL))
    drawing.texts.append(Text(x=LEFT + PLOT_WIDTH / 2, y=BOTTOM + 38, text="intensity", anchor="middle"))


def _draw_levels(drawing: Drawing, axes: Axes, roofline: Roofline) -> None:
    """A level for each precision, from the ridge on; texts are moved down until none touches the one above."""
    free_from = -math.inf
    for name, rate in roofline.ceilings:
        ridge = rate / roofline.bandwidth if roofline.bandwidth else 0.0
        y = axes.y(rate)
        drawing.lines.append(Line(x1=axes.x(max(ridge, 10.0**axes.x_low)), y1=y, x2=RIGHT, y2=y))
        text_y = max(y + 4, free_from)
        drawing.texts.append(Text(x=RIGHT + 8, y=text_y, text=shortened(name, 24), size=_SMALL))
        value = units.format_flops_per_s(rate)
        drawing.texts.append(Text(x=RIGHT + 8, y=text_y + 13, text=value, size=_SMALL))
        free_from = text_y + 30


def _draw_slope(drawing: Drawing, axes: Axes, bandwidth: float, top: float) -> None:
    """The bandwidth line inside the plot, up to the highest ceiling, and its key in the upper left corner."""
    low = max(10.0**axes.x_low, 10.0**axes.y_low / bandwidth)
    high = min((top or 10.0**axes.y_high) / bandwidth, 10.0**axes.x_high)
    start, end = (axes.x(low), axes.y(low * bandwidth)), (axes.x(high), axes.y(high * bandwidth))
    drawing.lines.append(Line(x1=start[0], y1=start[1], x2=end[0], y2=end[1], is_dashed=True))
    drawing.lines.append(Line(x1=LEFT + 8, y1=TOP + 12, x2=LEFT + 36, y2=TOP + 12, is_dashed=True))
    value = units.format_bytes_per_s(bandwidth)
    drawing.texts.append(Text(x=LEFT + 42, y=TOP + 16, text=value, size=_SMALL))


def _draw_points(drawing: Drawing, axes: Axes, points: list[Point]) -> None:
    """Points with area by kernel time; each id at the first free place beside its point, or nowhere."""
    heaviest = max(point.kernel_ns for point in points)
    places = [(axes.x(point.intensity), axes.y(point.rate)) for point in points]
    taken: list[Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in places]
    taken.append((LEFT, TOP, LEFT + 130, TOP + 22))
    for point, (x, y) in zip(points, places, strict=True):
        radius = 4 + 8 * math.sqrt(point.kernel_ns / heaviest) if heaviest else 4.0
        drawing.circles.append(Circle(x=x, y=y, radius=radius, fill=colour_of(point.category)))
        spot = _free_spot((x, y), radius, text_width(point.op_id, _SMALL), taken)
        if spot:
            drawing.texts.append(Text(x=spot[0], y=spot[1], text=point.op_id, size=_SMALL))


def _free_spot(at: tuple[float, float], radius: float, width: float, taken: list[Box]) -> tuple[float, float] | None:
    """Baseline start of a label right, left, above or below a point, its box then taken; None if all are."""
    x, y = at
    beside = ((radius + 3, 4.0), (-radius - 3 - width, 4.0))
    over_and_under = ((-width / 2, -radius - 4), (-width / 2, radius + 12))
    for dx, dy in (*beside, *over_and_under):
        box = (x + dx, y + dy - _SMALL + 1, x + dx + width, y + dy + 2)
        is_inside = box[0] >= LEFT and box[2] <= RIGHT and box[1] >= TOP and box[3] <= BOTTOM
        if is_inside and not any(_overlap(box, other) for other in taken):
            taken.append(box)
            return x + dx, y + dy
    return None


def _overlap(a: Box, b: Box) -> bool:
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def _draw_legend(drawing: Drawing, points: list[Point]) -> None:
    """Id, op, rate and efficiency of each point in two columns; sets the drawing's height."""
    top = BOTTOM + 66
    for index, point in enumerate(points):
        x, y = 24 + index % 2 * 432, top + index // 2 * 20
        drawing.circles.append(Circle(x=x + 6, y=y - 4, radius=6, fill=colour_of(point.category)))
        drawing.texts += [
            Text(x=x + 18, y=y, text=shortened(f"{point.op_id} {point.name}", 34)),
            Text(x=x + 346, y=y, text=units.format_flops_per_s(point.rate), anchor="end"),
            Text(x=x + 408, y=y, text=units.format_pct(point.efficiency_pct), anchor="end"),
        ]
    drawing.height = top + (len(points) - 1) // 2 * 20 + 20
