"""The gaps of a device: stretches without any GPU activity, and what ended and began them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.intervals import farthest

if TYPE_CHECKING:
    from numpy.typing import NDArray


class GapColumns(Struct, frozen=True, kw_only=True):
    """Gaps in time order, in columns; ``before`` and ``after`` are indices in the given arrays."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    before: NDArray[np.int64]
    after: NDArray[np.int64]


def gap_columns(start: NDArray[np.int64], end: NDArray[np.int64]) -> GapColumns:
    """All gaps between the first start and the last end, in time order; ``start`` is sorted.

    An activity without duration bounds gaps like any other, so that the gaps add up to the span's idle time.
    """
    last_to_end = farthest(end)
    reach = end[last_to_end]
    before = np.flatnonzero(start[1:] > reach[:-1])
    return GapColumns(start=reach[before], end=start[before + 1], before=last_to_end[before], after=before + 1)
