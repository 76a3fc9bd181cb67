"""Host time that edits take out, up to any time, of many threads at once.

Threads that all edits cut alike are one content. Contents that the same edits cut are computed together, so that few
steps are taken for each thread, however many there are.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.replay.edits import HostCut
    from rooftrace.replay.scenarios import Scenario


class Gone(Struct, frozen=True, kw_only=True):
    """Host time gone on each of some contents until each of some times, ns; entries by content and time."""

    every: NDArray[np.int64]  # all times
    key: NDArray[np.int64]  # content times their number, plus the place of the entry's time among them
    first: NDArray[np.int64]  # of each content, its first entry; then the number of entries
    time: NDArray[np.int64]
    total: NDArray[np.float64]

    def between(self, content: NDArray[np.int64], low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
        """Time gone from one time to another of each given content."""
        until = np.rint(self._until(content, high)) - np.rint(self._until(content, low))  # sums stay exact
        return until.astype(np.int64)

    def _until(self, content: NDArray[np.int64], time: NDArray[np.int64]) -> NDArray[np.float64]:
        if self.first.size == 2:  # one content
            return np.interp(time, self.time, self.total)
        place = content * self.every.size + np.searchsorted(self.every, time, side="right") - 1
        at = np.searchsorted(self.key, place, side="right") - 1
        is_before, is_after = at < self.first[content], at + 1 == self.first[content + 1]
        following = np.minimum(at + 1, self.time.size - 1)
        length = np.where(is_before | is_after, 1, self.time[following] - self.time[at])
        share = (self.total[following] - self.total[at]) / length
        until = np.where(is_after, self.total[at], share * (time - self.time[at]) + self.total[at])
        return np.where(is_before, 0.0, until)


class Threads(Struct, frozen=True, kw_only=True):
    """Of each thread its kind (-1: nothing of it is gone) and its number among the kind's contents.

    Of each kind, the host time gone, and the scenarios in which it is.
    """

    kind: NDArray[np.int64]
    content: NDArray[np.int64]
    gone: tuple[tuple[tuple[Gone, NDArray[np.int64]], ...], ...]


# The cuts of a thread, by the edit they are of.
_Content = dict[int, "list[HostCut]"]


def gone_of_threads(scenarios: Sequence[Scenario], threads: int) -> Threads:
    """Host time gone in some scenarios, of threads with numbers below ``threads``; a kind is cut by the same edits."""
    edits = {id(edit): edit for scenario in scenarios for edit, _ in scenario if edit.host}
    cuts: dict[int, _Content] = {}
    for edit in edits.values():
        for cut in edit.host:
            if cut.lane < threads:  # others have no event
                cuts.setdefault(cut.lane, {}).setdefault(id(edit), []).append(cut)
    kind, content = np.full((2, threads), -1, dtype=np.int64)
    kinds: dict[tuple[int, ...], int] = {}
    numbers: list[dict[tuple[tuple[int, int, int, float], ...], int]] = []
    examples: list[list[_Content]] = []
    for lane in sorted(cuts):
        mine = cuts[lane]
        kind[lane] = at = kinds.setdefault(tuple(mine), len(kinds))
        if at == len(numbers):
            numbers.append({})
            examples.append([])
        key = tuple((edit, id(cut.start), id(cut.end), cut.share) for edit, some in mine.items() for cut in some)
        content[lane] = number = numbers[at].setdefault(key, len(numbers[at]))
        if number == len(examples[at]):
            examples[at].append(mine)
    return Threads(kind=kind, content=content, gone=tuple(_by_scenarios(some, scenarios) for some in examples))


def _by_scenarios(
    contents: list[_Content], scenarios: Sequence[Scenario]
) -> tuple[tuple[Gone, NDArray[np.int64]], ...]:
    """Scenarios that make the same of the edits that cut some contents are computed together."""
    alike: dict[tuple[tuple[int, float], ...], list[int]] = {}
    for column, scenario in enumerate(scenarios):
        made = tuple((id(edit), closure) for edit, closure in scenario if id(edit) in contents[0])
        if made:
            alike.setdefault(made, []).append(column)
    return tuple((_gone(contents, made), np.array(columns)) for made, columns in alike.items())


def _gone(contents: list[_Content], made: tuple[tuple[int, float], ...]) -> Gone:
    """Where cuts of one content overlap the larger share counts."""
    pieces = [
        (content, level, cut, min(cut.share * closure, 1.0))
        for content, cuts in enumerate(contents)
        for level, (cut, closure) in enumerate((cut, closure) for edit, closure in made for cut in cuts[edit])
    ]
    sizes = [cut.start.size for _, _, cut, _ in pieces]
    of, levels, share = (np.array([piece[at] for piece in pieces]) for at in (0, 1, 3))
    start, end = (np.concatenate([getattr(piece[2], name) for piece in pieces]) for name in ("start", "end"))
    every, owner, level = sorted_unique(np.r_[start, end]), np.repeat(of, sizes), np.repeat(levels, sizes)
    opens, closes = (owner * every.size + np.searchsorted(every, times) for times in (start, end))
    key = sorted_unique(np.r_[opens, closes])
    content, at = np.divmod(key, max(every.size, 1))
    most = np.zeros(key.size)
    for number in range(int(levels.max()) + 1):
        change, shares = np.zeros(key.size, dtype=np.int64), np.zeros(len(contents))
        np.add.at(change, np.searchsorted(key, opens[level == number]), 1)
        np.add.at(change, np.searchsorted(key, closes[level == number]), -1)
        shares[of[levels == number]] = share[levels == number]
        most = np.maximum(most, np.where(np.cumsum(change) > 0, shares[content], 0.0))
    first = np.searchsorted(content, np.arange(len(contents) + 1))
    return Gone(every=every, key=key, first=first, time=every[at], total=_totals(most, every[at], first))


def _totals(share: NDArray[np.float64], time: NDArray[np.int64], first: NDArray[np.int64]) -> NDArray[np.float64]:
    """Time gone until each entry, from nothing at the first entry of each content."""
    total, passed = np.zeros(time.size), share[:-1] * np.diff(time)
    for low, high in pairwise(first.tolist()):
        if high - low > 1:
            np.cumsum(passed[low : high - 1], out=total[low + 1 : high])
    return total
