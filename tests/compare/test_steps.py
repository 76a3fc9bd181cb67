from __future__ import annotations

import numpy as np
import pytest

from rooftrace.compare import compare_sides
from rooftrace.compare.noise import is_beyond_noise, lower_bound, median_and_spread
from tests.compare.sides import ADD, GEMM, Call, assert_conserved, compared, row_of, side_of, trace_of

CALLS = [Call(op="aten::mm", kernels=[(GEMM, 100)]), Call(op="aten::add", kernels=[(ADD, 20)])]
SLOWER = [Call(op="aten::mm", kernels=[(GEMM, 110)]), Call(op="aten::add", kernels=[(ADD, 20)])]


def test_the_median_over_steps_has_a_spread_from_three_steps_on():
    # deviations from 12: 2, 0, 1, 88, 1; their median is 1, and 1.4826 rounds to 1
    assert median_and_spread(np.array([10, 12, 13, 100, 11])) == (12, 1)
    assert median_and_spread(np.array([10, 12])) == (11, None)
    assert median_and_spread(np.array([], dtype=np.int64)) == (0, None)


def test_a_change_within_what_steps_differ_is_noise():
    steady = np.array([1000, 1001, 999, 1000])
    assert is_beyond_noise(steady, steady + 50) is True
    restless = np.array([1000, 1100, 900, 1050])
    assert is_beyond_noise(restless, restless + 50) is False
    assert is_beyond_noise(steady[:2], steady[:2] + 50) is None


def test_the_lower_bound_of_a_growth_is_below_it_and_the_same_every_time():
    base, target = np.array([100.0, 102, 98, 101]), np.array([110.0, 112, 109, 111])

    def growth(ours, theirs):
        return 100 * (theirs - ours) / ours

    bound = lower_bound(base, target, growth)
    assert 6 < bound < 10.45  # from 109 / 102 up to the medians' 110.5 / 100.5
    assert bound == lower_bound(base, target, growth)


def test_steps_are_compared_where_both_sides_have_two():
    comparison = compared(CALLS, SLOWER, steps=4)
    row = row_of(comparison, "aten::mm")
    assert comparison.base.window.compared == (0, 1, 2, 3)
    assert row.base.steps_ns.tolist() == [100_000] * 4
    assert row.delta_ns == 4 * 10_000


def test_a_slow_first_step_is_left_out_as_warm_up():
    comparison = compared(CALLS, CALLS, steps=4, scale=[3, 1, 1, 1])
    assert comparison.base.window.left_out == ("ProfilerStep#0 (warm-up)",)
    assert row_of(comparison, "steps left out").base.ns == 3 * 120_000
    assert row_of(comparison, "aten::mm").base.ns == 3 * 100_000
    assert_conserved(comparison)


def test_of_runs_with_unlike_numbers_of_steps_the_last_are_compared():
    base, target = side_of(trace_of(CALLS, steps=3)), side_of(trace_of(CALLS, steps=5))
    comparison = compare_sides(base, target)
    assert comparison.base.window.compared == (0, 1, 2)
    assert comparison.target.window.compared == (2, 3, 4)
    assert row_of(comparison, "aten::mm").delta_ns == 0
    assert row_of(comparison, "steps left out").target.ns == 2 * 120_000
    assert {note.code for note in comparison.notes} >= {"different_steps"}
    assert_conserved(comparison)


def test_one_step_on_a_side_means_whole_spans():
    comparison = compare_sides(side_of(trace_of(CALLS, steps=1)), side_of(trace_of(CALLS, steps=3)))
    assert comparison.base.window.compared == comparison.target.window.compared == ()
    assert row_of(comparison, "aten::mm").delta_ns == 2 * 100_000


@pytest.mark.parametrize(("jitter", "found"), [(0.0, True), (0.3, False)], ids=["steady", "restless"])
def test_a_change_that_steps_hide_is_no_finding(jitter, found):
    scale = [1, 1 + jitter, 1 - jitter, 1 + jitter / 2, 1 - jitter / 2, 1]
    base = side_of(trace_of(CALLS, steps=6, scale=scale))
    target = side_of(trace_of(SLOWER, steps=6, scale=scale[::-1]))
    assert bool(compare_sides(base, target).findings) is found
