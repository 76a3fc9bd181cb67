"""Work, counted: what a growing run costs, told without a clock."""

from __future__ import annotations

import sys

import numpy as np


class Counted(np.ndarray):
    """Numbers that count how many of them are compared, calculated with or picked by masks and indices.

    Slices are free. What is picked goes on counting; results of calculations are plain.
    """

    looks = 0  # of all together: `looks_of` sets it back

    def __getitem__(self, key):
        if not isinstance(key, slice | int):
            Counted.looks += self.size if np.asarray(key).dtype == bool else np.size(key)
        return super().__getitem__(key)

    def __array_ufunc__(self, ufunc, method, *inputs, **rest):
        Counted.looks += max(np.size(given) for given in inputs)
        return getattr(ufunc, method)(*(np.asarray(given) for given in inputs), **rest)


def counted(values):
    """A copy of a column that counts."""
    return np.array(values).view(Counted)


def looks_of(function):
    """How many counted numbers a call looks at."""
    Counted.looks = 0
    function()
    return Counted.looks


def calls_of(function):
    """How many calls a call makes, steps of generators included."""
    calls = 0

    def count(_frame, event, _argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
    return calls
