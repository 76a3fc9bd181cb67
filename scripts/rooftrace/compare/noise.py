"""Whether a difference of medians over steps is more than what the steps differ among themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

# The standard deviation of a normal distribution, in median absolute deviations.
_SIGMA_PER_MAD = 1.4826
# The standard error of a median, in standard errors of a mean (normal distribution, large samples).
_MEDIAN_FACTOR = 1.2533
# Standard errors by which medians must differ: 99.7 % of what noise does is less.
_ERRORS = 3.0
# Fewer steps than this tell no spread.
LEAST_FOR_SPREAD = 3
RESAMPLES = 2_000
SEED = 20_240_607
CONFIDENCE = 0.95


def median_and_spread(values: NDArray[np.int64]) -> tuple[int, int | None]:
    """Median, and the spread as a standard deviation (by the median absolute deviation); None for few values."""
    if not values.size:
        return 0, None
    middle = float(np.median(values))
    if values.size < LEAST_FOR_SPREAD:
        return round(middle), None
    return round(middle), round(_SIGMA_PER_MAD * float(np.median(np.abs(values - middle))))


def is_beyond_noise(base: NDArray[np.int64], target: NDArray[np.int64]) -> bool | None:
    """Whether medians differ by more than noise; None where there are too few steps to tell."""
    ours, spread = median_and_spread(base)
    theirs, other = median_and_spread(target)
    if spread is None or other is None:
        return None
    error = _MEDIAN_FACTOR * float(np.hypot(spread / np.sqrt(base.size), other / np.sqrt(target.size)))
    return abs(theirs - ours) > _ERRORS * error


def lower_bound(
    base: NDArray[np.float64],
    target: NDArray[np.float64],
    measure: Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]],
) -> float:
    """The value that a measure of two medians exceeds in 95 of 100 resamplings of the steps (bootstrap, fixed seed)."""
    random = np.random.default_rng(SEED)
    ours = np.median(random.choice(base, (RESAMPLES, base.size)), axis=1)
    theirs = np.median(random.choice(target, (RESAMPLES, target.size)), axis=1)
    return float(np.quantile(measure(ours, theirs), 1 - CONFIDENCE))
