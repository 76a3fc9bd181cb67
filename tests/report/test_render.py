from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from rooftrace.report.assemble import assemble, render, write
from rooftrace.report.environment import template_environment
from tests.report.sample import cpu_files, gpu_files, renamed, write_files

GOLDEN = Path(__file__).parent.parent / "golden" / "report_small" / "analysis.md"
SECTIONS = [
    "## Executive Summary",
    "## Trace Health",
    "## What To Do First",
    "## Compute Kernel Optimizations",
    "## Kernel Fusion Opportunities",
    "## System-Level Optimizations",
    "## Detailed Analysis",
    "## Appendix",
]
FINDING = re.compile(
    r"^<!-- finding id=(\S+) tier=(\S+) category=(\S+) rank=(\d+) low=([\d.]+) mid=([\d.]+) high=([\d.]+) "
    r"gpu_time=([\d.]+) -->$",
    re.MULTILINE,
)
HOSTILE = [
    "<!-- /finding -->",
    "<!-- table id=x --> <!-- /table -->",
    "a | b || c",
    "back`tick ``two`` `",
    "<script>alert(1)</script>",
    "line\nbreak\r\n\n# Heading\n## Appendix",
    "{{ 7*7 }}",
    "{{gemm.F1.time_ms}}",
    "{% include 'x' %}{# c #}",
    "\x1b[31mred\x00\u202e\u2028",
    "](http://x) ![i](y)",
    "x" * 3_000,
    "",
]


def rendered(run: Path) -> str:
    return render(run, assemble(run))


def section(text: str, title: str) -> str:
    return text.split(f"\n{title}\n")[1].split("\n## ")[0]


@pytest.fixture
def text(tmp_path):
    return rendered(write_files(tmp_path, gpu_files()))


def test_the_small_run_gives_the_golden_report(text):
    """`ROOFTRACE_UPDATE_GOLDEN=1` rewrites it; the difference is read in review."""
    if os.environ.get("ROOFTRACE_UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(parents=True, exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")

    assert text == GOLDEN.read_text(encoding="utf-8")


@pytest.mark.parametrize("files", [gpu_files, cpu_files], ids=["gpu", "cpu"])
def test_all_sections_stand_in_order(tmp_path, files):
    lines = rendered(write_files(tmp_path, files())).splitlines()

    assert lines[0].startswith("# ")
    assert [line for line in lines if line.startswith("## ")] == SECTIONS


def test_every_ranked_finding_stands_between_its_markers(text):
    assert [match.groups() for match in FINDING.finditer(text)] == [
        ("idle.F1", "system", "idle", "1", "18.75", "21.88", "25.00", "25.00"),
        ("gemm.F1", "compute", "gemm", "2", "13.69", "15.97", "18.26", "18.26"),
        ("multi_kernel.F1", "system", "communication", "3", "7.50", "8.75", "10.00", "10.00"),
        ("elementwise.F1", "compute", "elementwise", "4", "6.22", "7.25", "8.29", "8.29"),
        ("gemm.F2", "compute", "gemm", "5", "5.15", "6.01", "6.87", "6.87"),
        ("elementwise.F2", "compute", "memory", "6", "4.80", "4.80", "4.80", "4.80"),
        ("multi_kernel.F2", "system", "copy", "7", "4.80", "4.80", "4.80", "4.80"),
    ]


def test_each_item_has_its_four_parts_and_each_detail_its_six(text):
    for item in text.split("<!-- finding ")[1:]:
        body = item.split("<!-- /finding -->")[0]
        assert re.findall(r"^- \*\*(\w+)\*\*: .", body, re.MULTILINE) == [
            "Insight",
            "Action",
            "Impact",
            "Verify",
        ]
    for block in section(text, "## Detailed Analysis").split("\n### ")[1:]:
        assert re.findall(r"^- \*\*([\w ]+)\*\*:", block, re.MULTILINE) == [
            "Identification",
            "Data",
            "Reasoning",
            "Resolution",
            "Impact estimate",
            "Evidence ids",
        ]


def test_markers_are_balanced_and_every_table_row_has_as_many_cells_as_its_head(text):
    assert_well_formed(text)


