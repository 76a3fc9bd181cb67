"""What the command line asks for and cannot have: whole texts, exit code 2, nothing on stdout, nothing written."""

from __future__ import annotations

import pytest

from rooftrace.cli import parser
from rooftrace.pack import KNOWLEDGE
from tests.golden_runs.cases import cpu_only, gpu_training
from tests.support.trace_builder import TraceBuilder

# by the files and the table that define them, so that one more changes no test
PLATFORMS = ", ".join(sorted(path.stem for path in (KNOWLEDGE / "platforms").glob("*.json")))
COMMANDS = ", ".join(sorted(command.name for command in parser.COMMANDS))
OPS = next(command for command in parser.COMMANDS if command.name == "ops")
OPS_OPTIONS = ", ".join(
    sorted(["--help", *(flag for argument in OPS.arguments for flag in argument.flags if "-" in flag)])
)


def error(what: str, hint: str) -> str:
    return f"error: {what}\n\nhint: {hint}\n"


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        ("", "the following arguments are required: COMMAND", "Run `rooftrace --help`"),
        ("--json", "the following arguments are required: COMMAND", "Run `rooftrace --help`"),
        ("analyse x", "unknown command: `analyse`", f"Did you mean `analyze`? Known: {COMMANDS}"),
        ("frobnicate", "unknown command: `frobnicate`", f"Known: {COMMANDS}"),
        ("analyze", "the following arguments are required: TRACE", "Run `rooftrace analyze --help`"),
        ("analyze a.json -o", "argument -o/--output: expected one argument", "Run `rooftrace analyze --help`"),
        ("ops a.json --limt=3", "unknown option: `--limt`", f"Did you mean `--limit`? Known: {OPS_OPTIONS}"),
        ("ops a.json --lim 3", "unknown option: `--lim`", f"Did you mean `--limit`? Known: {OPS_OPTIONS}"),
        ("ops a.json --frobnicate", "unknown option: `--frobnicate`", f"Known: {OPS_OPTIONS}"),
        ("ops a.json b.json", "one argument too many: `b.json`", "Run `rooftrace ops --help`"),
        (
            "ops a.json --limit many",
            "argument --limit: `many` is not a whole number from 1 up",
            "Run `rooftrace ops --help`",
        ),
        ("ops a.json --limit 0", "argument --limit: `0` is not a whole number from 1 up", "Run `rooftrace ops --help`"),
        (
            "tree a.json --depth=-1",
            "argument --depth: `-1` is not a whole number from 1 up",
            "Run `rooftrace tree --help`",
        ),
        (
            "analyze a.json --platform h100-sxmm",
            "unknown platform: `h100-sxmm`",
            f"Did you mean `h100-sxm`? Known: {PLATFORMS}",
        ),
        ("platforms quantum", "unknown platform: `quantum`", f"Known: {PLATFORMS}"),
        ("ops a.json --platform mi300", "unknown platform: `mi300`", f"Did you mean `mi300x`? Known: {PLATFORMS}"),
    ],
)
def test_a_command_line_that_cannot_be_understood(call, here, arguments, what, hint):
    gpu_training().write(here / "a.json", "plain")

    outcome = call(*arguments.split())

    assert (outcome.err, outcome.out, outcome.code) == (error(what, hint), "", 2)
    assert [path.name for path in here.iterdir()] == ["a.json"]


KNOWN_STEPS = "The trace has 2 steps, 0 to 1: ProfilerStep#0, ProfilerStep#1"


@pytest.mark.parametrize("command", ["analyze", "ops", "ledger", "tree"])
@pytest.mark.parametrize(
    ("steps", "what"),
    [
        ("2", "no such steps: `2`"),
        ("0-2", "no such steps: `0-2`"),
        ("1-0", "no such steps: `1-0`"),
        ("99999999999999999999", "unknown steps: `99999999999999999999`"),
        ("-1", "unknown steps: `-1`"),
        ("1-", "unknown steps: `1-`"),
        ("0-1-2", "unknown steps: `0-1-2`"),
        ("0,1", "unknown steps: `0,1`"),
        ("", "unknown steps: ``"),
        ("ProfilerStep#2", "unknown steps: `ProfilerStep#2`"),
    ],
)
def test_steps_that_the_trace_does_not_have(call, here, command, steps, what):
    gpu_training().write(here / "a.json", "plain")

    outcome = call(command, "a.json", f"--steps={steps}")

    assert (outcome.err, outcome.out, outcome.code) == (error(what, KNOWN_STEPS), "", 2)
    assert [path.name for path in here.iterdir()] == ["a.json"]


def test_one_step_is_named_as_one(call, here):
    trace = TraceBuilder()
    trace.kernel("k", 0, 5)
    trace.write(here / "a.json", "plain")

    outcome = call("ledger", "a.json", "--steps", "7")

    assert outcome.err == error("no such steps: `7`", "The trace has one step, 0: whole trace")


def test_steps_without_gpu_work_cannot_be_chosen(call, here):
    cpu_only().write(here / "a.json", "plain")

    outcome = call("analyze", "a.json", "--steps", "0-1")

    assert (outcome.err, outcome.code) == (error("steps `0-1` launched no GPU work", KNOWN_STEPS), 2)


@pytest.mark.parametrize("steps", ["0", "1", "0-1", "ProfilerStep#1"])
def test_steps_that_the_trace_has_are_analysed(call, here, steps):
    gpu_training().write(here / "a.json", "plain")

    assert call("ledger", "a.json", "--steps", steps).code == 0


def test_a_folder_of_other_things_is_never_replaced(call, here):
    gpu_training().write(here / "a.json", "plain")
    (here / "mine").mkdir()
    (here / "mine" / "thesis.tex").write_text("years", encoding="utf-8")

    outcome = call("analyze", "a.json", "-o", "mine")

    what = "`mine` exists and is not a run of rooftrace; nothing was written"
    hint = "Give an empty or new folder with -o, or --force to write the run into it beside what it holds"
    assert (outcome.err, outcome.code) == (error(what, hint), 2)
    assert [path.name for path in (here / "mine").iterdir()] == ["thesis.tex"]


def test_a_file_is_never_replaced_by_a_run(call, here):
    gpu_training().write(here / "a.json", "plain")

    outcome = call("analyze", "a.json", "-o", "a.json")

    assert outcome.err == error("`a.json` exists and is not a folder", "Give another folder with -o")
    assert call("analyze", "a.json", "-o", "a.json/run").err == error(
        "cannot write `a.json/run`: Not a directory", "Give a folder you may write to with -o"
    )


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("ops", "--platform", "mi300x"), "platform"),
        (("ops", "--steps", "1"), "steps"),
        (("ledger", "--steps", "1"), "steps"),
    ],
)
def test_a_finished_run_takes_no_choices_of_the_analysis(call, example_run, arguments, option):
    command, *rest = arguments

    outcome = call(command, example_run, *rest)

    what = f"--{option} needs a trace; `{example_run}` is a run, analysed already"
    assert (outcome.err, outcome.code) == (error(what, f"Leave --{option} out, or give the trace file"), 2)


def test_a_run_has_no_tree(call, example_run):
    outcome = call("tree", example_run)

    hint = "Give the trace file: `rooftrace tree TRACE`"
    assert (outcome.err, outcome.code) == (error("a run keeps no call tree", hint), 2)


def test_an_unknown_code_is_told_with_the_nearest_and_all_known(call):
    outcome = call("explain", "carry_inn")

    hint = "Did you mean `carry_in`? Run `rooftrace explain` for all"
    assert (outcome.err, outcome.out, outcome.code) == (error("unknown code: `carry_inn`", hint), "", 2)
