"""The rules by which the state of a run changes, and its file."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace

import pytest

from rooftrace.contracts import state as contract
from rooftrace.errors import CheckFailed, InputError, UsageError
from rooftrace.pack import ROOT
from rooftrace.workflow import state as states
from rooftrace.workflow.state import (
    State,
    Task,
    accept,
    hand_out,
    read,
    refuse,
    repairs_left,
    reported,
    to_bytes,
    write,
)

VARIABLES = {"PYTHONPATH": str(ROOT / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"}
NAMES = ("idle", "gemm", "attention", "fusion", "model")


def task(name, **fields):
    return Task(analyzer=name, brief=f"tasks/{name}.md", prose=f"prose/{name}.json", **fields)


def state_of(*names):
    return State(
        tool_version="1",
        source_sha256="0" * 64,
        trace_path="/t.json",
        options={},
        tasks=tuple(task(name) for name in names),
    )


def statuses(state):
    return {item.analyzer: item.status for item in state.tasks}


# Handing out


def test_three_tasks_are_handed_out_at_a_time_in_their_order():
    state, first = hand_out(state_of(*NAMES))
    state, second = hand_out(state)

    assert [item.analyzer for item in first] == ["idle", "gemm", "attention"]
    assert [item.analyzer for item in second] == ["fusion", "model"]


def test_what_nobody_handed_in_is_handed_out_once_more_then_left_to_the_pack():
    state, first = hand_out(state_of("idle", "gemm"))
    state, second = hand_out(accept(state, "gemm", None))
    state, third = hand_out(state)

    assert [item.analyzer for item in first] == ["idle", "gemm"]
    assert [item.analyzer for item in second] == ["idle"]
    assert third == []
    assert statuses(state) == {"idle": "fallen_back", "gemm": "accepted"}


def test_a_task_that_nobody_has_had_comes_before_a_retry():
    state, _ = hand_out(state_of("idle", "gemm", "attention"))
    state = state.with_task(replace(state.task("idle"), status="open"))
    state = replace(state, tasks=(*state.tasks, task("fusion")))

    assert [item.analyzer for item in hand_out(state)[1]] == ["fusion", "idle"]


def test_in_a_resumed_run_what_is_not_back_comes_first():
    state, _ = hand_out(state_of("idle", "gemm", *NAMES[2:]))
    state = accept(state, "gemm", None)

    assert [item.analyzer for item in hand_out(state, is_resumed=True)[1]] == ["idle", "attention", "fusion"]
    assert [item.analyzer for item in hand_out(state)[1]] == ["fusion", "model"]


def test_resuming_every_time_ends_too():
    """Five tasks twice each, three at a time: ten tasks in four waves."""
    state, waves = state_of(*NAMES), []
    while True:
        state, out = hand_out(state, is_resumed=True)
        if not out:
            break
        waves.append([item.analyzer for item in out])

    assert sorted(name for wave in waves for name in wave) == sorted([*NAMES, *NAMES])
    assert set(statuses(state).values()) == {"fallen_back"}


def test_words_that_are_given_up_leave_the_report_to_be_written_again():
    state, _ = hand_out(state_of("gemm"))
    state, _ = hand_out(state)
    state = reported(state, "a" * 64, is_checked=True)

    assert hand_out(state)[0].report_sha256 is None
    for _ in range(3):
        state = refuse(state, "gemm", ["a problem"])
    assert (statuses(state), state.report_sha256) == ({"gemm": "fallen_back"}, None)


def test_asking_never_goes_on_for_ever():
    """Five tasks, three at a time, twice each: after 2 + 2 waves nothing is handed out any more."""
    state, waves = state_of(*NAMES), 0
    while True:
        state, out = hand_out(state)
        if not out:
            break
        waves += 1

    assert waves == 4
    assert set(statuses(state).values()) == {"fallen_back"}


# Handing in


def test_prose_may_be_mended_twice_then_somebody_else_gets_the_task():
    state, _ = hand_out(state_of("gemm"))
    left = []
    for _ in range(3):
        left.append(repairs_left(state.task("gemm")))
        state = refuse(state, "gemm", ["a problem"])

    assert left == [3, 2, 1]
    assert state.task("gemm") == task("gemm", status="open", dispatches=1, problems=("a problem",))


def test_the_second_writer_who_fails_leaves_the_packs_words():
    state = state_of("gemm")
    for _ in range(2):
        state, _ = hand_out(state)
        for _ in range(3):
            state = refuse(state, "gemm", ["a problem"])

    assert statuses(state) == {"gemm": "fallen_back"}
    assert hand_out(state)[1] == []


def test_a_refusal_after_the_words_were_given_up_leaves_the_report_as_it_is():
    state, _ = hand_out(state_of("gemm"))
    state, _ = hand_out(state)
    state = reported(hand_out(state)[0], "a" * 64, is_checked=True)

    after = refuse(state, "gemm", ["a problem"])

    assert (statuses(after), after.report_sha256, after.checked_sha256) == (
        {"gemm": "fallen_back"},
        "a" * 64,
        "a" * 64,
    )


def test_late_prose_is_accepted_and_the_report_is_to_be_written_again():
    state, _ = hand_out(state_of("gemm"))
    state, _ = hand_out(state)
    state = reported(hand_out(state)[0], "a" * 64, is_checked=True)

    state = accept(state, "gemm", "somebody")

    assert (statuses(state), state.task("gemm").writer) == ({"gemm": "accepted"}, "somebody")
    assert (state.report_sha256, state.checked_sha256) == (None, None)


def test_what_was_accepted_outlives_a_worse_second_try():
    state = accept(state_of("gemm"), "gemm", None)

    assert refuse(state, "gemm", ["a problem"]) == state


def test_prose_that_was_not_asked_for_names_the_tasks_there_are():
    with pytest.raises(UsageError, match="no prose is asked for `moe`") as error:
        accept(state_of("idle", "gemm"), "moe", None)

    assert error.value.hint == "Tasks of this run: idle, gemm"


def test_problems_are_cut_to_what_a_retry_can_read():
    state = refuse(state_of("gemm"), "gemm", ["x" * 5_000] * 100)

    assert (len(state.task("gemm").problems), len(state.task("gemm").problems[0])) == (40, 400)


# The file


@pytest.fixture
def run(tmp_path):
    (tmp_path / "tasks").mkdir()
    return tmp_path


def test_a_state_is_read_as_it_was_written(run):
    state = refuse(hand_out(state_of(*NAMES))[0], "gemm", ["a problem"])
    write(run, state)

    assert read(run) == state


def test_every_state_matches_its_contract():
    state, _ = hand_out(state_of(*NAMES))
    for after in (state, refuse(state, "idle", ["p"]), accept(state, "gemm", "me"), hand_out(hand_out(state)[0])[0]):
        model = contract.StateFile.model_validate_json(to_bytes(after), strict=True)
        assert json.loads(to_bytes(after)) == model.model_dump(mode="json")


def test_the_limits_are_those_of_the_contract():
    ours = (states.MAX_PARALLEL, states.MAX_REPAIRS, states.MAX_DISPATCHES)

    assert ours == (contract.MAX_PARALLEL, contract.MAX_REPAIRS, contract.MAX_DISPATCHES)


def test_a_folder_without_a_state_says_how_to_make_one(run):
    with pytest.raises(InputError, match="is no run"):
        read(run)
    (run / "manifest.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match="was not prepared") as error:
        read(run)

    assert error.value.hint == "Run `rooftrace prepare TRACE -o RUN`"


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"status": "open"', '"status": "lost"', "state.json::$.tasks[0].status"),
        ('"dispatches": 0', '"dispatches": "0"', "state.json::$.tasks[0].dispatches"),
        ('"tasks": [', '"task": [', "state.json::$.tasks"),
        ("{", "[", "state.json::$"),
    ],
    ids=["unknown status", "text for a number", "renamed field", "no JSON"],
)
def test_a_damaged_state_is_told_by_its_path(run, old, new, message):
    text = to_bytes(state_of("gemm")).decode()
    (run / "state.json").write_text(text.replace(old, new, 1), encoding="utf-8")

    with pytest.raises(CheckFailed) as error:
        read(run)

    assert any(detail.startswith(message) for detail in error.value.details)


def test_a_change_that_fails_leaves_the_file_and_no_other(run):
    write(run, state_of("gemm"))

    with pytest.raises(ZeroDivisionError):
        states.update(run, lambda _: 1 / 0)

    assert read(run) == state_of("gemm")
    assert sorted(path.name for path in run.iterdir()) == ["state.json", "tasks"]
    assert states.update(run, hand_out)[0].analyzer == "gemm"  # the lock is free again


def test_a_run_that_cannot_be_written_is_told_with_its_path(run):
    write(run, state_of("gemm"))
    shutil.rmtree(run / "tasks")

    with pytest.raises(UsageError, match="cannot write"):
        states.update(run, hand_out)


PROGRAM = """
import sys
from pathlib import Path
from dataclasses import replace
from rooftrace.workflow import state as states
def count(state):
    task = state.task("gemm")
    return state.with_task(replace(task, status="handed_out", dispatches=1, submissions=task.submissions + 1)), None
for _ in range(40):
    states.update(Path(sys.argv[1]), count)
"""


def test_processes_that_change_one_state_at_once_lose_nothing(run):
    """Three processes count 40 each: 120."""
    write(run, state_of("gemm"))
    command = [sys.executable, "-c", PROGRAM, str(run)]
    at_work = [subprocess.Popen(command, env=VARIABLES) for _ in range(3)]

    assert [process.wait(60) for process in at_work] == [0, 0, 0]
    assert read(run).task("gemm").submissions == 120


def test_a_process_that_is_ended_in_the_middle_holds_nobody_up(run):
    write(run, state_of("gemm"))
    stuck = "import os, sys\nfrom pathlib import Path\nfrom rooftrace.workflow import state as states\n"
    stuck += "states.update(Path(sys.argv[1]), lambda state: os._exit(9))"
    command = [sys.executable, "-c", stuck, str(run)]

    assert subprocess.run(command, env=VARIABLES, check=False).returncode == 9
    assert states.update(run, hand_out)[0].analyzer == "gemm"
