"""The gaps of a device: stretches without any GPU activity, and what ended and began them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Gap:
    """A gap and the indices (in the given arrays) of the activities around it."""

    start: int
    dur: int
    before: int
    after: int


def find_gaps(start: NDArray[np.int64], end: NDArray[np.int64]) -> list[Gap]:
    """All gaps between the first start and the last end, in time order; ``start`` is sorted.

    An activity without duration bounds gaps like any other, so that the gaps add up to the span's idle time.
    """
    reach = np.maximum.accumulate(end)
    last_to_end = np.maximum.accumulate(np.where(end == reach, np.arange(end.size), 0))
    before = np.flatnonzero(start[1:] > reach[:-1])
    lows, highs = reach[before], start[before + 1]
    return [
        Gap(low, high - low, first, second)
        for low, high, first, second in zip(
            lows.tolist(), highs.tolist(), last_to_end[before].tolist(), (before + 1).tolist(), strict=True
        )
    ]
