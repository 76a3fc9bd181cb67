"""A writer's words in the report: where they go, what they leave as it is, and when the pack's own stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rooftrace.contracts.prose import ModelProse
from rooftrace.contracts.report import ModelGuess, ReportFile
from rooftrace.report.assemble import assemble, write
from rooftrace.report.grounding.judge import Chosen
from rooftrace.report.prose import with_prose
from tests.report.sample import gpu_files, write_files

SLOTS = ("insight", "action", "reasoning", "resolution", "verify")
# Lines of `analysis.md` and `findings/*.md` that are slots: of a finding, an analyzer's summary, whose words they are.
SLOT_LINES = re.compile(
    r"^- \*\*(?:Insight|Action|Verify|Reasoning|Resolution|gemm|elementwise)\*\*: .*\n(?:  - .*\n)*|^- Words: .*\n",
    re.M,
)


def prose_of_gemm() -> dict[str, Any]:
    return {
        "analyzer": "gemm",
        "summary": "Products take {{gemm.F1.time_ms}} and {{gemm.F2.time_ms}}.",
        "findings": [
            {
                "id": name,
                "insight": f"The insight of a writer: {{{{{name}.time_ms}}}} in {{{{{name}.top_kernel}}}}.",
                "action": "The action of a writer: set `num_workers=8` & wait.",
                "reasoning": "The reasoning of a writer.",
                "resolution": "The first step of a writer.\n\nThe second step of a writer.",
                "verify": "The check of a writer.",
            }
            for name in ("gemm.F1", "gemm.F2")
        ],
    }


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write_files(tmp_path / "run", gpu_files())


def hand_in(run: Path, prose: object, name: str = "gemm") -> None:
    (run / "prose").mkdir(exist_ok=True)
    (run / f"prose/{name}.json").write_text(json.dumps(prose), encoding="utf-8")


def contents(run: Path) -> dict[str, str]:
    return {path: (run / path).read_text(encoding="utf-8") for path in write(run)}


def words_line(run: Path) -> str:
    text = contents(run)["analysis.md"]
    return next((line for line in text.splitlines() if line.startswith("- Words: ")), "")


def finding(run: Path, name: str) -> Any:
    report = assemble(run)
    return next(item for item in [*report.findings, *report.unranked] if item.id == name)


def test_only_the_slots_of_prose_differ(run):
    without = contents(run)
    hand_in(run, prose_of_gemm())
    with_prose = contents(run)

    assert list(with_prose) == list(without)
    for path in without:
        if path.endswith(".md"):
            changed, same = SLOT_LINES.sub("", with_prose[path]), SLOT_LINES.sub("", without[path])
            summary = "Products take 3.200 ms and 800.0 µs.\n\n" if path == "findings/gemm.md" else ""
            assert re.sub(r"\n{2,}", "\n\n", changed.replace(summary, "")) == re.sub(r"\n{2,}", "\n\n", same)
    plots = [path for path in without if path.endswith(".svg")]
    assert [with_prose[path] for path in plots] == [without[path] for path in plots]
    before, after = json.loads(without["report.json"]), json.loads(with_prose["report.json"])
    for report in (before, after):
        for item in report["findings"] + report["unranked"]:
            for slot in SLOTS:
                del item[slot]
    assert after == before


def test_the_report_holds_the_resolved_words(run):
    hand_in(run, prose_of_gemm())
    found = finding(run, "gemm.F1")

    assert found.insight == "The insight of a writer: 3.200 ms in `nvjet_tst_128x256_64x4_1x2_h_bz_TNT`."
    assert found.action == "The action of a writer: set `num_workers=8` &amp; wait."
    assert found.resolution.split("\n\n")[:2] == ["The first step of a writer.", "The second step of a writer."]
    assert found.title == "Matrix products run at 43.0 % of the roofline (cuBLASLt)"


def test_what_a_trace_cannot_show_stays_in_the_resolution(run):
    own = finding(run, "gemm.F1").resolution.split("\n\n")[-1]
    hand_in(run, prose_of_gemm())

    assert own.startswith("Not visible in a trace: occupancy, ")
    assert finding(run, "gemm.F1").resolution.split("\n\n")[-1] == own


def test_a_finding_whose_words_are_refused_keeps_the_packs_own(run):
    own = finding(run, "gemm.F1")
    prose = prose_of_gemm()
    prose["findings"][0]["insight"] = "The products take 9999 ms of the span."
    hand_in(run, prose)

    assert finding(run, "gemm.F1") == own
    assert finding(run, "gemm.F2").reasoning == "The reasoning of a writer."


def test_verify_may_be_left_to_the_pack(run):
    own = finding(run, "gemm.F1").verify
    prose = prose_of_gemm()
    del prose["findings"][0]["verify"]
    hand_in(run, prose)

    assert finding(run, "gemm.F1").verify == own
    assert finding(run, "gemm.F1").action.startswith("The action of a writer")


def test_a_summary_stands_in_its_tier_and_on_its_page(run):
    hand_in(run, prose_of_gemm())
    texts = contents(run)

    section = texts["analysis.md"].split("## Compute Kernel Optimizations")[1].split("\n## ")[0]
    assert "- **gemm**: Products take 3.200 ms and 800.0 µs." in section
    assert texts["findings/gemm.md"].splitlines()[2] == "Products take 3.200 ms and 800.0 µs."


END = (
    "; titles, numbers and order are the scripts' in either case. A code in brackets says why words were refused "
    "(`rooftrace explain CODE`); without one, none were handed in."
)


def test_without_prose_and_without_state_nothing_is_said_of_words(run):
    assert words_line(run) == ""


def test_a_run_that_was_prepared_and_has_no_prose_says_so(run):
    (run / "state.json").write_text("{}", encoding="utf-8")

    assert words_line(run) == f"- Words: the pack's own for elementwise, gemm, idle, multi kernel, reduction{END}"


def test_the_report_says_whose_words_it_holds_and_why(run):
    prose = prose_of_gemm()
    prose["findings"][0]["insight"] = "Bank conflicts take 9999 ms of the span."
    hand_in(run, prose)
    hand_in(run, {"analyzer": "idle", "summary": "short"}, "idle")
    hand_in(run, {"analyzer": "elementwise", "summary": "One addition, 9999 ms in all.", "findings": []}, "elementwise")
    hand_in(run, {"analyzer": "reduction", "summary": "A sum: {{reduction.F1.time_ms}}.", "findings": []}, "reduction")

    assert words_line(run) == (
        "- Words: a writer's for gemm (not for gemm.F1: GROUND001, GROUND005), reduction; the pack's own for "
        f"elementwise (GROUND001, PROSE002), idle (PROSE001), multi kernel{END}"
    )


def test_all_words_of_a_writer(run):
    hand_in(run, prose_of_gemm())
    for name in ("elementwise", "reduction", "idle", "multi_kernel"):
        (run / f"evidence/{name}.json").unlink()
    manifest = json.loads((run / "manifest.json").read_text(encoding="utf-8"))
    manifest["analyzers"] = ["gemm"]
    (run / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")

    assert words_line(run) == f"- Words: a writer's for gemm{END}"


def test_the_model_is_named_in_the_writers_words(run):
    model = {
        "analyzer": "model",
        "name": "Qwen1.5-0.5B",
        "family": "decoder-only transformer",
        "confidence": "medium",
        "reasoning": "The modules are a `Block_0` and a `Head`.",
        "summary": "A small decoder, trained for {{steps.steps_count}} steps.",
    }
    hand_in(run, model, "model")

    text = contents(run)["analysis.md"]
    row = next(line for line in text.splitlines() if line.startswith("| Which model, parallelism, batch? |"))
    assert row.startswith(
        "| Which model, parallelism, batch? | Qwen1.5-0.5B: decoder-only transformer, confidence medium. "
        "A small decoder, trained for 2 steps. Shapes are in the tables above,"
    )


def test_the_report_of_record_names_the_model_as_the_page_does():
    guess = ModelGuess(
        name="A decoder", family="decoder", confidence="low", reasons=["Block"], facts={"layers_count": 2}
    )
    prose = ModelProse(
        analyzer="model",
        name="Qwen1.5-0.5B",
        family="decoder-only transformer",
        confidence="medium",
        reasoning="The modules are a `Block_0` and a `Head`.",
        summary="A small decoder, trained for two steps.",
    )
    report = ReportFile.model_construct(findings=[], unranked=[], model=guess)

    named, _ = with_prose(report, Chosen(findings={}, summaries={}, model=prose, outcomes=()), {})

    assert named.model == ModelGuess(
        name="Qwen1.5-0.5B",
        family="decoder-only transformer",
        confidence="medium",
        reasons=["Block"],
        facts={"layers_count": 2},
    )


def test_prose_of_no_analyzer_is_not_used(run):
    hand_in(run, {**prose_of_gemm(), "analyzer": "moe"}, "moe")
    own = finding(run, "gemm.F1")

    assert "moe" not in words_line(run)
    assert not own.insight.startswith("The insight of a writer")


def test_two_reports_of_one_run_are_identical(run):
    hand_in(run, prose_of_gemm())

    assert contents(run) == contents(run)
