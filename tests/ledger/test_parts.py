"""The four parts of a device's span, its categories and its steps; times are nanoseconds."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.ledger import device_ledgers
from rooftrace.ledger.parts import GapCauses, Timeline, apportion

COMPUTE, COMM, COPY = 0, 1, 2
CATEGORIES = ("gemm", "memory", "reduction")
CAUSES = ("device", "launch", "wait")
PARTS = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns")


def timeline(*activities, device=0, gaps=None):
    """Activities as (start, end, work, category, step, carried in), sorted by start like the package's own."""
    full = [tuple(a) + (COMPUTE, 0, 0, False)[len(a) - 2 :] for a in activities]
    start, end, work, category, step, carry_in = zip(*sorted(full, key=lambda a: a[0]), strict=True)
    return Timeline(
        device=device,
        start=np.array(start, dtype=np.int64),
        end=np.array(end, dtype=np.int64),
        work=np.array(work, dtype=np.uint8),
        category=np.array(category, dtype=np.int64),
        step=np.array(step, dtype=np.int64),
        carry_in=np.array(carry_in, dtype=bool),
        gaps=None if gaps is None else caused(*gaps),
    )


def caused(*gaps):
    """Gaps as (start, end, cause)."""
    start, end, cause = zip(*gaps, strict=True) if gaps else ((), (), ())
    return GapCauses(
        start=np.array(start, dtype=np.int64),
        end=np.array(end, dtype=np.int64),
        cause=np.array(cause, dtype=np.uint8),
    )


def ledger_of(*activities, steps=("only",), window_ns=None, gaps=None):
    (ledger,) = device_ledgers([timeline(*activities, gaps=gaps)], CATEGORIES, steps, window_ns, causes=CAUSES)
    return ledger


def parts_of(ledger):
    return tuple(getattr(ledger, part) for part in PARTS)


def test_compute_hides_communication_and_communication_hides_copies():
    #           0    5    10   15   20   25   30   35
    # compute   [----A---]                   [-B-]
    # comm           [----C-----]
    # copy                   [----D----]
    # part      compute  |comm  |copy  |idle |comp|
    ledger = ledger_of((0, 10), (5, 17, COMM), (13, 24, COPY), (30, 35))

    assert ledger.span_ns == 35
    assert ledger.compute_ns == 15  # 10 + 5
    assert ledger.exposed_comm_ns == 7  # 10 to 17
    assert ledger.exposed_copy_ns == 7  # 17 to 24
    assert ledger.idle_ns == 6  # 24 to 30
    assert ledger.total_comm_ns == 12
    assert ledger.total_copy_ns == 11
    assert ledger.idle_by_cause == {"unattributed": 6}


def test_idle_time_is_divided_by_the_causes_of_its_gaps_and_the_rest_is_unattributed():
    #           0    5    10   15   20   25   30
    # kernels   [-A-]     [-B-]     [C]    [D]
    # cause          wait      launch  none
    ledger = ledger_of((0, 4), (10, 14), (20, 22), (27, 30), gaps=[(4, 10, 2), (14, 20, 1)])

    assert ledger.idle_by_cause == {"launch": 6, "unattributed": 5, "wait": 6}  # 14 to 20, 22 to 27, 4 to 10


def test_a_gap_across_a_step_bound_is_cut_there():
    #            0    5    10   15   20
    # step 0     [-A-]
    # step 1                    [-B-]
    # step 2                            [C]
    # cause           launch         wait
    ledger = ledger_of(
        (0, 4, 0, 0, 0),
        (15, 18, 0, 0, 1),
        (23, 25, 0, 0, 2),
        steps=("one", "two", "three"),
        gaps=[(4, 15, 1), (18, 23, 2)],
    )

    assert ledger.idle_by_cause == {"launch": 11, "wait": 5}
    assert [step.idle_by_cause for step in ledger.steps] == [{"launch": 11}, {"wait": 5}, {}]


def test_a_device_without_idle_time_has_no_causes():
    assert ledger_of((0, 5), (5, 9)).idle_by_cause == {}
    assert ledger_of((0, 5), (5, 9), gaps=[]).idle_by_cause == {}


def test_streams_that_run_at_once_count_once():
    #           0    5    10
    # stream 7  [----A---]
    # stream 9  [--B-]
    # stream 11 [---C--]
    ledger = ledger_of((0, 10), (0, 6), (0, 8))

    assert parts_of(ledger) == (10, 0, 0, 0)


