from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from rooftrace.contracts.instance import Instance
from rooftrace.report.assemble import write
from rooftrace.report.shapes import text_width
from rooftrace.report.timeline import draw_instance, estimate_of, legend_of
from tests.report.sample import gpu_files, write_files
from tests.report.sample_findings import evidence

SVG = "{http://www.w3.org/2000/svg}"
# Left edge and length of the time axis, px; rows begin at these heights.
LEFT, WIDTH = 120.0, 630.0
KERNELS, LAUNCHES, FUSED = 58.0, 108.0, 150.0


def bar(start, dur, *, launch=None, stays=False, launch_stays=False, name="add_kernel", kernels=1, busy=None):
    """A bar; times in µs, the launch as (start, duration)."""
    return {
        "name": name,
        "category": "elementwise",
        "role": "stays" if stays else "replaced",
        "kernels": kernels,
        "start_ns": round(start * 1000),
        "dur_ns": round(dur * 1000),
        "busy_ns": round((dur if busy is None else busy) * 1000),
        "launch_start_ns": round(launch[0] * 1000) if launch else None,
        "launch_dur_ns": round(launch[1] * 1000) if launch else None,
        "launch_busy_ns": round(launch[1] * 1000) if launch else None,
        "launch_stays": launch_stays,
    }


def instance(bars, *, fused=None, of=3):
    """An instance as its file holds it; ``fused`` in µs."""
    return {
        "device": 0,
        "stream": 7,
        "start_ns": 5_000_000,
        "of": of,
        "replaced_ns": sum(one["busy_ns"] for one in bars if one["role"] == "replaced"),
        "fused_ns": None if fused is None else round(fused * 1000),
        "bars": bars,
    }


def pair():
    #            0    10   20   30   40   50   60 µs
    # kernels    [--------A-------]    [----B----]
    # launches   [A]     [B]                          made 100 µs earlier
    return instance(
        [
            bar(0, 30, launch=(-100, 5), launch_stays=True, name="A"),
            bar(40, 20, launch=(-80, 4), name="B"),
        ],
        fused=10,
    )


def drawing(fields):
    return draw_instance(Instance.model_validate(fields))


def rects(found, row, height):
    """(x, width) of the bars of a row."""
    return [(rect.x, rect.width) for rect in found.rects if row <= rect.y and rect.y + rect.height == row + height]


def finding(number, mid, fields):
    return {
        "id": f"fusion.F{number}",
        "tier": "fusion",
        "category": "fusion",
        "subject": "chain",
        "score": {"low": mid, "mid": mid, "high": mid},
        "score_basis": "gap_share",
        "gpu_time_score": mid,
        "kind": "modelled",
        "members": [],
        "evidence": {
            "time_ms": 1.0,
            "pattern_name": "a chain",
            "instances_count": 3,
            "kernels_per_instance": 2.0,
            "launches_removed_count": 3,
            "modules": "Norm",
            "kernel_chain": "A -> B",
            "replacement": "torch.compile",
        },
        "patterns": ["default"],
        "instance": fields,
    }


def run_with(tmp_path, findings):
    files = gpu_files()
    files["manifest.json"]["analyzers"].append("fusion")
    files["evidence/fusion.json"] = evidence("fusion", findings)
    run = write_files(tmp_path, files)
    return run, write(run)


def test_kernels_are_where_they_are_on_the_timeline_gaps_to_scale():
    # 60 µs are 630 px: A is 0..315, B is 420..630
    assert rects(drawing(pair()), KERNELS, 28.0) == [(120.0, 315.0), (540.0, 210.0)]


def test_launches_keep_their_distances_and_begin_with_the_first_kernel():
    # 20 µs apart are 210 px; 5 and 4 µs are 52.5 and 42 px
    found = drawing(pair())

    assert rects(found, LAUNCHES, 16.0) == [(120.0, 52.5), (330.0, 42.0)]
    assert [rect.name for rect in found.rects if rect.y == LAUNCHES] == ["@launch_stays", "@launch_goes"]


def test_the_estimate_is_the_mid_one_with_whiskers_at_the_low_and_the_high_one():
    # 50 µs fused to 10: closing 75, 87.5 and 100 % of the 40 leaves 20, 15 and 10 µs; 10.5 px a µs
    found = drawing(pair())
    estimate = estimate_of(Instance.model_validate(pair()))

    assert (estimate.slow, estimate.mid, estimate.fast) == (20_000, 15_000, 10_000)
    assert rects(found, FUSED, 28.0) == [(120.0, 157.5)]
    assert [(line.x1, line.x2) for line in found.lines] == [(225.0, 330.0), (225.0, 225.0), (330.0, 330.0)]


def test_the_sums_beside_the_rows_are_kernel_time_launches_saved_and_estimate():
    texts = [text.text for text in drawing(pair()).texts if text.x == LEFT + WIDTH + 12]

    assert texts[:4] == ["50.0 µs", "4.0 µs", "15.0 µs", "10.0 µs - 20.0 µs"]


def test_what_stays_comes_before_the_fused_kernel_and_is_not_counted_as_replaced():
    # a product of 60 µs stays, its epilogue of 40 µs becomes 8: 16, 12 and 8 µs; 6.3 px a µs
    found = drawing(instance([bar(0, 60, stays=True, launch_stays=True), bar(60, 40)], fused=8))

    assert rects(found, FUSED, 28.0) == [(120.0, 378.0), (498.0, pytest.approx(75.6))]


