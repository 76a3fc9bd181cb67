"""From a trace to a report with a writer's words, whoever stops where."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import pytest

from rooftrace.contracts import store
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import CheckFailed, InputError, UsageError
from rooftrace.pack import ROOT
from rooftrace.report.notice import with_notice, without_notice
from rooftrace.validators import check_run
from rooftrace.workflow import AnalyzeOptions, analyze
from rooftrace.workflow.agents import prepare, report, submit
from rooftrace.workflow.next_step import next_step
from rooftrace.workflow.passed import CACHE, passed_before
from rooftrace.workflow.state import read
from tests.golden_runs.cases import cpu_only, gpu_training
from tests.workflow.prose import prepared_run, prose_for

SOUND = prose_for("gemm.F1")
FALSE = SOUND.replace("compile the step", "win 12 % of it").replace("record the run again", "win 12 % of the span")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_run(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def run(prepared, tmp_path):
    return shutil.copytree(prepared, tmp_path / "run")


def problems_of(run):
    return [str(problem) for problem in check_run(run).problems]


def numbers(run):
    """The report without its words."""
    content = ReportFile.model_validate_json((run / store.REPORT).read_bytes()).model_dump()
    for finding in [*content["findings"], *content["unranked"]]:
        for slot in ("insight", "action", "reasoning", "resolution", "verify"):
            finding.pop(slot)
    return content


# Preparing


def test_a_prepared_run_holds_a_report_and_passes_its_checks(run):
    assert (run / "analysis.md").read_text(encoding="utf-8").startswith("# Performance report")
    assert problems_of(run) == []


def test_a_prepared_run_has_the_numbers_of_one_without_tasks(run, tmp_path):
    trace = gpu_training().write(tmp_path / "trace.json", "plain")
    analyze(trace, tmp_path / "plain", AnalyzeOptions(platform="h100-sxm"))

    assert numbers(run) == numbers(tmp_path / "plain")


def test_the_model_is_the_last_task_and_every_brief_is_there(run):
    state = read(run)

    assert state.tasks[-1].analyzer == "model"
    assert [task.brief for task in state.tasks if not (run / task.brief).is_file()] == []
    assert state.options == {"platform": "h100-sxm"}


def test_a_run_can_be_moved(run, tmp_path):
    moved = shutil.move(run, tmp_path / "elsewhere")

    step = next_step(moved)

    assert str(moved) in step["tasks"][0]["submit"]
    assert (moved / step["tasks"][0]["brief"]).is_file()


def test_a_trace_without_gpu_has_a_report_and_goes_straight_to_it(tmp_path):
    run = prepared_run(tmp_path, cpu_only)

    assert [task.analyzer for task in read(run).tasks] in ([], ["model"])
    assert report(run) == []
    while (step := next_step(run))["action"] == "write_prose":
        pass
    assert step["action"] == "done"


def test_preparing_again_keeps_prose_about_evidence_that_has_not_changed(run, tmp_path):
    submit(run, "gemm", SOUND, "somebody")
    trace = gpu_training().write(tmp_path / "trace.json", "plain")

    state = prepare(trace, run, AnalyzeOptions(platform="h100-sxm"), {})

    assert (state.task("gemm").status, state.task("gemm").writer) == ("accepted", "somebody")
    assert state.task("idle").status == "open"
    assert problems_of(run) == []


def test_preparing_another_trace_drops_the_prose(run, tmp_path):
    submit(run, "gemm", SOUND)
    builder = gpu_training()
    builder.kernel("slow", 900, 50)
    trace = builder.write(tmp_path / "other.json", "plain")

    state = prepare(trace, run, AnalyzeOptions(platform="h100-sxm"), {})

    assert {task.status for task in state.tasks} == {"open"}
    assert not (run / "prose/gemm.json").exists()


# Handing in


def test_sound_prose_enters_the_report_and_no_number_changes(run):
    before = numbers(run)

    task, problems = submit(run, "gemm", SOUND, "somebody")

    assert (problems, task.status) == ([], "accepted")
    stored = json.loads((run / "prose/gemm.json").read_bytes())
    assert stored["evidence_sha256"] == store.sha256((run / "evidence/gemm.json").read_bytes())
    assert "Wrap the step in `torch.compile`" in (run / "report.json").read_text(encoding="utf-8")
    assert numbers(run) == before
    assert problems_of(run) == []


def test_prose_with_a_number_of_its_own_is_refused_by_finding_and_slot(run):
    task, problems = submit(run, "gemm", FALSE)

    assert task.status == "handed_out"
    assert problems[0].startswith("GROUND001: ")
    assert "  gemm.F1 action: `12`" in problems[1]
    assert not (run / "prose/gemm.json").exists()
    assert problems_of(run) == []


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("nothing of the kind", "`nothing of the kind` belongs to no slot"),
        ("{", "PROSE001: "),
        ("[]", "`[]` belongs to no slot"),
        ('{"findings": 5}', "PROSE001: "),
        (prose_for(), "PROSE002: "),
        (prose_for("gemm.F1", "gemm.F9"), "PROSE002: "),
        (SOUND.replace("kernels of this", "kernels {{gemm.F1.speed_pct}} of this"), "GROUND002: "),
    ],
    ids=[
        "no prose",
        "cut JSON",
        "a list",
        "JSON of another form",
        "a finding missing",
        "an unknown finding",
        "an unknown id",
    ],
)
def test_what_is_wrong_is_told_and_counted(run, text, start):
    task, problems = submit(run, "gemm", text)

    assert [line for line in problems if line.startswith(start)]
    assert task.submissions == 1


def test_a_schema_problem_names_the_finding(run):
    _, problems = submit(run, "gemm", "summary: A sentence that is long enough.\ngemm.F1\ninsight: Short.")

    assert problems[1].startswith("  gemm.F1 insight: ")


def test_the_models_name_enters_the_report(run):
    text = "name: Test network 7B\nfamily: single layer (training)\nconfidence: low\n"
    text += "reasoning: The only class is `Linear`.\nsummary: A single layer, trained in {{model.precision}}."

    task, problems = submit(run, "model", text)

    assert (problems, task.status) == ([], "accepted")
    row = next(line for line in (run / "analysis.md").read_text(encoding="utf-8").splitlines() if "Which model" in line)
    assert [words in row for words in ("Test network 7B", "single layer", "A single layer, trained in bfloat16")] == [
        True
    ] * 3
    assert problems_of(run) == []


def test_a_damaged_run_is_not_counted_against_the_writer(run):
    (run / "evidence/gemm.json").write_text("{", encoding="utf-8")

    with pytest.raises(CheckFailed, match="does not match its schema"):
        submit(run, "gemm", SOUND)
    assert read(run).task("gemm").submissions == 0


def test_an_analyzer_without_a_task_is_refused(run):
    with pytest.raises(UsageError, match="no prose is asked for `moe`"):
        submit(run, "moe", SOUND)


def test_a_run_that_was_not_prepared_takes_no_prose(tmp_path):
    trace = gpu_training().write(tmp_path / "trace.json", "plain")
    analyze(trace, tmp_path / "run", AnalyzeOptions(platform="h100-sxm"))

    with pytest.raises(InputError, match="was not prepared"):
        submit(tmp_path / "run", "gemm", SOUND)
    assert report(tmp_path / "run") == []


def test_what_was_just_written_is_known_to_have_passed(tmp_path, monkeypatch):
    """So that `check` answers at once, also the first time."""
    monkeypatch.setenv(CACHE, str(tmp_path / "cache"))

    run = prepared_run(tmp_path)
    prepared = passed_before(run)
    submit(run, "gemm", SOUND)

    assert prepared is not None
    assert passed_before(run) == prepared
    (run / "analysis.md").write_text("mine", encoding="utf-8")
    assert passed_before(run) is None


# The whole way


def test_a_writer_who_always_fails_holds_nothing_up(run):
    """Each of the tasks is handed out twice and refused three times each: 6 refusals a task."""
    refused, handed_out = 0, 0
    while (step := next_step(run))["action"] == "write_prose":
        handed_out += len(step["tasks"])
        for task in step["tasks"]:
            for _ in range(3):
                refused += bool(submit(run, task["analyzer"], "nonsense")[1])

    tasks = len(read(run).tasks)
    assert (handed_out, refused) == (2 * tasks, 6 * tasks)
    assert step["action"] == "report"
    assert report(run) == []
    assert next_step(run)["action"] == "done"


def test_a_retry_is_told_what_was_wrong_before(run):
    next_step(run)
    for _ in range(3):
        submit(run, "gemm", FALSE)

    again = [task for _ in range(3) for task in next_step(run)["tasks"] if task["problems"]]

    assert [task["analyzer"] for task in again] == ["gemm"]
    assert again[0]["problems"][0].startswith("GROUND001: ")


def test_another_session_goes_on_from_the_folder_alone(run):
    """The first one stops after handing out; the second, a new process, gets the same tasks and ends the run."""
    first = next_step(run)
    code = "import json, sys; from pathlib import Path; from rooftrace.workflow.next_step import next_step\n"
    code += "print(json.dumps(next_step(Path(sys.argv[1]))))"

    def ask():
        command = [sys.executable, "-c", code, str(run)]
        out = subprocess.run(
            command,
            env={"PYTHONPATH": str(ROOT / "scripts"), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            check=True,
        )
        return json.loads(out.stdout)

    submit(run, "gemm", SOUND)
    seen = {task["analyzer"] for task in first["tasks"]}
    while (step := ask())["action"] == "write_prose":
        seen |= {task["analyzer"] for task in step["tasks"]}

    assert seen == {task.analyzer for task in read(run).tasks}
    assert report(run) == []
    assert ask()["action"] == "done"
    assert "Wrap the step in `torch.compile`" in (run / "report.json").read_text(encoding="utf-8")


def test_a_run_that_nobody_touched_for_long_is_resumed_by_itself(run):
    first = [task["analyzer"] for task in next_step(run)["tasks"]]
    assert set(first) & {task["analyzer"] for task in next_step(run)["tasks"]} == set()

    old = (run / "state.json").stat().st_mtime - 3_600
    os.utime(run / "state.json", (old, old))
    step = next_step(run)

    assert [task["analyzer"] for task in step["tasks"]] == first
    assert step["note"].startswith(f"Handed out before and not back, so here again: {', '.join(first)}. ")


def test_what_came_back_and_was_refused_is_not_said_to_be_out(run):
    names = [task["analyzer"] for task in next_step(run)["tasks"]]
    submit(run, names[0], "nonsense")

    waiting = next_step(run)
    assert waiting["note"].startswith(
        f"Handed in and refused: {names[0]}; at once again with `next --resume`. "
        f"Handed out before and not back: {', '.join(names[1:])}; at once again with `next --resume`."
    )
    assert waiting["waiting_for"] == names
    assert next_step(run, is_resumed=True)["note"].startswith(
        f"Handed in and refused, so here again: {names[0]}. "
        f"Handed out before and not back, so here again: {', '.join(names[1:])}."
    )
    # nothing was handed in since
    task = read(run).task(names[0])
    assert (task.dispatches, task.submissions) == (2, 0)


def test_a_text_handed_in_after_the_end_is_in_the_report_and_the_run_stays_done(run):
    while next_step(run)["action"] == "write_prose":
        pass
    assert report(run) == []
    assert next_step(run)["action"] == "done"

    assert submit(run, "gemm", SOUND)[1] == []

    assert "Wrap the step in `torch.compile`" in (run / "report.json").read_text(encoding="utf-8")
    assert next_step(run)["action"] == "done"
    assert submit(run, "gemm", FALSE)[1] != []
    assert next_step(run)["action"] == "done"
    assert problems_of(run) == []


def test_an_early_report_is_not_asked_for_again_when_the_last_words_are_handed_in(run):
    from rooftrace.report.asked import asked_findings

    names = [task.analyzer for task in read(run).tasks]
    assert report(run) == []
    asked = asked_findings(ReportFile.model_validate_json((run / store.REPORT).read_bytes()))
    model = "name: Some-1 net\nfamily: network, training\nconfidence: low\n"
    model += "reasoning: The evidence names no model that is known.\nsummary: A small network that was trained.\n"
    for name in names:
        text = model if name == "model" else prose_for(*(finding.id for finding in asked[name]))
        assert (name, submit(run, name, text)[1]) == (name, [])

    assert (notice(run), problems_of(run)) == ("", [])
    assert next_step(run)["action"] == "done"


def test_a_name_with_other_characters_is_told_which_it_may_hold(run):
    text = "name: ViT, `base`\nfamily: 2 towers, `a`\nconfidence: low\nreasoning: %s\nsummary: %s\n"

    problems = submit(run, "model", text.replace("%s", "The evidence names no model that is known."))[1]

    signs = "it may hold letters, digits, spaces and . _ + / ( ) -"
    assert problems[1:] == [
        f"  name: it holds , `; {signs}, and begins with a letter",
        f"  family: it holds `; {signs} and commas, and begins with a letter",
    ]
    problems = submit(run, "model", text.replace("%s", "The evidence names no model.").replace("`", "", 4))[1]
    assert problems[2:] == [f"  family: it begins with no letter; {signs} and commas, and begins with a letter"]


def notice(run):
    """The lines under the title of the report, down to its first section."""
    text = (run / "analysis.md").read_text(encoding="utf-8")
    return text.split("\n", 1)[1].split("\n## ")[0].strip()


def test_the_report_says_whose_words_are_open_until_none_is(run):
    start = "> Words still open for "
    end = ": run `next`. Numbers, titles and order stay as they are."
    names = [task.analyzer for task in read(run).tasks]
    assert notice(run) == f"{start}{', '.join(names)}{end}"

    submit(run, "gemm", SOUND)
    names.remove("gemm")
    assert notice(run) == f"{start}{', '.join(names)}{end}"
    assert problems_of(run) == []

    while (step := next_step(run))["action"] == "write_prose":
        assert report(run) == []
        assert notice(run).startswith(start)
    assert (step["action"], problems_of(run)) == ("report", [])
    assert report(run) == []
    assert notice(run) == ""
    assert next_step(run)["action"] == "done"


@pytest.mark.parametrize("names", [["gemm"], ["gemm", "multi_kernel", "model"]], ids=len)
def test_the_notice_comes_off_as_it_went_on(names):
    text = "# Title\n\n## First\n\nWords.\n"

    assert without_notice(text) == text
    assert with_notice(text, []) == text
    assert with_notice(text, names) != text
    assert without_notice(with_notice(text, names)) == text


@pytest.mark.parametrize("line", ["Words gone for gemm", "Words still open for gemm: all is fast. Numbers"])
def test_a_line_that_only_looks_like_the_notice_stays(line):
    text = with_notice("# Title\n\n## First\n", ["gemm"])
    other = text.replace("Words still open for gemm", line)

    assert other != text
    assert without_notice(other) == other


def test_a_report_changed_by_hand_is_to_be_written_again(run):
    while next_step(run)["action"] == "write_prose":
        pass
    report(run)
    (run / "analysis.md").write_text("mine", encoding="utf-8")

    assert next_step(run)["action"] == "report"
    assert report(run) == []
    assert next_step(run)["action"] == "done"


def test_a_damaged_run_is_told_by_report_and_next_asks_for_a_check(run):
    while next_step(run)["action"] == "write_prose":
        pass
    path = run / "evidence/replay.json"
    path.write_bytes(path.read_bytes() + b"\n")

    assert any("evidence/replay.json was changed" in problem for problem in report(run))
    step = next_step(run)
    assert (step["action"], "check" in step["command"]) == ("check", True)


def test_every_next_step_matches_its_contract(run):
    from rooftrace.contracts.state import NextStep

    steps = [next_step(run) for _ in range(5)]
    report(run)
    steps.append(next_step(run))

    assert {NextStep.model_validate(step).action for step in steps} == {"write_prose", "report", "done"}
