"""Impossible GPU durations, and long ones that are possible. Times are µs in the drawings."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.calltree import build_tree, collect_activities, quarantine
from tests.support.trace_builder import TraceBuilder


def quarantined(builder):
    """(name, recorded µs, counted µs) of what was found, and the activities after it."""
    trace = builder.build()
    activities = collect_activities(trace, build_tree(trace))
    found = quarantine(activities, trace.names)
    return [(q.name, q.raw_ns / 1000, q.counted_ns / 1000) for q in found], activities


def usual(builder, name, count=6, *, start=0, every=10, dur=5, stream=7):
    for number in range(count):
        builder.kernel(name, ts=start + every * number, dur=dur, stream=stream)


def test_a_kernel_that_covers_three_others_and_is_long_for_its_name_is_cut_at_its_successor():
    #           0    10   20 ...  50   60   70   80   90
    # k         [k]  [k]  [k] ... [k]  [-----------k 105 µs----------
    # k                                     [k]  [k]  [k]
    # median 5, 20 * 5 = 100 < 105
    builder = TraceBuilder()
    usual(builder, "k")
    builder.kernel("k", ts=60, dur=105)
    usual(builder, "k", 3, start=70)

    found, activities = quarantined(builder)

    assert found == [("k", 105, 10)]  # 60 to 70
    assert int(activities.dur.sum()) == 55_000  # nine of 5 µs and the cut one
    assert int(activities.raw_dur.sum()) == 150_000


@pytest.mark.parametrize(
    ("dur", "covered"),
    [
        pytest.param(100, 3, id="20 times the median is not more than 20 times"),
        pytest.param(105, 2, id="two covered starts are not three"),
    ],
)
def test_at_the_limits_nothing_is_touched(dur, covered):
    builder = TraceBuilder()
    usual(builder, "k")
    builder.kernel("k", ts=60, dur=dur)
    usual(builder, "k", covered, start=70)

    assert quarantined(builder)[0] == []


def test_a_start_at_the_very_end_is_not_covered():
    builder = TraceBuilder()
    usual(builder, "k")
    builder.kernel("k", ts=60, dur=110)
    usual(builder, "k", 2, start=70)
    builder.kernel("k", ts=170, dur=5)  # 60 + 110 = 170

    assert quarantined(builder)[0] == []


def test_only_starts_on_its_own_stream_count():
    builder = TraceBuilder()
    usual(builder, "k")
    builder.kernel("k", ts=60, dur=500)
    usual(builder, "k", 9, start=70, stream=20)

    assert quarantined(builder)[0] == []


@pytest.mark.parametrize(
    ("others", "dur", "expected"),
    [
        pytest.param(200, 101, [("rare", 101, 5)], id="over 20 times the 99th percentile of 5 µs"),
        pytest.param(200, 100, [], id="exactly 20 times"),
        pytest.param(10, 101, [("rare", 101, 5)], id="a short stream, too: itself is no yardstick"),
    ],
)
def test_a_name_seen_less_than_five_times_is_measured_by_its_stream(others, dur, expected):
    builder = TraceBuilder()
    builder.kernel("rare", ts=0, dur=dur)
    for number in range(others):
        builder.kernel(f"k{number % 7}", ts=5 + 6 * number, dur=5)

    assert quarantined(builder)[0] == expected


def test_a_copy_without_a_successor_is_cut_at_the_longest_it_can_have_taken():
    # 1000 bytes at 10 MB/s are 100 µs, and 1 ms of latency is granted
    builder = TraceBuilder()
    builder.memcpy("HtoD", ts=0, dur=2_000_000, bytes=1000)

    assert quarantined(builder)[0] == [("Memcpy HtoD (Pinned -> Device)", 2_000_000, 1_100)]


@pytest.mark.parametrize(
    ("nbytes", "dur", "impossible"),
    [
        # 10 MB/s is 1 % of the slowest link: 1 MB takes 0.1 s there, and 1 ms of latency is granted
        pytest.param(1_000_000, 101_000, False, id="exactly as slow as can be"),
        pytest.param(1_000_000, 101_001, True, id="slower"),
        pytest.param(0, 1_000, False, id="an empty copy of 1 ms"),
        pytest.param(0, 1_001, True, id="an empty copy of more"),
        pytest.param(None, 9_000_000, False, id="an unknown size proves nothing"),
    ],
)
def test_a_copy_slower_than_any_link_is_impossible(nbytes, dur, impossible):
    builder = TraceBuilder()
    builder.memcpy("DtoH", ts=0, dur=dur, bytes=nbytes)
    builder.kernel("k", ts=50, dur=1)

    found = quarantined(builder)[0]

    assert found == ([("Memcpy DtoH (Device -> Pinned)", dur, 50)] if impossible else [])


def test_a_kernel_that_begins_before_its_predecessor_ends_is_left_alone():
    # programmatic dependent launch: each starts 1 µs before the end of the one before
    builder = TraceBuilder()
    usual(builder, "k", 50, every=4, dur=5)

    assert quarantined(builder)[0] == []


def test_a_long_collective_on_its_own_stream_is_left_alone():
    builder = TraceBuilder()
    usual(builder, "k", 100)
    builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", ts=0, dur=990, stream=20)

    assert quarantined(builder)[0] == []


def test_branches_of_a_graph_on_one_stream_are_left_alone():
    #            0    10   20   30   40 ...
    # branch 1   [--big--------] [--big--------]       200 µs each, often: usual for the name
    # branch 2     [s][s][s][s]    [s][s][s][s]
    builder = TraceBuilder()
    for number in range(6):
        builder.kernel("big", ts=250 * number, dur=200)
        usual(builder, "small", 8, start=250 * number + 1, every=20, dur=2)

    assert quarantined(builder)[0] == []


def test_a_long_kernel_that_covers_no_other_is_left_alone():
    builder = TraceBuilder()
    usual(builder, "k", 100)
    builder.kernel("gemm", ts=1000, dur=90_000)
    builder.kernel("k", ts=91_000, dur=5)

    assert quarantined(builder)[0] == []


def test_the_longest_comes_first_and_each_device_is_looked_at_by_itself():
    builder = TraceBuilder()
    for device, dur in ((0, 300), (1, 700)):
        for number in range(8):
            builder.kernel("k", ts=10 * number, dur=5, device=device)
        builder.kernel(f"odd{device}", ts=25, dur=dur, device=device)

    assert quarantined(builder)[0] == [("odd1", 700, 5), ("odd0", 300, 5)]  # 25 to 30


def test_nothing_is_found_where_there_is_nothing():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)

    assert quarantined(builder)[0] == []


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 60), st.integers(0, 400), st.sampled_from("ab")), min_size=1, max_size=14, unique=True
    )
)
def test_cutting_moves_no_start_shortens_only_what_is_listed_and_keeps_what_was_recorded(events):
    builder = TraceBuilder()
    for ts, dur, name in events:
        builder.kernel(name, ts=ts, dur=dur)

    found, activities = quarantined(builder)

    assert int(activities.raw_dur.sum()) == 1000 * sum(dur for _, dur, _ in events)
    assert (activities.end >= activities.start).all()
    lost = int((activities.raw_dur - activities.dur).sum())
    assert lost == 1000 * sum(raw - counted for _, raw, counted in found)