def assert_well_formed(text: str) -> None:
    is_open = ""
    width = 0
    for line in text.splitlines():
        marker = re.fullmatch(r"<!-- (/?)(finding|table)\b[^<>]*-->", line)
        if marker and marker.group(1):
            assert is_open == marker.group(2), line
            is_open = ""
        elif marker:
            assert not is_open, line
            is_open, width = marker.group(2), 0
        elif is_open == "table":
            cells = len(re.findall(r"(?<!\\)\|", line))
            width = width or cells
            assert cells == width > 1, line
    assert not is_open


@pytest.mark.parametrize("name", HOSTILE, ids=[repr(name[:20]) for name in HOSTILE])
@pytest.mark.parametrize("files", [gpu_files, cpu_files], ids=["gpu", "cpu"])
def test_names_from_a_trace_are_inert(tmp_path, files, name):
    hostile = {path: renamed(content, lambda _: name) for path, content in files().items()}
    for row in hostile["evidence/ops.csv"]:
        row["kernels"] = [{**row["kernels"][0], "name": name}]
        row["shapes"] = row["dtypes"] = [name]
    run = write_files(tmp_path, hostile)
    write(run)
    text = (run / "analysis.md").read_text(encoding="utf-8")

    assert [line for line in text.splitlines() if line.startswith("## ")] == SECTIONS
    assert_well_formed(text)
    assert len(FINDING.findall(text)) == text.count("<!-- /finding -->") == (7 if files is gpu_files else 0)
    assert "{{" not in text
    assert " 49 " not in text
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e\u2028]", text)
    assert not re.search(r"<script>", re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", text))
    assert max(map(len, text.splitlines())) < 6_000


def test_a_name_that_cites_evidence_is_shown_and_not_filled_in(tmp_path):
    files = gpu_files()
    files["evidence/gemm.json"]["findings"][0]["evidence"]["top_op"] = "{{time_ms}}"

    text = rendered(write_files(tmp_path, files))

    assert "- **Reasoning**: The heaviest member is `{ {time_ms} }` with 100.0 % of the time" in text


def test_an_empty_tier_says_so_in_one_sentence(tmp_path):
    files = gpu_files()
    for name in ("gemm", "elementwise", "reduction", "idle", "multi_kernel"):
        files[f"evidence/{name}.json"]["findings"] = []

    text = rendered(write_files(tmp_path, files))

    assert section(text, "## What To Do First").strip() == "No finding reaches 0.5 % of the span."
    assert section(text, "## System-Level Optimizations").strip() == (
        "No system finding: idle time (25.0 % of the span), exposed communication (10.0 %) and exposed copies "
        "(5.0 %) are below the limits from which they are analysed."
    )
    assert (
        section(text, "## Compute Kernel Optimizations")
        .strip()
        .endswith("No compute finding: no rated kernels with a gap and no unrated kernel time worth a line.")
    )
    assert section(text, "## Detailed Analysis").strip() == "There is no ranked finding to detail."


def test_a_report_without_gpu_says_why_and_shows_the_host(tmp_path):
    text = rendered(write_files(tmp_path, cpu_files()))

    assert "**This trace says nothing about a GPU**" in section(text, "## Executive Summary")
    assert "| `aten::mm` | 14 | 700.0 µs | 900.0 µs | 60.0 µs | 120.0 µs |" in section(text, "## Appendix")
    assert "plots/" not in text
    assert not (tmp_path / "plots").exists()


@pytest.mark.parametrize(
    ("parts", "verdict"),
    [
        ((6_000_000, 1_000_000, 500_000, 2_500_000), "**GPU compute bounds this run**: 60.0 %"),
        ((1_000_000, 1_000_000, 500_000, 7_500_000), "**An idle GPU bounds this run**: 75.0 %"),
        ((1_000_000, 8_000_000, 500_000, 500_000), "**Communication bounds this run**: 80.0 %"),
        ((1_000_000, 500_000, 8_000_000, 500_000), "**Copies bound this run**: 80.0 %"),
        ((4_000_000, 3_000_000, 0, 3_000_000), "**No single part takes half of this run**: 40.0 %"),
    ],
    ids=["compute", "idle", "communication", "copies", "mixed"],
)
def test_the_summary_names_what_bounds_the_run(tmp_path, parts, verdict):
    files = gpu_files()
    device = files["evidence/ledger.json"]["devices"][0]
    names = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")
    device.update(zip(names, parts, strict=True))
    device.update(steps=[], compute_by_category={"gemm": parts[0]}, idle_by_cause={"unattributed": parts[3]})

    assert verdict in section(rendered(write_files(tmp_path, files)), "## Executive Summary")


def test_words_told_twice_are_referred_to_the_third_time(tmp_path):
    files = gpu_files()
    copies = [dict(files["evidence/gemm.json"]["findings"][0], id=f"gemm.F{number}") for number in (1, 2, 3)]
    files["evidence/gemm.json"]["findings"] = copies

    text = rendered(write_files(tmp_path, files))

    assert text.count("Let the library or the compiler choose among more kernels") == 2
    assert "- **Action**: as for `gemm.F1`" in text
    assert "- **Resolution**: as for `gemm.F1`" in text


def test_at_most_eight_findings_are_written_out_and_five_detailed(tmp_path):
    files = gpu_files()
    template = files["evidence/gemm.json"]["findings"][0]
    files["evidence/gemm.json"]["findings"] = [dict(template, id=f"gemm.F{number:02}") for number in range(1, 15)]

    text = rendered(write_files(tmp_path, files))

    first = section(text, "## What To Do First")
    assert first.count("\n### ") == 8
    assert section(text, "## Detailed Analysis").count("\n### ") == 5
    assert "(findings/gemm.md#gemm-f05)" in text  # rank 6, after idle.F1 and four of its kind
    assert len(text.splitlines()) < 400


def test_ranked_findings_that_are_not_written_out_carry_their_markers_in_a_row(tmp_path):
    files = gpu_files()
    template = files["evidence/gemm.json"]["findings"][0]
    files["evidence/gemm.json"]["findings"] = [dict(template, id=f"gemm.F{number:02}") for number in range(1, 15)]

    first = section(rendered(write_files(tmp_path, files)), "## What To Do First")

    # idle.F1, 14 of gemm, two of multi_kernel, two of elementwise: 19 ranked
    assert re.findall(r"<!-- finding id=\S+ tier=\S+ category=\S+ rank=(\d+)", first) == [
        str(rank) for rank in range(1, 20)
    ]
    assert first.count("<!-- /finding -->") == 19


def test_of_many_steps_the_first_and_the_slowest_are_shown(tmp_path):
    files = gpu_files()
    device = files["evidence/ledger.json"]["devices"][0]
    lengths = [500_000] * 5 + [460_000 + 1_000 * number for number in range(15)]  # 2.5 ms + 15 * 0.46 + 105 us
    lengths.append(10_000_000 - sum(lengths))
    zero = dict.fromkeys(
        ("exposed_comm_ns", "exposed_copy_ns", "idle_ns", "total_comm_ns", "total_copy_ns", "carry_in_ns"), 0
    )
    device.update(zero, compute_ns=10_000_000, compute_by_category={"gemm": 10_000_000}, idle_by_cause={})
    device["steps"] = [
        {
            **zero,
            "name": f"step {number}",
            "start_ns": 0,
            "span_ns": length,
            "compute_ns": length,
            "compute_by_category": {"gemm": length},
            "idle_by_cause": {},
        }
        for number, length in enumerate(lengths)
    ]

    summary = section(rendered(write_files(tmp_path, files)), "## Executive Summary")

    assert re.findall(r"^\| `step (\d+)`", summary, re.MULTILINE) == [
        *("0", "1", "2", "3", "4"),
        *("16", "17", "18", "19", "20"),
    ]


def with_leading(files, length):
    """The run with `length` ns of its first step, all of it compute, before the first step."""
    device = files["evidence/ledger.json"]["devices"][0]
    first = device["steps"][0]
    zero = dict.fromkeys(
        ("exposed_comm_ns", "exposed_copy_ns", "idle_ns", "total_comm_ns", "total_copy_ns", "carry_in_ns"), 0
    )
    stretch = {
        **zero,
        "name": "before first step",
        "start_ns": first["start_ns"],
        "span_ns": length,
        "compute_ns": length,
        "compute_by_category": {"gemm": length},
        "idle_by_cause": {},
    }
    first["start_ns"] += length
    for name in ("span_ns", "compute_ns"):
        first[name] -= length
    first["compute_by_category"]["gemm"] -= length
    device["steps"].insert(0, stretch)
    return files


def test_time_before_the_first_step_has_a_row_of_its_own(tmp_path):
    text = rendered(write_files(tmp_path, with_leading(gpu_files(), 500_000)))
    summary = section(text, "## Executive Summary")

    assert "| before first step | 500.0 µs | 100.0 % | 0.0 % | 0.0 % | 0.0 % |" in summary
    assert "The row before the first step is carry-in (work launched earlier) or set-up" in summary
    assert "2 steps (from: annotation), mean 4.750 ms" in summary  # (5.5 - 0.5 + 4.5) / 2
    assert "lies before the first step" not in summary  # 0.5 of 10 ms is 5 %, not more


def test_much_time_before_the_first_step_is_named_in_the_summary(tmp_path):
    text = rendered(write_files(tmp_path, with_leading(gpu_files(), 600_000)))

    assert "6.0 % of the span lies before the first step: carry-in or set-up" in section(text, "## Executive Summary")


def test_gaps_start_on_the_clock_of_the_span(text):
    gaps = section(text, "## System-Level Optimizations")

    assert "| 5.900 ms | 1.300 ms | `reduce_kernel`" in gaps  # 6.0 ms on the trace's clock, the span begins at 0.1


def test_upper_bounds_are_marked_and_have_one_number(text):
    first = section(text, "## What To Do First")

    assert "### 6. *Upper bound*: Copies, casts and fills without a rating take 4.8 % of the span" in first
    assert "- **Impact**: at most 4.8 % of the span, 480.0 µs in all" in first
    assert "4.8 % / 4.8 %" not in first


def test_a_long_path_of_a_frame_loses_its_beginning(tmp_path):
    files = gpu_files()
    files["evidence/gaps.csv"][0]["source"] = f"/{'deep/' * 60}train.py(12): load"

    gaps = section(rendered(write_files(tmp_path, files)), "## System-Level Optimizations")

    assert re.search(r"`…[a-z/]+/train\.py\(12\): load`", gaps)


def test_fp32_without_tf32_names_products_on_gpus_that_have_it(tmp_path):
    files = gpu_files()
    for name in ("gemm", "reduction"):
        files[f"evidence/{name}.json"]["findings"][0]["evidence"].update(precision="float32", tf32=False)

    assert "fp32 products without TF32: `gemm.F1` |" in rendered(write_files(tmp_path / "a", files))

    for name in ("gemm", "elementwise", "reduction"):
        for finding in files[f"evidence/{name}.json"]["findings"]:
            finding["evidence"]["gpu_tf32"] = False

    assert "fp32 products without TF32: this GPU is not known to have TF32 |" in rendered(
        write_files(tmp_path / "b", files)
    )


@pytest.mark.parametrize(
    ("is_host_bound", "answer"),
    [
        (True, "graphs or fewer launches would: `idle.F1` finds the host too slow;"),
        (False, "not at first: `idle.F1` waits for no launches; what bounds the run after the first fixes may,"),
    ],
)
def test_graphs_are_advised_where_the_host_was_late(tmp_path, is_host_bound, answer):
    files = gpu_files()
    files["evidence/idle.json"]["findings"][0]["evidence"]["host_bound"] = is_host_bound

    assert f"| Would graphs or compilation help? | {answer}" in rendered(write_files(tmp_path, files))


def test_both_template_environments_keep_compiled_templates_where_the_launcher_says(tmp_path, monkeypatch):
    monkeypatch.setenv("ROOFTRACE_COMPILED_TEMPLATES", str(tmp_path / "compiled"))

    for is_xml in (False, True):
        template_environment(str, autoescape=is_xml).get_template("plots/ledger.svg.j2")

    assert list((tmp_path / "compiled").iterdir())
