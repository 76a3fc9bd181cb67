"""Plots as SVG: the time ledger, its steps, the roofline of the heaviest op groups, instances of fusion findings.

Coordinates are computed here, in ``axes`` and in ``timeline``; words are in the templates. Nothing depends on a clock,
a font or a random id.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from rooftrace import units
from rooftrace.report.axes import draw_roofline
from rooftrace.report.colours import colour_of
from rooftrace.report.environment import template_environment
from rooftrace.report.markdown import one_line
from rooftrace.report.shapes import INK, PAPER, Drawing, Rect, Text, shortened, text_width
from rooftrace.report.timeline import draw_instance, drawn_findings, first_launch, kernel_count, plot_path
from rooftrace.report.view import PARTS, by_time, part_ns

if TYPE_CHECKING:
    from jinja2 import Environment

    from rooftrace.contracts.instance import Instance
    from rooftrace.contracts.ledger import LedgerParts
    from rooftrace.contracts.report import CriticalPath
    from rooftrace.report.view import StepFacts, View

WIDTH = 900
BAR_LEFT = 110.0
BAR_WIDTH = 766.0
# Step bars leave room for the step's time at their right.
STEP_BAR_WIDTH = 680.0
DEVICES_SHOWN = 8
STEPS_SHOWN = 40
_XML_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")

Items = list[tuple[str, int]]


def draw_plots(view: View) -> dict[str, str]:
    """SVG texts by path; none for a trace without GPU activity."""
    if not view.report.ledger.devices:
        return {}
    plots = {"plots/ledger.svg": _ledger_plot(view)}
    if view.report.replay and view.report.replay.paths:
        plots["plots/critical_path.svg"] = _path_plot(view.report.replay.paths)
    if view.steps:
        plots["plots/steps.svg"] = _steps_plot(view.steps)
    if view.roofline:
        drawing = draw_roofline(view.roofline)
        plots["plots/roofline.svg"] = _render("roofline", drawing)
    for finding in drawn_findings(view):
        plots[plot_path(finding.id)] = _instance_plot(finding.id, view.instances[finding.id])
    return plots


def _instance_plot(finding: str, instance: Instance) -> str:
    begin = first_launch(instance)
    return _render(
        "instance",
        draw_instance(instance),
        id=finding,
        of=units.format_count(instance.of),
        is_median=instance.of > 1,
        device=instance.device,
        stream=instance.stream,
        kernels=kernel_count(instance),
        bars=len(instance.bars),
        has_launches=begin is not None,
        is_earlier=(begin or 0) <= 0,
        shift=units.format_ns(abs(begin or 0)),
    )


def _render(name: str, drawing: Drawing, **values: object) -> str:
    return environment().get_template(f"plots/{name}.svg.j2").render(width=WIDTH, drawing=drawing, **values)


@lru_cache(maxsize=1)
def environment() -> Environment:
    """Templates for SVG: every string is escaped for XML."""
    return template_environment(_xml_text, autoescape=True)


def _xml_text(value: object) -> object:
    """Numbers with at most two decimals; strings on one line without characters that XML forbids."""
    if isinstance(value, float):
        return f"{value:.2f}".rstrip("0").rstrip(".")
    return _XML_CONTROL.sub("", one_line(value)) if type(value) is str else value


def _ledger_plot(view: View) -> str:
    drawing = Drawing()
    y = 44.0
    devices = view.report.ledger.devices
    for device in devices[:DEVICES_SHOWN]:
        parts = _parts(device)
        categories = [*by_time(device.compute_by_category), *parts[1:]]
        drawing.texts.append(Text(x=BAR_LEFT - 10, y=y + 17, text=f"GPU {device.device}", anchor="end"))
        _draw_bar(drawing, y, 26, parts, device.span_ns)
        _draw_bar(drawing, y + 30, 18, categories, device.span_ns)
        y += 62
    totals = view.totals
    items = [*by_time(totals.compute_by_category), *((part, totals.parts[part]) for part in PARTS[1:])]
    _draw_legend(drawing, y + 14, [item for item in items if item[1]], totals.span_ns)
    return _render(
        "ledger",
        drawing,
        span=units.format_ns(totals.span_ns),
        devices=len(devices),
        left_out=max(0, len(devices) - DEVICES_SHOWN),
    )


def _steps_plot(facts: StepFacts) -> str:
    drawing = Drawing()
    rows = facts.rows[:STEPS_SHOWN]
    longest = max(1, *(row.span_ns for row in rows))
    height = 18 if len(rows) <= 20 else 12
    y = 44.0
    for row in rows:
        middle = y + height / 2 + 4
        drawing.texts.append(Text(x=BAR_LEFT - 10, y=middle, text=shortened(row.name, 14), anchor="end"))
        end = _draw_bar(drawing, y, height, _parts(row), longest, full_width=STEP_BAR_WIDTH)
        drawing.texts.append(Text(x=end + 6, y=middle, text=units.format_ns(row.span_ns)))
        y += height + 5
    sums = [(part, sum(part_ns(row, part) for row in rows)) for part in PARTS]
    _draw_legend(drawing, y + 20, [item for item in sums if item[1]], sum(time for _, time in sums))
    return _render("steps", drawing, steps=len(rows), left_out=len(facts.rows) - len(rows))


def _path_plot(paths: list[CriticalPath]) -> str:
    """Per device a strip in the order of time and, below it, the shares of each resource."""
    drawing = Drawing()
    y = 44.0
    for path in paths[:DEVICES_SHOWN]:
        drawing.texts.append(Text(x=BAR_LEFT - 10, y=y + 17, text=f"GPU {path.device}", anchor="end"))
        runs = [(resource, int(count)) for resource, _, count in (run.partition(":") for run in path.strip)]
        x, whole = BAR_LEFT, sum(count for _, count in runs)
        for resource, count in runs:
            width = BAR_WIDTH * count / whole
            drawing.rects.append(Rect(x=x, y=y, width=width, height=26, fill=colour_of(resource), name=resource))
            x += width
        _draw_bar(drawing, y + 30, 18, by_time(_spent([path])), path.span_ns)
        y += 62
    items = [item for item in by_time(_spent(paths)) if item[1]]
    _draw_legend(drawing, y + 14, items, sum(path.span_ns for path in paths))
    return _render("critical_path", drawing, left_out=max(0, len(paths) - DEVICES_SHOWN))


def _spent(paths: list[CriticalPath]) -> dict[str, int]:
    spent: dict[str, int] = {}
    for path in paths:
        for resource, time in path.by_resource.items():
            spent[resource] = spent.get(resource, 0) + time
    return spent


def _parts(ledger: LedgerParts) -> Items:
    return [(part, part_ns(ledger, part)) for part in PARTS]


def _draw_bar(
    drawing: Drawing, y: float, height: float, items: Items, whole: int, *, full_width: float = BAR_WIDTH
) -> float:
    """Segments side by side, labelled where the label fits; returns where the bar ends."""
    x = BAR_LEFT
    for slug, time in items:
        width = full_width * time / whole if whole else 0.0
        if not width:
            continue
        drawing.rects.append(Rect(x=x, y=y, width=width, height=height, fill=colour_of(slug), name=slug))
        label = units.format_pct(units.pct(time, whole))
        if full_width == BAR_WIDTH and text_width(label) + 8 <= width:
            ink = INK if slug == "idle" else PAPER
            middle = y + height / 2 + 4
            drawing.texts.append(Text(x=x + width / 2, y=middle, text=label, anchor="middle", fill=ink))
        x += width
    return x


def _draw_legend(drawing: Drawing, top: float, items: Items, whole: int) -> None:
    """Colour, name, time and share of each item in three columns, row by row; sets the drawing's height."""
    for index, (slug, time) in enumerate(items):
        x, y = 16 + index % 3 * 292, top + index // 3 * 22
        drawing.rects.append(Rect(x=x, y=y - 10, width=12, height=12, fill=colour_of(slug)))
        drawing.texts += [
            Text(x=x + 18, y=y, text=slug),
            Text(x=x + 232, y=y, text=units.format_ns(time), anchor="end"),
            Text(x=x + 284, y=y, text=units.format_pct(units.pct(time, whole)), anchor="end"),
        ]
    drawing.height = top + max(0, len(items) - 1) // 3 * 22 + 22
