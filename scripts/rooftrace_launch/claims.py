"""One builder at a time: locks that are folders, which every file system can make, and that tell who made them."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from platform import node
from time import sleep, time

STALE_AFTER_S = 600.0  # a builder refreshes its lock every second; ten silent minutes mean that it is gone
STALE_ON_WINDOWS_S = 60.0  # where no process can be asked whether another lives
POLL_S = 0.2


def acquire(lock: Path, is_done: Callable[[], bool]) -> bool:
    """Take the lock, a folder that one process can make; False when another finished the work meanwhile."""
    while not is_done():
        try:
            lock.mkdir()
        except FileExistsError:
            if is_stale(lock):
                discard(lock)
            else:
                sleep(POLL_S)
            continue
        (lock / "owner").write_text(owner_line(), encoding="utf-8")
        return True
    return False


def release_lock(lock: Path) -> None:
    """Give the lock up, unless another process took it over; one left behind is found stale."""
    with suppress(OSError):
        if (lock / "owner").read_text(encoding="utf-8") == owner_line():
            discard(lock)


def owner_line() -> str:
    """Who holds a lock: process and host, since machines may share a home folder."""
    return f"{os.getpid()} {node()}"


def is_stale(lock: Path) -> bool:
    """Whether the lock's owner is dead (told on its own host only) or silent for ``STALE_AFTER_S``."""
    try:
        silent_s = time() - lock.stat().st_mtime
        if silent_s > STALE_AFTER_S:
            return True
        pid, _, host = (lock / "owner").read_text(encoding="utf-8").partition(" ")
    except FileNotFoundError:  # released just now, or taken and not yet signed
        return False
    if not pid.isdigit() or host != owner_line().partition(" ")[2]:
        return False
    return not is_alive(int(pid)) if os.name == "posix" else silent_s > STALE_ON_WINDOWS_S


def is_alive(pid: int) -> bool:
    """Whether a process exists; not to be asked on Windows, where signal 0 would end it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def discard(folder: Path) -> None:
    """Make a folder disappear at once, if it is there: renamed first, then deleted."""
    aside = folder.with_name(f"{folder.name}.old-{uuid.uuid4().hex}")
    try:
        folder.rename(aside)
    except FileNotFoundError:  # never there, or another process was faster
        return
    shutil.rmtree(aside, ignore_errors=True)
