"""One failing artifact a code: one thing is broken in a run that passes, and exactly that code tells it."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rooftrace.validators import check_run
from rooftrace.validators.checks import load_checks
from tests.validators.breaking import edit_json, edit_text, sign

Case = tuple[str, Callable[[Path], None], str]


def replace_manifest(text: str) -> Callable[[Path], None]:
    return lambda run: (run / "manifest.json").write_text(text, encoding="utf-8")


def remove(name: str) -> Callable[[Path], None]:
    return lambda run: (run / name).unlink()


def append(name: str, text: str) -> Callable[[Path], None]:
    def change(run):
        with (run / name).open("a", encoding="utf-8") as out:
            out.write(text)

    return change


def set_in(name: str, *path: str | int, value: object) -> Callable[[Path], None]:
    """Set one value of a JSON artifact, by its path."""

    def change(content):
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return lambda run: edit_json(run, name, change)


def in_text(name: str, old: str, new: str) -> Callable[[Path], None]:
    return lambda run: edit_text(run, name, old, new)


def add_short_row(run: Path) -> None:
    append("evidence/gaps.csv", "0,5\n")(run)
    sign(run)


def unrank_the_first(run: Path) -> None:
    """A copy of the first finding, below the limit by its place but not by its score."""

    def change(report):
        report["unranked"] = [{**report["findings"][0], "id": "gemm.F9", "rank": len(report["findings"]) + 1}]

    edit_json(run, "report.json", change)


def swap_the_first_two(run: Path) -> None:
    """Two findings in each other's place, in the report and in the markers of the text."""

    def change(report):
        first, second = report["findings"][:2]
        first["rank"], second["rank"] = 2, 1
        report["findings"][:2] = [second, first]

    edit_json(run, "report.json", change)
    edit_text(run, "analysis.md", "category=idle rank=1 ", "category=idle rank=2 ")
    edit_text(run, "analysis.md", "category=gemm rank=2 ", "category=gemm rank=1 ")


def mark_twice(run: Path) -> None:
    marker = re.search(r"<!-- finding id=idle.F1 .*-->\n", (run / "analysis.md").read_text(encoding="utf-8"))
    assert marker is not None
    edit_text(run, "analysis.md", marker.group(), marker.group() * 2)


