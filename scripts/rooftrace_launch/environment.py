"""Finds or makes the environment that rooftrace runs in. Standard library only, and cheap to load.

A virtual environment in the user's cache folder, named after the hash of the requirement list, the Python
version and the machine. It is built under another name and renamed, so it exists whole or not at all; a lock
spares two first runs the double work. Every start pays for this module: what a build needs is imported there.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
READY = "rooftrace-ready"  # written last; an environment without it is not used
STALE_AFTER_S = 600.0  # a builder refreshes its lock every BEAT_S; ten silent minutes mean that it is gone
BEAT_S = 1.0
POLL_S = 0.2


class Unavailable(Exception):  # noqa: N818 - named for what happened
    """The environment cannot be provided; the text says why."""


# What is needed


def declared(table: str, key: str) -> list[str]:
    """The strings of one list of ``pyproject.toml``; by hand, because ``tomllib`` came with Python 3.11."""
    lines = PYPROJECT.read_text(encoding="utf-8").splitlines()
    body: list[str] = []
    for line in lines[lines.index(f"[{table}]") + 1 :]:
        if line.startswith("[") or (body and body[-1].endswith("]")):
            break
        if body or line.startswith(f"{key} = ["):
            body.append(line.rstrip())
    return " ".join(body).split('"')[1::2]


def runtime_requirements() -> list[str]:
    """What the package imports."""
    return declared("project", "dependencies")


def machine() -> str:
    """The processor, as environment markers spell it."""
    return os.uname().machine if os.name == "posix" else os.environ.get("PROCESSOR_ARCHITECTURE", "")


def applies_here(requirement: str) -> bool:
    """Whether a requirement's marker holds; of markers, only ``platform_machine == '…' or …`` is understood.

    One that is not understood counts as holding: at worst an environment is made that was not needed.
    """
    _, _, marker = requirement.partition(";")
    clauses = [clause.split("==") for clause in marker.split(" or ")]
    if any(len(clause) != 2 or clause[0].strip() != "platform_machine" for clause in clauses):
        return True
    return machine() in [value.strip(" '\"") for _, value in clauses]


def name_and_minimum(requirement: str) -> tuple[str, str]:
    """``numpy>=1.26; …`` as ``("numpy", "1.26")``; without a minimum the second is empty."""
    name, _, minimum = requirement.partition(";")[0].partition(">=")
    return name.strip(), minimum.strip()


def release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: ``2.0.1rc1`` is ``(2, 0, 1)``."""
    numbers = []
    for part in version.split("."):
        digits = part[: len(part) - len(part.lstrip("0123456789"))]
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


def canonical(name: str) -> str:
    """A distribution's name as its metadata folder spells it, in one case."""
    return name.lower().replace("-", "_").replace(".", "_")


def installed_versions() -> dict[str, str]:
    """Version of every distribution the running interpreter finds, by canonical name.

    From the names of the metadata folders, where ``importlib.metadata`` looks too; importing that would take
    longer (about 40 ms) than all the rest of a start.
    """
    from contextlib import suppress

    found: dict[str, str] = {}
    for folder in map(Path, sys.path):
        with suppress(OSError):  # a path entry may be absent, a zip file or closed to us
            for entry in sorted(folder.iterdir()):
                if entry.suffix in (".dist-info", ".egg-info"):
                    name, _, version = entry.stem.partition("-")
                    found.setdefault(canonical(name), version)
    return found


def is_satisfied(requirements: list[str]) -> bool:
    """Whether the running interpreter has every requirement in a sufficient version; nothing is imported."""
    versions = installed_versions()
    for name, minimum in map(name_and_minimum, filter(applies_here, requirements)):
        if release(versions.get(canonical(name), "")) < (release(minimum) or (0,)):
            return False
    return True


# Where it is kept


