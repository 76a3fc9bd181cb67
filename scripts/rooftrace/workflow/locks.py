"""One process at a time: locks that the system takes back from a process that ends, and interrupts put off.

Loads nothing heavy. A lock is taken on a file or, where the system allows it, on a folder itself, which leaves nothing
behind. Whoever has waited looks again whether what was locked still stands under its name, since a run may have been
replaced meanwhile.
"""

from __future__ import annotations

import errno
import os
import signal
import sys
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rooftrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A change of the state takes milliseconds, a report seconds.
_PATIENCE_S = 60.0
_PAUSE_S = 0.01
# Without locks: a file system of another machine may lack them, and no command runs for a day.
_ABANDONED_S = 86_400.0
# What a file system says that knows no locks, or none on folders.
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EINVAL, errno.EBADF, errno.ENOSYS)
_HELD_BACK = tuple(
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK") if hasattr(signal, name)
)


@contextmanager
def locked_file(path: Path, run: Path) -> Iterator[None]:
    """Hold a lock on a file of the run, which is made if need be; a link is not followed."""
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o644)
        except OSError as error:
            raise UsageError(f"cannot write `{run}`: {error.strerror}", hint="Check its permissions") from None
        try:
            _wait_for(descriptor, run)
            if _still_stands(path, descriptor):
                yield
                return
        finally:
            os.close(descriptor)


@contextmanager
def locked_folder(run: Path) -> Iterator[None]:
    """Keep others from replacing the folder, or from writing its report; no lock where folders cannot be opened."""
    while True:
        try:
            descriptor = os.open(run, os.O_RDONLY) if os.name == "posix" else None
        except OSError:
            descriptor = None  # gone, or not ours to read: whatever comes next tells
        if descriptor is None:
            yield
            return
        try:
            _wait_for(descriptor, run)
            if _still_stands(run, descriptor):
                yield
                return
        finally:
            os.close(descriptor)


def _still_stands(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _wait_for(descriptor: int, run: Path) -> None:
    end = time.monotonic() + _PATIENCE_S
    while not _is_locked(descriptor):
        if time.monotonic() > end:
            raise UsageError(f"`{run}` is being changed by another process", hint="Wait for it, then try again")
        time.sleep(_PAUSE_S)


@contextmanager
def held(path: Path) -> Iterator[bool]:
    """Hold a file or folder of this process's own, for whoever asks `unheld`; False if it has been swept away."""
    descriptor = _opened(path)
    if descriptor is None:
        yield os.path.lexists(path)
        return
    try:
        _wait_for(descriptor, path)
        yield _still_stands(path, descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def unheld(path: Path) -> Iterator[bool]:
    """Whether no living process holds it; nobody can while this lasts. Where no lock can tell, its age does."""
    descriptor = _opened(path)
    try:
        is_free = None if descriptor is None else _try_lock(descriptor)
        if is_free is None:
            is_free = _age_s(path) > _ABANDONED_S
        yield is_free and (descriptor is None or _still_stands(path, descriptor))
    finally:
        if descriptor is not None:
            os.close(descriptor)


def _opened(path: Path) -> int | None:
    """A descriptor to lock; None where it is gone, not ours, or of a system that locks neither folders nor our files.

    On Windows a lock would keep others from reading, and an open file from being renamed.
    """
    if os.name != "posix":
        return None
    try:
        return os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None


def _age_s(path: Path) -> float:
    """Seconds since it was last written to; 0 if it is gone."""
    try:
        return time.time() - path.lstat().st_mtime
    except OSError:
        return 0.0


def _is_locked(descriptor: int) -> bool:
    """Whether this process could lock it, or the file system knows no locks."""
    return _try_lock(descriptor) is not False


if sys.platform == "win32":
    import msvcrt

    def _try_lock(descriptor: int) -> bool | None:
        """Whether this process could lock the file."""
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        return True

else:
    import fcntl

    def _try_lock(descriptor: int) -> bool | None:
        """Whether this process could lock it; None if the file system knows no locks."""
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            if error.errno not in _NO_LOCKS:
                raise
            return None
        return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Put interrupts off until the block has ended: it is short, and half of it is worse than none or all.

    Blocking them in this thread is not enough: a thread of a library may take the signal, and the handler runs here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []
    before = {number: signal.getsignal(number) for number in _HELD_BACK}
    for number, handler in before.items():
        if handler is not None and handler != signal.SIG_IGN:
            signal.signal(number, lambda number, _: came.append(number))
    try:
        yield
    finally:
        for number, handler in before.items():
            if handler is not None:
                signal.signal(number, handler)
        if came:
            signal.raise_signal(came[0])
