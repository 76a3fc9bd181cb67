"""Temporary files and folders beside a place: gone when their command ends, and swept away later if it was killed.

Each bears the name of the place, and is held while its command lives (`locks.held`); so whoever writes to the same
place next can tell what was left behind, and deletes only that.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.errors import UsageError
from rooftrace.workflow import locks

if TYPE_CHECKING:
    from collections.abc import Iterator

NEW, OLD = "new", "old"  # what is being made, and what it replaces
_MARK = ".rooftrace-"
_RANDOM = "[a-z0-9_]{8}"  # as `tempfile` makes it
_LONGEST_BYTES = 200  # of the place's name; the whole may have 255
_MOST_TRIES = 100


@contextmanager
def folder(parent: Path, name: str, what: str = NEW) -> Iterator[Path]:
    """A new folder for the place of this name, deleted when this ends unless it was renamed."""
    for _ in range(_MOST_TRIES):
        path = Path(tempfile.mkdtemp(prefix=_prefix(name, what), dir=parent))
        try:
            with locks.held(path) as is_ours:
                if is_ours:
                    yield path
                    return
        finally:
            shutil.rmtree(path, ignore_errors=True)
    raise _in_use(parent / name)


@contextmanager
def file(parent: Path, name: str) -> Iterator[tuple[int, Path]]:
    """Descriptor, to be closed by the caller, and path of a new file; deleted when this ends unless it was renamed."""
    descriptor, made = tempfile.mkstemp(prefix=_prefix(name, NEW), dir=parent)
    path = Path(made)
    try:
        with locks.held(path) as is_ours:
            if not is_ours:
                raise _in_use(parent / name)
            yield descriptor, path
    finally:
        path.unlink(missing_ok=True)


def left_behind(parent: Path, name: str, what: str = NEW) -> list[Path]:
    """What this user's commands made for the place of this name and have not deleted: some may be at work yet."""
    pattern = re.compile(re.escape(_prefix(name, what)) + _RANDOM)
    with suppress(OSError):
        return sorted(path for path in parent.iterdir() if pattern.fullmatch(path.name) and _is_ours(path))
    return []


def _in_use(place: Path) -> UsageError:
    return UsageError(f"`{place}` is being changed by another process", hint="Wait for it, then try again")


def _prefix(name: str, what: str) -> str:
    start = name.encode(errors="surrogateescape")[:_LONGEST_BYTES].decode(errors="ignore")
    return f".{start}{_MARK}{what}-"


def _is_ours(path: Path) -> bool:
    """Whether it is a file or folder, no link, and the user's own."""
    try:
        found = path.lstat()
    except OSError:
        return False
    is_kind = stat.S_ISDIR(found.st_mode) or stat.S_ISREG(found.st_mode)
    return is_kind and (not hasattr(os, "geteuid") or found.st_uid == os.geteuid())
