"""One attempt: a folder of its own, the pack installed in it or not, the harness run in it, what it said and left."""

from __future__ import annotations

import hashlib
import io
import json
import os
import shlex
import shutil
import subprocess
import tarfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evals.runner.tasks import ROOT, Task

INSTALLED = ".claude/skills/rooftrace"
"""Where a harness looks for skills; others are given by an option."""
LEFT_OUT = ("tests", "evals", "benchmarks")
"""What an agent under test must not see: the truth, and what it is checked by."""
PACK = ("SKILL.md", "scripts", "skills", "knowledge", "schemas", "templates", "pyproject.toml", "README.md", "LICENSE")


@dataclass(frozen=True, kw_only=True)
class Harness:
    """``command`` holds ``{prompt}``; ``source``: the pack as committed (``archive``) or as it stands (``tree``)."""

    command: str
    installed: str = INSTALLED
    source: str = "archive"
    limit_s: float = 1800.0
    variables: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Attempt:
    """What came of it; ``tokens`` and ``cost`` where the harness reports them, ``seconds`` where they were measured."""

    task: Task
    folder: Path
    pack: Path | None
    number: int
    exit_code: int | None
    answer: str
    seconds: float | None
    tokens: int | None
    cost: float | None
    written: tuple[str, ...]

    @property
    def run(self) -> Path | None:
        """The run folder that was made, the first by name."""
        found = sorted(path.parent for path in self.folder.glob("**/manifest.json") if not self._is_pack(path))
        return found[0] if found else None

    def _is_pack(self, path: Path) -> bool:
        return self.pack is not None and self.pack in path.parents


def attempt(task: Task, harness: Harness, folder: Path, number: int, *, has_skill: bool) -> Attempt:
    """Makes the folder, runs the harness in it and reads what it printed."""
    pack = make(task, folder, harness.installed if has_skill else "", harness.source)
    before = listing(folder, pack)
    words = [word.replace("{prompt}", task.prompt) for word in shlex.split(harness.command)]
    variables = {**os.environ, **harness.variables, "ROOFTRACE_ATTEMPT": str(number), "PACK": str(pack or "")}
    started = time.monotonic()
    try:
        done = subprocess.run(  # noqa: S603 - the command is what the caller asked to be run
            words, cwd=folder, env=variables, capture_output=True, text=True, timeout=harness.limit_s, check=False
        )
        code, output = done.returncode, done.stdout
        (folder.parent / f"{folder.name}.stderr").write_text(done.stderr, encoding="utf-8")
    except subprocess.TimeoutExpired:
        code, output = None, ""
    said = Said(exit_code=code, output=output, seconds=time.monotonic() - started)
    return looked_at(task, (folder, pack), number, before, said)


def make(task: Task, folder: Path, installed: str, source: str) -> Path | None:
    """A folder with the task's files and the pack where a harness looks for it; its place, None for no pack."""
    folder.mkdir(parents=True)
    task.provide(folder)
    if not installed:
        return None
    install(folder / installed, source)
    return folder / installed


@dataclass(frozen=True, kw_only=True)
class Said:
    """What a harness, or somebody in its place, printed; ``exit_code`` is None where it did not come to an end."""

    exit_code: int | None
    output: str
    seconds: float | None


def looked_at(task: Task, places: tuple[Path, Path | None], number: int, before: dict[str, str], said: Said) -> Attempt:
    """The attempt as it lies in its folder; ``places``: the folder and the pack in it."""
    folder, pack = places
    answer, tokens, cost = spoken(said.output)
    after = listing(folder, pack)
    return Attempt(
        task=task,
        folder=folder,
        pack=pack,
        number=number,
        exit_code=said.exit_code,
        answer=answer,
        seconds=said.seconds,
        tokens=tokens,
        cost=cost,
        written=tuple(sorted(path for path in after if after[path] != before.get(path))),
    )


def install(pack: Path, source: str) -> None:
    """The pack as an installation has it, without tests and evaluation."""
    pack.mkdir(parents=True)
    if source == "archive":
        git = ["git", "-C", str(ROOT), "archive", "HEAD"]
        data = subprocess.run(git, capture_output=True, check=True).stdout  # noqa: S603 - fixed words
        with tarfile.open(fileobj=io.BytesIO(data)) as archive:
            members = [member for member in archive if member.name.split("/")[0] not in LEFT_OUT]
            safe: dict[str, Any] = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}
            archive.extractall(pack, members, **safe)  # noqa: S202 - the repository's own archive
        return
    for name in PACK:
        path = ROOT / name
        if path.is_dir():
            shutil.copytree(path, pack / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.is_file():
            shutil.copyfile(path, pack / name)


def listing(folder: Path, pack: Path | None) -> dict[str, str]:
    """Relative path -> hash of every file outside the pack."""
    files = (path for path in folder.rglob("*") if path.is_file() and (pack is None or pack not in path.parents))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def spoken(output: str) -> tuple[str, int | None, float | None]:
    """Answer, tokens and cost out of what a harness printed: plain text, or one JSON object with usage."""
    try:
        document = json.loads(output)
    except json.JSONDecodeError:
        return output, None, None
    if not isinstance(document, dict):
        return output, None, None
    usage = document.get("usage")
    counts = usage.values() if isinstance(usage, dict) else ()
    tokens = sum(count for count in counts if isinstance(count, int) and not isinstance(count, bool))
    cost = document.get("total_cost_usd")
    answer = document.get("result")
    return (
        answer if isinstance(answer, str) else output,
        tokens or None,
        float(cost) if isinstance(cost, (int, float)) else None,
    )
