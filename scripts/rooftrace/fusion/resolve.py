"""Of overlapping candidates the set that saves most: weighted interval scheduling, exact, in n log n."""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from collections.abc import Sequence


class Claim(Struct, frozen=True):
    """Calls from ``first`` to ``last`` (both included) and what claiming them together saves, ns."""

    first: int
    last: int
    saving: int


def choose(claims: Sequence[Claim]) -> list[int]:
    """Positions of the claims of a set without overlaps that saves most in total, in order of their first call.

    Of sets that save the same the one with shorter claims is taken: the deepest that keep the saving.
    """
    ranked = sorted(
        (index for index, claim in enumerate(claims) if claim.saving > 0),
        key=lambda index: (claims[index].last, claims[index].first, index),
    )
    ends = [claims[index].last for index in ranked]
    best: list[tuple[int, int]] = [(0, 0)]  # (saving, -calls) of the best set among the first claims
    taken: list[bool] = []
    before: list[int] = []
    for number, index in enumerate(ranked):
        claim = claims[index]
        free = bisect_right(ends, claim.first - 1, 0, number)
        saving, calls = best[free]
        mine = (saving + claim.saving, calls - (claim.last - claim.first + 1))
        before.append(free)
        taken.append(mine > best[number])
        best.append(max(mine, best[number]))
    chosen: list[int] = []
    at = len(ranked)
    while at > 0:
        if taken[at - 1]:
            chosen.append(ranked[at - 1])
            at = before[at - 1]
        else:
            at -= 1
    return chosen[::-1]
