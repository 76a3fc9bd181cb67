"""``replay`` on the command line: its output and its errors, whole."""

from __future__ import annotations

import json

import pytest

from tests.golden_runs.cases import cpu_only
from tests.workflow.whatif_run import questioned

SCALE_HINT = "Write it as NAME=FACTOR with a factor from 0 to 1000, such as gemm=0.5"
WITHOUT_HINT = "One of: sync, sync:OP (such as sync:aten::item), communication, copies, host"
CATEGORIES = (
    "attention, communication, convolution, elementwise, embedding, gemm, generic, memory, moe, normalization, "
    "optimizer, quantization, reduction, sort, ssm, triton"
)


@pytest.fixture
def trace(here):
    questioned().write(here / "a.json", "plain")
    return "a.json"


def test_the_run_as_recorded(call, trace):
    outcome = call("replay", trace)

    assert outcome.out.splitlines() == [
        "part          recorded  replayed  change",
        "span          340.0 µs  340.0 µs   0.0 %",
        "compute       250.0 µs  250.0 µs   0.0 %",
        "exposed comm   40.0 µs   40.0 µs   0.0 %",
        "exposed copy   30.0 µs   30.0 µs   0.0 %",
        "idle           20.0 µs   20.0 µs   0.0 %",
        "critical path    recorded  replayed",
        "compute            73.5 %    73.5 %",
        "communication      11.8 %    11.8 %",
        "copy                8.8 %     8.8 %",
        "host                1.5 %     1.5 %",
        "launch              2.9 %     2.9 %",
        "synchronisation     1.5 %     1.5 %",
    ]
    assert outcome.err == "unchanged, the replay is off by 0.0 %; changed, the run takes 340.0 µs\n"
    assert outcome.code == 0


def test_the_run_with_something_changed(call, trace):
    # Products at half: 240; see tests/workflow/test_whatif.py
    outcome = call("replay", trace, "--scale", "gemm=0.5")

    assert outcome.out.splitlines()[1:6] == [
        "span          340.0 µs  240.0 µs  -29.4 %",
        "compute       250.0 µs  150.0 µs  -40.0 %",
        "exposed comm   40.0 µs   40.0 µs    0.0 %",
        "exposed copy   30.0 µs   30.0 µs    0.0 %",
        "idle           20.0 µs   20.0 µs    0.0 %",
    ]
    assert outcome.err == "unchanged, the replay is off by 0.0 %; changed, the run takes 240.0 µs\n"


@pytest.mark.parametrize(
    ("options", "span_us"),
    [
        ("--scale gemm=0.5 --scale elementwise=0", 190),
        ("--scale-kernel add=0 --scale-kernel nvjet=0.5", 190),
        ("--without sync", 320),
        ("--without communication --without copies", 270),
        ("--without sync:aten::item --scale gemm=0.5", 220),
        ("--host-scale 0.5", 337.5),
        ("--no-launch-gaps", 335),
        ("--steps 0", 340),
    ],
)
def test_every_option_is_asked(call, trace, options, span_us):
    outcome = call("replay", trace, "--json", *options.split())

    assert json.loads(outcome.out)["span_ns"] == span_us * 1_000
    assert (outcome.err, outcome.code) == ("", 0)


def test_json_holds_spans_path_and_ledger(call, trace):
    answer = json.loads(call("replay", trace, "--json", "--scale", "gemm=0.5").out)

    assert list(answer) == ["measured_ns", "baseline_ns", "span_ns", "critical_path", "ledger"]
    assert (answer["measured_ns"], answer["baseline_ns"], answer["span_ns"]) == (340_000, 340_000, 240_000)
    assert answer["critical_path"] == {
        "compute": 150_000,
        "communication": 40_000,
        "copy": 30_000,
        "host": 5_000,
        "launch": 10_000,
        "device": 0,
        "dependency": 0,
        "synchronisation": 5_000,
        "unexplained": 0,
    }
    (ledger,) = answer["ledger"]
    assert (ledger["device"], ledger["span_ns"], ledger["idle_ns"]) == (0, 240_000, 20_000)


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        ("--scale gem=0.5", "unknown category: `gem`", f"Did you mean `gemm`? Known: {CATEGORIES}"),
        ("--scale xyzzy=1", "unknown category: `xyzzy`", f"Known: {CATEGORIES}"),
        ("--scale gemm", "`gemm` is no scale", SCALE_HINT),
        ("--scale gemm=-1", "`gemm=-1` is no scale", SCALE_HINT),
        ("--scale-kernel nvjet=much", "`nvjet=much` is no scale", SCALE_HINT),
        (
            "--scale-kernel cutlass=0.5",
            "no kernel's name matches `cutlass`",
            "Run `rooftrace ops TRACE` to see them",
        ),
        (
            "--scale-kernel nvjet(=0.5",
            "`nvjet(` is no regular expression: missing ), unterminated subpattern at position 5",
            "Escape characters like ( and [",
        ),
        ("--without gemm", "`gemm` cannot be left out", WITHOUT_HINT),
        ("--without synchronisation", "`synchronisation` cannot be left out", WITHOUT_HINT),
        (
            "--without sync:aten::to",
            "nothing blocks under `aten::to`",
            "Run `rooftrace idle TRACE` to see what does",
        ),
        (
            "--host-scale 2",
            "argument --host-scale: `2` is not a number from 0 to 1",
            "Run `rooftrace replay --help`",
        ),
        (
            "--host-scale half",
            "argument --host-scale: `half` is not a number from 0 to 1",
            "Run `rooftrace replay --help`",
        ),
        ("--scale", "argument --scale: expected one argument", "Run `rooftrace replay --help`"),
        ("--steps 4", "no such steps: `4`", "The trace has one step, 0: whole trace"),
    ],
)
def test_a_question_that_cannot_be_answered(call, trace, arguments, what, hint):
    outcome = call("replay", trace, *arguments.split())

    assert (outcome.err, outcome.out, outcome.code) == (f"error: {what}\n\nhint: {hint}\n", "", 2)


def test_a_trace_that_is_not_there(call, here):
    assert call("replay", "nothing.json").code == 3


def test_a_trace_without_gpu_activity(call, here):
    cpu_only().write(here / "a.json", "plain")
    plain, as_json = call("replay", "a.json"), call("replay", "a.json", "--json")

    assert (plain.out, plain.err, plain.code) == ("", "no GPU activity in this trace\n", 0)
    assert json.loads(as_json.out) == {
        "measured_ns": 0,
        "baseline_ns": 0,
        "span_ns": 0,
        "critical_path": {},
        "ledger": [],
    }