def test_kernels_of_a_microsecond_stay_visible_between_long_gaps():
    # 1 µs of 10,000 is 0.063 px: drawn as one
    found = drawing(instance([bar(0, 1), bar(9_999, 1)], fused=1.5))

    assert [width for _, width in rects(found, KERNELS, 28.0)] == [1.0, 1.0]


def test_a_bar_of_several_kernels_is_as_high_as_the_share_of_its_time_that_they_run():
    # 13 kernels run 25 of 100 µs: 7 of 28 px, standing on the row's ground
    found = drawing(instance([bar(0, 10), bar(10, 100, kernels=13, busy=25)], fused=20))
    (merged,) = [rect for rect in found.rects if rect.name == "add_kernel, 25.0 µs"]

    assert (merged.y, merged.height) == (KERNELS + 21, 7.0)


def test_few_kernels_are_listed_one_by_one_and_many_by_name():
    few = Instance.model_validate(instance([bar(at * 10, 5, name=f"k{at % 2}") for at in range(12)]))
    many = Instance.model_validate(
        instance([bar(at * 10, 5, name="add" if at % 4 else "mul", kernels=2) for at in range(40)])
    )

    assert [entry.number for entry in legend_of(few)] == [str(number) for number in range(1, 13)]
    # 30 bars of 2 kernels and 5 µs, 10 of the other name
    assert [(entry.name, entry.count, entry.time) for entry in legend_of(many)] == [
        ("add", 60, 150_000),
        ("mul", 20, 50_000),
    ]


def test_of_many_names_the_legend_keeps_the_longest_and_adds_up_the_rest():
    bars = [bar(at * 100, 40 - at, name=f"k{at}") for at in range(40)]
    entries = legend_of(Instance.model_validate(instance(bars)))

    assert [entry.name for entry in entries] == [*(f"k{at}" for at in range(11)), "@others"]
    # 29 names of 29 + 28 + ... + 1 µs
    assert (entries[-1].count, entries[-1].time) == (29, 435_000)


def test_a_replayed_graph_says_that_it_has_no_launches_and_no_estimate():
    names = [text.text for text in drawing(instance([bar(0, 5), bar(6, 5)])).texts]

    assert {"@no_launches", "@no_estimate"} <= set(names)
    assert "@shift" not in names


@pytest.mark.parametrize(
    "fields",
    [
        pair(),
        instance([bar(at * 3, 1, launch=(at * 4 - 500, 2)) for at in range(40)], fused=4),
        instance([bar(at, 1) for at in range(12)], fused=12),
        instance([bar(0, 0), bar(0, 0)]),
        instance([bar(0, 3_000_000, name="n" * 80), bar(3_000_001, 0.001)], fused=1),
    ],
    ids=["two kernels", "forty kernels", "twelve kernels", "no time", "seconds"],
)
def test_texts_do_not_overlap_and_stay_inside(tmp_path, fields):
    run, _ = run_with(tmp_path, [finding(1, 5.0, fields)])
    root = ET.parse(run / "plots/fusion.F1.svg").getroot()  # noqa: S314 - written by the test itself
    boxes = []
    for text in root.iter(f"{SVG}text"):
        size = int(text.get("font-size", "12"))
        width = text_width(text.text or "", size)
        left = float(text.get("x")) - {"middle": width / 2, "end": width}.get(text.get("text-anchor"), 0)
        boxes.append((text.text, left, float(text.get("y")) - size + 2, left + width, float(text.get("y"))))

    assert [box for box in boxes if box[1] < 0 or box[3] > 900] == []
    assert [
        (a[0], b[0])
        for index, a in enumerate(boxes)
        for b in boxes[index + 1 :]
        if a[1] < b[3] and b[1] < a[3] and a[2] < b[4] and b[2] < a[4]
    ] == []


@pytest.mark.parametrize("name", ["<script>", "]]>&\x00\x1b", 'a"b<!-- -->', "{{ 7*7 }}", "", "x" * 4_000])
def test_kernel_names_leave_the_plot_well_formed_and_cut(tmp_path, name):
    run, _ = run_with(tmp_path, [finding(1, 5.0, instance([bar(0, 1, name=name), bar(1, 1, name=name)], fused=1))])
    root = ET.parse(run / "plots/fusion.F1.svg").getroot()  # noqa: S314

    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        *("svg", "title", "desc", "rect", "line", "circle", "text")
    }
    assert max(len(text.text or "") for text in root.iter(f"{SVG}text")) <= 88


def test_the_first_eight_fusion_findings_with_an_instance_get_a_plot_which_their_detail_shows(tmp_path):
    findings = [finding(number, 50.0 - number, pair() if number != 2 else None) for number in range(1, 11)]
    run, written = run_with(tmp_path, findings)
    plots = [path for path in written if path.startswith("plots/fusion")]

    assert plots == [f"plots/fusion.F{number}.svg" for number in (1, 3, 4, 5, 6, 7, 8, 9)]
    page, report = (run / "findings/fusion.md").read_text(), (run / "analysis.md").read_text()
    assert "](../plots/fusion.F1.svg)" in page
    assert "](plots/fusion.F1.svg)" in report
    assert (
        "of 3 instances with equal kernels and shapes the median by kernel time: its kernels, their launch calls (the "
        "host's work around them is not drawn) and what they would be fused"
    ) in page
    assert "fusion.F2.svg" not in page


def test_a_plot_is_the_same_whenever_it_is_drawn(tmp_path):
    run, _ = run_with(tmp_path, [finding(1, 5.0, pair())])
    before = (run / "plots/fusion.F1.svg").read_bytes()
    write(run)

    assert (run / "plots/fusion.F1.svg").read_bytes() == before
