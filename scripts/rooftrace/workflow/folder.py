"""The folder a run is written to: refused where it is a user's, filled as a whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.evidence import ManifestFile
from rooftrace.errors import RooftraceError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

# What a run may hold beside the files its manifest lists.
_OWN_ENTRIES = frozenset(("state.json", "evidence", "findings", "plots", "prose", "tasks"))
# What a place, not a program, is to blame for.
_OF_THE_PLACE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG)
)


def refuse_foreign_folder(run: Path) -> None:
    """`UsageError` if the folder cannot be written, or is there and no run: nothing of a user's is ever replaced."""
    try:
        if run.exists() and not run.is_dir():
            raise UsageError(f"`{run}` exists and is not a folder", hint="Give another folder with -o")
        _refuse_unwritable(run)
        if not run.exists():
            return
        is_foreign = any(run.iterdir()) and not _is_run(run)
    except OSError as error:
        raise _cannot_write(run, error) from None
    if is_foreign:
        raise UsageError(
            f"`{run}` exists and is not a run of rooftrace; nothing was written",
            hint="Give an empty or new folder with -o",
        )


def _is_run(folder: Path) -> bool:
    """Whether the folder holds a manifest of ours; anything else in it is a user's and must not be replaced."""
    try:
        manifest = store.read_artifact(folder / store.MANIFEST, ManifestFile)
    except RooftraceError:
        return False
    ours = {store.MANIFEST, *_OWN_ENTRIES, *(entry.path.partition("/")[0] for entry in manifest.files)}
    return all(entry.name in ours for entry in folder.iterdir())


def _refuse_unwritable(run: Path) -> None:
    """Tell before the trace is read, not after, that the run has no place."""
    whole = run.absolute()
    above = next(folder for folder in (whole, *whole.parents) if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _cannot_write(run: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write `{run}`: {error.strerror}", hint="Give a folder you may write to with -o")


@contextmanager
def new_folder(run: Path) -> Iterator[Path]:
    """A temporary folder whose content becomes the run's when all is written, and which vanishes otherwise."""
    target = run.resolve()
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = _temporary_folder(target)
    except OSError as error:
        raise _cannot_write(run, error) from None
    try:
        yield temporary
        if temporary.parent == target:
            _refill(target, temporary)
        else:
            temporary.chmod(0o755)
            _replace(target, temporary)
    except OSError as error:
        if error.errno not in _OF_THE_PLACE:
            raise
        raise _cannot_write(run, error) from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _temporary_folder(target: Path) -> Path:
    """A new folder beside the target; inside it where the target itself cannot be replaced."""
    here = Path.cwd()
    is_fixed = target.is_dir() and (
        target == here or target in here.parents or target.is_mount() or not os.access(target.parent, os.W_OK)
    )
    return Path(tempfile.mkdtemp(prefix=f".{target.name}.", dir=target if is_fixed else target.parent))


def _replace(run: Path, new: Path) -> None:
    """Put the new folder in the run's place."""
    if run.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{run.name}.old.", dir=run.parent))
        run.rename(old / "run")
        try:
            new.rename(run)
        except OSError:
            (old / "run").rename(run)  # the old run is better than none
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)
    else:
        new.rename(run)


def _refill(run: Path, new: Path) -> None:
    """Put the new files in the place of the run's; the manifest, which makes it a run, leaves and comes last."""
    names = sorted(entry.name for entry in new.iterdir())
    old = new / ".old"
    old.mkdir()
    present = sorted(entry for entry in run.iterdir() if entry != new)
    for entry in sorted(present, key=lambda entry: entry.name == store.MANIFEST):
        entry.rename(old / entry.name)
    for name in sorted(names, key=lambda name: name == store.MANIFEST):
        (new / name).rename(run / name)
