"""Stretches of threads: what falls into windows, what is innermost, what is quiet."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.causes.quiet import longest_quiet
from rooftrace.causes.spans import Windows, innermost, merged
from tests.causes.runs import Run


def column(*values):
    return np.array(values, dtype=np.int64)


def windows(*rows):
    lane, start, end = (column(*part) for part in zip(*rows, strict=True))
    return Windows(lane=lane, start=start, end=end)


def spans(*rows):
    """Rows of (lane, start, end); each is the row of its place."""
    lane, start, end = (column(*part) for part in zip(*rows, strict=True))
    return merged(lane, start, end, np.arange(lane.size))


def test_spans_that_overlap_or_touch_are_one_and_stand_for_the_longest():
    #          0    5    10   15   20
    # lane 1   [-0-][--1--]    [2]
    # lane 2     [---3---]
    found = spans((1, 0, 4), (1, 4, 10), (1, 15, 17), (2, 2, 9), (2, 3, 3))

    assert found.lane.tolist() == [1, 1, 2]
    assert found.start.tolist() == [0, 15, 2]
    assert found.end.tolist() == [10, 17, 9]
    assert found.row.tolist() == [1, 2, 3]


def test_a_window_is_covered_by_the_spans_of_its_lane_alone():
    found = spans((1, 0, 10), (1, 15, 17), (2, 0, 30))

    covered = found.covered(windows((1, 5, 16), (1, 10, 15), (2, 20, 40), (3, 0, 9), (1, 9, 4)))
    assert covered.tolist() == [
        6,
        0,
        10,
        0,
        0,
    ]  # 5 to 10 and 15 to 16; nothing; 20 to 30; no such lane; empty


def test_overlaps_are_pairs_and_the_largest_of_a_window_is_known():
    found = spans((1, 0, 10), (1, 15, 40), (1, 50, 60))
    pairs = found.overlaps(windows((1, 5, 30), (1, 41, 45), (1, 15, 55)))

    assert list(zip(pairs.window.tolist(), pairs.piece.tolist(), pairs.inside.tolist(), strict=True)) == [
        (0, 0, 5),
        (0, 1, 15),
        (2, 1, 25),
        (2, 2, 5),
    ]
    assert pairs.total(3).tolist() == [20, 0, 30]
    assert pairs.largest(3).tolist() == [1, -1, 2]


def nested(depth=3):
    """Properly nested intervals on one lane, as (start, end)."""
    leaf = st.tuples(st.integers(0, 6), st.integers(1, 6))
    return st.lists(leaf, max_size=5).map(lambda leaves: _laid(leaves, depth))


def _laid(leaves, depth):
    found, at = [], 0
    for gap, length in leaves:
        at += gap
        within = (inner for inner in range(depth) if length > 2 * inner)
        found += [(at + inner, at + length - inner) for inner in within]
        at += length
    return found


@settings(deadline=None)
@given(nested(), st.lists(st.integers(-1, 70), min_size=1, max_size=8))
def test_the_innermost_interval_is_the_shortest_that_is_open(intervals, times):
    start, end = column(*(a for a, _ in intervals)), column(*(b for _, b in intervals))
    lane = np.full(start.size, 4)
    asked = (np.full(len(times), 4), column(*times))

    for time, found in zip(times, innermost(lane, start, end, asked).tolist(), strict=True):
        open_then = [(b - a, n) for n, (a, b) in enumerate(intervals) if a <= time < b]
        assert (found >= 0) == bool(open_then)
        if open_then:
            assert intervals[found][1] - intervals[found][0] == min(open_then)[0]


def test_nothing_is_open_on_another_lane_or_at_an_end():
    found = innermost(column(1), column(5), column(9), (column(1, 1, 2), column(5, 9, 6)))

    assert found.tolist() == [0, -1, -1]


def test_the_longest_quiet_stretch_lies_between_events_or_at_the_edges_of_the_window():
    #          0    10   20   30   40   50   60 µs
    # lane     [op-]          [op ]  [op]
    # window     |--------------------------|
    run = Run()
    for ts, dur in ((0, 10), (30, 10), (44, 4)):
        run.op("aten::mm", ts, dur)
    trace = run.build()
    lane = int(trace.lane[0])
    asked = windows((lane, 5_000, 60_000), (lane, 41_000, 43_000), (lane, 48_000, 70_000), (lane, 9_000, 9_000))

    found = longest_quiet(trace, asked, np.ones(4, dtype=bool))
    assert found.start.tolist() == [10_000, 41_000, 48_000, 9_000]
    assert found.end.tolist() == [30_000, 43_000, 70_000, 9_000]


def test_a_window_that_is_not_wanted_gets_no_stretch():
    run = Run()
    run.op("aten::mm", 0, 10)
    trace = run.build()

    found = longest_quiet(trace, windows((int(trace.lane[0]), 0, 50_000)), np.zeros(1, dtype=bool))
    assert (found.end - found.start).tolist() == [0]