def test_a_single_activity_without_duration_has_an_empty_ledger():
    ledger = ledger_of((7, 7))

    assert (ledger.start_ns, ledger.span_ns, parts_of(ledger)) == (7, 0, (0, 0, 0, 0))


def test_two_kernels_of_different_categories_share_the_time_in_which_both_run():
    #              0    4    8    12
    # gemm         [--A-----]
    # reduction         [---B----]
    # gemm 4 + 4/2, reduction 4/2 + 4
    ledger = ledger_of((0, 8, COMPUTE, 0), (4, 12, COMPUTE, 2))

    assert ledger.compute_by_category == {"gemm": 6, "reduction": 6}


def test_two_kernels_of_one_category_take_two_of_three_shares():
    #              0         12
    # gemm         [----A----]
    # gemm         [----B----]
    # reduction    [----C----]
    ledger = ledger_of((0, 12, COMPUTE, 0), (0, 12, COMPUTE, 0), (0, 12, COMPUTE, 2))

    assert ledger.compute_by_category == {"gemm": 8, "reduction": 4}  # 12 * 2/3 and 12 * 1/3


def test_communication_and_copies_take_no_share_of_the_compute_categories():
    ledger = ledger_of((0, 10, COMPUTE, 0), (0, 10, COMM, 1), (0, 10, COPY, 1))

    assert ledger.compute_by_category == {"gemm": 10}


@pytest.mark.parametrize(
    ("exact", "whole", "expected"),
    [
        pytest.param({"a": (1, 2), "b": (5, 2)}, 3, {"a": 1, "b": 2}, id="a tie goes in name order"),
        pytest.param({"b": (1, 2), "a": (1, 2)}, 1, {"a": 1}, id="not in the order given; zero is left out"),
        pytest.param({"a": (4, 3), "b": (5, 3)}, 3, {"a": 1, "b": 2}, id="largest remainder first"),
        pytest.param({"a": (1, 3), "b": (1, 3), "c": (1, 3)}, 1, {"a": 1}, id="three thirds"),
        pytest.param({"a": (7, 3), "b": (7, 3), "c": (7, 3)}, 7, {"a": 3, "b": 2, "c": 2}, id="one over"),
        pytest.param({"a": (6, 3)}, 2, {"a": 2}, id="whole already"),
        pytest.param({}, 0, {}, id="nothing"),
    ],
)
def test_shares_are_rounded_to_integers_that_sum_to_the_whole(exact, whole, expected):
    assert apportion({name: Fraction(*value) for name, value in exact.items()}, whole) == expected


def test_a_step_begins_at_its_first_activity_and_ends_at_the_first_of_the_next():
    #            0    5    10   15   20   25
    # step 0     [--A-]      [B]
    # step 1                      [---C---]
    # stretches  |------step 0----|-step 1-|
    ledger = ledger_of((0, 6, 0, 0, 0), (12, 15, 0, 0, 0), (18, 26, 0, 0, 1), steps=("one", "two"))

    found = [(step.name, step.start_ns, step.span_ns, parts_of(step)) for step in ledger.steps]
    assert found == [("one", 0, 18, (9, 0, 0, 9)), ("two", 18, 8, (8, 0, 0, 0))]


def test_a_kernel_that_runs_on_into_the_next_step_is_cut_there():
    #            0    5    10   15
    # step 0     [------A-----]
    # step 1          [-B-]
    ledger = ledger_of((0, 13, COMPUTE, 0, 0), (6, 10, COMPUTE, 1, 1), steps=("one", "two"))

    one, two = ledger.steps
    assert (one.span_ns, one.compute_by_category) == (6, {"gemm": 6})
    assert (two.span_ns, two.compute_by_category) == (7, {"gemm": 5, "memory": 2})  # 4/2 + 3 and 4/2


def test_a_step_without_activities_is_empty_and_stands_where_the_next_begins():
    ledger = ledger_of((0, 4, 0, 0, 0), (9, 12, 0, 0, 2), steps=("one", "two", "three", "four"))

    assert [(step.name, step.start_ns, step.span_ns) for step in ledger.steps] == [
        ("one", 0, 9),
        ("two", 9, 0),
        ("three", 9, 3),
        ("four", 12, 0),
    ]


def test_what_was_launched_before_the_first_step_stands_before_it():
    #            0    5    10   15
    # carry-in   [-A-]
    # step 0             [-B-]
    ledger = ledger_of((0, 5, 0, 0, -1, True), (9, 13, 0, 0, 0), steps=("one",))

    assert [(step.name, step.span_ns, parts_of(step)) for step in ledger.steps] == [
        ("before first step", 9, (5, 0, 0, 4)),
        ("one", 4, (4, 0, 0, 0)),
    ]
    assert ledger.carry_in_ns == 5


