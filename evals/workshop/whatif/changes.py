"""What may be changed in a run, and the programs of the changed run.

The list is closed. A change touches only the numbers it names: no instruction is added, dropped or moved, so
the two runs differ by the change alone. Kernels and spans are named by a part of their name as the trace
shows it, waits by an operator that was open when the call was made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

from evals.workshop.instructions import (
    Activity,
    Enter,
    Exit,
    Instruction,
    Launch,
    RecordEvent,
    Synchronize,
    Thread,
    WaitEvent,
    Work,
)

COLLECTIVE = "nccl"
"""Kernels whose names begin so are collectives."""
NEVER = "\0no event of this name is ever recorded"


@dataclass(frozen=True, kw_only=True)
class ScaleKernels:
    """Kernels whose name contains ``name`` take ``factor`` of their time; copies and fills do not change."""

    name: str
    factor: float


@dataclass(frozen=True, kw_only=True)
class RemoveWaits:
    """No call made inside operator ``op`` blocks: synchronisations and copies return after their own host time."""

    op: str


@dataclass(frozen=True, kw_only=True)
class ScaleHost:
    """All host work takes ``factor`` of its time: code between calls and the calls themselves.

    What is no work stays: launch latencies, the time from the end of awaited GPU work to the return of the
    call, the time from a hand-over to the awakening of the other thread.
    """

    factor: float


@dataclass(frozen=True, kw_only=True)
class DropSpans:
    """The host work inside every span called ``name`` takes no time."""

    name: str


@dataclass(frozen=True, kw_only=True)
class FreeCollectives:
    """Collectives take no GPU time; their launches and events stay."""


@dataclass(frozen=True, kw_only=True)
class FreeCopies:
    """Copies take no GPU time; their calls stay, and those that block still wait for what is before them."""


@dataclass(frozen=True, kw_only=True)
class Both:
    """Two changes at once. They name disjoint things, or the second is of what the first left."""

    first: Single
    second: Single


Single: TypeAlias = "ScaleKernels | RemoveWaits | ScaleHost | DropSpans | FreeCollectives | FreeCopies"
Change: TypeAlias = "Single | Both"
Rewrite: TypeAlias = "Callable[[Instruction, tuple[str, ...]], Instruction]"


def changed(threads: tuple[Thread, ...], change: Change) -> tuple[Thread, ...]:
    """The programs of the changed run."""
    if isinstance(change, Both):
        return changed(changed(threads, change.first), change.second)
    rewrite = _rewrite(change)
    return tuple(replace(thread, instructions=tuple(_walk(thread, rewrite))) for thread in threads)


def described(change: Change) -> str:
    """A change in a few words, for tables."""
    if isinstance(change, Both):
        return f"{described(change.first)} + {described(change.second)}"
    if isinstance(change, ScaleKernels):
        return f"kernels `{change.name[-24:]}` x {change.factor}"
    if isinstance(change, RemoveWaits):
        return f"no waits in `{change.op}`"
    if isinstance(change, ScaleHost):
        return f"host x {change.factor}"
    if isinstance(change, DropSpans):
        return f"no `{change.name[:24]}`"
    return "free collectives" if isinstance(change, FreeCollectives) else "free copies"


def scaled(ns: int, factor: float) -> int:
    """A share of a time, rounded to the nanosecond (halves to even)."""
    return round(ns * factor)


def _walk(thread: Thread, rewrite: Rewrite) -> Iterator[Instruction]:
    """Each instruction rewritten, given the names of the spans open around it."""
    inside: tuple[str, ...] = ()
    for instruction in thread.instructions:
        if isinstance(instruction, Exit):
            inside = inside[:-1]
        yield rewrite(instruction, inside)
        if isinstance(instruction, Enter):
            inside = (*inside, instruction.name)


def _rewrite(change: Single) -> Rewrite:
    if isinstance(change, RemoveWaits):
        return lambda row, inside: _without_wait(row) if change.op in inside else row
    if isinstance(change, ScaleHost):
        return lambda row, _: _host_scaled(row, change.factor)
    if isinstance(change, DropSpans):
        return lambda row, inside: _host_scaled(row, 0.0) if change.name in inside else row
    shrink = _shrink(change)
    return lambda row, _: _with_activities(row, shrink) if isinstance(row, Launch) else row


def _shrink(change: ScaleKernels | FreeCollectives | FreeCopies) -> Callable[[Activity], float]:
    """What is left of an activity's time."""
    if isinstance(change, ScaleKernels):
        return lambda row: change.factor if row.kind == "kernel" and change.name in row.name else 1.0
    if isinstance(change, FreeCollectives):
        return lambda row: 0.0 if row.kind == "kernel" and row.name.startswith(COLLECTIVE) else 1.0
    return lambda row: 0.0 if row.kind == "gpu_memcpy" else 1.0


def _with_activities(launch: Launch, shrink: Callable[[Activity], float]) -> Launch:
    shares = [shrink(row) for row in launch.activities]
    if all(share == 1.0 for share in shares):
        return launch
    rows = zip(launch.activities, shares, strict=True)
    shrunk = (replace(row, duration_ns=scaled(row.duration_ns, share)) for row, share in rows)
    return replace(launch, activities=tuple(shrunk))


def _without_wait(instruction: Instruction) -> Instruction:
    if isinstance(instruction, Launch):
        return replace(instruction, is_blocking=False)
    if isinstance(instruction, Synchronize):
        return replace(instruction, event=NEVER)
    return instruction


def _host_scaled(instruction: Instruction, factor: float) -> Instruction:
    if isinstance(instruction, Work):
        return Work(ns=scaled(instruction.ns, factor))
    if isinstance(instruction, (Launch, Synchronize, RecordEvent, WaitEvent)):
        return replace(instruction, host_ns=scaled(instruction.host_ns, factor))
    return instruction
