"""Warm-up, batches, their median and spread, with clocks that say what the test wants."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rooftrace_calibrate.timing import Effort, Sample, sample

EFFORT = Effort(batches=5, batch_s=1.0, warm_s=3.0, longest_s=9.0)


class Clock:
    """Gives the seconds of the list, one a batch; remembers how many calls each batch had."""

    def __init__(self, *seconds: float) -> None:
        self._seconds: Iterator[float] = iter(seconds)
        self.calls: list[int] = []

    def __call__(self, calls: int) -> float:
        self.calls.append(calls)
        return next(self._seconds)


def test_a_figure_is_the_median_batch_after_a_warm_up():
    # the first call and 1 + 2 + 4 more warm up: 9 + 0.5 s are enough; 0.5 s a call, so 2 fill a batch of 1 s
    clock = Clock(9.0, 0.5, 1.0, 1.2, 1.1, 1.0, 1.4)

    found = sample(clock, EFFORT)

    assert clock.calls == [1, 1, 2, 2, 2, 2, 2]
    # of a call: 0.5, 0.6, 0.55, 0.5, 0.7; sorted 0.5 0.5 0.55 0.6 0.7: quartiles 0.5 and 0.6, 0.1 / 0.55 = 18.18 %
    assert found == Sample(seconds=0.55, spread_pct=18.18, batches=5, calls=2)
    assert found.method == "median of 5 batches of 2 calls"


def test_the_warm_up_lasts_as_long_as_it_should():
    # 0.5 + 0.5 + 0.8 + 1.6 = 3.4 s of 3; the last round, 4 calls in 1.6 s, gives 0.4 s a call: 3 fill a batch
    clock = Clock(0.5, 0.5, 0.8, 1.6, 1.2, 1.2, 1.2, 1.2, 1.2)

    found = sample(clock, EFFORT)

    assert clock.calls == [1, 1, 2, 4, 3, 3, 3, 3, 3]
    assert (found.seconds, found.spread_pct) == (pytest.approx(0.4), 0.0)


def test_batches_that_lie_far_apart_are_taken_again():
    # 1 2 1 2 3: quartiles 1 and 2 of a median 2: 50 %; then five equal ones
    clock = Clock(9.0, 1.0, *(1.0, 2.0, 1.0, 2.0, 3.0), *(2.0, 2.0, 2.0, 2.0, 2.0))

    assert sample(clock, EFFORT) == Sample(seconds=2.0, spread_pct=0.0, batches=5, calls=1)


def test_batches_that_stay_far_apart_are_told_as_they_are():
    clock = Clock(9.0, 1.0, *(1.0, 2.0, 1.0, 2.0, 3.0) * 3)

    assert sample(clock, EFFORT) == Sample(seconds=2.0, spread_pct=50.0, batches=5, calls=1)


def test_a_clock_that_stands_ends_the_warm_up_and_gives_zero():
    assert sample(lambda _calls: 0.0, EFFORT).seconds == 0.0
