"""Verdicts on what code cannot see: a rubric, the answer and the evidence go to a judging command."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path

from evals.runner.attempt import Attempt

RUBRICS = Path(__file__).with_name("rubrics")
LIMIT_S = 600.0
MOST_CHARACTERS = 60_000


def verdicts(attempt: Attempt, command: str) -> dict[str, bool | None]:
    """Rubric -> whether the judge's last line says PASS; None where it says neither PASS nor FAIL."""
    return {path.stem: _verdict(attempt, command, path) for path in sorted(RUBRICS.glob("*.md"))}


def question(attempt: Attempt, rubric: Path) -> str:
    """What a judge is asked."""
    page = attempt.run / "analysis.md" if attempt.run else None
    evidence = page.read_text(encoding="utf-8")[:MOST_CHARACTERS] if page and page.is_file() else "(no run was left)"
    return (
        f"{rubric.read_text(encoding='utf-8')}\n\n<answer>\n{attempt.answer[:MOST_CHARACTERS]}\n</answer>\n\n"
        f"<evidence>\n{evidence}\n</evidence>\n"
    )


def _verdict(attempt: Attempt, command: str, rubric: Path) -> bool | None:
    words = [word.replace("{prompt}", question(attempt, rubric)) for word in shlex.split(command)]
    done = subprocess.run(  # noqa: S603 - the command is what the caller asked to be run
        words, capture_output=True, text=True, timeout=LIMIT_S, check=False
    )
    lines = done.stdout.strip().splitlines()
    last = lines[-1].strip().strip("*`.") if lines else ""
    return {"PASS": True, "FAIL": False}.get(last)
