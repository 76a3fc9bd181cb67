"""Distinct integers, by sorting or counting.

NB: `numpy.unique` hashes integers first, which takes 20 times as long where most of them differ, and it compares rows
as structures, which takes 100 times as long as numbering one column after another.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_FEW = 16


def sorted_unique(values: NDArray[Any]) -> NDArray[Any]:
    """The distinct values, ascending."""
    ordered = np.sort(values, axis=None)
    if not ordered.size:
        return ordered
    is_new = np.ones(ordered.size, dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    distinct: NDArray[Any] = ordered[is_new]
    return distinct


def distinct_codes(codes: NDArray[Any]) -> list[int]:
    """The distinct ones of small non-negative numbers, ascending."""
    found: list[int] = np.flatnonzero(np.bincount(codes)).tolist()
    return found


def distinct_rows(*columns: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Of each distinct row of some columns, in their order, the first place of it; and each row's number among them."""
    size = columns[0].size
    order = np.lexsort(columns[::-1])
    new = np.zeros(size, dtype=bool)
    for column in columns:
        sorted_column = column[order]
        new[1:] |= sorted_column[1:] != sorted_column[:-1]
    if size:
        new[0] = True
    number = np.empty(size, dtype=np.int64)
    number[order] = np.cumsum(new) - 1
    return order[new], number


def common_values(one: NDArray[Any], other: NDArray[Any]) -> list[int]:
    """The values that stand in both, ascending."""
    shared: list[int] = np.intersect1d(sorted_unique(one), sorted_unique(other), assume_unique=True).tolist()
    return shared


def grouped(values: NDArray[Any]) -> Iterator[tuple[int, NDArray[np.int64]]]:
    """Each distinct value, ascending, and the places at which it stands."""
    distinct = sorted_unique(values).tolist()
    if len(distinct) <= _FEW:  # looking at all of them a few times is faster than sorting places
        yield from ((value, np.flatnonzero(values == value)) for value in distinct)
        return
    order = np.argsort(values, kind="stable")
    cuts = np.flatnonzero(np.diff(values[order])) + 1
    yield from zip(distinct, np.split(order, cuts), strict=True)
