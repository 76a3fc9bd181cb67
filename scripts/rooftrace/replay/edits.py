"""What is changed in a run before it is replayed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field

if TYPE_CHECKING:
    from numpy.typing import NDArray


def _none() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


class HostCut(Struct, frozen=True, kw_only=True):
    """Host time that a fix takes out: on one thread, the given share of every instant of some intervals.

    Intervals are on the trace's clock, sorted and disjoint. Time in which the thread waits for the GPU is never cut.
    """

    lane: int
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    share: float = 1.0


class Edit(Struct, frozen=True, kw_only=True):
    """A fix, at full closure: a closure of 75 % takes three quarters of every part of it.

    ``saved_ns`` is GPU time taken from each of the distinct ``activities`` (never more than its duration). ``removed``
    activities run no more and are not launched: what a closure leaves of their time is spent right after the one before
    them, as by a kernel that does the work of both. Their host time is cut only where ``host`` says so. ``unblocked``
    are numbers of waits (`Schedule.waits`) that no longer block.
    """

    activities: NDArray[np.int64] = field(default_factory=_none)
    saved_ns: NDArray[np.int64] = field(default_factory=_none)
    removed: NDArray[np.int64] = field(default_factory=_none)
    host: tuple[HostCut, ...] = ()
    unblocked: NDArray[np.int64] = field(default_factory=_none)
