"""What a reader is told of a score: what it depends on, which finding holds most idle time, what cannot be told."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from rooftrace.contracts.prose import ModelProse
from rooftrace.report.assemble import assemble, render
from rooftrace.report.view import repeats_text
from tests.report.sample import gpu_files, write_files
from tests.report.sample_findings import _finding, idle_f1

Change = dict[str, Any]


def changed(tmp_path: Path, analyzer: str, *changes: Change) -> str:
    """The report with the first findings of an analyzer changed: `evidence` is added to, all else replaced."""
    files = gpu_files()
    found = files[f"evidence/{analyzer}.json"]["findings"]
    for finding, change in zip(found, changes, strict=False):
        finding["evidence"] |= change.get("evidence", {})
        finding |= {name: value for name, value in change.items() if name != "evidence"}
    run = write_files(tmp_path, files)
    return render(run, assemble(run))


def impact(text: str, finding: str) -> str:
    item = text.split(f"<!-- finding id={finding} ")[1].split("<!-- /finding -->")[0]
    return re.search(r"^- \*\*Impact\*\*: (.*?) Detail: ", item, re.M)[1]


def estimate(text: str, anchor: str) -> str:
    return re.search(r"^- \*\*Impact estimate\*\*: (.*)$", text.split(f'<a id="{anchor}">')[1], re.M)[1]


def test_a_system_finding_without_idle_time_of_its_own_says_nothing_of_zero(tmp_path):
    text = changed(tmp_path, "idle", {"evidence": {"idle_ms": 0.0}, "gpu_time_score": 0.0, "score_basis": "replay"})

    assert impact(text, "idle.F1") == "18.8 % / 21.9 % / 25.0 % of the span (low / mid / high), measured in this trace."
    assert estimate(text, "idle-f1") == (
        "with 75 / 87.5 / 100 % of its cause gone the run is shorter by 18.8 % / 21.9 % / 25.0 % of the span in the "
        "replayed run"
    )


def test_a_system_finding_has_no_floor(tmp_path):
    text = changed(tmp_path, "idle")

    assert " 2.500 ms in all; " in impact(text, "idle.F1")
    assert estimate(text, "idle-f1").startswith("2.500 ms, which is 25.0 % of the span, is what it takes; with 75 /")
    assert "lies above the modelled floor; closing 75 / 87.5 / 100 %" in estimate(text, "gemm-f1")


@pytest.mark.parametrize(
    ("analyzer", "finding", "change", "clause"),
    [
        (
            "multi_kernel",
            "multi_kernel.F1",
            {"confidence": "medium", "evidence": {"aspect": "small_collectives"}},
            "; confidence in the diagnosis medium (what a joined call takes is modelled from message sizes).",
        ),
        (
            "gemm",
            "gemm.F1",
            {"confidence": "low", "evidence": {"notes": "the reader of the result was not seen"}},
            "; confidence in the diagnosis low (the reader of the result was not seen).",
        ),
        (
            "gemm",
            "gemm.F1",
            {"confidence": "high", "evidence": {"notes": "seen"}},
            "; confidence in the diagnosis high.",
        ),
        (
            "idle",
            "idle.F1",
            {"evidence": {"sync_op": "aten::item", "frame": "torch/profiler/profiler.py(700): stop"}},
            "; the wait may belong to the measurement (profiler, benchmark), not to the workload.",
        ),
        (
            "idle",
            "idle.F1",
            {"evidence": {"sync_op": "aten::item", "sync1_frame": "my_benchmark.py(3): time_it"}},
            "; the wait may belong to the measurement (profiler, benchmark), not to the workload.",
        ),
        ("idle", "idle.F1", {"evidence": {"sync_op": "aten::item", "frame": "train.py(3): f"}}, "in this trace."),
        ("idle", "idle.F1", {"evidence": {"frame": "benchmark.py(3): f"}}, "in this trace."),  # no wait
    ],
)
def test_what_an_impact_depends_on_is_one_clause(tmp_path, analyzer, finding, change, clause):
    assert impact(changed(tmp_path, analyzer, change), finding).endswith(clause)


def with_attention(op: Change) -> Any:
    """The small run with its first op group as attention."""
    files = gpu_files()
    first = next(row for row in files["evidence/ops.csv"] if row["id"] == "op1")
    first |= op
    (found, *_) = files["evidence/gemm.json"]["findings"]
    found |= {"category": "attention"}
    return files


@pytest.mark.parametrize(
    ("op", "is_told"),
    [
        ({"name": "aten::scaled_dot_product_attention", "shapes": [[2, 8, 64, 64]] * 3 + [[64, 64]]}, True),
        ({"name": "aten::scaled_dot_product_attention", "shapes": [[2, 8, 64, 64]] * 3 + [[]]}, False),
        ({"name": "aten::_scaled_dot_product_flash_attention_backward", "shapes": [[2, 8, 64, 64]] * 6}, False),
    ],
    ids=["a mask tensor", "no mask", "a backward op"],
)
def test_a_mask_that_no_shape_tells_is_named(tmp_path, op, is_told):
    run = write_files(tmp_path, with_attention(op))
    told = impact(render(run, assemble(run)), "gemm.F1")

    assert ("what its mask skips is not in the shapes (a causal one halves the work)" in told) is is_told


def test_the_idle_question_names_the_finding_with_most_idle_time(tmp_path):
    files = gpu_files()
    more = {**idle_f1()["evidence"], "idle_ms": 2.6}
    later = _finding(
        "idle.F2", "idle", 26.0, more, score={"low": 0.6, "mid": 0.7, "high": 0.8}, tier="system", kind="measured"
    )
    files["evidence/idle.json"]["findings"].append(later)
    run = write_files(tmp_path, files)

    text = render(run, assemble(run))
    assert "| Why is the GPU idle? | `idle.F2`; " in text
    assert text.index("finding id=idle.F1") < text.index("finding id=idle.F2")  # although another ranks first


def test_what_the_trace_cannot_tell_can_be_reached_from_the_first_list(tmp_path):
    text = changed(tmp_path, "idle")

    first = text.split("\n## What To Do First\n")[1].split("\n## ")[0]
    assert "What this trace cannot tell stands in the Appendix" in first
    targets = re.findall(r"\]\(#([a-z-]+)\)", first)
    titles = {title.lower().replace(" ", "-") for title in re.findall(r"^### (.*)$", text, re.M)}
    assert targets[:2] == ["questions-and-answers", "method"]
    assert set(targets[:2]) <= titles


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ("16x16x559x64, 16x16x559x64, 16x16x559x64", "16x16x559x64 (x3)"),
        ("4x5, 5x6, 5x6, 4x5", "4x5, 5x6 (x2), 4x5"),
        ("4x5", "4x5"),
        ("", ""),
    ],
)
def test_equal_shapes_in_a_row_are_told_once(shapes, text):
    assert repeats_text(shapes) == text


def test_the_family_of_a_model_may_be_written_as_its_description_shows():
    shown = re.search(r"such as (.*?)\. ", ModelProse.model_fields["family"].description)[1]

    model = ModelProse(
        analyzer="model",
        name="A model",
        family=shown,
        confidence="low",
        reasoning="A reasoning that is long enough.",
        summary="A summary that is long enough.",
    )
    assert model.family == "decoder-only transformer, inference"
