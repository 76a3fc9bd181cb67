"""Aligns two sequences by labels of several strengths, in order, without a quadratic blow-up.

Small problems are solved exactly: the alignment of largest summed weight, gaps free (Needleman and Wunsch, one
vectorised row a step). Large ones are first cut at anchors, runs of labels that occur once on either side (patience
diff), and where there are none at equal shares of their length.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Cells of a table that is filled exactly: 8 MB of weights, some tens of milliseconds.
MOST_CELLS = 2_000_000
# Lengths of the runs that may anchor an alignment, tried one after the other.
_RUNS = (1, 3, 8, 24)


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
            todo += _cut(base[0], target[0], box)
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
    for length in _RUNS:
        anchors = _anchors(base[low:high], target[other_low:other_high], length)
        if anchors:
            cuts = [(low + at, other_low + other) for at, other in anchors]
            corners = [(low, other_low), *cuts, (high, other_high)]
            boxes = [(a, b, c, d) for (a, c), (b, d) in pairwise(corners) if a < b or c < d]
            if len(boxes) > 1:
                return boxes
    parts = int(np.ceil(np.sqrt((high - low) * (other_high - other_low) / MOST_CELLS))) + 1
    edges = np.linspace(low, high, parts + 1).astype(int).tolist()
    others = np.linspace(other_low, other_high, parts + 1).astype(int).tolist()
    return [(a, b, c, d) for (a, b), (c, d) in zip(pairwise(edges), pairwise(others), strict=True)]


def _anchors(base: NDArray[np.int64], target: NDArray[np.int64], length: int) -> list[tuple[int, int]]:
    """Positions of runs that occur once on either side, the longest chain of them that is in order."""
    ours, theirs = _once(base, length), _once(target, length)
    shared = sorted((at, theirs[key]) for key, at in ours.items() if key in theirs)
    ends: list[int] = []
    chain: list[int] = []
    above = [-1] * len(shared)
    for number, (_, other) in enumerate(shared):
        place = bisect_left(ends, other)
        above[number] = chain[place - 1] if place else -1
        ends[place : place + 1] = [other]
        chain[place : place + 1] = [number]
    found = []
    at = chain[-1] if chain else -1
    while at >= 0:
        found.append(shared[at])
        at = above[at]
    return found[::-1]


def _once(labels: NDArray[np.int64], length: int) -> dict[bytes, int]:
    """Position of each run of labels that occurs exactly once."""
    if labels.size < length:
        return {}
    windows = np.lib.stride_tricks.sliding_window_view(labels, length)
    distinct, first, count = np.unique(windows, axis=0, return_index=True, return_counts=True)
    known = (count == 1) & (distinct >= 0).all(axis=1)
    return {distinct[at].tobytes(): int(first[at]) for at in np.flatnonzero(known).tolist()}
