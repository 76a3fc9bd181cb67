from __future__ import annotations

import json
import re

import pytest

from rooftrace.cli import main
from rooftrace.contracts import store
from rooftrace.contracts.compare import CompareFile
from rooftrace.pack import ROOT
from tests.compare.sides import ADD, GEMM, Call, trace_of

EXAMPLE = str(ROOT / "examples/transformer_training_h100.json.gz")


def calls(gemm: float) -> list[Call]:
    shaped = {"dims": [[64, 512], [512, 512]], "types": ["c10::BFloat16"] * 2}
    return [
        Call(op="aten::mm", kernels=[(GEMM, gemm)], **shaped),
        Call(op="aten::add", kernels=[(ADD, 50)], **shaped),
    ]


@pytest.fixture
def pair(tmp_path):
    paths = (tmp_path / "before.json.gz", tmp_path / "after.json.gz")
    for path, gemm in zip(paths, (100, 110), strict=True):
        trace_of(calls(gemm), steps=4).write(path)
    return [str(path) for path in paths]


def test_a_comparison_writes_its_files_and_prints_the_page(pair, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["compare", *pair, "-o", str(run), "-q"]) == 0
    said = capsys.readouterr()
    assert said.out == f"{run / 'compare.md'}\n"
    assert said.err == (
        "wrote comparison: 600.0 µs to 640.0 µs (+6.67 %), comparable, 100.0 % of GPU time aligned, 1 findings; "
        "first: slower kernel, ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn\n"
    )
    assert sorted(path.name for path in run.iterdir()) == ["compare.json", "compare.md", "evidence", "manifest.json"]
    result = store.read_artifact(run / "compare.json", CompareFile)
    assert result.delta_ns == 40_000
    assert [(row.path[-1], row.delta_ns) for row in result.rows if row.delta_ns] == [("aten::mm", 40_000)]


def test_the_page_has_its_sections_in_order_and_closes_every_marker(pair, tmp_path):
    run = tmp_path / "run"
    main(["compare", *pair, "-o", str(run), "-q"])
    page = (run / "compare.md").read_text(encoding="utf-8")
    assert re.findall(r"^#{1,2} (.+?)(?::.*)?$", page, flags=re.MULTILINE) == [
        "Comparison",
        "Verdict",
        "Sanity",
        "Where The Time Went",
        "Findings",
        "Rows",
        "Appendix",
    ]
    opened = re.findall(r"<!-- (finding|table) id=(\S+)", page)
    assert [kind for kind, _ in opened] == re.findall(r"<!-- /(finding|table) -->", page)
    assert {name for _, name in opened} == {
        "compare.F1",
        "compare.T1",
        "compare.T2",
        "compare.rows",
        "compare.steps",
    }
    assert "The target is **slower**: 640.0 µs against 600.0 µs for 4 steps, +40.0 µs (+6.7 %)." in page
    for part in ("Insight", "Action", "Impact", "Verify"):
        assert f"- **{part}**: " in page


def test_two_comparisons_write_the_same_bytes(pair, tmp_path):
    pages = []
    for name in ("one", "two"):
        main(["compare", *pair, "-o", str(tmp_path / name), "-q"])
        pages.append(
            [
                (tmp_path / name / file).read_bytes()
                for file in ("compare.json", "compare.md", "evidence/compare.json", "manifest.json")
            ]
        )
    assert pages[0] == pages[1]


def test_a_trace_and_itself_differ_in_nothing(tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["compare", EXAMPLE, EXAMPLE, "-o", str(run), "-q", "--fail-above", "0%"]) == 0
    result = store.read_artifact(run / "compare.json", CompareFile)
    assert result.delta_ns == 0
    assert {row.delta_ns for row in result.rows} == {0}
    assert {row.cause for row in result.rows} == {"unchanged"}
    assert result.findings == []
    assert result.alignment.base_pct == result.alignment.target_pct == 100


def test_a_violated_limit_is_one_line_and_exit_code_1(pair, tmp_path, capsys):
    gate = ["--fail-above", "3%", "--metric", "span", "--metric", "category:elementwise"]
    assert main(["compare", *pair, "-o", str(tmp_path / "run"), "-q", *gate]) == 1
    errors = [line for line in capsys.readouterr().err.splitlines() if line.startswith("error: ")]
    assert errors == [
        "error: span +6.67 % (150.0 µs to 160.0 µs), at least +6.67 % beyond noise; limit +3 %",
    ]


