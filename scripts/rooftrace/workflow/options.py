"""Choices of a run, and their meaning."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.calltree import Activities, Steps


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeOptions:
    """What the caller may choose; the defaults read everything and detect the GPU."""

    platform: str | None = None
    steps: str | None = None
    progress: Callable[[int], None] | None = None


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
    low, _, high = wanted.partition("-")
    if not low.isdecimal() or not (high or low).isdecimal():
        raise UsageError(f"unknown steps: `{wanted}`", hint=_known(steps))
    first, last = int(low), int(high or low)
    if first > last or last >= len(steps.names):
        raise UsageError(f"no such steps: `{wanted}`", hint=_known(steps))
    return first, last


def _known(steps: Steps) -> str:
    names = ", ".join(steps.names[:8]) + (", …" if len(steps.names) > 8 else "")
    return f"The trace has {len(steps.names)} steps, 0 to {len(steps.names) - 1}: {names}"


def launches_per_step(steps: Steps) -> list[int]:
    """Number of GPU activities of each step."""
    inside = steps.of_activity[steps.of_activity >= 0]
    counts: list[int] = np.bincount(inside, minlength=len(steps.names)).tolist()
    return counts
