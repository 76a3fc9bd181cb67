"""The gaps of a device: stretches without any GPU activity, and what ended and began them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.ledger.intervals import union

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
    """All gaps between the first start and the last end, in time order; ``start`` is sorted."""
    busy = union(start, end)
    if busy.start.size < 2:
        return []
    lows, highs = busy.end[:-1], busy.start[1:]
    after = np.searchsorted(start, highs, side="left")
    by_end = np.argsort(end, kind="stable")
    before = by_end[np.searchsorted(end[by_end], lows, side="left")]
    return [
        Gap(low, high - low, first, second)
        for low, high, first, second in zip(lows.tolist(), highs.tolist(), before.tolist(), after.tolist(), strict=True)
    ]
