"""The folder a run is written to: refused where it is a user's, filled as a whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import shutil
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from rooftrace.contracts import kinds, store
from rooftrace.contracts.evidence import ManifestFile
from rooftrace.errors import RooftraceError, UsageError
from rooftrace.workflow import scratch
from rooftrace.workflow import state as states
from rooftrace.workflow.locks import locked_file, locked_folder, unheld, uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.contracts.evidence import RunFile

# What a run may hold beside the files its manifest lists.
_OWN_ENTRIES = frozenset((states.STATE, *states.FOLDERS))
# What a place, not a program, is to blame for.
_OF_THE_PLACE = frozenset(
    (errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.ENAMETOOLONG)
)
_NO_ROOM = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))
# Where another process makes the same run at the same time: it is replaced in turn.
_IN_THE_WAY = frozenset((errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT))
_MOST_TRIES = 100
_SHORT_DIGEST = 8
_REPLACED = ".old"  # in a folder that fills another: what it takes out of that
# What a command that was killed may have left beside the files it wrote.
_HALF_WRITTEN = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}")


def refuse_foreign_folder(run: Path, *, force: bool = False) -> None:
    """`UsageError` if the folder cannot be written, or is there and no run: nothing of a user's is ever replaced.

    With `force`, a run may go into a folder that holds other things; those stay.
    """
    try:
        if run.exists() and not run.is_dir():
            raise UsageError(f"`{run}` exists and is not a folder", hint="Give another folder with -o")
        _refuse_unwritable(run)
        clear_away(run)
        if force or not run.exists():
            return
        is_foreign = any(run.iterdir()) and not _is_run(run)
    except OSError as error:
        raise _cannot_write(run, error) from None
    if is_foreign:
        raise UsageError(
            f"`{run}` exists and is not a run of rooftrace; nothing was written",
            hint="Give an empty or new folder with -o, or --force to write the run into it beside what it holds",
        )


def place_of(run: Path, *traces: Path) -> Path:
    """The folder itself, or, where it is the run of other files than these, one named after their content as well."""
    try:
        made_from = _sources_of(run)
        if not made_from or not all(trace.is_file() for trace in traces):
            return run
        digests = [_digest(trace) for trace in traces]
    except OSError:
        return run  # whoever reads the files or writes the folder tells what is wrong with them
    if made_from == set(digests):
        return run
    return run.with_name("-".join([run.name, *(digest[:_SHORT_DIGEST] for digest in dict.fromkeys(digests))]))


def _sources_of(run: Path) -> set[str]:
    """Digests of the files that a run or a comparison was made from; none where it is neither."""
    try:
        content = orjson.loads((run / store.MANIFEST).read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return set()
    names = ("source_sha256", "base_sha256")
    return {str(content[name]) for name in names if name in content} if isinstance(content, dict) else set()


def _digest(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _is_run(folder: Path) -> bool:
    """Whether the folder holds a manifest of ours; anything else in it is a user's and must not be replaced."""
    kind = "comparison_manifest" if kinds.is_comparison(folder) else "manifest"
    try:
        manifest = store.read_artifact(folder / store.MANIFEST, store.model_of(kind) or ManifestFile)
    except RooftraceError:
        return False
    files: list[RunFile] = getattr(manifest, "files", [])
    ours = {store.MANIFEST, *_OWN_ENTRIES, *(entry.path.partition("/")[0] for entry in files)}
    return all(_final_name(entry.name) in {*ours, "new"} or entry.name in ours for entry in folder.iterdir())


def _final_name(name: str) -> str:
    """Of a file that was being written when its command was killed, that which it would have had."""
    half = _HALF_WRITTEN.fullmatch(name)
    return half["name"] if half else ""


