"""What an agent is told to do next, as the contract's ``NextStep`` has it. Loads nothing heavy."""

from __future__ import annotations

import hashlib
import os
import shlex
import time
from typing import TYPE_CHECKING

from rooftrace.contracts.kinds import page_of
from rooftrace.pack import ROOT
from rooftrace.workflow import state as states

if TYPE_CHECKING:
    from pathlib import Path

    from rooftrace.workflow.state import State, Task

# A writer needs minutes; after this long without any change nobody is at work.
_LEFT_S = 1_800.0


def next_step(run: Path, *, is_resumed: bool = False) -> dict[str, object]:
    """Hand out tasks, or tell the command to run now, or that the run is done.

    `is_resumed`: whoever had tasks before is gone, so that theirs come first. It holds by itself where nothing has
    happened to the run for a while.
    """
    resumed = is_resumed or _is_left(run)
    before, state, tasks = states.update(run, lambda state: _handed_out(state, is_resumed=resumed))
    if tasks:
        return _told("write_prose", (before, state), tasks=[_task(run, task) for task in tasks])
    digest = _digest(run / page_of(run))
    for action, done in (("report", state.report_sha256), ("check", state.checked_sha256)):
        if done is None or done != digest:
            return _told(action, (before, state), command=command(action, run))
    return _told("done", (before, state))


def _is_left(run: Path) -> bool:
    """Whether the state is so old that nobody can be at work on it any more."""
    try:
        return time.time() - (run / states.STATE).stat().st_mtime > _LEFT_S
    except OSError:
        return False


def command(name: str, run: Path, *more: str) -> str:
    """A command line of this pack, as it can be run from anywhere."""
    launcher = ROOT / "scripts" / "rooftrace.py"
    python = "py -3" if os.name == "nt" else "python3"
    start = f"{python} {shlex.quote(str(launcher))}" if launcher.is_file() else "rooftrace"
    return " ".join([start, name, shlex.quote(str(run.resolve())), *more])


def _handed_out(state: State, *, is_resumed: bool) -> tuple[State, tuple[State, State, list[Task]]]:
    after, tasks = states.hand_out(state, is_resumed=is_resumed)
    return after, (state, after, tasks)


def _task(run: Path, task: Task) -> dict[str, object]:
    return {
        "analyzer": task.analyzer,
        "brief": task.brief,
        "submit": command("submit", run, task.analyzer),
        "problems": list(task.problems),
    }


def _told(
    action: str,
    states_of_it: tuple[State, State],
    *,
    tasks: list[dict[str, object]] | None = None,
    command: str | None = None,
) -> dict[str, object]:
    before, after = states_of_it
    now = {str(task["analyzer"]) for task in tasks or ()}
    again = [task for task in before.tasks if task.status == "handed_out" and task.analyzer in now]
    late = [task for task in after.tasks if task.status == "handed_out" and task.analyzer not in now]
    note = " ".join(filter(None, [*_returning(again, late), _note(after, now)]))
    waiting = [task.analyzer for task in late]
    return {"action": action, "tasks": tasks or [], "command": command, "waiting_for": waiting, "note": note}


def _returning(again: list[Task], late: list[Task]) -> list[str]:
    """What is said of tasks that were handed out before: those not back, and those that came back and were refused."""
    told = [f"{words}, so here again: {names}." for words, names in _by_return(again)]
    return told + [f"{words}: {names}; at once again with `next --resume`." for words, names in _by_return(late)]


def _by_return(tasks: list[Task]) -> list[tuple[str, str]]:
    """Names by what has become of their text since they were handed out."""
    groups = (("Handed in and refused", True), ("Handed out before and not back", False))
    listed = [(words, [task.analyzer for task in tasks if bool(task.submissions) is came]) for words, came in groups]
    return [(words, ", ".join(names)) for words, names in listed if names]


def _note(state: State, now: set[str]) -> str:
    """How far it is, without the tasks of this very call."""
    parts = []
    for status, words in _WORDS.items():
        names = [task.analyzer for task in state.tasks if task.status == status and task.analyzer not in now]
        parts += [f"{words}: {', '.join(names)}"] if names else []
    if parts:
        return f"Prose {'; '.join(parts)}."
    return "" if state.tasks else "No prose is asked for: the report has the pack's own words."


_WORDS = {
    "accepted": "accepted",
    "open": "still open",
    "fallen_back": "left to the pack's own words (`submit` still takes them)",
}


def _digest(path: Path) -> str | None:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return None
