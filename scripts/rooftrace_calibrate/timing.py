"""How a call is timed: warmed up, then the median of several batches and how far they lie apart."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable
from dataclasses import dataclass

MOST_SPREAD_PCT = 20.0
_TRIES = 3  # another program's moment on the machine spoils one try, not three
_MOST_CALLS = 100_000

# Runs a call so many times and gives the seconds that took, the device's work included.
TimeCalls = Callable[[int], float]


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much time a figure may take."""

    batches: int
    batch_s: float  # least length of a batch
    warm_s: float  # time of the calls before the first batch
    longest_s: float  # a shape of which one call takes longer ends the search


FULL = Effort(batches=9, batch_s=0.02, warm_s=0.1, longest_s=0.4)
QUICK = Effort(batches=5, batch_s=0.005, warm_s=0.02, longest_s=0.1)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """Median seconds of one call over the batches, and their interquartile range in per cent of it."""

    seconds: float
    spread_pct: float
    batches: int
    calls: int  # of one batch

    @property
    def method(self) -> str:
        """How it was taken, for the statistic of a figure."""
        return f"median of {self.batches} batches of {self.calls} call{'s' if self.calls > 1 else ''}"


def sample(time_calls: TimeCalls, effort: Effort) -> Sample:
    """Warm up and time; again, up to three times, while the batches lie too far apart."""
    calls = _calls_a_batch(time_calls, effort)
    found = _once(time_calls, calls, effort.batches)
    for _ in range(_TRIES - 1):
        if found.spread_pct <= MOST_SPREAD_PCT:
            break
        found = _once(time_calls, calls, effort.batches)
    return found


def _calls_a_batch(time_calls: TimeCalls, effort: Effort) -> int:
    """Calls that fill a batch, after the warm-up; its last round, never the very first call, is the estimate."""
    calls, spent = 1, time_calls(1)
    while True:
        last = time_calls(calls)
        spent += last
        if spent >= effort.warm_s or calls >= _MOST_CALLS:
            break
        calls *= 2
    each = last / calls
    return _MOST_CALLS if each <= 0 else min(_MOST_CALLS, max(1, math.ceil(effort.batch_s / each)))


def _once(time_calls: TimeCalls, calls: int, batches: int) -> Sample:
    each = [time_calls(calls) / calls for _ in range(batches)]
    low, middle, high = statistics.quantiles(each, n=4, method="inclusive")
    spread = 100.0 * (high - low) / middle if middle > 0 else 0.0
    return Sample(seconds=middle, spread_pct=round(spread, 2), batches=batches, calls=calls)
