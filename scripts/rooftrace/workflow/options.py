"""Choices of a run, and their meaning."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.calltree import Activities, Steps
    from rooftrace.platforms import Platform

_RANGE = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


class AnalyzeOptions(Struct, frozen=True, kw_only=True):
    """What the caller may choose; the defaults read everything and detect the GPU."""

    platform: str | None = None
    own_platform: Platform | None = None  # of a file of the user's, instead of one of the pack
    steps: str | None = None
    progress: Callable[[int], None] | None = None
    redact: bool = False  # of users, hosts, jobs and home folders, in everything that is written
    force: bool = False  # write into a folder that holds other things, too
    max_bytes: int | None = (
        None  # the most that is unpacked of the file; unless given, what a trace of its size may hold
    )


def select_steps(activities: Activities, steps: Steps, wanted: str | None) -> tuple[Activities, Steps]:
    """Only the activities of the chosen steps: `3`, `2-5` (positions, from 0) or a step's name."""
    if wanted is None:
        return activities, steps
    first, last = _positions(steps, wanted)
    inside = (steps.of_activity >= first) & (steps.of_activity <= last)
    if not inside.any():
        raise UsageError(f"steps `{wanted}` launched no GPU work", hint=_known(steps))
    chosen = replace(
        steps,
        first=steps.first + first,
        names=steps.names[first : last + 1],
        start=steps.start[first : last + 1],
        end=steps.end[first : last + 1],
        of_activity=steps.of_activity[inside] - first,
    )
    return activities.select(inside), chosen


def _positions(steps: Steps, wanted: str) -> tuple[int, int]:
    if wanted in steps.names:
        at = steps.names.index(wanted)
        return at, at
    match = _RANGE.fullmatch(wanted)
    if match is None:
        raise UsageError(f"unknown steps: `{wanted}`", hint=_known(steps))
    first, last = int(match[1]), int(match[2] or match[1])
    if first > last or last >= len(steps.names):
        raise UsageError(f"no such steps: `{wanted}`", hint=_known(steps))
    return first, last


def _known(steps: Steps) -> str:
    count = len(steps.names)
    if count == 0:
        return "The trace has no steps; leave --steps out"
    if count == 1:
        return f"The trace has one step, 0: {steps.names[0]}"
    names = ", ".join(steps.names[:8]) + (", …" if count > 8 else "")
    return f"The trace has {count} steps, 0 to {count - 1}: {names}"


def launches_per_step(steps: Steps) -> list[int]:
    """Number of GPU activities of each step."""
    inside = steps.of_activity[steps.of_activity >= 0]
    counts: list[int] = np.bincount(inside, minlength=len(steps.names)).tolist()
    return counts
