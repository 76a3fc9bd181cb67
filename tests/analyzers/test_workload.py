"""Scores: what a gap or a time is worth of the span."""

from __future__ import annotations

import pytest

from rooftrace.analyzers.workload import bound_score, gap_score
from rooftrace.contracts.base import Score


@pytest.mark.parametrize(
    ("gap", "span", "score"),
    [
        (400, 1000, (30.0, 35.0, 40.0)),  # 75, 87.5 and 100 % of 40 %
        (1, 3, (25.0, 29.17, 33.33)),
        (0, 1000, (0.0, 0.0, 0.0)),
        (5, 0, (0.0, 0.0, 0.0)),
    ],
)
def test_a_gap_scores_what_closing_75_87_5_and_100_per_cent_of_it_saves(gap, span, score):
    low, mid, high = score

    assert gap_score(gap, span) == Score(low=low, mid=mid, high=high)


@pytest.mark.parametrize(("time", "span", "share"), [(250, 1000, 25.0), (5, 0, 0.0)])
def test_an_upper_bound_scores_all_of_its_time(time, span, share):
    assert bound_score(time, span) == Score(low=share, mid=share, high=share)
