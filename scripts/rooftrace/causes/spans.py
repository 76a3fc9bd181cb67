"""Stretches of host threads and what of them falls into windows of time.

Everything works on whole columns; the only loops are over threads.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.intervals import union
from rooftrace.sorted_unique import common_values, grouped, sorted_unique

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

_LONGEST = 1 << 62


class Spans(Struct, frozen=True, kw_only=True):
    """Intervals by (lane, start) that do not overlap on a lane; ``row`` is the event each stands for."""

    lane: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    row: NDArray[np.int64]

    def covered(self, windows: Windows) -> NDArray[np.int64]:
        """Time of each window that the intervals of its lane cover, ns."""
        found = np.zeros(windows.start.size, dtype=np.int64)
        lanes = np.array(common_values(self.lane, windows.lane), dtype=np.int64)
        length = int(max(self.end.max(initial=0), windows.end.max(initial=0)))
        for some in _batches(lanes, length):
            mine, asked = (np.flatnonzero(np.isin(lane, some)) for lane in (self.lane, windows.lane))
            moved, asked_moved = (
                np.searchsorted(some, lane) * (length + 2) for lane in (self.lane[mine], windows.lane[asked])
            )
            part = union(self.start[mine] + moved, self.end[mine] + moved)
            until_end = part.covered_before(windows.end[asked] + asked_moved)
            found[asked] = until_end - part.covered_before(windows.start[asked] + asked_moved)
        return np.maximum(found, 0)

    def overlaps(self, windows: Windows) -> Overlaps:
        """All pairs of a window and an interval of its lane that overlap."""
        queries, pieces = [_empty()], [_empty()]
        for asked, low, high in self._by_lane(windows):
            first = low + np.searchsorted(self.end[low:high], windows.start[asked], side="right")
            last = low + np.searchsorted(self.start[low:high], windows.end[asked], side="left")
            query, piece = expanded(first, last)
            queries.append(asked[query])
            pieces.append(piece)
        window, piece = np.concatenate(queries), np.concatenate(pieces)
        inside = np.minimum(self.end[piece], windows.end[window]) - np.maximum(self.start[piece], windows.start[window])
        real = inside > 0
        return Overlaps(window=window[real], piece=piece[real], inside=inside[real])

    def _by_lane(self, windows: Windows) -> Iterator[tuple[NDArray[np.int64], int, int]]:
        """For each lane that both have: the numbers of its windows, and the bounds of its intervals."""
        lanes = common_values(self.lane, windows.lane)
        lows = np.searchsorted(self.lane, lanes, side="left").tolist()
        highs = np.searchsorted(self.lane, lanes, side="right").tolist()
        for lane, low, high in zip(lanes, lows, highs, strict=True):
            yield np.flatnonzero(windows.lane == lane), low, high


class Windows(Struct, frozen=True, kw_only=True):
    """Windows of time on threads; empty where the end is not after the start."""

    lane: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]

    def on_all_lanes(self) -> Windows:
        """The same windows for spans that were laid on one lane."""
        return Windows(lane=np.zeros_like(self.lane), start=self.start, end=self.end)

    def select(self, keep: NDArray[np.bool_] | NDArray[np.int64]) -> Windows:
        """Some of the windows."""
        return Windows(lane=self.lane[keep], start=self.start[keep], end=self.end[keep])


class Overlaps(Struct, frozen=True, kw_only=True):
    """Pairs of a window and an interval, by window, and the time they share."""

    window: NDArray[np.int64]
    piece: NDArray[np.int64]
    inside: NDArray[np.int64]

    def with_inside(self, inside: NDArray[np.int64]) -> Overlaps:
        """The same pairs, ranked by other amounts."""
        return Overlaps(window=self.window, piece=self.piece, inside=inside)

    def total(self, count: int) -> NDArray[np.int64]:
        """Shared time of each of ``count`` windows, ns."""
        found = np.zeros(count, dtype=np.int64)
        np.add.at(found, self.window, self.inside)
        return found

    def largest(self, count: int) -> NDArray[np.int64]:
        """For each window the pair with most shared time, the first of equal ones; -1 without any."""
        found = np.full(count, -1, dtype=np.int64)
        order = np.lexsort((np.arange(self.window.size), -self.inside, self.window))
        window = self.window[order]
        first = np.r_[True, window[1:] != window[:-1]] if window.size else np.zeros(0, dtype=bool)
        found[window[first]] = order[first]
        return found


def _empty() -> NDArray[np.int64]:
    return np.empty(0, dtype=np.int64)


def expanded(first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Every number of each half-open range, and the range it is of."""
    counts = np.maximum(last - first, 0)
    which = np.repeat(np.arange(first.size), counts)
    offset = np.arange(which.size) - np.repeat(np.cumsum(counts) - counts, counts)
    return which, first[which] + offset


def merged(lane: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], row: NDArray[np.int64]) -> Spans:
    """Disjoint spans; those that overlap or touch become one, which stands for the longest of them."""
    parts: list[tuple[NDArray[np.int64], ...]] = [(_empty(),) * 4]
    keep = end > start
    lane, start, end, row = lane[keep], start[keep], end[keep], row[keep]
    length = int(end.max(initial=0))
    lanes = sorted_unique(lane)
    for some in _batches(lanes, length):
        mine = np.flatnonzero(np.isin(lane, some)) if some.size < lanes.size else slice(None)
        base = np.searchsorted(some, lane[mine]) * (length + 2)
        parts.append(_merged(some, length + 2, (base + start[mine], base + end[mine], row[mine])))
    of_lane, starts, ends, rows = (np.concatenate(column) for column in zip(*parts, strict=True))
    return Spans(lane=of_lane.astype(np.int64), start=starts, end=ends, row=rows)


