"""What has been rendered here before: which deliverables follow from which evidence, by digest.

Rendering a report again takes longer than many other checks together, so whoever renders one leaves a note of it in
the user's cache folder (the launcher names one; without it every check renders again). The note holds nothing but the
digest of a run's content, inputs and deliverables alike: a run with one byte changed has no note, wherever it changed.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from rooftrace import __version__
from rooftrace.contracts import store

if TYPE_CHECKING:
    from collections.abc import Callable

# The launcher's folder for compiled templates; notes lie in a folder inside it.
CACHE = "ROOFTRACE_COMPILED_TEMPLATES"
_FOLDER = "rendered"
_SOUND = ".sound"
_MOST_NOTES = 1_000
_CONTENT = ("evidence", store.PROSE, "findings", "plots")


def content_digest(run: Path, read: Callable[[str], bytes]) -> str:
    """Digest of everything that a report is made of and made into; `read` gives a file's content by relative path.

    The manifest counts without its list of files, which is written last; of `state.json` only whether it is there.
    """
    digest = hashlib.sha256(f"{__version__}\0{(run / store.STATE).is_file()}\0".encode())
    manifest = orjson.loads(read(store.MANIFEST))
    facts = {name: value for name, value in manifest.items() if name != "files"}
    digest.update(orjson.dumps(facts, option=orjson.OPT_SORT_KEYS))
    for path in _paths(run):
        digest.update(f"\0{path}\0{store.sha256(read(path))}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def _paths(run: Path) -> list[str]:
    inside = [f"{name}/{path.name}" for name in _CONTENT for path in (run / name).glob("*") if path.is_file()]
    return sorted([*inside, *(name for name in (store.REPORT, store.ANALYSIS) if (run / name).is_file())])


def note(run: Path, *, is_sound: bool) -> None:
    """Remember that the run's deliverables have just been rendered, and whether no word of its prose was refused."""
    folder = _notes()
    if folder is None:
        return
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _forget_oldest(folder)
        digest = content_digest(run, lambda path: store.read_bytes(run / path))
        (folder / digest).touch()
        if is_sound:
            (folder / f"{digest}{_SOUND}").touch()
    except OSError:
        return  # a cache that cannot be written is no error: the next check renders again


def notes_of(run: Path, read: Callable[[str], bytes]) -> tuple[bool, bool]:
    """Whether exactly this content has been rendered here, and whether its prose was found sound."""
    folder = _notes()
    if folder is None or not folder.is_dir():
        return False, False
    digest = content_digest(run, read)
    return (folder / digest).is_file(), (folder / f"{digest}{_SOUND}").is_file()


def _notes() -> Path | None:
    folder = os.environ.get(CACHE)
    return Path(folder) / _FOLDER if folder else None


def _forget_oldest(folder: Path) -> None:
    notes = list(folder.iterdir())
    if len(notes) < _MOST_NOTES:
        return
    for old in sorted(notes, key=lambda path: (path.stat().st_mtime_ns, path.name))[: _MOST_NOTES // 2]:
        old.unlink(missing_ok=True)
