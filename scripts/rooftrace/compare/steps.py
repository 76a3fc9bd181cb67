"""Which steps of two runs are compared, and how long each step's part of the timeline is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.compare.side import Side

# A first step longer than this factor of the others' median was a warm-up; it takes two others to tell.
_WARM_UP = 1.5
# A last step with less than this share of the others' activities was cut off by the end of the recording.
_CUT_OFF = 0.5
LEAST_STEPS = 2


class Window(Struct, frozen=True, kw_only=True):
    """The steps of one side: those that tell what a step takes, and those whose sum is compared."""

    kept: tuple[int, ...]  # steady steps
    compared: tuple[int, ...]  # as many on both sides; empty: the whole span
    left_out: tuple[str, ...]  # names of the steps that are not steady, with the reason
    length_ns: NDArray[np.int64]  # of every step: what its activities and gaps take of the timeline

    @property
    def by_step(self) -> bool:
        """Whether steps are compared, not whole spans."""
        return bool(self.compared)


def choose_windows(
    base: Side, target: Side, lengths: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> tuple[Window, Window]:
    """The windows of two sides: the last steady steps of both, as many as the shorter run has."""
    steady = [_steady(side, length) for side, length in zip((base, target), lengths, strict=True)]
    count = min(len(kept) for kept, _ in steady)
    windows = []
    for (kept, left_out), length in zip(steady, lengths, strict=True):
        compared = kept[-count:] if count >= LEAST_STEPS else ()
        windows.append(
            Window(
                kept=kept if compared else (),
                compared=compared,
                left_out=left_out if compared else (),
                length_ns=length,
            )
        )
    return windows[0], windows[1]


def step_lengths(side: Side, shares: NDArray[np.int64]) -> NDArray[np.int64]:
    """Timeline of each step: shares of its activities and the gaps before them, ns."""
    count = len(side.steps.names)
    length = np.zeros(count + 1, dtype=np.int64)  # the last entry takes what precedes the first step
    np.add.at(length, side.steps.of_activity, shares)
    causes = side.causes
    np.add.at(length, side.steps.of_activity[causes.after], causes.dur)
    return length[:count]


def _steady(side: Side, length: NDArray[np.int64]) -> tuple[tuple[int, ...], tuple[str, ...]]:
    names = side.steps.names
    sizes = np.bincount(side.steps.of_activity + 1, minlength=len(names) + 1)[1:]
    kept = [number for number in range(len(names)) if sizes[number]]
    if len(names) < LEAST_STEPS:
        return (), ()
    left_out: list[str] = []
    if len(kept) > LEAST_STEPS and sizes[kept[-1]] < _CUT_OFF * np.median(sizes[kept[:-1]]):
        left_out.append(f"{names[kept.pop()]} (cut off)")
    if len(kept) > LEAST_STEPS and length[kept[0]] > _WARM_UP * np.median(length[kept[1:]]):
        left_out.append(f"{names[kept.pop(0)]} (warm-up)")
    return tuple(kept), tuple(left_out)
