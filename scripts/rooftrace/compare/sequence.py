"""Aligns two sequences by labels of several strengths, in order, without a quadratic blow-up.

Small problems are solved exactly: the alignment of largest summed weight, gaps free (Needleman and Wunsch, one
vectorised row a step). Large ones are first cut at anchors: runs of labels that occur once on either side (patience
diff), else runs that recur, each with its like nearest to the diagonal, else equal shares of the length. Labels of any
strength may anchor, the strongest first.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Cells of a table that is filled exactly: 8 MB of weights, some tens of milliseconds.
MOST_CELLS = 2_000_000
# Lengths of the runs that may anchor an alignment, tried one after the other.
_RUNS = (1, 3, 8, 24)
# Where runs recur, shorter ones have too many likes to tell which is meant.
_LONG_RUNS = (24, 8)
# Items between two anchors of that kind: tables of this width cost little more than their overhead.
_SPACING = 1_000
# A cut that leaves a box of more than this share of the cells is none: repeated, it would not end soon.
_LARGEST_LEFT = 0.5
_BASE = np.uint64(0x9E3779B97F4A7C15)  # odd, so that powers stay distinct: 2^64 over the golden ratio


def align(base: NDArray[np.int64], target: NDArray[np.int64], weights: tuple[int, ...]) -> list[tuple[int, int]]:
    """Pairs of positions, increasing on both sides.

    ``base`` and ``target`` have one row a level, strongest first, and one column an item; negative labels equal
    nothing. Two items weigh what the first level on which they agree weighs.
    """
    pairs: list[tuple[int, int]] = []
    todo = [(0, base.shape[1], 0, target.shape[1])]
    while todo:
        low, high, other_low, other_high = todo.pop()
        head, tail = _trim(base[0, low:high], target[0, other_low:other_high])
        pairs += [(low + at, other_low + at) for at in range(head)]
        pairs += [(high - 1 - at, other_high - 1 - at) for at in range(tail)]
        box = (low + head, high - tail, other_low + head, other_high - tail)
        if box[0] >= box[1] or box[2] >= box[3]:
            continue
        if (box[1] - box[0]) * (box[3] - box[2]) <= MOST_CELLS:
            pairs += _exact(base[:, box[0] : box[1]], target[:, box[2] : box[3]], weights, (box[0], box[2]))
        else:
            todo += _cut(base, target, box)
    return sorted(pairs)


def _trim(base: NDArray[np.int64], target: NDArray[np.int64]) -> tuple[int, int]:
    """Lengths of the common beginning and of the common end of the rest."""
    length = min(base.size, target.size)
    if not length:
        return 0, 0
    same = (base[:length] == target[:length]) & (base[:length] >= 0)
    head = int(np.argmin(same)) if not same.all() else length
    rest = length - head
    if not rest:
        return head, 0
    same = (base[::-1][:rest] == target[::-1][:rest]) & (base[::-1][:rest] >= 0)
    return head, int(np.argmin(same)) if not same.all() else rest


def _exact(
    base: NDArray[np.int64], target: NDArray[np.int64], weights: tuple[int, ...], origin: tuple[int, int]
) -> list[tuple[int, int]]:
    """The heaviest alignment; of equal ones that which pairs the earliest items of the base."""
    rows, columns = base.shape[1], target.shape[1]
    best = np.zeros((rows + 1, columns + 1), dtype=np.int32)
    levels = list(range(len(weights)))[::-1]
    for row in range(rows):
        weight = np.zeros(columns, dtype=np.int32)
        for level in levels:
            if base[level, row] >= 0:
                weight[target[level] == base[level, row]] = weights[level]
        diagonal = np.where(weight > 0, best[row, :-1] + weight, 0)
        np.maximum.accumulate(np.maximum(best[row, 1:], diagonal), out=best[row + 1, 1:])
    pairs = []
    row, column = rows, columns
    while row and column:
        if best[row, column] == best[row - 1, column]:
            row -= 1
        elif best[row, column] == best[row, column - 1]:
            column -= 1
        else:
            row, column = row - 1, column - 1
            pairs.append((origin[0] + row, origin[1] + column))
    return pairs


def _cut(
    base: NDArray[np.int64], target: NDArray[np.int64], box: tuple[int, int, int, int]
) -> list[tuple[int, int, int, int]]:
    """Smaller boxes that cover a large one."""
    low, high, other_low, other_high = box
    cells = (high - low) * (other_high - other_low)
    for find, lengths in ((_anchors, _RUNS), (_nearest, _LONG_RUNS)):
        for level in range(base.shape[0]):
            for length in lengths:
                anchors = find(base[level, low:high], target[level, other_low:other_high], length)
                boxes = _boxes([(low + at, other_low + other) for at, other in anchors], box)
                if max((b - a) * (d - c) for a, b, c, d in boxes) <= _LARGEST_LEFT * cells:
                    return boxes
    parts = int(np.ceil(np.sqrt(cells / MOST_CELLS))) + 1
    edges = np.linspace(low, high, parts + 1).astype(int).tolist()
    others = np.linspace(other_low, other_high, parts + 1).astype(int).tolist()
    return [(a, b, c, d) for (a, b), (c, d) in zip(pairwise(edges), pairwise(others), strict=True)]


def _boxes(cuts: list[tuple[int, int]], box: tuple[int, int, int, int]) -> list[tuple[int, int, int, int]]:
    low, high, other_low, other_high = box
    corners = [(low, other_low), *cuts, (high, other_high)]
    return [(a, b, c, d) for (a, c), (b, d) in pairwise(corners) if a < b or c < d]


def _anchors(base: NDArray[np.int64], target: NDArray[np.int64], length: int) -> list[tuple[int, int]]:
    """Positions of runs that occur once on either side, the longest chain of them that is in order."""
    ours, at = _once(*_runs(base, length))
    theirs, other = _once(*_runs(target, length))
    _, one, two = np.intersect1d(ours, theirs, assume_unique=True, return_indices=True)
    return _in_order(np.stack([at[one], other[two]], axis=1))


def _nearest(base: NDArray[np.int64], target: NDArray[np.int64], length: int) -> list[tuple[int, int]]:
    """Runs of the base, evenly spaced, with their like in the target that is nearest to the diagonal."""
    ours, at = _runs(base, length)
    theirs, other = _runs(target, length)
    if not ours.size or not theirs.size:
        return []
    edges = np.searchsorted(at, np.arange(_SPACING, base.size, _SPACING))
    edges = sorted_unique(edges[edges < at.size])
    order = np.lexsort((other, theirs))
    theirs, other = theirs[order], other[order]
    found = []
    for key, place in zip(ours[edges].tolist(), at[edges].tolist(), strict=True):
        first, last = np.searchsorted(theirs, np.uint64(key), "left"), np.searchsorted(theirs, np.uint64(key), "right")
        if first < last:
            likes = other[first:last]
            expected = place * target.size // base.size
            right = int(np.searchsorted(likes, expected))
            near = likes[max(0, right - 1) : right + 1]
            found.append((place, int(near[np.argmin(np.abs(near - expected))])))
    return _in_order(np.array(found, dtype=np.int64).reshape(len(found), 2))


def _in_order(shared: NDArray[np.int64]) -> list[tuple[int, int]]:
    """The longest chain of pairs of positions that rises on both sides."""
    pairs = shared[np.lexsort((shared[:, 1], shared[:, 0]))].tolist()
    ends: list[int] = []
    chain: list[int] = []
    above = [-1] * len(pairs)
    for number, (_, other) in enumerate(pairs):
        place = bisect_left(ends, other)
        above[number] = chain[place - 1] if place else -1
        ends[place : place + 1] = [other]
        chain[place : place + 1] = [number]
    found = []
    at = chain[-1] if chain else -1
    while at >= 0:
        found.append((pairs[at][0], pairs[at][1]))
        at = above[at]
    return found[::-1]


def _runs(labels: NDArray[np.int64], length: int) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """A number for each run of known labels (equal runs, equal numbers; a polynomial modulo 2^64), and its position."""
    count = labels.size - length + 1
    if count <= 0:
        return np.empty(0, dtype=np.uint64), np.empty(0, dtype=np.int64)
    spread = labels.astype(np.uint64) * _BASE
    spread ^= spread >> np.uint64(29)
    total = np.zeros(count, dtype=np.uint64)
    unknown = np.zeros(count, dtype=bool)
    for offset in range(length):
        total = total * _BASE + spread[offset : offset + count]
        unknown |= labels[offset : offset + count] < 0
    known = np.flatnonzero(~unknown)
    return total[known], known


def _once(runs: NDArray[np.uint64], at: NDArray[np.int64]) -> tuple[NDArray[np.uint64], NDArray[np.int64]]:
    """Runs that occur exactly once, ascending, and their positions."""
    distinct, first, count = np.unique(runs, return_index=True, return_counts=True)
    return distinct[count == 1], at[first[count == 1]]
