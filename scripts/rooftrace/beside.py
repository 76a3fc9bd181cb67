"""Work that a copy of this process does while it goes on: the copy sees all that was there and hands back its result.

A copy is made by `fork`, where that is safe (Linux, no other threads) and a second processor may be used. Elsewhere,
and whenever a copy fails in any way, the work is done here, when its result is asked for. So results and errors are
those of the work itself, however many processors there are.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, NoReturn, TypeVar

from rooftrace.stretches import processors

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import BinaryIO

_T = TypeVar("_T")
_Item = TypeVar("_Item")
# What ends a process from outside ends a copy at once: there is nothing in it to tidy up.
_INTERRUPTS = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
_THREADS = Path("/proc/self/task")
_PIPE_BYTES = 1 << 20  # as much as Linux lets everybody have; a full pipe stops the copy until it is read


class Later(Generic[_T]):
    """The result of work that may be under way elsewhere."""

    def __init__(self, work: Callable[[], _T], answer: BinaryIO | None) -> None:
        self.is_done = False
        self._work = work
        self._answer = answer

    def result(self) -> _T:
        """What the work has made, once it is done."""
        if self._answer is not None:
            # The other end is a copy of this process, so what it sends may be unpickled.
            with suppress(EOFError, OSError, pickle.UnpicklingError):
                made: _T = pickle.load(self._answer)  # noqa: S301
                self.is_done = True
                return made
        return self._work()


@contextmanager
def beside(work: Callable[[], _T], *, is_worth_it: bool = True) -> Iterator[Later[_T]]:
    """Have the work done meanwhile, where that is possible and worth a process; none is left when this ends.

    The work may change nothing that anybody else sees, and its result has to be picklable.
    """
    if not (is_worth_it and can_copy()):
        yield Later(work, None)
        return
    started = _start(work)
    if started is None:
        yield Later(work, None)
        return
    number, answer = started
    later = Later(work, answer)
    try:
        yield later
    finally:
        answer.close()
        if not later.is_done:
            with suppress(ProcessLookupError):
                os.kill(number, signal.SIGKILL)
        with suppress(ChildProcessError):  # whoever started this wants no word of processes that ended
            os.waitpid(number, 0)


def in_two(work: Callable[[Sequence[_Item]], list[_T]], items: Sequence[_Item], *, is_worth_it: bool) -> list[_T]:
    """`work(items)`, one result an item, every other of them made elsewhere if that is possible and worth it."""
    if len(items) < 2 or not (is_worth_it and can_copy()):
        return work(items)
    with beside(lambda: work(items[1::2])) as others:
        made: list[Any] = [None] * len(items)
        made[::2] = work(items[::2])
        made[1::2] = others.result()
    return made


def can_copy() -> bool:
    """Whether a copy of this process would work, and beside it."""
    if sys.platform != "linux" or processors() < 2:  # what macOS brings along does not stand a fork
        return False
    try:
        return len(list(_THREADS.iterdir())) == 1  # a thread's locks would stay locked in a copy
    except OSError:
        return False


def _start(work: Callable[[], _T]) -> tuple[int, BinaryIO] | None:
    """A copy at work, by its number, and where its answer comes from; None if the system has no room for one."""
    try:
        read, write = os.pipe()
    except OSError:
        return None
    _widen(read)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _INTERRUPTS)  # an exception in between would be raised twice
    try:
        number = os.fork()
        if not number:
            _answer(work, write)
    except OSError:
        os.close(read)
        os.close(write)
        return None
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    os.close(write)
    return number, os.fdopen(read, "rb")


def _answer(work: Callable[[], Any], write: int) -> NoReturn:
    """In the copy: do the work and end, without whatever the process would do at its own end."""
    code = 1
    try:
        for number in _INTERRUPTS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _INTERRUPTS)
        made = work()
        with os.fdopen(write, "wb") as file:
            pickle.dump(made, file, protocol=pickle.HIGHEST_PROTOCOL)
        code = 0
    finally:
        os._exit(code)


def _widen(pipe: int) -> None:
    import fcntl

    with suppress(OSError):
        fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