CASES: dict[str, Case] = {
    "no manifest": ("RUN001", remove("manifest.json"), "`manifest.json` is missing from `{run}`"),
    "manifest no JSON": (
        "RUN001",
        replace_manifest("[1,"),
        "manifest.json::$: Invalid JSON: EOF while parsing a value at line 1 column 3",
    ),
    "path out of the run": (
        "RUN001",
        set_in("manifest.json", "files", 0, "path", value="../analysis.md"),
        "manifest.json::$.files[0].path: String should match pattern "
        "'^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$'",
    ),
    "file changed": ("RUN002", append("analysis.md", "more\n"), "analysis.md was changed"),
    "file gone": ("RUN002", remove("plots/ledger.svg"), "plots/ledger.svg is missing"),
    "unknown field": (
        "RUN003",
        set_in("evidence/ledger.json", "surprise", value=1),
        "ledger.json::$.surprise: Extra inputs are not permitted",
    ),
    "text for a number": (
        "RUN003",
        set_in("report.json", "trace", "events", value="38"),
        "report.json::$.trace.events: Input should be a valid integer",
    ),
    "time lost": (
        "RUN003",
        # 162 us compute, 40 us copies, 600 us idle: 802 us; the span one ns too short
        set_in("evidence/ledger.json", "devices", 0, "span_ns", value=801_999),
        "ledger.json::$.devices[0]: Value error, the four parts sum to 802000 ns, the span is 801999 ns",
    ),
    "column renamed": (
        "RUN004",
        in_text("evidence/gaps.csv", "device,start_ns,dur_ns,", "device,start,dur_ns,"),
        "evidence/gaps.csv: the header is device,start,dur_ns,cause,step,before,after,op,source",
    ),
    "text in a number's column": (
        "RUN004",
        in_text("evidence/kernels.csv", ",2,80000,", ",two,80000,"),
        "evidence/kernels.csv, line 2, count: 'two' is no int",
    ),
    "short row": (
        "RUN004",
        add_short_row,
        "evidence/gaps.csv, line 11: 2 cells under 9 columns",
    ),
    "evidence of another trace": (
        "RUN005",
        set_in("evidence/gemm.json", "source_sha256", value="0" * 64),
        "evidence/gemm.json comes from another trace",
    ),
    "findings out of order": (
        "REP001",
        swap_the_first_two,
        "report.json::$.findings[1].score.mid = 74.81 after 13.31",
    ),
    "ranked in the wrong list": (
        "REP001",
        unrank_the_first,
        "report.json: gemm.F9 is unranked with 74.81 %",
    ),
    "member that is no op group": (
        "REP002",
        set_in("report.json", "findings", 1, "members", value=["op1", "op999"]),
        "report.json: gemm.F1 has the unknown member op999",
    ),
    "ledgers differ": (
        "REP003",
        set_in("report.json", "ledger", "devices", 0, "start_ns", value=1),
        "report.json::$.ledger differs from evidence/ledger.json",
    ),
    "section missing": (
        "REP004",
        in_text("analysis.md", "\n## Kernel Fusion Opportunities\n", "\n"),
        "analysis.md has the sections ## Executive Summary, ## Trace Health, ## What To Do First, "
        "## Compute Kernel Optimizations, ## System-Level Optimizations, ## Detailed Analysis, ## Appendix",
    ),
    "marker with another rank": (
        "REP005",
        in_text("analysis.md", "category=gemm rank=2 ", "category=gemm rank=3 "),
        "analysis.md: the marker of gemm.F1 differs from report.json",
    ),
    "marker that is no marker": (
        "REP005",
        in_text("analysis.md", "category=gemm rank=2 ", "category=gemm rank=two "),
        "analysis.md has no marker for gemm.F1",
    ),
    "marker of nothing": (
        "REP005",
        in_text("analysis.md", "<!-- finding id=gemm.F1 ", "<!-- finding id=gemm.F7 "),
        "analysis.md marks the unknown finding gemm.F7",
    ),
    "marker twice": ("REP005", mark_twice, "analysis.md marks idle.F1 twice"),
    "above the ceiling": (
        "ROOF001",
        set_in("report.json", "ops", 0, "efficiency_pct", value=131.0),
        "report.json::$.ops[0].efficiency_pct = 131.0",
    ),
}


def test_the_run_passes_every_check(run):
    result = check_run(run)

    assert result.problems == []
    assert result.checks == len({code for code, _, _ in CASES.values()})


@pytest.mark.parametrize("case", CASES)
def test_one_broken_thing_is_told_by_its_code_alone(run, case):
    code, break_it, text = CASES[case]

    break_it(run)

    problems = check_run(run).problems
    assert {problem.code for problem in problems} == {code}
    assert problems[0].text == text.format(run=run)


def test_every_code_has_a_failing_run():
    assert sorted({code for code, _, _ in CASES.values()}) == sorted(load_checks())


def test_an_op_above_its_ceiling_with_a_flag_is_no_problem(run):
    set_in("report.json", "ops", 0, "efficiency_pct", value=131.0)(run)
    set_in("report.json", "ops", 0, "flag", value="inconsistent")(run)

    assert check_run(run).problems == []


def test_a_score_that_falls_from_low_to_high_is_a_problem(run):
    set_in("report.json", "unranked", 0, "score", "low", value=99.0)(run)

    problems = check_run(run).problems
    assert [problem.code for problem in problems] == ["REP002"]
    assert problems[0].text.startswith("report.json: elementwise.F2 scores 99.0, ")
