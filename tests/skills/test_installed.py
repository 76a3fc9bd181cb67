"""The pack, installed and run with the real tools; each is skipped with its reason where it cannot be had."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from rooftrace.workflow.state import read as read_state
from tests.golden_runs.cases import gpu_training
from tests.repository.files import repository_files
from tests.repository.skills import skill_files
from tests.skills.messages_mock import scripted
from tests.workflow.prose import prose_for

CODEX_SKILLS = [
    "rooftrace:capture-trace",
    "rooftrace:compare",
    "rooftrace:explain-finding",
    "rooftrace:rooftrace",
    "rooftrace:what-if",
]


# The installer


def test_one_skill_arrives_whole_for_every_harness(project):
    installed, link = project / ".agents/skills/rooftrace", project / ".claude/skills/rooftrace"

    assert [path.name for path in (project / ".agents/skills").iterdir()] == ["rooftrace"]
    assert link.resolve() == installed.resolve()
    assert [str(path) for path in repository_files() if not (installed / path).is_file()] == []


@pytest.mark.parametrize("flags", [(), ("-I",)], ids=["plain", "isolated"])
def test_the_launcher_works_from_where_it_was_installed(project, variables, flags, tmp_path):
    launcher = project / ".claude/skills/rooftrace/scripts/rooftrace.py"
    before = sorted((project / ".agents").rglob("*"))

    command = [sys.executable, *flags, str(launcher), "platforms"]
    done = subprocess.run(command, cwd=tmp_path, env=dict(variables), capture_output=True, text=True, check=False)

    assert (done.returncode, done.stdout != "") == (0, True), done.stderr
    assert sorted((project / ".agents").rglob("*")) == before


# The validators


def test_every_skill_is_valid_by_the_specification(validate_skill, pack):
    results = [validate_skill((pack / path).parent) for path in skill_files()]

    assert [done.stdout + done.stderr for done in results if done.returncode] == []


@pytest.mark.parametrize("path", ["", ".claude-plugin/plugin.json"], ids=["marketplace", "plugin"])
def test_the_plugin_is_valid_and_provides_every_skill(claude, pack, variables, path):
    command = [str(claude), "plugin", "validate", "--strict", str(pack / path)]
    done = subprocess.run(command, env=dict(variables), capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert [name for name in CODEX_SKILLS if name not in done.stdout] == []


# Codex


def test_codex_lists_each_skill_once(codex, project, variables):
    asked = [
        {"id": 1, "method": "initialize", "params": {"clientInfo": {"name": "t", "title": "t", "version": "0"}}},
        {"method": "initialized"},
        {"id": 2, "method": "skills/list", "params": {"cwds": [str(project)], "forceReload": True}},
    ]
    command = [str(codex), "app-server"]
    process = subprocess.Popen(
        command, cwd=project, env=dict(variables), stdin=-1, stdout=-1, stderr=subprocess.DEVNULL, text=True
    )
    with process:
        for line in asked:
            process.stdin.write(json.dumps({"jsonrpc": "2.0", **line}) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout if line.startswith("{"))
        listed = next(answer["result"]["data"] for answer in answers if answer.get("id") == 2)
        process.kill()

    names = [skill["name"] for entry in listed for skill in entry["skills"] if skill["scope"] != "system"]
    assert [error for entry in listed for error in entry["errors"]] == []
    assert sorted(names) == CODEX_SKILLS


# Claude Code, with a script in the place of a model


def call(tool, **arguments):
    return [{"type": "tool_use", "name": tool, "input": arguments}]


def shell(command):
    return call("Bash", command=command, description="a step")


def played(claude, project, variables, turns):
    """Results of the calls, in order, and the last event of a session in the default permission mode."""
    options = [
        "--output-format",
        "stream-json",
        "--verbose",
        "--no-session-persistence",
        "--allowedTools",
        "Skill Agent",
    ]
    with scripted([*turns, [{"type": "text", "text": "done"}]]) as mock:
        done = subprocess.run(
            [str(claude), "-p", "go", *options],
            cwd=project,
            env={
                **variables,
                "ANTHROPIC_API_KEY": "none",
                "ANTHROPIC_BASE_URL": mock.url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=240,
        )
    events = [json.loads(line) for line in done.stdout.splitlines()]
    contents = [(event["message"]["content"], event) for event in events if event["type"] == "user"]
    blocks = [(block, event) for content, event in contents if isinstance(content, list) for block in content]
    results = [
        {**block, "is_of_agent": event.get("parent_tool_use_id") is not None}
        for block, event in blocks
        if block["type"] == "tool_result"
    ]
    return results, events[-1], mock


def told(result):
    """Text of a call's result."""
    content = result["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


@pytest.fixture
def trace(tmp_path):
    return gpu_training().write(tmp_path / "trace.json", "plain")


def test_the_whole_way_needs_no_permission(claude, project, variables, trace):
    """Skill, prepare, next, brief, submit, check, next to the end, report: in the default mode, untrusted folder."""
    launch = f"python3 {project}/.claude/skills/rooftrace/scripts/rooftrace.py"
    run = project / "run"
    turns = [
        call("Skill", skill="rooftrace"),
        shell(f"{launch} prepare {trace} -o {run} --platform h100-sxm"),
        shell(f"{launch} next {run}"),
        call("Read", file_path=str(run / "tasks/gemm.md")),
        shell(f"{launch} submit {run} gemm <<'PROSE'\n{prose_for('gemm.F1')}PROSE"),
        shell(f"{launch} check {run}"),
        *[shell(f"{launch} next {run}") for _ in range(5)],
        shell(f"{launch} report {run}"),
        shell(f"{launch} next {run}"),
        call("Read", file_path=str(run / "analysis.md")),
    ]

    results, last, mock = played(claude, project, variables, turns)

    assert last["permission_denials"] == []
    assert [told(result) for result in results if result.get("is_error")] == []
    assert len(results) == len(turns)
    assert "# Task: words for `gemm`" in told(results[3])
    assert "accepted gemm" in told(results[4])
    assert "checks passed" in told(results[5])
    assert "done" in told(results[-2])
    assert read_state(run).task("gemm").status == "accepted"
    skill = next(request for request in mock.requests if "Base directory for this skill" in json.dumps(request))
    assert "Run one plain command per call" in json.dumps(skill)


def test_a_sub_agent_hands_in_without_being_asked(claude, project, variables, trace):
    """The grant of the skill covers the agents it dispatches: the calls after `Agent` are theirs."""
    launch = f"python3 {project}/.claude/skills/rooftrace/scripts/rooftrace.py"
    run = project / "run-of-agents"
    task = f"Read {run}/tasks/gemm.md and follow it."
    turns = [
        call("Skill", skill="rooftrace"),
        shell(f"{launch} prepare {trace} -o {run} --platform h100-sxm"),
        call(
            "Agent",
            description="words for gemm",
            prompt=task,
            subagent_type="general-purpose",
            run_in_background=False,
        ),
        call("Read", file_path=str(run / "tasks/gemm.md")),
        shell(f"{launch} submit {run} gemm <<'PROSE'\n{prose_for('gemm.F1')}PROSE"),
    ]

    results, last, mock = played(claude, project, variables, turns)

    assert last["permission_denials"] == []
    assert mock.turns == []
    assert [result["is_of_agent"] for result in results] == [False, False, True, True, False]
    assert read_state(run).task("gemm").status == "accepted"