def cache_folder() -> Path:
    """``ROOFTRACE_CACHE``, or the user's cache folder as each system has it."""
    chosen = os.environ.get("ROOFTRACE_CACHE")
    if chosen:
        return Path(chosen).absolute()
    local = os.environ.get("LOCALAPPDATA")
    if os.name == "nt" and local:
        return Path(local) / "rooftrace"
    xdg = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if xdg.is_absolute():  # by its specification, a relative one is to be ignored
        return xdg / "rooftrace"
    try:
        home = Path.home()
    except RuntimeError as error:
        raise Unavailable("there is no home folder to keep the environment in") from error
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "rooftrace"


def environment_name(requirements: list[str]) -> str:
    """Folder name of the environment: the requirements' hash, then the interpreter and the machine."""
    from hashlib import sha256

    digest = sha256("\n".join(requirements).encode()).hexdigest()[:16]
    tag = f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}"
    return f"{digest}-{tag}-{sys.platform}-{machine()}"


def python_of(environment: Path) -> Path:
    """The interpreter of a virtual environment."""
    return environment / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def is_ready(environment: Path) -> bool:
    """Whether an environment was finished and its interpreter still exists."""
    return (environment / READY).is_file() and python_of(environment).exists()


def is_running_in_own(requirements: list[str]) -> bool:
    """Whether this process already runs in the environment made for these requirements."""
    prefix = Path(sys.prefix)
    return prefix.name == environment_name(requirements) and is_ready(prefix)


def ready_for_another_python(requirements: list[str]) -> Path | None:
    """A finished environment of the same requirements on this machine, whichever Python made it."""
    digest, _, rest = environment_name(requirements).partition("-")
    place = rest.removeprefix(f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}")
    return next((path for path in sorted(cache_folder().glob(f"{digest}-*{place}")) if is_ready(path)), None)


# Making it


def provide(requirements: list[str], *, verbose: bool) -> Path:
    """The finished environment for the running Python, made if need be; raises ``Unavailable``."""
    target = cache_folder() / environment_name(requirements)
    if is_ready(target):
        return target
    lock = target.with_name(target.name + ".lock")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        if acquire(lock, lambda: is_ready(target)):
            try:
                build(requirements, target, lock=lock, verbose=verbose)
            finally:
                release_lock(lock)
    except OSError as error:
        raise Unavailable(f"cannot write in `{target.parent}`: {error.strerror or error}") from error
    return target


def build(requirements: list[str], target: Path, *, lock: Path, verbose: bool) -> None:
    """Make the environment beside ``target``, then rename it to that."""
    import tempfile

    if verbose or sys.stderr.isatty():
        print(f"making the environment {target} (once; about a minute)", file=sys.stderr)
    scratch = tempfile.TemporaryDirectory(prefix="new-", dir=target.parent, ignore_cleanup_errors=True)
    with scratch as folder:
        made = Path(folder) / "environment"
        install(requirements, made, lock=lock, verbose=verbose)
        (made / READY).write_text(f"{target.name}\n", encoding="utf-8")
        if not is_ready(target):  # it is, if a lock was lost and two built at once
            discard(target)  # there only if something damaged it
            made.rename(target)


def install(requirements: list[str], made: Path, *, lock: Path, verbose: bool) -> None:
    """Fill ``made`` by the first way that works; ``Unavailable`` with the last one's words if none does."""
    import shutil

    reason = "there is neither `uv` nor `pip`"
    for commands in ways_to_install(requirements, made):
        shutil.rmtree(made, ignore_errors=True)
        for command in commands:
            reason = run_and_beat(command, made.parent, lock=lock, verbose=verbose)
            if reason:
                break
        else:
            return
    raise Unavailable(f"the Python packages that rooftrace needs cannot be installed here: {reason}")


