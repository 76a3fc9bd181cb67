"""Drawing one instance of a fusion finding: its kernels in time, their launches, and the fused estimate, on one scale.

The host's clock runs ahead of the GPU's work: launches keep their distances, but are moved so that the first one is
where the first kernel is. A bar that stands for several kernels is as high as the share of its time that they run.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace import units
from rooftrace.report.colours import colour_of
from rooftrace.report.shapes import FAINT, INK, PAPER, Drawing, Line, Rect, Text, shortened, text_width

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.instance import Instance, InstanceBar
    from rooftrace.contracts.report import Finding
    from rooftrace.report.view import View

LEFT, WIDTH = 120.0, 630.0
PLOTS_SHOWN = 8
# Shares of the gap that are closed for the high, the mid and the low score (METHODS: impact).
_CLOSED = (1.0, 0.875, 0.75)
_KERNELS, _LAUNCHES, _FUSED, _AXIS = 58.0, 108.0, 150.0, 204.0
_HIGH, _FLAT = 28.0, 16.0
_SMALL = 11
_TICKS = 8
_LISTED = 12
_NAME_LEFT = 90.0
_NAME_GLYPHS = 88


class Estimate(Struct, frozen=True, kw_only=True):
    """Time of the fused kernel with 75, 87.5 and 100 % of the gap closed; ns."""

    slow: float
    mid: float
    fast: float


class Scale(Struct, frozen=True, kw_only=True):
    """Nanoseconds as pixels."""

    whole: float

    def x(self, time: float) -> float:
        """Place of a time since the instance began."""
        return LEFT + WIDTH * time / self.whole

    def width(self, time: float) -> float:
        """Length of a duration; a pixel where it would be less."""
        return max(1.0, WIDTH * time / self.whole)


class Entry(Struct, frozen=True, kw_only=True):
    """A line of the legend: a kernel, or kernels of one name, and what they take."""

    number: str
    name: str
    category: str
    count: int
    time: int


def drawn_findings(view: View) -> list[Finding]:
    """Fusion findings that get a plot: the first in rank order."""
    return [finding for finding in view.of_tier("fusion") if finding.id in view.instances][:PLOTS_SHOWN]


def plot_path(finding: str) -> str:
    """Where a finding's plot lies in the run."""
    return f"plots/{finding}.svg"


def estimate_of(instance: Instance) -> Estimate | None:
    """What fusing leaves of the replaced kernels' time; nothing is saved where they are as fast as that."""
    if instance.fused_ns is None:
        return None
    gap = max(0, instance.replaced_ns - instance.fused_ns)
    fast, mid, slow = (instance.replaced_ns - closed * gap for closed in _CLOSED)
    return Estimate(slow=slow, mid=mid, fast=fast)


def first_launch(instance: Instance) -> int | None:
    """When the host began the first launch, from the start of the instance on; None where none is recorded."""
    return min((bar.launch_start_ns for bar in instance.bars if bar.launch_start_ns is not None), default=None)


def kernel_count(instance: Instance) -> int:
    """Kernels of the instance, those that stay included."""
    return sum(bar.kernels for bar in instance.bars)


def draw_instance(instance: Instance) -> Drawing:
    """Three rows over a time axis, and a legend of the kernels."""
    drawing = Drawing()
    scale = _scale(instance)
    _draw_axis(drawing, scale)
    entries = legend_of(instance)
    _draw_kernels(drawing, scale, instance, entries)
    _draw_launches(drawing, scale, instance)
    _draw_estimate(drawing, scale, instance)
    _draw_legend(drawing, entries)
    return drawing


def _scale(instance: Instance) -> Scale:
    """All three rows fit."""
    begin, estimate = first_launch(instance) or 0, estimate_of(instance)
    ends = [bar.start_ns + bar.dur_ns for bar in instance.bars]
    ends += [
        bar.launch_start_ns + (bar.launch_dur_ns or 0) - begin
        for bar in instance.bars
        if bar.launch_start_ns is not None
    ]
    fused = estimate.slow + _staying(instance) if estimate else 0.0
    return Scale(whole=max(1.0, fused, *map(float, ends)))


def _staying(instance: Instance) -> int:
    return sum(bar.busy_ns for bar in instance.bars if bar.role == "stays")


