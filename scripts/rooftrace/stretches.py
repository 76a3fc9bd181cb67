"""Divides a file among processes: each reads its own stretch of the content, and one puts them together.

The last stretches are short, and nobody's: whoever is done with its own takes the next of them. What was read elsewhere
counts only if the stretch before it ended between two events; from there on, and from where a process failed, all is
read here. So the result is the same however many processes take part. They are started as programs of their own
(`trace/helper.py`): a fork would copy the threads of libraries, and `multiprocessing` would run the caller's main
module again.

A command starts them before it imports what it needs itself, so that they read meanwhile: this module imports nothing
that takes time.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

# What a reader gets through in the 0.15 s in which a helper starts; less is not worth a process.
_STRETCH = 16 << 20
# What a helper gets through while the command that started it imports its modules.
_LEAD = 28 << 20
_LEAST_AHEAD = 8 << 20
# What the first process does less of a plain file, by parts of the file: it alone digests it whole, 1.5 GB a second
# where it reads 90 MB.
_DIGEST = 0.06
_FIRST = 1 << 20  # the stretch that tells what kind of document it is
# How much of what a process is expected to read is left to whoever is free, and in how long and how many stretches.
_SHARED = 0.3
_SHORT = 2 << 20
_MOST_SHARED = 16
_MOST_PROCESSES = 4
_GZIP = b"\x1f\x8b"
# Traces shrink to a tenth to a fortieth in gzip; what claims far more is no size.
_MOST_INFLATED = 100
_HELPER = Path(__file__).parent / "trace" / "helper.py"


@dataclass(frozen=True, slots=True)
class Job:
    """What a helper is told: the file, where its stretches meet, which is the helper's, and where it takes others."""

    path: str
    places: tuple[int, ...]
    number: int
    tokens: int | None


class Division(NamedTuple):
    """Where to divide the content: bytes from its start; and how many stretches at the end are nobody's."""

    places: tuple[int, ...] = ()
    shared: int = 0


