"""stdout carries data or the path written, stderr prose, whoever reads them and however they are closed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from tests.cli.conftest import EXAMPLE, LAUNCHER, ROOT
from tests.golden_runs.cases import gpu_training


def test_analyze_prints_the_path_and_nothing_else(call, here):
    gpu_training().write(here / "a.json", "plain")

    outcome = call("analyze", "a.json", "-o", "run")

    assert (outcome.out, outcome.code) == ("run/analysis.md\n", 0)
    # 600 us of 802 us idle is 74.8 %
    assert re.match(
        r"wrote report: span 802\.0 µs, idle 74\.8 %, \d+ ranked findings? of \d+, health good; first: \w", outcome.err
    )
    assert outcome.err.count("\n") == 1


def test_analyze_prints_its_report_when_asked_for_json(call, here):
    gpu_training().write(here / "a.json", "plain")

    outcome = call("analyze", "a.json", "-o", "run", "--json")

    assert json.loads(outcome.out) == json.loads((here / "run/report.json").read_bytes())


def test_a_check_that_passes_prints_no_data(call, example_run):
    outcome = call("check", example_run)

    assert (outcome.out, outcome.code) == ("", 0)
    assert re.sub("[0-9]+ checks", "N checks", outcome.err) == f"checked {example_run}: N checks passed\n"


@pytest.mark.parametrize("command", ["ops", "ledger"])
def test_a_table_is_the_same_from_the_trace_and_from_its_run(call, example_run, command):
    from_trace, from_run = call(command, EXAMPLE), call(command, example_run)

    assert from_trace.out == from_run.out
    assert from_trace.out.count("\n") > 3


def test_rows_left_out_are_told_on_stderr(call, example_run):
    outcome = call("ops", example_run, "--limit", "2")

    assert len(outcome.out.splitlines()) == 3  # the header and two rows
    groups = len(json.loads((example_run / "report.json").read_bytes())["ops"])
    assert outcome.err == f"{groups - 2} more groups; use --limit\n"


def test_a_reader_that_stops_early_is_no_error(variables, example_run):
    for arguments in (["ops", str(example_run), "--limit", "1000"], ["explain"], ["ops", "--help"]):
        command = [sys.executable, "-m", "rooftrace", *arguments]
        process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()  # before anything is written, as `| head -0` does
        err = process.stderr.read()
        process.stderr.close()
        assert (process.wait(timeout=60), err) == (0, b"")


def test_a_run_is_written_though_nobody_reads_the_prose(variables, tmp_path):
    trace = gpu_training().write(tmp_path / "a.json", "plain")
    command = [sys.executable, "-m", "rooftrace", "analyze", str(trace), "-o", str(tmp_path / "run")]
    process = subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stderr.close()
    out = process.stdout.read()
    process.stdout.close()

    assert (process.wait(timeout=60), out.decode()) == (0, f"{tmp_path / 'run/analysis.md'}\n")


@pytest.mark.skipif(os.name != "posix", reason="streams are closed as POSIX does")
@pytest.mark.parametrize("stream", [1, 2])
def test_a_closed_stream_is_no_error(variables, example_run, stream):
    command = f'exec "{sys.executable}" -m rooftrace ledger "{example_run}" {stream}>&-'
    done = subprocess.run(["sh", "-c", command], env=variables, capture_output=True, check=False)

    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def test_the_module_and_the_launcher_print_the_same(start, example_run):
    for arguments in (("ledger", example_run), ("check", "gone"), ("--help",), ("ops",)):
        module, launcher = start(*arguments), start(*arguments, program=(str(LAUNCHER),))
        assert module == launcher


def test_units_are_utf8_whatever_the_locale(start, example_run):
    outcome = start("ledger", example_run, cwd=ROOT, PYTHONUTF8="0", PYTHONIOENCODING="ascii")

    assert outcome.code == 0
    assert "µs" in outcome.out