def _merged(
    lanes: NDArray[np.int64], width: int, spans: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
) -> tuple[NDArray[np.int64], ...]:
    """Lanes, starts, ends and rows of spans (starts, ends, rows) on lanes that are laid end to end, each so wide."""
    start, end, row = spans
    whole = union(start, end)
    piece = np.searchsorted(whole.start, start, side="right") - 1
    order = np.argsort(piece, kind="stable")
    piece, length, row = piece[order], (end - start)[order], row[order]
    first = np.flatnonzero(np.diff(piece, prepend=-1))
    longest = np.maximum.reduceat(length, first) if first.size else length
    low = (
        np.minimum.reduceat(np.where(length == longest[piece], row, np.iinfo(np.int64).max), first)
        if first.size
        else row
    )
    number = whole.start // width
    return lanes[number], whole.start - number * width, whole.end - number * width, low


def _batches(lanes: NDArray[np.int64], length: int) -> Iterator[NDArray[np.int64]]:
    """The lanes, as many at a time as can be laid end to end within 64 bits: nearly always all of them."""
    most = max(1, _LONGEST // (length + 2))
    yield from (lanes[at : at + most] for at in range(0, lanes.size, most))


def innermost(
    lane: NDArray[np.int64],
    start: NDArray[np.int64],
    end: NDArray[np.int64],
    asked: tuple[NDArray[np.int64], NDArray[np.int64]],
) -> NDArray[np.int64]:
    """Index of the innermost of nested intervals that is open at each (lane, time); -1 where none is."""
    lanes, times = asked
    found = np.full(times.size, -1, dtype=np.int64)
    asked_on = dict(grouped(lanes))
    for number, places in grouped(lane):
        if number not in asked_on:
            continue
        wanted = asked_on[number]
        mine = _open_at_any(places, start, end, np.sort(times[wanted]))
        at = Nest.of(start[mine], end[mine]).at(times[wanted])
        found[wanted] = np.where(at >= 0, mine[at] if mine.size else -1, -1)
    return found


def deepest_covering(
    lane: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], windows: Windows
) -> NDArray[np.int64]:
    """Index of the deepest of nested intervals that covers at least half of each window; -1 where none does.

    Such an interval is open in the middle of the window, so it is that or one round the innermost one there.
    """
    found = np.full(windows.start.size, -1, dtype=np.int64)
    middle = (windows.start + windows.end) // 2
    asked_on = dict(grouped(windows.lane))
    for number, places in grouped(lane):
        if number not in asked_on:
            continue
        left = asked_on[number]
        left = left[windows.end[left] > windows.start[left]]
        mine = _open_at_any(places, start, end, np.sort(middle[left]))
        nest, up = Nest.of(start[mine], end[mine]), 0
        while mine.size and left.size:
            at = nest.at(middle[left], up)
            left, at = left[at >= 0], mine[at[at >= 0]]
            low, high = windows.start[left], windows.end[left]
            enough = 2 * (np.minimum(end[at], high) - np.maximum(start[at], low)) >= high - low
            found[left[enough]] = at[enough]
            left, up = left[~enough], up + 1
    return found


def _open_at_any(
    places: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64], times: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The intervals that are open at one of some sorted times: of many events few are, and only these are nested."""
    opened, closed = np.searchsorted(times, start[places]), np.searchsorted(times, end[places])
    return places[opened < closed]


class Nest(Struct, frozen=True, kw_only=True):
    """Nested intervals of one thread, ready to be asked which are open at a time."""

    order: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    closed: NDArray[np.int64]
    depth: NDArray[np.int64]
    by_depth: NDArray[np.int64]

    @classmethod
    def of(cls, start: NDArray[np.int64], end: NDArray[np.int64]) -> Nest:
        """The intervals in order of their starts, the outer of equal ones first."""
        order = np.lexsort((-end, start))
        starts, closed = start[order], np.sort(end)
        places = np.arange(start.size)
        depth = places - np.searchsorted(closed, starts, side="right")
        by_depth = np.lexsort((places, depth))
        return cls(order=order, starts=starts, ends=end[order], closed=closed, depth=depth, by_depth=by_depth)

    def at(self, times: NDArray[np.int64], up: int = 0) -> NDArray[np.int64]:
        """Index of the interval ``up`` levels round the innermost one open at each time; -1 where there is none.

        Of the intervals as deep as there are open ones, it is the last to have started.
        """
        count = self.starts.size
        if not count:
            return np.full(times.size, -1, dtype=np.int64)
        last = np.searchsorted(self.starts, times, side="right") - 1
        wanted = last - np.searchsorted(self.closed, times, side="right") - up
        keys = self.depth[self.by_depth] * count + self.by_depth
        position = np.maximum(np.searchsorted(keys, wanted * count + last, side="right") - 1, 0)
        candidate = self.by_depth[position]
        is_open = (wanted >= 0) & (self.depth[candidate] == wanted)
        is_open &= (self.ends[candidate] > times) & (self.starts[candidate] <= times)
        return np.where(is_open, self.order[candidate], -1)
