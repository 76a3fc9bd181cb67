"""Makes the environment: with uv, or with the pip of the running Python. Loaded where one has to be made only."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from time import sleep

from rooftrace_launch.claims import POLL_S, discard, is_stale, owner_line
from rooftrace_launch.environment import (
    MORE_ROOM,
    READY,
    Unavailable,
    installed_versions,
    is_ready,
    python_of,
    release,
)

BEAT_S = 1.0
RENAMES_ON_WINDOWS = 50  # 10 s
OLDEST_PIP = "21.2"  # knows the tags of today's wheels: manylinux_2_17 since 20.3, musllinux since 21.2
NEEDED_BYTES = 150_000_000  # 130 MB of environment, measured, and what is unpacked beside it; `venv` does not say why
NO_ROOM_SAID = ("No space left on device", "Disk quota exceeded")


def build(requirements: list[str], target: Path, *, lock: Path, verbose: bool) -> None:
    """Make the environment beside ``target``, then rename it to that."""
    if verbose or (sys.stderr is not None and sys.stderr.isatty()):
        print(f"making the environment {target} (once; about a minute)", file=sys.stderr)
    clear_away(target)
    scratch = tempfile.TemporaryDirectory(prefix=f"{target.name}.new-", dir=target.parent, ignore_cleanup_errors=True)
    with scratch as folder:
        (Path(folder) / "owner").write_text(owner_line(), encoding="utf-8")
        made = Path(folder) / "environment"
        install(requirements, made, lock=lock, verbose=verbose)
        (made / READY).write_text(f"{target.name}\n", encoding="utf-8")
        if not is_ready(target):  # it is, if a lock was lost and two built at once
            discard(target)  # there only if something damaged it
            rename(made, target)


def clear_away(target: Path) -> None:
    """Delete what killed processes left of this environment; whoever holds its lock has no other at work."""
    left = re.compile(re.escape(target.name) + r"\.(?:new-[a-z0-9_]{8}|(?:lock\.)?old-[0-9a-f]{32})")
    for path in sorted(target.parent.iterdir()):
        if left.fullmatch(path.name) and not path.is_symlink() and (".old-" in path.name or is_stale(path)):
            shutil.rmtree(path, ignore_errors=True)


def rename(folder: Path, target: Path) -> None:
    """Rename a folder; on Windows a scanner may hold its new files for a moment."""
    for _ in range(RENAMES_ON_WINDOWS if os.name == "nt" else 0):
        with suppress(PermissionError):
            folder.rename(target)
            return
        sleep(POLL_S)
    folder.rename(target)


def install(requirements: list[str], made: Path, *, lock: Path, verbose: bool) -> None:
    """Fill ``made`` by the first way that works; ``Unavailable`` with the last one's words if none does."""
    reason, hint = "there is neither `uv` nor `pip`", "Install `uv`, or Python's `venv` and `pip`"
    for commands in ways_to_install(requirements, made):
        shutil.rmtree(made, ignore_errors=True)
        for command in commands:
            reason = run_and_beat(command, made.parent, lock=lock, verbose=verbose)
            if reason:
                hint = hint_for(reason, made.parent)
                break
        else:
            return
    raise Unavailable(f"the Python packages that rooftrace needs cannot be installed here: {reason}", hint)


def hint_for(reason: str, folder: Path) -> str:
    """What helps against an installer's failure in a folder; empty where it is a network."""
    if any(said in reason for said in NO_ROOM_SAID) or shutil.disk_usage(folder).free < NEEDED_BYTES:
        return MORE_ROOM
    old = pip_version()
    if old and release(old) < release(OLDEST_PIP):
        return f"This Python's pip is {old}, and {OLDEST_PIP} is needed: upgrade it, or install `uv`"
    return ""


def pip_version() -> str:
    """Version of the pip that a new environment gets, or else of the one that fills it; empty without any."""
    if not PathFinder.find_spec("ensurepip"):
        return installed_versions().get("pip", "")
    import ensurepip

    return ensurepip.version()


def ways_to_install(requirements: list[str], made: Path) -> Iterator[list[list[str]]]:
    """The ways to make an environment, best first, each as the commands to run in order.

    uv compiles on request only; without that, every later start would compile numpy and pydantic anew, since
    nothing here writes bytecode at run time.
    """
    python = str(python_of(made))
    uv = find_uv()
    if uv:
        fill = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *requirements]
        yield [[uv, "venv", "--quiet", "--python", sys.executable, str(made)], fill]
    pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--prefer-binary"]
    pip += ["--retries", "1"]
    is_old = release(pip_version()) < release(OLDEST_PIP)
    newer = ["--upgrade", f"pip>={OLDEST_PIP}"]
    if PathFinder.find_spec("ensurepip"):
        renewed = [[python, *pip, *newer]] if is_old else []
        yield [[sys.executable, "-m", "venv", str(made)], *renewed, [python, *pip, *requirements]]
    elif PathFinder.find_spec("pip"):
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        site = str(made / ("Lib/site-packages" if os.name == "nt" else f"lib/{version}/site-packages"))
        bare = [sys.executable, "-m", "venv", "--without-pip", str(made)]
        if is_old:  # it is the user's, so a newer one is put into the environment and does the rest
            yield [bare, [sys.executable, *pip, *newer, "--target", site], [python, *pip, *requirements]]
        else:
            yield [bare, [sys.executable, *pip, *requirements, "--target", site]]


def find_uv() -> str | None:
    """The ``uv`` on the path; none of the working folder, where Windows looks first and anybody may have put one."""
    found = shutil.which("uv")
    if found is None or os.name != "nt":
        return found
    return None if Path(found).absolute().parent == Path.cwd() else found


def run_and_beat(command: list[str], folder: Path, *, lock: Path, verbose: bool) -> str:
    """Run an installer while refreshing the lock; empty, or why it failed.

    It runs in ``folder``, which is ours: ``-m pip`` would take a ``pip.py`` from the working directory. Its
    output goes to stderr where a person asked for it (``setup``), else to a log that is read only on failure.
    """
    dropped = {"PIP_TARGET", "PIP_PREFIX", "PIP_ROOT", "UV_SYSTEM_PYTHON"}
    variables = {
        name: value for name, value in os.environ.items() if name not in dropped and not name.startswith("PYTHON")
    }
    variables |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    variables |= dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder))  # may be missing, full or closed to programs
    log = folder / "log"
    with log.open("wb") as output:
        sink = 2 if verbose and sys.stderr is not None else output
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,  # so that it and what it starts can be ended together
            )
        except OSError as error:
            return f"`{command[0]}` does not start: {error.strerror}"
        try:
            code = None
            while code is None:
                for beaten in (lock, folder):
                    with suppress(FileNotFoundError):  # taken over, after a long suspend
                        os.utime(beaten)
                with suppress(subprocess.TimeoutExpired):
                    code = process.wait(timeout=BEAT_S)
        except BaseException:
            end(process)
            raise
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = next((line for line in reversed(lines) if line), f"`{Path(command[0]).name}` ended with code {code}")
    return "" if code == 0 else said.removeprefix("ERROR: ").removeprefix("error: ")


def end(process: subprocess.Popen[bytes]) -> None:
    """End an installer and, where it leads a group, what it started; nothing of it writes any more."""
    with suppress(OSError):  # it may have ended by itself
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
    process.wait()
