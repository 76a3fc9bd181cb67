"""``prepare``, ``next``, ``submit`` and ``report`` as an agent calls them."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from rooftrace.workflow.state import read as read_state
from tests.cli.conftest import LAUNCHER, ROOT
from tests.golden_runs.cases import gpu_training
from tests.workflow.prose import prepared_run, prose_for


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_run(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def run(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "run")


@pytest.fixture
def prose(tmp_path):
    path = tmp_path / "prose.txt"
    path.write_text(prose_for("gemm.F1"), encoding="utf-8")
    return path


def test_prepare_prints_the_folder_and_names_the_next_command(call, here):
    gpu_training().write(here / "trace.json", "plain")

    outcome = call("prepare", "trace.json", "--platform", "h100-sxm", "-q")

    assert (outcome.code, outcome.out) == (0, "rooftrace-runs/trace\n")
    next_line = outcome.err.splitlines()[-1]
    assert next_line == f"next: python3 {shlex.quote(str(LAUNCHER))} next {here / 'rooftrace-runs/trace'}"
    assert json.loads((here / "rooftrace-runs/trace/state.json").read_bytes())["options"] == {"platform": "h100-sxm"}


def test_prepare_of_a_run_says_how_to_go_on(call, run):
    outcome = call("prepare", run)

    assert (outcome.code, outcome.out) == (3, "")
    assert f"next {run}`" in outcome.err


@pytest.mark.parametrize(("options", "code"), [(("--platform", "b9999"), 2), (("--steps", "99"), 2)])
def test_prepare_writes_nothing_where_an_option_is_wrong(call, here, options, code):
    gpu_training().write(here / "trace.json", "plain")

    assert call("prepare", "trace.json", "-o", "run", *options).code == code
    assert sorted(path.name for path in here.iterdir()) == ["trace.json"]


def test_next_names_briefs_and_commands_that_can_be_run_as_they_stand(call, run):
    lines = call("next", run).out.splitlines()

    briefs = [line.split("brief:")[1].strip() for line in lines if "brief:" in line]
    submits = [line.split("submit:")[1].strip() for line in lines if "submit:" in line]
    assert [Path(path).is_file() for path in briefs] == [True, True, True]
    assert submits[0] == f"python3 {shlex.quote(str(LAUNCHER))} submit {run} {lines[2]}"


def test_the_last_line_of_both_streams_is_the_one_to_answer_with(run, prose, variables):
    ends = []
    for text in (prose_for("gemm.F1"), "nonsense"):
        prose.write_text(text, encoding="utf-8")
        command = [sys.executable, str(LAUNCHER), "submit", str(run), "gemm", str(prose)]
        done = subprocess.run(
            command, env=dict(variables), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
        )
        ends.append(done.stdout.splitlines()[-1])

    assert ends == ["accepted gemm: its words are in the report", "refused gemm"]


def test_next_says_once_how_the_text_goes_in(call, run):
    told = [line for line in call("next", run).out.splitlines() if "<<'PROSE'" in line]

    assert told == [
        "The text goes in on stdin, as each brief shows (submit … <<'PROSE'), or as a file (submit … FILE)."
    ]


def test_a_resumed_run_names_what_comes_again_and_no_task_of_this_call_as_being_elsewhere(call, run):
    first, second = call("next", run), call("next", run)
    resumed = call("next", run, "--resume")

    names = [task.analyzer for task in read_state(run).tasks]
    three, two = ", ".join(names[:3]), ", ".join(names[3:])
    assert len(names) == 5
    assert first.err == f"Prose still open: {two}.\n"
    assert second.err == f"Handed out before and not back: {three}; at once again with `next --resume`.\n"
    assert resumed.out.count("submit: ") == 3
    assert resumed.err == (
        f"Handed out before and not back, so here again: {three}. "
        f"Handed out before and not back: {two}; at once again with `next --resume`.\n"
    )


def test_next_goes_through_report_to_done(call, run):
    actions = []
    for _ in range(12):
        step = json.loads(call("next", run, "--json").out)
        actions.append(step["action"])
        if step["action"] == "report":
            assert call("report", run).code == 0
        if step["action"] == "done":
            break

    assert actions[-2:] == ["report", "done"]
    assert set(actions[:-2]) == {"write_prose"}
    assert call("next", run).out.splitlines() == ["done", f"  {run / 'analysis.md'}"]


def test_submit_reads_a_file_and_prints_what_it_wrote(call, run, prose):
    outcome = call("submit", run, "gemm", prose, "--writer", "somebody")

    assert (outcome.code, outcome.out, outcome.err) == (
        0,
        "prose/gemm.json\naccepted gemm: its words are in the report\n",
        "",
    )
    assert call("check", run).code == 0


def test_submit_tells_every_problem_and_how_often_it_may_be_mended(call, run, prose):
    prose.write_text(prose_for("gemm.F1").replace("the step", "9 of 10 steps"), encoding="utf-8")

    tries = [call("submit", run, "gemm", prose) for _ in range(3)]

    assert [outcome.code for outcome in tries] == [1, 1, 1]
    assert "gemm.F1 action: `9`" in tries[0].out
    assert {outcome.out.splitlines()[-1] for outcome in tries} == {"refused gemm"}
    assert [outcome.err.splitlines()[-1].split("hint: ")[1] for outcome in tries] == [
        "Mend what stdout names, by rule and place, and submit the whole text again (up to 2 times)",
        "Mend what stdout names, by rule and place, and submit the whole text again (once more)",
        "Stop here and answer `refused gemm`: the report keeps the pack's own words unless another writer does better",
    ]


def test_submit_as_json_says_whether_it_was_accepted(call, run, prose):
    assert json.loads(call("submit", run, "gemm", prose, "--json").out) == {
        "accepted": True,
        "status": "accepted",
        "problems": [],
    }


@pytest.mark.parametrize(
    ("line", "code", "word"),
    [
        ("next nowhere", 3, "is no run"),
        ("submit nowhere gemm prose.txt", 3, "is no run"),
        ("submit run moe prose.txt", 2, "Tasks of this run: "),
        ("submit run gemm nowhere", 3, "cannot read `nowhere`"),
        ("report nowhere", 3, "does not exist"),
        ("report prose.txt", 3, "is a file, not a folder"),
        ("report .", 3, "is a directory and not a run"),
    ],
)
@pytest.mark.usefixtures("prose")
def test_what_cannot_be_done_is_one_line_and_a_hint(call, run, monkeypatch, line, code, word):
    monkeypatch.chdir(run.parent)

    outcome = call(*line.split())

    assert (outcome.code, outcome.out) == (code, "")
    assert word in outcome.err
    assert "hint: " in outcome.err


def test_prose_from_a_pipe_is_read_through_the_launcher(run, prose, variables):
    command = [sys.executable, "-I", str(LAUNCHER), "submit", str(run), "gemm"]
    with prose.open("rb") as stdin:
        done = subprocess.run(command, stdin=stdin, env=dict(variables), capture_output=True, check=False)

    assert (done.returncode, done.stdout) == (0, b"prose/gemm.json\naccepted gemm: its words are in the report\n")


def test_writers_who_hand_in_at_once_are_all_in_the_report(call, run, variables):
    """Two processes, one task each, while a third asks for the next step."""
    asked = {task.stem: task.read_text(encoding="utf-8") for task in (run / "tasks").glob("*.md")}
    at_work = []
    for name in ("gemm", "idle"):
        prose = run.parent / f"{name}.txt"
        prose.write_text(prose_for(*re.findall(rf"^({name}\.F\d+): ", asked[name], re.M)), encoding="utf-8")
        at_work.append(["submit", str(run), name, str(prose)])
    processes = [
        subprocess.Popen([sys.executable, "-m", "rooftrace", *words], env=dict(variables), stdout=subprocess.DEVNULL)
        for words in (*at_work, ["next", str(run)])
    ]

    assert [process.wait(120) for process in processes] == [0, 0, 0]
    tasks = {task.analyzer: task.status for task in read_state(run).tasks}
    assert (tasks["gemm"], tasks["idle"]) == ("accepted", "accepted")
    assert call("check", run).code == 0


def test_next_loads_nothing_that_takes_long(start, run):
    code = "import sys, rooftrace.cli; rooftrace.cli.main(sys.argv[1:]); print('loaded', *sorted(sys.modules))"

    loaded = start("next", run, program=("-c", code)).out.split("loaded", 1)[1].split()

    heavy = {"numpy", "pydantic", "msgspec", "ijson", "jinja2", "rooftrace.report", "rooftrace.workflow.run"}
    assert "rooftrace.workflow.next_step" in loaded
    assert sorted(heavy & set(loaded)) == []


def test_every_command_of_the_way_leaves_the_pack_as_it_was(run, prose, variables):
    before = {path: path.stat().st_mtime_ns for path in (ROOT / "skills").rglob("*")}
    for arguments in (["next", run], ["submit", run, "gemm", prose], ["report", run], ["check", run]):
        command = [sys.executable, str(LAUNCHER), *map(str, arguments)]
        assert subprocess.run(command, env=dict(variables), capture_output=True, check=False).returncode == 0

    assert {path: path.stat().st_mtime_ns for path in (ROOT / "skills").rglob("*")} == before


def test_a_folder_with_a_space_comes_out_quoted(call, run):
    folder = run.rename(run.parent / "a run's")

    step = json.loads(call("next", folder, "--json").out)

    assert shlex.split(step["tasks"][0]["submit"]) == ["python3", str(LAUNCHER), "submit", str(folder), "idle"]


def test_a_check_that_passed_before_loads_nothing_that_takes_long(start, run, tmp_path):
    code = "import sys, rooftrace.cli; rooftrace.cli.main(sys.argv[1:]); print('loaded', *sorted(sys.modules))"
    cache = {"ROOFTRACE_COMPILED_TEMPLATES": str(tmp_path / "cache")}

    first, second = (start("check", run, program=("-c", code), **cache) for _ in range(2))

    assert "pydantic" in first.out.split()
    assert {"pydantic", "numpy", "rooftrace.validators"} & set(second.out.split()) == set()
    assert first.err == second.err
    assert second.err.endswith(" checks passed\n")