def _draw_axis(drawing: Drawing, scale: Scale) -> None:
    """Lines and numbers at round times, in microseconds."""
    step = _round_step(scale.whole / units.NS_PER_US / _TICKS)
    count = int(scale.whole / units.NS_PER_US / step + 1e-9)
    for index in range(count + 1):
        time = index * step
        x = scale.x(time * units.NS_PER_US)
        # A rectangle and no line: lines are drawn over the bars.
        height = _AXIS - _KERNELS - 8
        drawing.rects.append(Rect(x=x - 0.5, y=_KERNELS - 6, width=1, height=height, fill=FAINT, stroke="none"))
        drawing.texts.append(Text(x=x, y=_AXIS, text=f"{time:,.10g}", anchor="middle", size=_SMALL))
    drawing.texts.append(Text(x=LEFT - 28, y=_AXIS, text="@axis", anchor="end", size=_SMALL))


def _round_step(least: float) -> float:
    """The next number of the kind 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(power * factor for factor in (1, 2, 5, 10) if power * factor >= least * (1 - 1e-9))


def _draw_kernels(drawing: Drawing, scale: Scale, instance: Instance, entries: Sequence[Entry]) -> None:
    """Bars at their places, with their duration where it fits, and above with the number that the legend has."""
    _label(drawing, _KERNELS, "@kernels", [units.format_ns(sum(bar.busy_ns for bar in instance.bars))])
    free = 0.0
    numbered = all(entry.number for entry in entries)
    for at, bar in enumerate(instance.bars):
        x, width = scale.x(bar.start_ns), scale.width(bar.dur_ns)
        share = min(1.0, bar.busy_ns / bar.dur_ns) if bar.dur_ns else 1.0
        height = _HIGH * share
        fill = _fill(bar)
        name = f"{bar.name}, {units.format_ns(bar.busy_ns)}"
        top = _KERNELS + _HIGH - height
        drawing.rects.append(Rect(x=x, y=top, width=width, height=height, fill=fill, name=name, stroke=_edge(width)))
        _write_inside(drawing, (x, _KERNELS, width), bar.busy_ns, is_pale=bar.role == "stays")
        if numbered and x + width / 2 - text_width(entries[at].number, _SMALL) / 2 >= free:
            number = entries[at].number
            drawing.texts.append(Text(x=x + width / 2, y=_KERNELS - 8, text=number, anchor="middle", size=_SMALL))
            free = x + width / 2 + text_width(number, _SMALL) / 2 + 2


def _fill(bar: InstanceBar) -> str:
    return colour_of("idle") if bar.role == "stays" else colour_of(bar.category)


def _edge(width: float) -> str:
    """Paper between bars; none round a bar that it would hide."""
    return PAPER if width > 3 else "none"


def _write_inside(drawing: Drawing, box: tuple[float, float, float], time: float, *, is_pale: bool) -> None:
    x, y, width = box
    text = units.format_ns(time)
    if text_width(text, _SMALL) + 6 <= width:
        ink = INK if is_pale else PAPER
        middle = y + _HIGH / 2 + 4
        drawing.texts.append(Text(x=x + width / 2, y=middle, text=text, anchor="middle", fill=ink, size=_SMALL))


def _draw_launches(drawing: Drawing, scale: Scale, instance: Instance) -> None:
    """Launches with their distances; those that fall away in the host's colour."""
    begin = first_launch(instance)
    launched = [bar for bar in instance.bars if bar.launch_start_ns is not None]
    gone = sum(bar.launch_busy_ns or 0 for bar in launched if not bar.launch_stays)
    _label(drawing, _LAUNCHES - 6, "@launches", [units.format_ns(gone)] if launched else [])
    if begin is None:
        drawing.texts.append(Text(x=LEFT + 4, y=_LAUNCHES + 12, text="@no_launches", size=_SMALL))
        return
    for bar in launched:
        x = scale.x((bar.launch_start_ns or 0) - begin)
        width = scale.width(bar.launch_dur_ns or 0)
        share = min(1.0, (bar.launch_busy_ns or 0) / bar.launch_dur_ns) if bar.launch_dur_ns else 1.0
        fill = colour_of("idle" if bar.launch_stays else "host")
        top = _LAUNCHES + _FLAT * (1 - share)
        name = "@launch_stays" if bar.launch_stays else "@launch_goes"
        height = _FLAT * share
        drawing.rects.append(Rect(x=x, y=top, width=width, height=height, fill=fill, name=name, stroke=_edge(width)))
    drawing.texts.append(Text(x=LEFT + 4, y=_LAUNCHES + _FLAT + 13, text="@shift", size=_SMALL))


