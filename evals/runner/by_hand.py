"""Attempts by hand: folders prepared for a person or an agent that no command starts, and read once they are done.

Beside each folder ``NAME`` lie ``NAME.prompt.md`` (what is asked), ``NAME.json`` (what the folder held before) and,
when the work is done, ``NAME.answer.md``: the answer as text, or as one JSON object with ``result``, ``usage`` and
``seconds``. Without an answer the attempt did not come to an end.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from evals.runner.attempt import Attempt, Harness, Said, listing, looked_at, make
from evals.runner.tasks import Task, task

GUIDE = """\
# {label}

Work in the folder `{folder}` and nowhere else. {pack}
When you are done, write your answer, and nothing else, to `{answer}`.

## The task

{prompt}
"""
WITH_PACK = "The pack is installed in `{pack}`; begin with its `SKILL.md`."
WITHOUT_PACK = "Use what you have at hand."


def prepare(
    names: Sequence[str], harness: Harness, root: Path, *, repeat: int, sides: Sequence[bool]
) -> list[tuple[str, Path]]:
    """Makes a folder for each attempt; its label and the file with what is asked."""
    made = []
    for name in names:
        for has_skill in sides:
            for number in range(repeat):
                label = f"{name.replace(' ', '_')}-{'with' if has_skill else 'without'}-{number}"
                made.append((label, _prepare(task(name), harness, root / label, number, has_skill=has_skill)))
    return made


def _prepare(chosen: Task, harness: Harness, folder: Path, number: int, *, has_skill: bool) -> Path:
    pack = make(chosen, folder, harness.installed if has_skill else "", harness.source)
    state = {
        "task": chosen.name,
        "number": number,
        "installed": harness.installed if has_skill else "",
        "before": listing(folder, pack),
    }
    _beside(folder, "json").write_text(json.dumps(state, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    text = GUIDE.format(
        label=folder.name,
        folder=folder,
        pack=WITH_PACK.format(pack=pack) if pack else WITHOUT_PACK,
        answer=_beside(folder, "answer.md"),
        prompt=chosen.prompt,
    )
    asked = _beside(folder, "prompt.md")
    asked.write_text(text, encoding="utf-8")
    return asked


def attempts(root: Path) -> Iterator[Attempt]:
    """Every attempt that was prepared, in the order of their names."""
    for path in sorted(root.glob("*.json")):
        state = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(state, dict) and {"task", "number", "installed", "before"} <= set(state):
            folder = path.with_suffix("")
            pack = folder / state["installed"] if state["installed"] else None
            said = _said(_beside(folder, "answer.md"))
            yield looked_at(task(state["task"]), (folder, pack), state["number"], state["before"], said)


def _said(answer: Path) -> Said:
    if not answer.is_file():
        return Said(exit_code=None, output="", seconds=None)
    text = answer.read_text(encoding="utf-8")
    try:
        document = json.loads(text)
    except json.JSONDecodeError:
        document = None
    seconds = document.get("seconds") if isinstance(document, dict) else None
    return Said(exit_code=0, output=text, seconds=float(seconds) if isinstance(seconds, (int, float)) else None)


def _beside(folder: Path, ending: str) -> Path:
    return folder.parent / f"{folder.name}.{ending}"
