"""Every command tells in one sentence what it does, what it reads and writes, and an example that runs."""

from __future__ import annotations

import io
import json
import shlex

import pytest

from rooftrace.cli.parser import COMMANDS
from tests.cli.conftest import ROOT
from tests.workflow.prose import prepared_run, prose_for

NAMES = [command.name for command in COMMANDS]
by_name = pytest.mark.parametrize("command", COMMANDS, ids=NAMES)


@pytest.fixture
def example_of(example_run, tmp_path, monkeypatch):
    """The words of an example; a run it reads is the example's, one it writes or changes a new one."""

    def words(command) -> list[str]:
        run = tmp_path / "run" if "-o RUN" in command.example else example_run
        if command.name in ("next", "submit", "report"):
            run = prepared_run(tmp_path)
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(prose_for("gemm.F1").encode())))
        return [str(run) if word == "RUN" else word for word in shlex.split(command.example)]

    return words


def test_help_names_every_command_and_exit_code(call):
    outcome = call("--help")

    assert (outcome.code, outcome.err) == (0, "")
    assert [name for name in NAMES if f"    {name}" not in outcome.out] == []
    assert outcome.out.endswith(
        "exit codes: 0 done, 1 a check failed, 2 usage, 3 input unreadable, 4 not a trace, "
        "69 no environment, 70 a bug\n"
    )


@by_name
def test_help_of_a_command(call, command):
    outcome = call(command.name, "--help")

    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.split("\n\n", 1)[1].splitlines()
    assert lines[0] == command.summary
    assert command.summary.count(".") == 1
    assert command.summary.endswith(".")
    assert lines[2] == f"reads:  {command.reads}"
    assert lines[3] == f"writes: {command.writes}"
    assert outcome.out.endswith(f"example:\n  rooftrace {command.example}\n")


@by_name
def test_the_example_of_the_help_runs(call, command, example_of, monkeypatch):
    monkeypatch.chdir(ROOT)

    outcome = call(*example_of(command))

    assert outcome.code == 0
    assert (outcome.out == "") == (command.name == "check")


@by_name
def test_the_example_with_json_prints_json(call, command, example_of, monkeypatch):
    monkeypatch.chdir(ROOT)

    outcome = call(*example_of(command), "--json")

    assert outcome.code == 0
    assert json.loads(outcome.out)


def test_the_lists_print_json_too(call):
    assert json.loads(call("platforms", "--json").out)[0]["slug"] == "a10"
    assert json.loads(call("explain", "--json").out)["carry_in"]


def test_problems_of_a_check_are_json_too(call, example_run, tmp_path):
    (tmp_path / "manifest.json").write_text("{", encoding="utf-8")

    outcome = call("check", tmp_path, "--json")

    assert outcome.code == 1
    assert json.loads(outcome.out) == {
        "checks": 1,
        "problems": [
            {
                "code": "RUN001",
                "where": "manifest.json::$: Invalid JSON: EOF while parsing an object at line 1 column 1",
                "message": "The manifest must be there and match its schema; without it a folder is no run.",
            }
        ],
    }


def test_a_code_is_found_in_any_case(call):
    assert call("explain", "rep004").out == call("explain", "REP004").out


def test_a_pattern_is_found_by_its_name_alone_and_all_of_that_name_are_told(call):
    assert call("explain", "launch_bound_eager").out == call("explain", "idle/launch_bound_eager").out

    several = call("explain", "unrated")
    assert several.code == 0
    assert {"gemm/unrated", "convolution/unrated", "fusion/unrated"} <= set(several.out.splitlines())


def test_an_explained_pattern_holds_no_braces(call):
    told = call("explain", "gemm/latency_bound").out

    assert "<kernels_count> kernels take <mean_kernel_us> each" in told
    assert [line for line in call("explain").out.splitlines() if "{{" in line and "/" in line.split(":")[0]] == []


def test_every_note_of_the_golden_runs_is_explained(call):
    reports = [json.loads(path.read_bytes()) for path in (ROOT / "tests/golden_runs").glob("*/run/report.json")]
    codes = {note["code"] for report in reports for note in report["health"]["notes"]}

    assert codes > {"few_gpu_events", "graph_replay", "no_gpu_events"}
    assert [code for code in sorted(codes) if call("explain", code).code != 0] == []


def test_the_version_is_one_line(call):
    from rooftrace import __version__

    assert call("--version").out == f"rooftrace {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], {"numpy", "pydantic", "msgspec", "ijson", "jinja2", "rooftrace.workflow", "rooftrace.contracts"}),
        (["check"], {"numpy", "ijson", "jinja2", "rooftrace.workflow.run", "rooftrace.report"}),
        (["ops"], {"numpy", "ijson", "jinja2", "rooftrace.workflow", "rooftrace.report"}),
    ],
    ids=["help", "check", "ops of a run"],
)
def test_a_quick_command_loads_nothing_heavy(start, example_run, arguments, heavy):
    """What a command loads is most of the time it takes."""
    code = "import sys, rooftrace.cli; rooftrace.cli.main(sys.argv[1:]); print('loaded', *sorted(sys.modules))"
    run = [] if arguments == ["--help"] else [str(example_run)]
    cache = {"ROOFTRACE_COMPILED_TEMPLATES": str(example_run.parent / "cache")}  # where `analyze` noted what it wrote

    loaded = start(*arguments, *run, program=("-c", code), **cache).out.split("loaded", 1)[1].split()

    assert "rooftrace.cli" in loaded
    assert sorted(heavy & set(loaded)) == []
