from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from rooftrace.report.assemble import assemble, write
from rooftrace.report.plots import BAR_LEFT, BAR_WIDTH
from rooftrace.report.roofline import roofline
from rooftrace.report.shapes import text_width
from tests.report.sample import gpu_files, renamed, write_files

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def run(tmp_path):
    folder = write_files(tmp_path, gpu_files())
    write(folder)
    return folder


def shapes(path, tag):
    return list(ET.parse(path).getroot().iter(f"{SVG}{tag}"))  # noqa: S314 - written by the test itself


@pytest.mark.parametrize("name", ["ledger", "steps", "roofline"])
def test_a_plot_has_a_title_and_a_description(run, name):
    root = ET.parse(run / "plots" / f"{name}.svg").getroot()  # noqa: S314

    assert root.get("role") == "img"
    assert root.find(f"{SVG}title").text
    assert root.find(f"{SVG}desc").text


def test_the_bars_of_the_ledger_are_as_long_as_the_parts(run):
    bars = [rect for rect in shapes(run / "plots/ledger.svg", "rect") if rect.get("height") == "26"]

    # 6.0, 1.0, 0.5 and 2.5 of 10 ms on 766 px
    assert [float(rect.get("width")) for rect in bars] == [459.6, 76.6, 38.3, 191.5]
    assert float(bars[0].get("x")) == BAR_LEFT
    assert sum(float(rect.get("width")) for rect in bars) == BAR_WIDTH


@pytest.mark.parametrize("name", ["ledger", "steps", "roofline"])
def test_texts_do_not_overlap(run, name):
    boxes = []
    for text in shapes(run / "plots" / f"{name}.svg", "text"):
        if not text.text:
            continue
        size = int(text.get("font-size", "12"))
        width = text_width(text.text, size)
        left = float(text.get("x")) - {"middle": width / 2, "end": width}.get(text.get("text-anchor"), 0)
        boxes.append((text.text, left, float(text.get("y")) - size + 2, left + width, float(text.get("y"))))
    overlaps = [
        (a[0], b[0])
        for index, a in enumerate(boxes)
        for b in boxes[index + 1 :]
        if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ]

    assert overlaps == []


def test_the_ceilings_of_the_roofline_come_from_the_floors(tmp_path):
    found = roofline(assemble(write_files(tmp_path, gpu_files())))

    # op1: 137,438,953,472 FLOPs in 343,597 ns; op2: 402,653,184 bytes in 134,218 ns
    assert [(name, round(rate / 1e12, 1)) for name, rate in found.ceilings] == [("bfloat16", 400.0)]
    assert round(found.bandwidth / 1e12, 2) == 3.0
    assert [point.op_id for point in found.points] == ["op1", "op2", "op3", "op5"]
    assert round(found.points[0].rate / 1e12, 1) == 171.8  # 137,438,953,472 / 800,000 ns


def test_there_is_no_roofline_without_a_platform(tmp_path):
    files = gpu_files()
    files["manifest.json"]["platform"] = None

    assert roofline(assemble(write_files(tmp_path, files))) is None
    assert "plots/roofline.svg" not in write(tmp_path)


@pytest.mark.parametrize("name", ["<script>", "]]>&\x00\x1b", 'a"b<!-- -->', "{{ 7*7 }}", ""])
def test_names_from_a_trace_leave_the_plots_well_formed(tmp_path, name):
    run = write_files(tmp_path, {path: renamed(content, lambda _: name) for path, content in gpu_files().items()})
    for path in write(run):
        if path.endswith(".svg"):
            root = ET.parse(run / path).getroot()  # noqa: S314
            assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
                *("svg", "title", "desc", "rect", "line", "circle", "text")
            }
