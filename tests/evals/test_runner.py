"""The runner with a scripted harness: what it installs, what it sees, and how it tells flaky from broken."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from evals.runner import by_hand
from evals.runner.attempt import Attempt, Harness, attempt, spoken
from evals.runner.checks import (
    first_is_named_first,
    grounded,
    is_catastrophe,
    nothing_else_written,
    numbers_stand_in_evidence,
)
from evals.runner.judge import RUBRICS, verdicts
from evals.runner.report import Outcome, judged, markdown, stability, summary
from evals.runner.tasks import ROOT, Task, task

FAKE = Path(__file__).with_name("fake_harness.py")
CASE = "alone recommender slow_gemm"


def harness(manner: str) -> Harness:
    return Harness(command=f"{shlex.quote(sys.executable)} {shlex.quote(str(FAKE))} {manner} {{prompt}}", source="tree")


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    return attempt(task(CASE), harness("good"), tmp_path_factory.mktemp("agents") / "good", 0, has_skill=True)


def test_a_harness_that_follows_the_workflow_passes_every_check(good):
    checks = judged(good).checks

    assert [name for name, value in checks.items() if value is not True] == []


def test_tokens_and_cost_are_what_the_harness_reports(good):
    assert (good.tokens, good.cost) == (1234, 0.5)  # 1200 in, 34 out


def test_the_truth_is_not_installed_with_the_pack(good):
    assert not (good.pack / "evals").exists()
    assert not (good.pack / "tests").exists()
    assert (good.pack / "SKILL.md").is_file()


def test_figures_and_files_that_the_run_does_not_have_are_seen(good):
    fields = {**vars(good), "answer": f"{good.answer}\nA gain of 4711.25 ms.", "written": (*good.written, "notes.txt")}
    invented = Attempt(**fields)

    assert numbers_stand_in_evidence(good)
    assert not numbers_stand_in_evidence(invented)
    assert nothing_else_written(good)
    assert not nothing_else_written(invented)


@pytest.mark.parametrize("name", ["gemm.F97", "aten::no_such_op"])
def test_a_finding_or_an_op_that_the_run_does_not_have_is_seen(good, name):
    assert grounded(good)
    assert not grounded(Attempt(**{**vars(good), "answer": f"{good.answer}\nBegin with {name}."}))


def test_an_answer_in_another_order_than_the_report_is_seen(good):
    report = json.loads((good.run / "report.json").read_text())
    names = [row["id"] for row in report["findings"][:2]]
    turned = Attempt(**{**vars(good), "answer": " ".join(reversed(names))})

    assert len(names) == 2
    assert first_is_named_first(good)
    assert not first_is_named_first(turned)


def test_a_crash_is_a_catastrophe_and_fails_what_it_left_out(tmp_path):
    crashed = attempt(task(CASE), harness("crashing"), tmp_path / "crash", 0, has_skill=True)
    checks = judged(crashed).checks

    assert is_catastrophe(crashed)
    assert not checks["finished"]
    assert not checks["run_written"]
    assert not checks["workflow_followed"]


def test_a_harness_over_its_time_is_a_catastrophe(tmp_path):
    slow = Harness(command=f"{shlex.quote(sys.executable)} -c 'import time; time.sleep(60)' {{prompt}}", limit_s=0.5)
    late = attempt(Task(name="wait", prompt="wait"), slow, tmp_path / "slow", 0, has_skill=False)

    assert late.exit_code is None
    assert is_catastrophe(late)


def test_without_the_skill_only_the_answer_is_judged(tmp_path):
    bare = attempt(task(CASE), harness("good"), tmp_path / "bare", 0, has_skill=False)
    checks = judged(bare).checks

    assert bare.pack is None
    assert checks["finished"]
    assert checks["workflow_followed"] is None
    assert checks["planted_is_named"] is False


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([True, True, True], "stable pass"),
        ([True, True, False], "flaky pass"),
        ([True, False], "flaky pass"),
        ([True, False, False], "flaky fail"),
        ([False, False], "stable fail"),
    ],
)
def test_repeated_outcomes_are_stable_or_flaky(values, verdict):
    assert stability(values) == verdict


def outcome(number: int, *, with_skill: bool, passed: bool) -> Outcome:
    return Outcome(
        task="one",
        has_skill=with_skill,
        number=number,
        seconds=2.0 + number,
        tokens=None if number else 100,
        cost=None,
        exit_code=0,
        is_catastrophe=not passed and number == 2,
        checks={"finished": passed, "structure": None},
    )


def test_the_report_sets_attempts_with_the_skill_beside_those_without():
    outcomes = [outcome(number, with_skill=True, passed=number != 2) for number in range(3)]
    outcomes += [outcome(number, with_skill=False, passed=False) for number in range(2)]
    result = summary(outcomes)

    first, second = result["groups"]
    assert first["checks"] == {"finished": {"passed": 2, "of": 3, "verdict": "flaky pass"}}
    assert (first["catastrophes"], first["median_seconds"], first["median_tokens"]) == (1, 3.0, 100)
    assert second["checks"]["finished"]["verdict"] == "stable fail"
    page = markdown(result, "fake {prompt}")
    assert "| finished | flaky pass (2/3) | stable fail (0/2) |" in page
    assert "| *median tokens* | 100 | 100 |" in page
    # of five attempts one passed check was flaky with the skill and one failed for good without
    assert "| with the skill | 1 | 3 | 1 | 2/3 | 0 | 1 | 0 | 0 |" in page
    assert "| without | 1 | 2 | 0 | 0/2 | 0 | 0 | 0 | 1 |" in page


def test_plain_text_is_an_answer_without_tokens():
    assert spoken("It is the GEMM.") == ("It is the GEMM.", None, None)
    assert spoken('{"result": "a", "usage": {"input_tokens": 3, "service": "x"}}') == ("a", 3, None)


def test_a_judge_is_asked_once_a_rubric_and_its_last_line_counts(good):
    word = f'{shlex.quote(sys.executable)} -c \'import sys; print("seen"); print("{{verdict}}")\' {{prompt}}'

    assert verdicts(good, word.replace("{verdict}", "PASS")) == dict.fromkeys(
        ("action", "reasoning", "unsupported"), True
    )
    assert set(verdicts(good, word.replace("{verdict}", "perhaps")).values()) == {None}
    assert len(list(RUBRICS.glob("*.md"))) == 3


def test_an_unknown_case_is_told():
    with pytest.raises(KeyError, match="unknown case: `nonsense`"):
        task("nonsense")


def test_scenarios_of_the_pack_are_tasks():
    assert task("standalone").files == (
        ("transformer_training_h100.json.gz", "examples/transformer_training_h100.json.gz"),
    )
    assert not task("not-a-trace").analyses


def test_the_command_writes_both_reports_and_fails_where_nothing_ever_passes(tmp_path):
    words = ["--harness", harness("crashing").command, "--case", CASE, "--repeat", "1", "--pack", "tree"]
    done = subprocess.run(
        [sys.executable, "-m", "evals.runner", *words, "--output", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 1
    assert "stable fail (0/1)" in (tmp_path / "report.md").read_text()
    assert json.loads((tmp_path / "report.json").read_text())["groups"][0]["catastrophes"] == 1


def test_attempts_by_hand_are_prepared_and_scored_when_they_are_answered(tmp_path):
    bare = Harness(command="", source="tree")
    made = by_hand.prepare(["not-a-trace"], bare, tmp_path, repeat=2, sides=(True, False))
    labels = [label for label, _ in made]
    guide = made[0][1].read_text()
    (tmp_path / f"{labels[0]}.answer.md").write_text("It is no trace; please give me a profiler trace.")
    told = {"result": "It is a page of text.", "usage": {"input_tokens": 7, "output_tokens": 2}, "seconds": 12.5}
    (tmp_path / f"{labels[1]}.answer.md").write_text(json.dumps(told))
    found = {one.folder.name: one for one in by_hand.attempts(tmp_path)}

    assert labels == [f"not-a-trace-{side}-{number}" for side in ("with", "without") for number in range(2)]
    assert task("not-a-trace").prompt in guide
    assert str(tmp_path / f"{labels[0]}.answer.md") in guide
    assert (tmp_path / labels[0] / ".claude" / "skills" / "rooftrace" / "SKILL.md").is_file()
    assert not (tmp_path / labels[2] / ".claude").exists()
    assert found[labels[0]].answer.startswith("It is no trace")
    assert (found[labels[0]].seconds, found[labels[1]].seconds, found[labels[1]].tokens) == (None, 12.5, 9)
    assert all(value is not False for value in judged(found[labels[0]]).checks.values())
    assert [is_catastrophe(found[label]) for label in labels] == [False, False, True, True]


def test_what_was_written_by_hand_outside_a_run_is_seen(tmp_path):
    ((label, _),) = by_hand.prepare(
        ["not-a-trace"], Harness(command="", source="tree"), tmp_path, repeat=1, sides=(True,)
    )
    (tmp_path / label / "notes.txt").write_text("a file that nobody asked for")
    (tmp_path / f"{label}.answer.md").write_text("It is no trace.")
    (done,) = by_hand.attempts(tmp_path)

    assert done.written == ("notes.txt",)
    assert nothing_else_written(done) is False


def test_the_command_prepares_and_scores_by_hand(tmp_path):
    words = [sys.executable, "-m", "evals.runner", "--by-hand", str(tmp_path / "hand")]
    case = ["--case", "not-a-trace", "--repeat", "1", "--pack", "tree"]
    made = subprocess.run([*words, *case], cwd=ROOT, capture_output=True, text=True, check=False)
    (tmp_path / "hand" / "not-a-trace-with-0.answer.md").write_text("It is no trace.")
    scored = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    neither = subprocess.run(
        [*words[:3], "--case", "standalone"], cwd=ROOT, capture_output=True, text=True, check=False
    )

    assert (made.returncode, scored.returncode, neither.returncode) == (0, 0, 2)
    assert "not-a-trace-with-0.prompt.md" in made.stdout
    assert "Harness: `by hand`" in (tmp_path / "hand" / "report.md").read_text()
    assert "a run takes --harness and --case" in neither.stderr