def test_a_device_on_which_no_step_launched_anything_has_all_its_time_before_them():
    ledger = ledger_of((3, 8, 0, 0, -1), steps=("one", "two"))

    assert [(step.name, step.span_ns) for step in ledger.steps] == [
        ("before first step", 5),
        ("one", 0),
        ("two", 0),
    ]


def test_carry_in_sums_durations_even_where_they_overlap():
    ledger = ledger_of((0, 5, 0, 0, -1, True), (2, 6, COPY, 0, -1, True), (6, 9))

    assert ledger.carry_in_ns == 9  # 5 + 4
    assert ledger.span_ns == 9


def test_the_window_of_the_steps_stands_beside_the_span():
    assert ledger_of((10, 30), window_ns=55).window_ns == 55
    assert ledger_of((10, 30)).window_ns is None


def test_every_device_has_a_span_of_its_own():
    first, second = device_ledgers(
        [timeline((0, 10), device=0), timeline((4, 9), (20, 21), device=3)], CATEGORIES, ("only",), None
    )

    assert (first.device, first.start_ns, first.span_ns, first.idle_ns) == (0, 0, 10, 0)
    assert (second.device, second.start_ns, second.span_ns, second.idle_ns) == (3, 4, 17, 11)


ACTIVITY = st.tuples(
    st.integers(0, 30),
    st.integers(0, 10),
    st.sampled_from((COMPUTE, COMM, COPY)),
    st.integers(0, len(CATEGORIES) - 1),
    st.integers(-1, 2),
    st.booleans(),
).map(lambda a: (a[0], a[0] + a[1], *a[2:]))


def swept(activities, low, high):
    """Parts and exact category shares of [low, high), nanosecond by nanosecond."""
    parts, shares = Counter(), {}
    for ns in range(low, high):
        running = [a for a in activities if a[0] <= ns < a[1]]
        work = min((a[2] for a in running), default=3)
        parts[PARTS[work]] += 1
        compute = [a[3] for a in running if a[2] == COMPUTE]
        for category in compute:
            name = CATEGORIES[category]
            shares[name] = shares.get(name, Fraction(0)) + Fraction(1, len(compute))
    return tuple(parts[part] for part in PARTS), shares


@settings(deadline=None)
@given(st.lists(ACTIVITY, min_size=1, max_size=9))
def test_a_ledger_equals_a_sweep_over_every_nanosecond(activities):
    ledger = ledger_of(*activities, steps=("one", "two", "three"))
    low, high = min(a[0] for a in activities), max(a[1] for a in activities)

    assert (ledger.start_ns, ledger.span_ns) == (low, high - low)
    assert parts_of(ledger) == swept(activities, low, high)[0]
    assert sum(parts_of(ledger)) == ledger.span_ns
    position = low
    for step in ledger.steps:
        parts, shares = swept(activities, position, position + step.span_ns)
        assert (step.start_ns, parts_of(step)) == (position, parts)
        assert sum(step.compute_by_category.values()) == step.compute_ns
        for name, exact in shares.items():
            assert abs(step.compute_by_category.get(name, 0) - exact) < 1
        position += step.span_ns
    assert position == high
    assert sum(ledger.compute_by_category.values()) == ledger.compute_ns


@settings(deadline=None)
@given(st.lists(ACTIVITY, min_size=1, max_size=9), st.lists(st.integers(0, 2), min_size=9, max_size=9))
def test_causes_add_up_to_the_idle_time_of_the_device_and_of_each_step(activities, codes):
    low, high = min(a[0] for a in activities), max(a[1] for a in activities)
    busy = [ns for ns in range(low, high) if any(a[0] <= ns < a[1] for a in activities)]
    edges = [low, *busy, high]
    free = [(a + (a in busy), b) for a, b in pairwise(edges)]
    gaps = [(a, b, codes[at]) for at, (a, b) in enumerate(pair for pair in free if pair[0] < pair[1])]

    ledger = ledger_of(*activities, steps=("one", "two", "three"), gaps=gaps)

    for part in (ledger, *ledger.steps):
        assert sum(part.idle_by_cause.values()) == part.idle_ns
        assert "unattributed" not in part.idle_by_cause
    for code, name in enumerate(CAUSES):
        expected = sum(b - a for a, b, cause in gaps if cause == code)
        assert ledger.idle_by_cause.get(name, 0) == expected
