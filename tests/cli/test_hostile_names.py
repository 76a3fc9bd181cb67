"""Names that a trace or a file may bear are data: none moves the cursor, names a folder or ends a command."""

from __future__ import annotations

import json
import re
import sys

import pytest

from rooftrace.cli.analyze import default_run
from tests.golden_runs.cases import RELU, gpu_training
from tests.support.trace_builder import TraceBuilder

# escape sequences, a C1 control, a right-to-left override, a line separator, a bell, a form feed
EVIL = "\x1b[31mred\x1b]0;title\x07 \x9b2J \u202eltr\u2028 \x0c <b>|`{{gemm.F1.time_ms}}"
RAW = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture
def evil(here):
    """A trace in which everything that has a name bears the evil one; its file's name too."""
    trace = TraceBuilder()
    trace.device(name=f"GPU {EVIL}")
    for number in range(2):
        at = 100.0 * number
        trace.annotation(f"{EVIL}#{number}", at, 90)
        trace.python(f"{EVIL}.py(1): f", at + 1, 80)
        trace.op(f"aten::{EVIL}", at + 2, 20, dims=[[2, 2]], types=[EVIL])
        trace.kernel(f"kernel {EVIL}", at + 30, 20, correlation=trace.launch(ts=at + 3))
    trace.header(**{f"cuda{EVIL}_version": EVIL})
    return trace.write(here / "a\x1b[31m\u202e.json", "plain")


@pytest.mark.parametrize("command", ["analyze", "ops", "ledger", "tree --python", "analyze --json", "tree --json"])
def test_no_control_character_reaches_the_terminal(call, evil, command):
    name, *options = command.split()

    outcome = call(name, evil.name, *options)

    assert outcome.code == 0
    if "--json" in options:
        assert json.loads(outcome.out)
        assert re.findall("[\x00-\x09\x0b-\x1f\x7f-\x9f]", outcome.out) == []
    else:
        assert RAW.findall(outcome.out) == []
    assert RAW.findall(outcome.err) == []


def test_a_run_with_such_names_passes_its_checks(call, evil):
    run = call("analyze", evil.name).out.removesuffix("/analysis.md\n")

    assert run == "rooftrace-runs/a_31m"
    assert call("check", run).code == 0
    assert RAW.findall(call("ops", run).out) == []


@pytest.mark.parametrize(
    "arguments", [("\x1b[2Jx",), ("analyze", "\x1b[2Jx"), ("ops", "x", "--\x1b[2J"), ("explain", "\x9b2J")]
)
def test_errors_quote_no_control_character(call, here, arguments):
    outcome = call(*arguments)

    assert outcome.code in (2, 3)
    assert "?" in outcome.err
    assert RAW.findall(outcome.err) == []


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("trace.json", "trace"),
        ("trace.json.gz", "trace"),
        ("host_12.1700000000.pt.trace.json.gz", "host_12.1700000000"),
        ("trace.JSON.ZST", "trace"),
        ("my trace (2).json", "my_trace_2"),
        ("$(reboot);`id`.json", "reboot_id"),
        ("-rf.json", "-rf"),
        ("..json", "trace"),
        ("a\nb.json", "a_b"),
        ("x" * 240 + ".json", "x" * 100),
        ("x" * 99 + ". y.json", "x" * 99),  # Windows would drop a dot at the end
        ("训练.json", "训练"),
        ("обучение-2.trace.json.gz", "обучение-2"),
        ("résumé.json", "résumé"),
        ("re\u0301sume\u0301.json", "résumé"),  # as macOS spells it
        ("हिन्दी.json", "हिन्दी"),  # vowel signs are marks, no letters
        ("٣.json", "٣"),
        ("训" * 84 + ".json", "训" * 66),  # 66 x 3 bytes of 200
        ("\u202eabc\u2066\u200e.json", "abc"),
        ("a\u2028b\u200bc\u3164d\ufe0fe.json", "a_b_c_d_e"),  # a separator, and signs that nobody sees
        ("a\uff0fb\uff3cc\uff1ad.json", "a_b_c_d"),
        ("\udcff\udcfe.json", "trace"),
        ("训\udcff.json", "训"),
        ("🚀 run.json", "run"),
    ],
)
def test_the_default_folder_is_named_like_the_trace_in_letters_and_digits(tmp_path, name, folder):
    assert default_run(tmp_path / name).as_posix() == f"rooftrace-runs/{folder}"


@pytest.mark.parametrize(
    "name", ["a b.json", "$(reboot);`id`.json", "'\".json", "模型.json", "a\nb.json", "x" * 240 + ".json", "*.json"]
)
def test_a_trace_is_analysed_whatever_its_file_is_called(call, here, name):
    gpu_training().write(here / name, "plain")

    outcome = call("analyze", name, "-o", "run")

    assert (outcome.out, outcome.code) == ("run/analysis.md\n", 0)
    assert json.loads((here / "run/report.json").read_bytes())["trace"]["file"] == name
    assert call("check", "run").code == 0


@pytest.mark.skipif(sys.platform != "linux", reason="other systems refuse file names that are not UTF-8")
def test_a_file_name_that_is_not_utf8_is_written_with_replacements(start, here):
    gpu_training().write(here / "plain.json", "plain").rename(here / "\udcff.json")

    outcome = start("analyze", "\udcff.json", "-o", "run", cwd=here)

    assert (outcome.out, outcome.code) == ("run/analysis.md\n", 0)
    assert json.loads((here / "run/report.json").read_bytes())["trace"]["file"] == "?.json"


def test_a_run_of_a_name_in_another_script_can_be_read_checked_and_told_from_others(call, here):
    gpu_training().write(here / "训练.json", "plain")
    gpu_training().write(here / "推理.json", "gzip")

    assert call("analyze", "训练.json").out == "rooftrace-runs/训练/analysis.md\n"
    assert call("compare", "训练.json", "推理.json").out == "rooftrace-runs/训练_vs_推理/compare.md\n"
    assert [call("check", run).code for run in ("rooftrace-runs/训练", "rooftrace-runs/训练_vs_推理")] == [0, 0]


def test_two_long_names_are_no_hindrance_to_a_comparison(call, here):
    names = ["训" * 80 + ".json", "推" * 80 + ".json"]
    for name in names:
        gpu_training().write(here / name, "plain")

    outcome = call("compare", *names)

    # 33 signs are 99 bytes of the 100 of each
    assert (outcome.out, outcome.code) == (f"rooftrace-runs/{'训' * 33}_vs_{'推' * 33}/compare.md\n", 0)


def test_a_name_of_a_million_characters_is_no_hindrance(call, here):
    trace = gpu_training()
    trace.kernel(RELU + "x" * 1_000_000, 900, 5)
    trace.write(here / "a.json", "plain")

    assert call("analyze", "a.json", "-o", "run").code == 0
    assert call("check", "run").code == 0