def _draw_estimate(drawing: Drawing, scale: Scale, instance: Instance) -> None:
    """What stays, then the fused kernel: as long as its mid estimate, with whiskers to the low and the high one."""
    estimate = estimate_of(instance)
    if estimate is None:
        _label(drawing, _FUSED, "@fused", [])
        drawing.texts.append(Text(x=LEFT + 4, y=_FUSED + 18, text="@no_estimate", size=_SMALL))
        return
    stays = _staying(instance)
    if stays:
        width = scale.width(stays)
        fill = colour_of("idle")
        drawing.rects.append(Rect(x=LEFT, y=_FUSED, width=width, height=_HIGH, fill=fill, name="@stays"))
        _write_inside(drawing, (LEFT, _FUSED, width), stays, is_pale=True)
    begin, width = scale.x(stays), scale.width(estimate.mid)
    drawing.rects.append(
        Rect(x=begin, y=_FUSED, width=width, height=_HIGH, fill=colour_of("fused"), name="@fused", stroke=_edge(width))
    )
    fast, slow, middle = scale.x(stays + estimate.fast), scale.x(stays + estimate.slow), _FUSED + _HIGH / 2
    drawing.lines.append(Line(x1=fast, y1=middle, x2=slow, y2=middle))
    for x in (fast, slow):
        drawing.lines.append(Line(x1=x, y1=middle - 6, x2=x, y2=middle + 6))
    bounds = f"{units.format_ns(estimate.fast)} - {units.format_ns(estimate.slow)}"
    _label(drawing, _FUSED, "@fused", [units.format_ns(estimate.mid), bounds])


def _label(drawing: Drawing, y: float, name: str, values: Sequence[str]) -> None:
    """The row's name at its left, its numbers at its right."""
    drawing.texts.append(Text(x=LEFT - 10, y=y + 18, text=name, anchor="end"))
    first = y + (18 if len(values) < 2 else 11)
    for at, value in enumerate(values):
        drawing.texts.append(Text(x=LEFT + WIDTH + 12, y=first + 15 * at, text=value, size=12 if at == 0 else _SMALL))


def legend_of(instance: Instance) -> list[Entry]:
    """The bars one by one where they are few, else by name, the most time first and the rest in one line."""
    bars = instance.bars
    if len(bars) <= _LISTED:
        return [
            Entry(number=str(at), name=bar.name, category=_kind(bar), count=bar.kernels, time=bar.busy_ns)
            for at, bar in enumerate(bars, start=1)
        ]
    merged: dict[tuple[str, str], list[int]] = {}
    for bar in bars:
        entry = merged.setdefault((bar.name, _kind(bar)), [0, 0])
        entry[0] += bar.kernels
        entry[1] += bar.busy_ns
    ranked = sorted(merged.items(), key=lambda item: (-item[1][1], item[0]))
    shown = ranked if len(ranked) <= _LISTED else ranked[: _LISTED - 1]
    entries = [
        Entry(number="", name=name, category=category, count=count, time=time)
        for (name, category), (count, time) in shown
    ]
    rest = ranked[len(shown) :]
    if rest:
        count, time = (sum(item[1][at] for item in rest) for at in (0, 1))
        entries.append(Entry(number="", name="@others", category="", count=count, time=time))
    return entries


def _kind(bar: InstanceBar) -> str:
    return "idle" if bar.role == "stays" else bar.category


def _draw_legend(drawing: Drawing, entries: Sequence[Entry]) -> None:
    """Number or count, name and time of each, a line an entry; sets the drawing's height."""
    top = _AXIS + 30
    for index, entry in enumerate(entries):
        x, y = 24.0, top + index * 20
        drawing.rects.append(Rect(x=x, y=y - 10, width=12, height=12, fill=colour_of(entry.category)))
        drawing.texts.append(Text(x=LEFT + WIDTH + 12, y=y, text=units.format_ns(entry.time)))
        count = f"{entry.count} x" if entry.count > 1 else ""
        drawing.texts.append(Text(x=_NAME_LEFT - 10, y=y, text=entry.number or count, anchor="end"))
        drawing.texts.append(Text(x=_NAME_LEFT, y=y, text=shortened(entry.name, _NAME_GLYPHS)))
    drawing.height = top + len(entries) * 20
