"""Where the time of a command goes, by stage: `with stage("replay"):`, and a clock around it all.

Without a clock a stage costs one look at a context variable. Wall time is of this process, CPU time too but for what is
done `elsewhere`: its stages have their CPU time there, and no wall time, since this process did other things meanwhile.
Of processes that help to read, only the waiting for them is known. Nothing of it is ever written into an artifact.
"""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Generic, TypeVar

from msgspec import Struct, field

from rooftrace.beside import beside
from rooftrace.units import NS_PER_MS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.beside import Later

_T = TypeVar("_T")
OTHER = "other"


class Spent(Struct, kw_only=True):
    """Time of one stage without the stages inside it, ns, and how often it was entered."""

    wall_ns: int = 0
    cpu_ns: int = 0
    count: int = 0


class Clock(Struct, kw_only=True):
    """Charges every moment to the innermost stage."""

    spent: dict[str, Spent] = field(default_factory=dict)
    _open: list[str] = field(default_factory=list)
    _wall: int = 0
    _cpu: int = 0

    def enter(self, name: str) -> None:
        """Charge what has passed to the stage that was open, and open this one."""
        self._charge()
        self._open.append(name)
        self.spent.setdefault(name, Spent()).count += 1

    def leave(self) -> None:
        """Charge what has passed to the innermost stage, and close it."""
        self._charge()
        self._open.pop()

    def _charge(self) -> None:
        wall, cpu = time.perf_counter_ns(), time.process_time_ns()
        if self._open:
            spent = self.spent[self._open[-1]]
            spent.wall_ns += wall - self._wall
            spent.cpu_ns += cpu - self._cpu
        self._wall, self._cpu = wall, cpu

    def add_elsewhere(self, spent: dict[str, Spent]) -> None:
        """Charge CPU time that stages have taken in another process."""
        for name, there in spent.items():
            here = self.spent.setdefault(name, Spent())
            here.cpu_ns += there.cpu_ns
            here.count += there.count

    def rows(self) -> list[dict[str, str | float | int]]:
        """Stages in the order they were first entered, what no stage holds, and the total; times in ms."""
        named = {name: spent for name, spent in self.spent.items() if name != OTHER}
        rows = [_row(name, spent) for name, spent in [*named.items(), (OTHER, self.spent.get(OTHER, Spent()))]]
        whole = Spent(
            wall_ns=sum(spent.wall_ns for spent in self.spent.values()),
            cpu_ns=sum(spent.cpu_ns for spent in self.spent.values()),
            count=1,
        )
        return [*rows, _row("total", whole)]


def _row(name: str, spent: Spent) -> dict[str, str | float | int]:
    return {
        "stage": name,
        "wall_ms": round(spent.wall_ns / NS_PER_MS, 3),
        "cpu_ms": round(spent.cpu_ns / NS_PER_MS, 3),
        "count": spent.count,
    }


_CLOCK: ContextVar[Clock | None] = ContextVar("clock", default=None)


@contextmanager
def clock() -> Iterator[Clock]:
    """A clock that runs while the block does; what no stage of it holds is `other`."""
    running = Clock()
    token = _CLOCK.set(running)
    running.enter(OTHER)
    try:
        yield running
    finally:
        running.leave()
        _CLOCK.reset(token)


@contextmanager
def stage(name: str) -> Iterator[None]:
    """Charge the block's time to a stage, if a clock runs."""
    running = _CLOCK.get()
    if running is None:
        yield
        return
    running.enter(name)
    try:
        yield
    finally:
        running.leave()


class _Timed(Generic[_T]):
    """The result of work that may have been done elsewhere, whose time is charged then."""

    def __init__(self, later: Later[tuple[_T, dict[str, Spent]]]) -> None:
        self._later = later

    def result(self) -> _T:
        """What the work has made, once it is done."""
        made, spent = self._later.result()
        running = _CLOCK.get()
        if running is not None:
            running.add_elsewhere(spent)
        return made


@contextmanager
def elsewhere(work: Callable[[], _T], *, is_worth_it: bool = True) -> Iterator[_Timed[_T]]:
    """`beside`, with the time of the work's stages."""
    home = os.getpid()

    def timed() -> tuple[_T, dict[str, Spent]]:
        if os.getpid() == home or _CLOCK.get() is None:
            return work(), {}
        with clock() as running:
            made = work()
        return made, running.spent

    with beside(timed, is_worth_it=is_worth_it) as later:
        yield _Timed(later)
