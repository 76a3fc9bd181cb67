"""Finds or makes the environment that rooftrace runs in. Standard library only, and cheap to load.

A virtual environment in the user's cache folder, named after the hash of the requirement list, the Python
version and the machine. It is built under another name and renamed, so it exists whole or not at all; a lock
spares two first runs the double work. Every start pays for this module; only a first one pays for `building`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

PYPROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
READY = "rooftrace-ready"  # written last; an environment without it is not used


class Unavailable(Exception):  # noqa: N818 - named for what happened
    """The environment cannot be provided; the text says why, and the hint what helps if it is not the network."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


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

OTHER_FOLDER = "Set ROOFTRACE_CACHE to a folder that can be written"
MORE_ROOM = "Free some room, or set ROOFTRACE_CACHE to a folder on another disk"


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
    except RuntimeError:  # a user that the system does not know
        home = Path()
    if not home.is_absolute() or (os.name == "posix" and os.environ.get("HOME") == ""):  # which would be the root
        raise Unavailable("there is no home folder to keep the environment in", OTHER_FOLDER)
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
    return (environment / READY).is_file() and python_of(environment).exists() and has_base(environment)


def has_base(environment: Path) -> bool:
    """Whether the Python that made it is still there; on Windows the environment's own only starts that one."""
    if os.name != "nt":
        return True  # it is a link, and `exists` has followed it
    for line in (environment / "pyvenv.cfg").read_text(encoding="utf-8", errors="replace").splitlines():
        key, _, value = line.partition("=")
        if key.strip() == "home":
            return Path(value.strip()).is_dir()
    return False


def is_running_in_own(requirements: list[str]) -> bool:
    """Whether this process already runs in the environment made for these requirements."""
    prefix = Path(sys.prefix)
    return prefix.name == environment_name(requirements) and is_ready(prefix)


def ready_for_another_python(requirements: list[str]) -> Path | None:
    """A finished environment of the same requirements on this machine, whichever Python made it."""
    digest, _, rest = environment_name(requirements).partition("-")
    place = rest.removeprefix(f"{sys.implementation.cache_tag}{getattr(sys, 'abiflags', '')}")
    try:
        return next((path for path in sorted(cache_folder().glob(f"{digest}-*{place}")) if is_ready(path)), None)
    except OSError:  # closed to us, or gone
        return None


def provide(requirements: list[str], *, verbose: bool) -> Path:
    """The finished environment for the running Python, made if need be; raises ``Unavailable``."""
    folder = Path(os.environ.get("ROOFTRACE_CACHE", ""))  # to be named where even the cache's place is not known
    try:
        folder = cache_folder()
        target = folder / environment_name(requirements)
        if is_ready(target):
            return target
        from rooftrace_launch import building, claims

        lock = target.with_name(target.name + ".lock")
        folder.mkdir(parents=True, exist_ok=True)
        if claims.acquire(lock, lambda: is_ready(target)):
            try:
                building.build(requirements, target, lock=lock, verbose=verbose)
            finally:
                claims.release_lock(lock)
    except OSError as error:
        from errno import EDQUOT, ENOSPC

        hint = MORE_ROOM if error.errno in (ENOSPC, EDQUOT) else OTHER_FOLDER
        raise Unavailable(f"cannot write in `{folder}`: {error.strerror or error}", hint) from error
    return target
