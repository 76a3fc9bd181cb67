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
        ("模型.json", "trace"),
        ("a\nb.json", "a_b"),
        ("x" * 240 + ".json", "x" * 100),
    ],
)
def test_the_default_folder_is_named_like_the_trace_in_plain_characters(tmp_path, name, folder):
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


def test_a_name_of_a_million_characters_is_no_hindrance(call, here):
    trace = gpu_training()
    trace.kernel(RELU + "x" * 1_000_000, 900, 5)
    trace.write(here / "a.json", "plain")

    assert call("analyze", "a.json", "-o", "run").code == 0
    assert call("check", "run").code == 0
