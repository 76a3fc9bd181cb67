from __future__ import annotations

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.compare.shares import shares_of
from rooftrace.intervals import union

COMPUTE, COMMUNICATION, COPY = 0, 1, 2


def shares(*rows: tuple[int, int, int]) -> list[int]:
    start, end, work = (np.array(column) for column in zip(*rows, strict=True))
    return shares_of(start.astype(np.int64), end.astype(np.int64), work.astype(np.uint8)).tolist()


def test_work_that_runs_alone_takes_its_whole_duration():
    assert shares((0, 5, COMPUTE), (8, 20, COMPUTE)) == [5, 12]


def test_two_kernels_share_the_time_in_which_both_run():
    #      0    4    10   12
    # A    [---------]
    # B         [---------]      both run from 4 to 10: 3 each
    assert shares((0, 10, COMPUTE), (4, 12, COMPUTE)) == [4 + 3, 3 + 2]


def test_a_time_that_does_not_divide_goes_to_the_first_of_equals():
    assert shares((0, 5, COMPUTE), (0, 5, COMPUTE)) == [3, 2]
    assert shares((0, 4, COMPUTE), (0, 4, COMPUTE), (0, 4, COMPUTE)) == [2, 1, 1]


def test_communication_counts_only_where_no_kernel_covers_it():
    assert shares((0, 10, COMPUTE), (5, 25, COMMUNICATION)) == [10, 15]


def test_copies_count_only_where_neither_kernels_nor_communication_cover_them():
    assert shares((0, 10, COMPUTE), (5, 25, COMMUNICATION), (0, 30, COPY)) == [10, 15, 5]


def test_work_without_duration_has_no_share():
    assert shares((0, 10, COMPUTE), (3, 3, COMPUTE), (10, 10, COPY)) == [10, 0, 0]


ROWS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20), st.integers(0, 2)), min_size=1, max_size=30)


@settings(max_examples=200, deadline=None)
@given(ROWS)
def test_shares_sum_to_the_time_in_which_anything_runs(rows):
    start = np.array([row[0] for row in rows], dtype=np.int64)
    end = start + np.array([row[1] for row in rows], dtype=np.int64)
    work = np.array([row[2] for row in rows], dtype=np.uint8)
    found = shares_of(start, end, work)
    # counted instant by instant, without a formula: an instant belongs to the first kind that runs in it
    busy = [0, 0, 0]
    for instant in range(int(end.max())):
        kinds = [int(kind) for low, high, kind in zip(start, end, work, strict=True) if low <= instant < high]
        if kinds:
            busy[min(kinds)] += 1
    assert [int(found[work == kind].sum()) for kind in range(3)] == busy
    assert (found >= 0).all()
    assert (found <= end - start).all()


def test_a_hundred_thousand_activities_take_less_than_half_a_second():
    random = np.random.default_rng(7)
    start = np.sort(random.integers(0, 10**9, 100_000))
    end = start + random.integers(1, 30_000, 100_000)
    work = random.integers(0, 3, 100_000).astype(np.uint8)
    began = time.process_time()
    found = shares_of(start, end, work)
    assert time.process_time() - began < 0.5
    assert int(found.sum()) == union(start, end).length