def test_a_kept_limit_is_exit_code_0(pair, tmp_path):
    assert main(["compare", *pair, "-o", str(tmp_path / "run"), "-q", "--fail-above", "8"]) == 0


def test_too_few_steps_are_told(pair, tmp_path, capsys):
    gate = ["--fail-above", "8%", "--min-steps", "9"]
    assert main(["compare", *pair, "-o", str(tmp_path / "run"), "-q", *gate]) == 0
    assert (
        "note: span +6.67 % (150.0 µs to 160.0 µs), too few steps to tell noise; limit +8 %" in capsys.readouterr().err
    )


def test_limits_are_written_as_junit_and_as_github_annotations(pair, tmp_path, capsys):
    junit = tmp_path / "limits.xml"
    gate = ["--fail-above", "3%", "--metric", "kernel:<16816>|gemm", "--metric", "idle"]
    code = main(["compare", *pair, "-o", str(tmp_path / "run"), "-q", *gate, "--junit", str(junit), "--github"])
    assert code == 1
    assert capsys.readouterr().out.splitlines()[1:] == [
        "::error title=rooftrace compare::kernel:<16816>|gemm +10.00 %25 (100.0 µs to 110.0 µs), "
        "at least +10.00 %25 beyond noise; limit +3 %25",
        "::notice title=rooftrace compare::idle +0.00 %25 (0 ns to 0 ns), "
        "at least +0.00 %25 beyond noise; limit +3 %25",
    ]
    assert junit.read_text(encoding="utf-8") == (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        "<testsuites>\n"
        '  <testsuite name="rooftrace compare" tests="2" failures="1">\n'
        '    <testcase classname="rooftrace.compare" name="kernel:&lt;16816&gt;|gemm">\n'
        '      <failure message="kernel:&lt;16816&gt;|gemm +10.00 % (100.0 µs to 110.0 µs), '
        'at least +10.00 % beyond noise; limit +3 %"></failure>\n'
        "    </testcase>\n"
        '    <testcase classname="rooftrace.compare" name="idle">\n'
        "      <system-out>idle +0.00 % (0 ns to 0 ns), at least +0.00 % beyond noise; limit +3 %</system-out>\n"
        "    </testcase>\n"
        "  </testsuite>\n"
        "</testsuites>\n"
    )


def test_json_is_printed_instead_of_the_path(pair, tmp_path, capsys):
    main(["compare", *pair, "-o", str(tmp_path / "run"), "-q", "--json"])
    assert json.loads(capsys.readouterr().out)["delta_ns"] == 40_000


def test_a_comparison_takes_the_place_of_another_and_of_nothing_else(pair, tmp_path, capsys):
    run = tmp_path / "run"
    assert main(["compare", *pair, "-o", str(run), "-q"]) == 0
    assert main(["compare", *pair[::-1], "-o", str(run), "-q"]) == 0
    assert store.read_artifact(run / "compare.json", CompareFile).delta_ns == -40_000
    (run / "notes.txt").write_text("mine", encoding="utf-8")
    capsys.readouterr()
    assert main(["compare", *pair, "-o", str(run), "-q"]) == 2
    assert capsys.readouterr().err == (
        f"error: `{run}` exists and is not a run of rooftrace; nothing was written\n\n"
        "hint: Give an empty or new folder with -o, or --force to write the run into it beside what it holds\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--junit", "x.xml"], "error: --junit needs --fail-above\n\nhint: Add a limit: --fail-above 3%\n"),
        (["--metric", "idle"], "error: --metric needs --fail-above\n\nhint: Add a limit: --fail-above 3%\n"),
        (
            ["--fail-above", "fast"],
            "error: argument --fail-above: `fast` is not a percentage from 0 up\n\n"
            "hint: Run `rooftrace compare --help`\n",
        ),
    ],
    ids=["junit alone", "metric alone", "no number"],
)
def test_options_of_the_gate_that_mean_nothing_are_refused(arguments, message, pair, capsys):
    assert main(["compare", *pair, *arguments]) == 2
    assert capsys.readouterr().err == message


def test_traces_without_gpu_work_give_an_answer(tmp_path):
    from tests.support.trace_builder import TraceBuilder

    path = tmp_path / "cpu.json"
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10)
    builder.write(path, "plain")
    run = tmp_path / "run"
    assert main(["compare", str(path), str(path), "-o", str(run), "-q"]) == 0
    result = store.read_artifact(run / "compare.json", CompareFile)
    assert (result.sanity.verdict, result.rows, result.delta_ns) == ("not_comparable", [], 0)
