"""Dependencies between streams: recorded, from the order of calls, or from times alone. Times are µs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from rooftrace.schedule import streams
from tests.schedule.scenes import RECORD, STREAM_WAIT, Program, any_run, scene_of


def two_streams(record_ts=2, wait_ts=3, b_start=22, b_launch=5):
    """a on stream 7 from 5 to 20, b on stream 8; returns the program and the calls' correlations."""
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    record = program.launch(RECORD, ts=record_ts)
    wait = program.launch(STREAM_WAIT, ts=wait_ts)
    program.launched("b", ts=b_launch, start=b_start, dur=10, stream=8)
    return program, record, wait


def test_a_recorded_wait_names_streams_and_record_call():
    program, record, wait = two_streams()
    program.sync(ts=3, stream=8, correlation=wait, wait_stream=7, wait_record=record)

    assert scene_of(program).dependencies() == {"b": ("a", "RECORDED")}


def test_what_was_launched_after_the_record_call_was_not_waited_for():
    # a2 is launched at 1.5 between a and the record call in the one case, at 2.5 after it in the other
    for launched, expected in ((1.5, "a2"), (2.5, "a")):
        program, record, wait = two_streams(b_start=32)
        program.launched("a2", ts=launched, start=20, dur=11, lasts=0.25)
        program.sync(ts=3, stream=8, correlation=wait, wait_stream=7, wait_record=record)

        assert scene_of(program).dependencies() == {"b": (expected, "RECORDED")}


def test_without_a_record_of_the_wait_the_order_of_calls_tells():
    program, _, _ = two_streams()

    assert scene_of(program).dependencies() == {"b": ("a", "CALLS")}


def test_the_last_record_call_before_the_wait_counts():
    # a, record, a2, record, wait, b
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    program.launch(RECORD, ts=2)
    program.launched("a2", ts=4, start=20, dur=10)
    program.launch(RECORD, ts=6)
    program.launch(STREAM_WAIT, ts=8)
    program.launched("b", ts=10, start=31, dur=5, stream=8)

    assert scene_of(program).dependencies() == {"b": ("a2", "CALLS")}


def test_record_calls_of_another_thread_do_not_count():
    # The other thread's record call is the last of the tree before the wait; this thread has none: what it had
    # launched until the wait counts
    program, _, _ = two_streams(record_ts=100)
    program.launch(RECORD, ts=1, tid=0)

    assert scene_of(program).dependencies() == {"b": ("a", "CALLS")}


def test_a_wait_between_launches_to_one_stream_is_no_dependency():
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    program.launch(RECORD, ts=2)
    program.launch(STREAM_WAIT, ts=3)
    program.launched("b", ts=5, start=50, dur=10)

    assert scene_of(program).dependencies() == {}


@pytest.mark.parametrize(("b_start", "kept"), [(19, True), (18.999, False)], ids=["1 µs", "more"])
def test_what_started_before_the_end_of_the_other_by_more_than_clocks_differ_did_not_wait(b_start, kept):
    # a ends at 20
    program, record, wait = two_streams(b_start=b_start, b_launch=14)
    program.sync(ts=3, stream=8, correlation=wait, wait_stream=7, wait_record=record)

    assert scene_of(program).dependencies() == ({"b": ("a", "RECORDED")} if kept else {})


def test_of_several_waits_the_one_that_ended_last_held_and_the_others_are_joined():
    # a on 7 until 20, c on 9 until 25; b on 8 waits for both
    program = Program()
    program.launched("a", ts=0, start=5, dur=15, stream=7)
    program.launched("c", ts=1, start=5, dur=20, stream=9)
    records = [program.launch(RECORD, ts=2), program.launch(RECORD, ts=4)]
    waits = [program.launch(STREAM_WAIT, ts=6), program.launch(STREAM_WAIT, ts=8)]
    program.launched("b", ts=10, start=27, dur=5, stream=8)
    for wait, record, stream in zip(waits, records, (7, 9), strict=True):
        program.sync(ts=8, stream=8, correlation=wait, wait_stream=stream, wait_record=record)
    scene = scene_of(program)

    assert scene.dependencies() == {"b": ("c", "RECORDED")}
    assert [scene.names(row) for row in scene.schedule.joined] == [["b", "a"]]


def chain(b_start, *, b_launch=30, a_end=50, stream=8):
    """b finds its stream empty since b0 ended at 15, was launched at `b_launch`, and a runs elsewhere until `a_end`.

    Later three kernels start 6 µs after their launches, so that this is the usual latency.
    """
    program = Program()
    for ts in (1_000, 1_100, 1_200):
        program.launched("usual", ts=ts, start=ts + 6, dur=10, stream=20)
    program.launched("b0", ts=0, start=5, dur=10, stream=stream)
    program.launched("a", ts=1, start=6, dur=a_end - 6)
    program.launched("b", ts=b_launch, start=b_start, dur=10, stream=stream)
    return program


def test_a_late_start_just_after_the_end_of_another_streams_work_is_a_dependency():
    # Launched at 30: without waiting it would have started at 36
    assert scene_of(chain(b_start=51)).dependencies() == {"b": ("a", "INFERRED")}


@pytest.mark.parametrize(
    ("program", "why"),
    [
        (chain(b_start=38), "2 µs beyond the usual latency"),
        (chain(b_start=71), "21 µs after the other's end"),
        (chain(b_start=55, stream=7), "5 µs after the end of its own stream's work"),
    ],
)
def test_other_starts_are_no_dependency(program, why):
    assert scene_of(program).dependencies() == {}, why


def test_what_was_launched_later_cannot_have_been_waited_for():
    program = chain(b_start=51, a_end=14)
    program.launched("late", ts=31, start=40, dur=10)

    assert scene_of(program).dependencies() == {}


def test_the_work_of_another_device_is_not_waited_for():
    program = chain(b_start=51, a_end=14)
    program.launched("other", ts=2, start=6, dur=44, device=1)

    assert scene_of(program).dependencies() == {}


def test_a_start_as_the_kernel_that_filled_the_device_drains_is_a_dependency():
    # Ready at 36; a fills the device until 100, and b starts at 95, as the last blocks of a run
    assert scene_of(chain(b_start=95, a_end=100)).dependencies() == {"b": ("a", "INFERRED")}


def test_a_start_beside_a_kernel_with_more_than_that_to_do_is_none():
    assert scene_of(chain(b_start=95, a_end=195)).dependencies() == {"b": ("a", "INFERRED")}  # 100 µs before its end
    assert scene_of(chain(b_start=95, a_end=195.001)).dependencies() == {}


def test_a_device_that_was_free_for_more_than_a_twentieth_of_the_delay_was_not_full():
    # b is ready at 36 and starts at 136: a ends at 80 and d runs from 110 on, so 30 of 100 µs were free
    program = chain(b_start=136, a_end=80)
    program.launched("d", ts=2, start=110, dur=40, stream=9)

    assert scene_of(program).dependencies() == {}


def test_a_single_stream_has_no_dependencies():
    program = Program()
    program.launched("a", ts=0, start=5, dur=10)
    program.launched("b", ts=1, start=60, dur=10)

    assert scene_of(program).dependencies() == {}


@settings(max_examples=60, deadline=None)
@given(any_run())
def test_however_few_of_what_ends_near_a_time_are_looked_at_first_the_same_is_found(builder):
    found = scene_of(builder).schedule.dependency.tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(streams, "_FEW", 1)

        assert scene_of(builder).schedule.dependency.tolist() == found
