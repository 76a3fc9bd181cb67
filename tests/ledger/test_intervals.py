"""Unions, coverage and shared time on integer nanoseconds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.intervals import shared_time, union

PAIRS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 12)).map(lambda p: (p[0], p[0] + p[1])), max_size=12)


def column(values):
    return np.array(list(values), dtype=np.int64)


def union_of(*pairs):
    found = union(column(a for a, _ in pairs), column(b for _, b in pairs))
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([(3, 3)], [], id="empty intervals vanish"),
        pytest.param([(0, 5), (5, 9)], [(0, 9)], id="touching ones are one"),
        pytest.param([(0, 5), (6, 9)], [(0, 5), (6, 9)], id="one nanosecond apart are two"),
        pytest.param([(6, 9), (0, 5)], [(0, 5), (6, 9)], id="order does not matter"),
        pytest.param([(0, 9), (2, 4), (8, 12)], [(0, 12)], id="nested and overlapping"),
        pytest.param([(0, 9), (4, 4), (20, 20)], [(0, 9)], id="an empty one neither extends nor cuts"),
    ],
)
def test_a_union_is_disjoint_and_in_time_order(pairs, expected):
    assert union_of(*pairs) == expected


def test_the_length_before_a_time_counts_only_what_lies_before_it():
    #           0    5    10   15   20
    # union     [--A-]         [-B--]
    found = union(column([0, 15]), column([6, 21]))

    before = found.covered_before(column([-3, 0, 4, 6, 10, 15, 16, 21, 30]))

    assert before.tolist() == [0, 0, 4, 6, 6, 6, 7, 12, 12]
    assert found.length == 12  # 6 + 6


def test_nothing_covers_nothing():
    found = union(column([]), column([]))

    assert found.length == 0
    assert found.covered_before(column([0, 5])).tolist() == [0, 0]


@settings(deadline=None)
@given(PAIRS, st.lists(st.integers(-2, 60), min_size=1, max_size=5))
def test_a_union_covers_exactly_the_nanoseconds_its_intervals_cover(pairs, times):
    busy = {ns for start, end in pairs for ns in range(start, end)}
    found = union(column(a for a, _ in pairs), column(b for _, b in pairs))

    assert found.length == len(busy)
    assert found.covered_before(column(times)).tolist() == [sum(ns < t for ns in busy) for t in times]
    assert (found.start[1:] > found.end[:-1]).all()


def test_time_in_which_two_groups_run_is_shared_by_the_number_of_intervals():
    #             0    4    8    12   16
    # group 0     [--A-----]
    # group 0     [--B-----]
    # group 1          [---C----]
    shares = shared_time(column([0, 0, 4]), column([8, 8, 12]), column([0, 0, 1]), column([0, 16]))

    # group 0: 4 ns alone with two intervals (8/2), then 4 ns with two of three running (8/3)
    # group 1: 4 ns as one of three (4/3), then 4 ns alone (4/1)
    assert shares == {0: [[(8, 2), (8, 3)]], 1: [[(4, 1), (4, 3)]]}


def test_shared_time_is_cut_at_the_bounds():
    #             0    5    10
    # group 7     [---A----]
    # bounds      |   |    |
    shares = shared_time(column([0]), column([10]), column([7]), column([0, 4, 10]))

    assert shares == {7: [[(4, 1)], [(6, 1)]]}


def test_nothing_is_shared_among_nothing():
    assert shared_time(column([]), column([]), column([]), column([0, 10])) == {}
