"""What an agent is told to do next, as the contract's ``NextStep`` has it. Loads nothing heavy."""

from __future__ import annotations

import hashlib
import os
import shlex
from typing import TYPE_CHECKING

from rooftrace.pack import ROOT
from rooftrace.workflow import state as states

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.workflow.state import State, Task

_ANALYSIS = "analysis.md"


def next_step(run: Path) -> dict[str, object]:
    """Hand out tasks, or tell the command to run now, or that the run is done."""
    state, tasks = states.update(run, _handed_out)
    if tasks:
        return _told("write_prose", state, tasks=[_task(run, task) for task in tasks])
    digest = _digest(run / _ANALYSIS)
    for action, done in (("report", state.report_sha256), ("check", state.checked_sha256)):
        if done is None or done != digest:
            return _told(action, state, command=command(action, run))
    return _told("done", state)


def command(name: str, run: Path, *more: str) -> str:
    """A command line of this pack, as it can be run from anywhere."""
    launcher = ROOT / "scripts" / "rooftrace.py"
    python = "py -3" if os.name == "nt" else "python3"
    start = f"{python} {shlex.quote(str(launcher))}" if launcher.is_file() else "rooftrace"
    return " ".join([start, name, shlex.quote(str(run.resolve())), *more])


def _handed_out(state: State) -> tuple[State, tuple[State, list[Task]]]:
    after, tasks = states.hand_out(state)
    return after, (after, tasks)


def _task(run: Path, task: Task) -> dict[str, object]:
    return {
        "analyzer": task.analyzer,
        "brief": task.brief,
        "submit": command("submit", run, task.analyzer),
        "problems": list(task.problems),
    }


def _told(
    action: str, state: State, *, tasks: list[dict[str, object]] | None = None, command: str | None = None
) -> dict[str, object]:
    now = {str(task["analyzer"]) for task in tasks or ()}
    late = [task.analyzer for task in state.tasks if task.status == "handed_out" and task.analyzer not in now]
    return {"action": action, "tasks": tasks or [], "command": command, "waiting_for": late, "note": _note(state)}


def _note(state: State) -> str:
    by_status = {status: [task.analyzer for task in state.tasks if task.status == status] for status in _WORDS}
    parts = [f"{_WORDS[status]}: {', '.join(names)}" for status, names in by_status.items() if names]
    return f"Prose {'; '.join(parts)}." if parts else "No prose is asked for: the report has the pack's own words."


_WORDS = {
    "accepted": "accepted",
    "handed_out": "being written",
    "open": "still open",
    "fallen_back": "left to the pack's own words",
}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