def ways_to_install(requirements: list[str], made: Path) -> Iterator[list[list[str]]]:
    """The ways to make an environment, best first, each as the commands to run in order.

    uv compiles on request only; without that, every later start would compile numpy and pydantic anew, since
    nothing here writes bytecode at run time.
    """
    import shutil
    from importlib.machinery import PathFinder

    python = str(python_of(made))
    uv = shutil.which("uv")
    if uv:
        fill = [uv, "pip", "install", "--quiet", "--compile-bytecode", "--python", python, *requirements]
        yield [[uv, "venv", "--quiet", "--python", sys.executable, str(made)], fill]
    pip = ["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check", "--prefer-binary"]
    pip += ["--retries", "1", *requirements]
    if PathFinder.find_spec("ensurepip"):
        yield [[sys.executable, "-m", "venv", str(made)], [python, *pip]]
    elif PathFinder.find_spec("pip"):
        version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        site = made / ("Lib/site-packages" if os.name == "nt" else f"lib/{version}/site-packages")
        bare = [sys.executable, "-m", "venv", "--without-pip", str(made)]
        yield [bare, [sys.executable, *pip, "--target", str(site)]]


def run_and_beat(command: list[str], folder: Path, *, lock: Path, verbose: bool) -> str:
    """Run an installer while refreshing the lock; empty, or why it failed.

    It runs in ``folder``, which is ours: ``-m pip`` would take a ``pip.py`` from the working directory. Its
    output goes to stderr where a person asked for it (``setup``), else to a log that is read only on failure.
    """
    import subprocess
    from contextlib import suppress

    dropped = {"PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"}
    variables = {name: value for name, value in os.environ.items() if name not in dropped}
    variables |= {"PIP_USER": "0", "PIP_REQUIRE_VIRTUALENV": "0"}
    log = folder / "log"
    with log.open("wb") as output:
        sink = 2 if verbose else output
        try:
            process = subprocess.Popen(
                command, cwd=folder, env=variables, stdin=subprocess.DEVNULL, stdout=sink, stderr=sink
            )
        except OSError as error:
            return f"`{command[0]}` does not start: {error.strerror}"
        code = None
        while code is None:
            with suppress(FileNotFoundError):  # taken over, after a long suspend
                os.utime(lock)
            with suppress(subprocess.TimeoutExpired):
                code = process.wait(timeout=BEAT_S)
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines()]
    said = next((line for line in reversed(lines) if line), f"`{Path(command[0]).name}` ended with code {code}")
    return "" if code == 0 else said.removeprefix("ERROR: ").removeprefix("error: ")


# One builder at a time


def acquire(lock: Path, is_done: Callable[[], bool]) -> bool:
    """Take the lock, a folder that one process can make; False when another finished the work meanwhile."""
    from time import sleep

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
    from contextlib import suppress

    with suppress(OSError):
        if (lock / "owner").read_text(encoding="utf-8") == owner_line():
            discard(lock)


def owner_line() -> str:
    """Who holds a lock: process and host, since machines may share a home folder."""
    from platform import node

    return f"{os.getpid()} {node()}"


def is_stale(lock: Path) -> bool:
    """Whether the lock's owner is dead (told on its own host only) or silent for ``STALE_AFTER_S``."""
    from time import time

    try:
        if time() - lock.stat().st_mtime > STALE_AFTER_S:
            return True
        pid, _, host = (lock / "owner").read_text(encoding="utf-8").partition(" ")
    except FileNotFoundError:  # released just now, or taken and not yet signed
        return False
    return pid.isdigit() and host == owner_line().partition(" ")[2] and not is_alive(int(pid))


def is_alive(pid: int) -> bool:
    """Whether a process exists; always True on Windows, where sending it signal 0 would end it."""
    if os.name != "posix":
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def discard(folder: Path) -> None:
    """Make a folder disappear at once, if it is there: renamed first, then deleted."""
    import shutil
    import uuid

    aside = folder.with_name(f"{folder.name}.old-{uuid.uuid4().hex}")
    try:
        folder.rename(aside)
    except FileNotFoundError:  # never there, or another process was faster
        return
    shutil.rmtree(aside, ignore_errors=True)
