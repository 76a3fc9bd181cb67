"""Which runs have passed all checks here, by the digest of every file of theirs and of the pack that checked them.

Loading the models of a run takes longer than reading its bytes, and nothing but those bytes and the pack decides the
outcome: where both are as they were, so is it. The notes lie in the user's cache folder, which the launcher names.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.pack import KNOWLEDGE, TEMPLATES

if TYPE_CHECKING:
    from collections.abc import Iterator

CACHE = "ROOFTRACE_COMPILED_TEMPLATES"
_FOLDER = "passed"
_MOST_NOTES = 1_000
_STATE = "state.json"  # changes with every hand-out and is in no check: only whether it is there counts
_PACKAGE = Path(__file__).resolve().parents[1]


def passed_before(run: Path) -> int | None:
    """How many checks exactly this content has passed here, with exactly this pack; None where it is not known."""
    try:
        folder = _notes()
        return int((folder / _digest(run)).read_text(encoding="ascii")) if folder and folder.is_dir() else None
    except (OSError, ValueError):
        return None


def note_passed(run: Path, checks: int) -> None:
    """Remember that all checks have just passed."""
    folder = _notes()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _forget_oldest(folder)
        (folder / _digest(run)).write_text(str(checks), encoding="ascii")
    except OSError:
        return  # a cache that cannot be written is no error: the next check reads the run again


def _digest(run: Path) -> str:
    """Of the run's files by content, of the pack's by size and time of change."""
    digest = hashlib.sha256()
    for path in _files(run):
        name = path.relative_to(run).as_posix()
        digest.update(f"{name}\0".encode("utf-8", "surrogateescape"))
        if name != _STATE:
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    for folder in (_PACKAGE, KNOWLEDGE, TEMPLATES):
        for path in _files(folder):
            facts = path.stat()
            digest.update(f"{path}\0{facts.st_size}\0{facts.st_mtime_ns}\0".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _files(folder: Path) -> Iterator[Path]:
    """Files below a folder in order, without compiled code, locks and other hidden ones."""
    for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
        if entry.name.startswith(".") or entry.name == "__pycache__":
            continue
        if entry.is_dir():
            yield from _files(Path(entry.path))
        else:
            yield Path(entry.path)


def _notes() -> Path | None:
    folder = os.environ.get(CACHE)
    return Path(folder) / _FOLDER if folder else None


def _forget_oldest(folder: Path) -> None:
    notes = list(folder.iterdir())
    if len(notes) >= _MOST_NOTES:
        for old in sorted(notes, key=lambda path: (path.stat().st_mtime_ns, path.name))[: _MOST_NOTES // 2]:
            old.unlink(missing_ok=True)
