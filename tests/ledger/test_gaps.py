"""Gaps: what no activity covers, and the activities around it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.ledger import gap_columns

ACTIVITIES = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 9)), min_size=1, max_size=10).map(sorted)


def gaps_of(*pairs):
    """Rows (start, end, activity before, activity after)."""
    table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    gaps = gap_columns(table[:, 0], table[:, 1])
    return list(zip(*(column.tolist() for column in (gaps.start, gaps.end, gaps.before, gaps.after)), strict=True))


def test_time_between_activities_is_a_gap_unless_another_stream_covers_it():
    #           0    5    10   15   20
    # stream 7  [--A--]        [-B-]
    # stream 9       [-C-]
    # gap                 [----]
    assert gaps_of((0, 7), (5, 9), (15, 19)) == [(9, 15, 1, 2)]


def test_touching_activities_leave_no_gap():
    assert gaps_of((0, 5), (5, 9), (9, 10)) == []


def test_the_activity_before_a_gap_is_the_one_that_ended_last_not_the_one_that_started_last():
    #           0    5    10   15
    # kernels   [----A---]
    #             [B]         [C]
    assert gaps_of((0, 10), (2, 4), (13, 15)) == [(10, 13, 0, 2)]


def test_an_activity_without_duration_still_bounds_the_gaps_around_it():
    #           0    5    10
    # kernels   |    |    [A]
    assert gaps_of((0, 0), (5, 5), (10, 12)) == [(0, 5, 0, 1), (5, 10, 1, 2)]


def test_a_device_on_which_nothing_has_a_duration_idles_all_the_time():
    assert gaps_of((0, 0), (8, 8)) == [(0, 8, 0, 1)]


def test_one_activity_and_none_have_no_gaps():
    assert gaps_of((3, 9)) == []
    assert gaps_of() == []


@settings(deadline=None)
@given(ACTIVITIES)
def test_gaps_add_up_to_the_nanoseconds_of_the_span_that_no_activity_covers(pairs):
    intervals = [(start, start + dur) for start, dur in pairs]
    low, high = min(a for a, _ in intervals), max(b for _, b in intervals)
    idle = {ns for ns in range(low, high) if not any(a <= ns < b for a, b in intervals)}

    gaps = gaps_of(*intervals)

    assert sum(high - low for low, high, _, _ in gaps) == len(idle)
    for low, high, before, after in gaps:
        assert set(range(low, high)) <= idle
        assert intervals[before][1] == low
        assert intervals[after][0] == high