def _refuse_unwritable(run: Path) -> None:
    """Tell before the trace is read, not after, that the run has no place."""
    whole = run.absolute()
    above = next(folder for folder in (whole, *whole.parents) if folder.exists())
    if not above.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
    if not os.access(above, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def _cannot_write(run: Path, error: OSError) -> UsageError:
    hint = "Give a folder you may write to with -o"
    if error.errno in _NO_ROOM:
        hint = "Free some room, or give a folder on another disk with -o"
    return UsageError(f"cannot write `{run}`: {error.strerror}", hint=hint)


@contextmanager
def written_into(run: Path) -> Iterator[None]:
    """Tell as an error of the place what keeps a run that is there from being written to."""
    try:
        yield
    except OSError as error:
        if error.errno not in _OF_THE_PLACE:
            raise
        hint = "Free some room, then run the command again" if error.errno in _NO_ROOM else "Check its permissions"
        raise UsageError(f"cannot write `{run}`: {error.strerror}", hint=hint) from None


@contextmanager
def new_folder(run: Path, *, force: bool = False) -> Iterator[Path]:
    """A temporary folder whose content becomes the run's when all is written, and which vanishes otherwise.

    With `force`, what the folder holds beside a run's own files stays there.
    """
    target = run.resolve()
    with ExitStack() as stack:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            where = target if _is_fixed(target, inside=force) else target.parent
            temporary = stack.enter_context(scratch.folder(where, target.name))
        except OSError as error:
            raise _cannot_write(run, error) from None
        try:
            yield temporary
            if where == target:
                with locked_folder(target), _unchanged_state(target), uninterrupted():
                    _refill(target, temporary, others_stay=force)
            else:
                temporary.chmod(store.permitted(0o755))
                _replace(target, temporary)
        except OSError as error:
            if error.errno not in _OF_THE_PLACE:
                raise
            raise _cannot_write(run, error) from None


def _is_fixed(target: Path, *, inside: bool) -> bool:
    """Whether the folder is there and cannot or must not be replaced itself: it is filled."""
    here = _working_folder()
    return target.is_dir() and (
        inside
        or target == here
        or target in here.parents
        or os.path.ismount(target)
        or not os.access(target.parent, os.W_OK)
    )


def _working_folder() -> Path:
    """The process's folder; the root where it has been deleted."""
    try:
        return Path.cwd()
    except OSError:
        return Path("/")


def _replace(run: Path, new: Path) -> None:
    """Put the new folder in the run's place; of several processes that do so, the last one's stays."""
    for _ in range(_MOST_TRIES):
        if _is_replaced(run, new):
            return
    raise UsageError(f"`{run}` is being changed by another process", hint="Wait for it, then try again")


def _is_replaced(run: Path, new: Path) -> bool:
    """Whether the new folder has come into its place; if not, another process has just made or taken away the run."""
    try:
        if run.exists():
            with locked_folder(run), _unchanged_state(run), uninterrupted():
                _exchange(run, new)
        else:
            new.rename(run)
    except OSError as error:
        if error.errno in _IN_THE_WAY and new.exists():
            return False
        raise
    return True


@contextmanager
def _unchanged_state(run: Path) -> Iterator[None]:
    """Keep the state of a prepared run from being changed while it is replaced."""
    if not (run / states.STATE).is_file() or not (run / states.TASKS).is_dir() or (run / states.TASKS).is_symlink():
        yield
        return
    if os.name == "nt":  # an open file keeps its folder from being renamed, so whoever is at it is waited for only
        with locked_file(run / states.TASKS / states.STATE_LOCK, run):
            pass
        yield
        return
    with locked_file(run / states.TASKS / states.STATE_LOCK, run):
        yield


def _exchange(run: Path, new: Path) -> None:
    with scratch.folder(run.parent, run.name, scratch.OLD) as old:
        run.rename(old / run.name)
        try:
            new.rename(run)
        except OSError:
            with suppress(OSError):  # another process may have been faster, and its run is as good
                (old / run.name).rename(run)  # the old run is better than none
            raise


def _refill(run: Path, new: Path, *, others_stay: bool) -> None:
    """Put the new files in the place of the run's; the manifest, which makes it a run, leaves and comes last."""
    names = sorted(entry.name for entry in new.iterdir())
    old = new / _REPLACED
    old.mkdir()
    present = sorted(entry for entry in run.iterdir() if entry != new)
    if others_stay:
        ours = {store.MANIFEST, *_OWN_ENTRIES, *names}
        present = [entry for entry in present if entry.name in ours]
    for entry in sorted(present, key=lambda entry: entry.name == store.MANIFEST):
        entry.rename(old / entry.name)
    for name in sorted(names, key=lambda name: name == store.MANIFEST):
        (new / name).rename(run / name)


# What commands that were killed left behind


def clear_away(run: Path) -> None:
    """Delete what killed commands left at the place of a run; a run that they were replacing is put back first."""
    target = Path(os.path.realpath(run))
    for what, mend in ((scratch.OLD, _put_run_back), (scratch.NEW, _put_files_back)):
        for parent in (target.parent, target):
            for left in scratch.left_behind(parent, target.name, what):
                with unheld(left) as is_free, suppress(OSError):
                    if is_free and mend(left, target):
                        shutil.rmtree(left)


def _put_run_back(left: Path, run: Path) -> bool:
    """Of a run that had been moved aside; False if what was left is of another place with a name as long."""
    aside = left / run.name
    if not os.path.lexists(run) and aside.is_dir():
        aside.rename(run)
    return all(entry.name == run.name for entry in left.iterdir())


def _put_files_back(left: Path, run: Path) -> bool:
    """Of a folder that was being filled anew: files that had left it, unless all new ones have come."""
    old = left / _REPLACED
    if left.parent == run and old.is_dir() and any(entry != old for entry in left.iterdir()):
        for entry in sorted(old.iterdir(), key=lambda entry: (entry.name == store.MANIFEST, entry.name)):
            place = run / entry.name
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
            entry.rename(place)
    return True