def division(path: Path) -> Division:
    """How to divide the content among this process and helpers that start together, if it is worth it."""
    size = _content(path).size
    count = min(_MOST_PROCESSES, processors(), size // _STRETCH)
    return Division(tuple(size * number // count for number in range(1, count)))


def division_ahead(path: Path) -> Division:
    """The same where this process has other things to do first: the helpers' stretches are longer than its own."""
    content = _content(path)
    size = content.size
    count = min(_MOST_PROCESSES, processors(), 1 + size // _LEAST_AHEAD)
    if count < 2:
        return Division()
    more = _LEAD + int(_DIGEST * size if content.is_plain else 0)
    theirs = min((size + more) // count, (size - _FIRST) // (count - 1))
    left = int(_SHARED * size) if os.name == "posix" else 0
    shared = min(_MOST_SHARED, left // _SHORT)
    if shared:
        theirs -= int(_SHARED * theirs)
    else:
        left = 0
    first = max(_FIRST, size - left - theirs * (count - 1))
    places = [first + theirs * number for number in range(count - 1)]
    start = first + theirs * (count - 1)
    places += [start + (size - start) * number // shared for number in range(shared)]
    return Division(tuple(places), shared)


def processors() -> int:
    """Processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Content(NamedTuple):
    size: int
    is_plain: bool


_NO_CONTENT = _Content(0, is_plain=False)


def _content(path: Path) -> _Content:
    """Bytes of the content as far as the file's first and last bytes tell; none if they do not."""
    try:
        if not path.is_file():  # a pipe would be waited for
            return _NO_CONTENT
        with path.open("rb") as handle:
            head = handle.read(2)
            size = handle.seek(0, os.SEEK_END)
            if head != _GZIP:
                return _Content(size, is_plain=True) if head[:1] in b"{[" else _NO_CONTENT
            handle.seek(-4, os.SEEK_CUR)
            # Of the last member, modulo 2^32, or of no meaning: a wrong size costs time and nothing else.
            content = int.from_bytes(handle.read(4), "little")
            return _Content(content, is_plain=False) if content < _MOST_INFLATED * size else _NO_CONTENT
    except (OSError, ValueError):
        return _NO_CONTENT


class Helpers:
    """The processes that read the later stretches; `places` is where the stretches meet."""

    def __init__(self, places: tuple[int, ...], processes: list[subprocess.Popen[bytes]], tokens: int | None) -> None:
        self.places = places
        self._processes = processes
        self._tokens = tokens

    def take(self) -> int | None:
        """The number of the next stretch that nobody has taken; None if there is none."""
        return take(self._tokens)

    def results(self) -> dict[int, Any]:
        """What has been read of each stretch, by number, once all is done; without those at which a helper failed."""
        found: dict[int, Any] = {}
        for process in self._processes:
            # The other end is a program of our own, so what it sends may be unpickled.
            with suppress(EOFError, OSError, pickle.UnpicklingError):
                found |= pickle.load(process.stdout)  # type: ignore[arg-type]  # noqa: S301
        return found


def take(tokens: int | None) -> int | None:
    """The number of the next stretch that nobody has taken, from where they are handed out; None if there is none."""
    token = b"" if tokens is None else os.read(tokens, 1)
    return token[0] if token else None


NONE = Helpers((), [], None)


@contextmanager
def helpers(path: Path, divided: Division) -> Iterator[Helpers]:
    """Helpers at work for every stretch but the first and those that are nobody's; none is left when this ends."""
    places, shared = divided
    with ExitStack() as stack:
        tokens = None
        if shared:
            with suppress(OSError):  # too many open files: all these stretches are read here
                tokens = _hand_out(range(len(places) - shared + 1, len(places) + 1))
                stack.callback(os.close, tokens)
        processes = []
        for number in range(1, len(places) - shared + 1):
            process = _start(Job(str(path.absolute()), places, number, tokens))
            if process is None:
                break
            stack.callback(_end, process)
            processes.append(process)
            _running.append(process)
        yield Helpers(places, processes, tokens)


def _hand_out(numbers: Iterable[int]) -> int:
    """A pipe of numbers, each of which one reader gets."""
    read, write = os.pipe()
    os.write(write, bytes(numbers))
    os.close(write)
    return read


def kill_helpers() -> None:
    """End all helpers of this process, which is about to end itself."""
    for process in _running:
        process.kill()


# Of this process: its helpers, and who reads ahead for it, by the file; a reader takes them over.
_running: list[subprocess.Popen[bytes]] = []
_ahead: dict[Path, Helpers] = {}


def first_file(arguments: Sequence[str]) -> Path | None:
    """The first file that a command line names: what the command is about, if it is about a file."""
    words = (Path(word) for word in arguments[1:] if not word.startswith("-"))
    return next((path for path in words if os.path.isfile(path)), None)  # noqa: PTH113 - no error for a name too long


@contextmanager
def reading_ahead(path: Path | None) -> Iterator[None]:
    """Helpers at work on this file, unless there are, for whoever reads it first while this lasts."""
    if path is None or path in _ahead:
        yield
        return
    with helpers(path, division_ahead(path)) as started:
        if started.places:
            _ahead[path] = started
        try:
            yield
        finally:
            _ahead.pop(path, None)


@contextmanager
def helpers_of(path: Path) -> Iterator[Helpers]:
    """The helpers that read this file ahead, else new ones if they are worth it."""
    started = _ahead.pop(path, None)
    if started is not None:
        yield started
    else:
        with helpers(path, division(path)) as started:
            yield started


def _start(job: Job) -> subprocess.Popen[bytes] | None:
    if not sys.executable:
        return None
    prefix = ["-X", f"pycache_prefix={sys.pycache_prefix}"] if sys.pycache_prefix else []
    order = json.dumps([sys.path, job.path, job.places, job.number, job.tokens])
    try:
        return subprocess.Popen(  # noqa: S603 - this interpreter and a file of this package
            [sys.executable, "-I", "-B", *prefix, str(_HELPER), order],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            pass_fds=() if job.tokens is None else (job.tokens,),
        )
    except OSError:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    if process.stdout is not None:
        process.stdout.close()
    process.wait()
    _running.remove(process)
