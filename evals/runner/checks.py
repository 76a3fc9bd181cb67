"""What code can see of an attempt. A check is True, False, or None where it does not apply."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evals.runner.attempt import Attempt
from evals.runner.tasks import ROOT

Check = Callable[[Attempt], "bool | None"]
HEADINGS = ("Executive Summary", "What To Do First", "Trace Health")
FIGURE = re.compile(r"(?<![\w.])(\d[\d,]*(?:\.\d+)?)\s?(%|ms|µs|us|ns|s\b|GB/s|TFLOP/s|x\b)")
NAMES = (re.compile(r"\b[a-z_]+\.F\d+\b"), re.compile(r"\b(?:aten|c10d|triton|vllm|_C)::\w+"))
"""What an answer may only have from the run: ids of findings, and ops by their full names."""
FIRST = 3


def _command(attempt: Attempt, *words: str) -> subprocess.CompletedProcess[str]:
    """A command of the pack; without one installed, of this repository."""
    launcher = (attempt.pack or ROOT) / "scripts" / "rooftrace.py"
    return subprocess.run(  # noqa: S603 - own launcher
        [sys.executable, str(launcher), *words], capture_output=True, text=True, check=False, cwd=attempt.folder
    )


def _report(attempt: Attempt) -> dict[str, Any] | None:
    path = attempt.run / "report.json" if attempt.run else None
    if path is None or not path.is_file():
        return None
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def finished(attempt: Attempt) -> bool:
    """The harness ended by itself, without an error, and said something."""
    return attempt.exit_code == 0 and bool(attempt.answer.strip())


def run_written(attempt: Attempt) -> bool | None:
    """A run folder with report and page; none where the file was no trace."""
    made = attempt.run is not None and (attempt.run / "analysis.md").is_file()
    if not attempt.task.analyses:
        return not made
    return made if attempt.pack else None


def workflow_followed(attempt: Attempt) -> bool | None:
    """`next` says that nothing is left to do."""
    if not attempt.task.analyses or attempt.pack is None:
        return None
    if attempt.run is None:
        return False
    done = _command(attempt, "next", str(attempt.run), "--json")
    return done.returncode == 0 and json.loads(done.stdout).get("action") == "done"


def prose_accepted(attempt: Attempt) -> bool | None:
    """Every task that was handed out came back sound."""
    if not attempt.task.analyses or attempt.pack is None:
        return None
    path = attempt.run / "state.json" if attempt.run else None
    if path is None or not path.is_file():
        return False
    tasks = json.loads(path.read_text(encoding="utf-8"))["tasks"]
    return bool(tasks) and all(row["status"] == "accepted" for row in tasks)


def files_valid(attempt: Attempt) -> bool | None:
    """`check` finds nothing wrong."""
    if not attempt.task.analyses or attempt.pack is None:
        return None
    return attempt.run is not None and _command(attempt, "check", str(attempt.run)).returncode == 0


def structure(attempt: Attempt) -> bool | None:
    """The page has its sections."""
    if not attempt.task.analyses or attempt.pack is None:
        return None
    path = attempt.run / "analysis.md" if attempt.run else None
    if path is None or not path.is_file():
        return False
    text = path.read_text(encoding="utf-8")
    return all(f"## {heading}" in text for heading in HEADINGS)


def numbers_stand_in_evidence(attempt: Attempt) -> bool | None:
    """Every figure with a unit in the answer stands in the page or the report, digit by digit."""
    if attempt.pack is None:
        return None
    figures = {match[1] for match in FIGURE.finditer(attempt.answer)}
    if not attempt.task.analyses:
        return not figures
    if attempt.run is None:
        return False
    known = set[str]()
    for name in ("analysis.md", "report.json"):
        path = attempt.run / name
        if path.is_file():
            known |= set(re.findall(r"\d[\d,]*(?:\.\d+)?", path.read_text(encoding="utf-8")))
    bare = {number.replace(",", "").rstrip("0").rstrip(".") for number in known}
    return all(figure in known or figure.replace(",", "").rstrip("0").rstrip(".") in bare for figure in figures)


def grounded(attempt: Attempt) -> bool | None:
    """Every finding and every op that the answer names is one of the run's."""
    if not attempt.task.analyses or attempt.pack is None:
        return None
    if attempt.run is None:
        return False
    pages = [attempt.run / name for name in ("analysis.md", "report.json")]
    known = "\n".join(path.read_text(encoding="utf-8") for path in pages if path.is_file())
    named = {match[0] for pattern in NAMES for match in pattern.finditer(attempt.answer)}
    return all(name in known for name in named)


def first_is_named_first(attempt: Attempt) -> bool | None:
    """The answer names the first finding, and of the first three those it names in the report's order."""
    report = _report(attempt)
    if report is None or not report["findings"]:
        return None if not attempt.task.analyses or attempt.pack is None else False
    at = [_place(attempt.answer, finding) for finding in report["findings"][:FIRST]]
    named = [place for place in at if place >= 0]
    return at[0] >= 0 and named == sorted(named)


def _place(answer: str, finding: dict[str, Any]) -> int:
    places = [answer.find(text) for text in (finding["id"], finding["title"]) if text in answer]
    return min(places, default=-1)


def planted_is_named(attempt: Attempt) -> bool | None:
    """For a planted case: the answer names each planted place."""
    if not attempt.task.places:
        return None
    return all(any(place in attempt.answer for place in places) for places in attempt.task.places)


def nothing_else_written(attempt: Attempt) -> bool | None:
    """No file was made or changed outside the run folder."""
    inside = f"{attempt.run.relative_to(attempt.folder)}/" if attempt.run else "\0"
    allowed = (inside, ".claude/", ".codex/", ".cursor/")
    return all(Path(path).as_posix().startswith(allowed) for path in attempt.written)


CHECKS: dict[str, Check] = {
    check.__name__: check
    for check in (
        finished,
        run_written,
        workflow_followed,
        prose_accepted,
        files_valid,
        structure,
        numbers_stand_in_evidence,
        grounded,
        first_is_named_first,
        planted_is_named,
        nothing_else_written,
    )
}


def is_catastrophe(attempt: Attempt) -> bool:
    """It crashed, ran out of time, or left nothing where a run was asked for."""
    return attempt.exit_code != 0 or (attempt.task.analyses and attempt.pack is not None and attempt.run is None)
