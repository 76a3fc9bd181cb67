"""Blocking calls: what each waited for, and how long it takes by itself and after the wait. Times are µs."""

from __future__ import annotations

import pytest

from rooftrace.schedule.calls import base_name
from rooftrace.schedule.model import WaitKind
from tests.schedule.scenes import DEVICE_SYNC, EVENT_SYNC, RECORD, STREAM_SYNC, Program, scene_of

_QUEUE = int(WaitKind.QUEUE)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("cudaStreamSynchronize", "streamsynchronize"),
        ("hipStreamSynchronize", "streamsynchronize"),
        ("hipStreamSynchronize_spt", "streamsynchronize"),
        ("cuStreamSynchronize_ptsz", "streamsynchronize"),
        ("cuCtxSynchronize", "ctxsynchronize"),
        ("musaDeviceSynchronize", "devicesynchronize"),
        ("cuMemFree_v2", "memfree"),
        ("cudaEventRecordWithFlags_v2_ptsz", "eventrecordwithflags"),
        ("custom_call", "custom_call"),
        ("cudagraph", "cudagraph"),
    ],
)
def test_a_call_has_one_name_whatever_the_vendor_and_the_version(name, base):
    assert base_name(name) == base


def test_a_recorded_synchronisation_names_its_stream():
    #             0    10   20   30
    # host    a b [--sync 8--]
    # s 8       [---- a ----]         5 to 19
    # s 7        [------- b -------]  6 to 30, the thread's last launch
    program = Program()
    program.launched("a", ts=0, start=5, dur=14, stream=8)
    program.launched("b", ts=1, start=6, dur=24, stream=7)
    program.sync("Stream Sync", ts=2, dur=18, stream=8, correlation=program.launch(STREAM_SYNC, ts=2, dur=18))
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", "a")]
    assert scene.schedule.waits.guessed.tolist() == [False]
    assert scene.schedule.waits.waited.tolist() == [True]


def test_a_recorded_synchronisation_of_a_stream_without_work_waits_for_nothing():
    program = Program()
    program.launched("a", ts=0, start=5, dur=14)
    program.sync("Stream Sync", ts=2, dur=3, stream=99, correlation=program.launch(STREAM_SYNC, ts=2, dur=3))
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", None)]
    assert scene.schedule.waits.own_ns.tolist() == [3_000]


def test_else_it_is_the_stream_of_the_threads_last_launch():
    # Thread 1 launched a on stream 7, thread 2 later b on stream 8
    program = Program()
    program.launched("a", ts=0, start=5, dur=14)
    program.launched("b", ts=1, start=6, dur=15, stream=8, tid=2)
    program.launch(STREAM_SYNC, ts=2, dur=20)
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", "a")]
    assert scene.schedule.waits.guessed.tolist() == [True]


@pytest.mark.parametrize(("stream", "device", "guessed"), [(7, 0, False), (8, 1, False), (8, 0, True)])
def test_of_a_device_with_one_stream_nothing_has_to_be_guessed(stream, device, guessed):
    # The thread launches a on stream 7 of device 0 and waits; b runs there, too, on another device or another stream
    program = Program()
    program.launched("a", ts=0, start=5, dur=14)
    program.launch(STREAM_SYNC, ts=2, dur=20)
    program.launched("b", ts=30, start=36, dur=15, stream=stream, device=device)
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", "a")]
    assert scene.schedule.waits.guessed.tolist() == [guessed]


def test_where_that_stream_still_ran_at_the_return_it_was_the_stream_whose_work_ended_in_the_call():
    #            0    10   20   30
    # host   a b [- sync -]
    # s 8        [-- a --]           5 to 16
    # s 7        [------- b ------]  6 to 30
    program = Program()
    program.launched("a", ts=0, start=5, dur=11, stream=8)
    program.launched("b", ts=1, start=6, dur=24)
    program.launch(STREAM_SYNC, ts=2, dur=18)
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", "a")]
    assert scene.names(scene.schedule.waits.activity) == ["a"]


def test_only_what_was_launched_before_the_call_is_waited_for():
    program = Program()
    program.launched("a", ts=0, start=5, dur=10)
    program.launch(STREAM_SYNC, ts=2, dur=14)
    program.launched("b", ts=17, start=20, dur=5)

    assert scene_of(program).waits() == [(STREAM_SYNC, "STREAM", "a")]


def test_a_synchronisation_of_the_device_waits_for_what_ends_last_on_any_stream():
    #      a on 7: 5 to 15, b on 8: 6 to 25, c on 9: 7 to 20
    program = Program()
    for ts, (name, end, stream) in enumerate((("a", 15, 7), ("b", 25, 8), ("c", 20, 9))):
        program.launched(name, ts=ts, start=5 + ts, dur=end - 5 - ts, stream=stream)
    program.launch(DEVICE_SYNC, ts=4, dur=23)
    scene = scene_of(program)

    assert scene.waits() == [(DEVICE_SYNC, "DEVICE", "b")]
    assert scene.schedule.waits.stream.tolist() == [-1]


def test_another_device_that_still_had_work_at_the_return_was_not_waited_for():
    # GPU 0: a until 20. GPU 1: b until 21, c until 60, both launched before. The call returned at 23.
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    program.launched("b", ts=1, start=6, dur=15, device=1)
    program.launched("c", ts=2, start=22, dur=38, device=1)
    program.launch(DEVICE_SYNC, ts=3, dur=20)

    assert scene_of(program).waits() == [(DEVICE_SYNC, "DEVICE", "a")]


def test_a_lost_launch_that_ran_after_the_return_contradicts_nothing():
    # Another device's work ended at 10; this one's at 20, and its lost launch, at 40, says nothing against it
    program = Program()
    program.launched("other", ts=0, start=5, dur=5, device=1)
    program.launched("a", ts=1, start=5, dur=15)
    program.kernel("lost", ts=40, dur=50)
    program.launch(DEVICE_SYNC, ts=3, dur=20)

    assert scene_of(program).waits() == [(DEVICE_SYNC, "DEVICE", "a")]


def test_a_recorded_wait_for_an_event_is_for_what_was_launched_before_its_record():
    #           0    10   20   30   40
    # host   a R b [- sync -]
    # s 7       [-- a --][--- b ---]     5 to 20, 20 to 40
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    record = program.launch(RECORD, ts=2)
    program.launched("b", ts=4, start=20, dur=20)
    call = program.launch(EVENT_SYNC, ts=6, dur=17)
    program.sync("Event Sync", ts=6, dur=17, stream=-1, correlation=call, wait_stream=7, wait_record=record)
    scene = scene_of(program)

    assert scene.waits() == [(EVENT_SYNC, "EVENT", "a")]
    assert scene.schedule.waits.guessed.tolist() == [False]


def test_a_wait_for_an_event_without_a_record_is_for_what_ended_shortly_before_its_return():
    # a ended at 20, b at 40 and c at 60; the call lasted from 6 to 43
    program = Program()
    for ts, (name, start) in enumerate((("a", 5), ("b", 20), ("c", 40))):
        program.launched(name, ts=ts, start=start, dur=(15, 20, 20)[ts])
    program.launch(EVENT_SYNC, ts=6, dur=37)
    scene = scene_of(program)

    assert scene.waits() == [(EVENT_SYNC, "EVENT", "b")]
    assert scene.schedule.waits.guessed.tolist() == [True]


@pytest.mark.parametrize(("returned", "found"), [(120, "a"), (121, None)], ids=["100 µs after", "101 µs after"])
def test_what_ended_long_before_the_return_was_not_waited_for(returned, found):
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)  # until 20
    program.launch(EVENT_SYNC, ts=6, dur=returned - 6)

    assert scene_of(program).waits() == [(EVENT_SYNC, "EVENT", found)]


@pytest.mark.parametrize(
    ("direction", "lasts", "waits"),
    [
        ("DtoH", 30, [("cudaMemcpyAsync", "COPY", "Memcpy DtoH (Device -> Pinned)")]),
        ("HtoD", 30, [("cudaMemcpyAsync", "COPY", "Memcpy HtoD (Pinned -> Device)")]),
        ("DtoD", 30, []),
        ("DtoH", 3, []),
    ],
    ids=["to the host", "to the device", "within the device", "a call that returned before its copy"],
)
def test_a_call_that_outlasts_its_copy_between_host_and_device_waited_for_it(direction, lasts, waits):
    program = Program()
    program.copied(direction, ts=0, start=8, dur=20, lasts=lasts)

    assert scene_of(program).waits() == waits


@pytest.mark.parametrize(
    ("end_of_b", "ts", "dur", "waits"),
    [
        (30, 4, 28, [("cudaMalloc", "DEVICE", "b")]),
        (40, 4, 28, []),
        (30, 29, 20, []),
        (30, 50, 20, []),
    ],
    ids=["all work ended in it", "some was left", "it began as the work ended", "it began after all work"],
)
def test_an_allocator_call_waited_for_the_device_if_the_last_work_ended_in_it(end_of_b, ts, dur, waits):
    program = Program()
    program.launched("a", ts=0, start=5, dur=10, stream=8)
    program.launched("b", ts=1, start=6, dur=end_of_b - 6)
    program.launch("cudaMalloc", ts=ts, dur=dur)
    scene = scene_of(program)

    assert scene.waits() == waits
    assert scene.schedule.waits.guessed.tolist() == [True] * len(waits)


@pytest.mark.parametrize(
    ("frees", "waits"),
    [
        ([(4, 28)], [("cudaFree", "DEVICE", "b")]),
        ([(50, 20)], [("cudaFree", "DEVICE", "b")]),  # had the work ended later, it would have waited
        ([(10, 5), (50, 20)], []),  # the first came back while b still ran: this one does not synchronise
    ],
    ids=["all work ended in it", "it began after all work", "another returned while work ran"],
)
def test_a_free_of_device_memory_waits_for_the_device_unless_one_returned_while_work_ran(frees, waits):
    program = Program()
    program.launched("b", ts=1, start=6, dur=24)
    for ts, dur in frees:
        program.launch("cudaFree", ts=ts, dur=dur)

    assert scene_of(program).waits() == waits


def test_of_nested_calls_the_inner_one_is_where_the_thread_stands():
    program = Program()
    program.launched("a", ts=0, start=5, dur=15)
    program.launch(DEVICE_SYNC, ts=2, dur=22)
    program.launch("cuCtxSynchronize", ts=3, dur=20, cat="cuda_driver")

    assert scene_of(program).waits() == [("cuCtxSynchronize", "DEVICE", "a")]


@pytest.mark.parametrize(
    ("late_us", "activity", "tail"),
    [(-3, "a", [3_000]), (0, "a", [0]), (2, "a", [-2_000]), (2.001, None, [13_000])],
    ids=["ended before the return", "with it", "2 µs after", "more than clocks differ"],
)
def test_clocks_of_host_and_device_agree_to_two_microseconds(late_us, activity, tail):
    # The call lasts from 2 to 15; the kernel ends that much after its return. Where it waited for nothing, all of the
    # 13 µs come after the wait, as far as a usual tail (5 µs) goes: min(13, 5)
    program = Program()
    program.launched("a", ts=0, start=5, dur=10 + late_us)
    program.launch(STREAM_SYNC, ts=2, dur=13)
    scene = scene_of(program)

    assert scene.waits() == [(STREAM_SYNC, "STREAM", activity)]
    assert scene.schedule.waits.tail_ns.tolist() == ([5_000] if activity is None else tail)


def test_the_own_time_of_a_call_that_waited_is_the_usual_one_of_its_name():
    # Synchronisations without anything to wait for: 2, 3 and 7 µs, median 3; the one that waited took 13. The first,
    # of 9 µs, is before all launches: nobody knows what it waited for
    program = Program()
    program.launch(STREAM_SYNC, ts=0, dur=9)
    program.launched("before", ts=10, start=15, dur=1)
    for ts, dur in ((20, 2), (30, 3), (40, 7)):
        program.launch(STREAM_SYNC, ts=ts, dur=dur)
    program.launched("a", ts=50, start=55, dur=8)
    program.launch(STREAM_SYNC, ts=52, dur=13)
    scene = scene_of(program)

    assert scene.schedule.waits.waited.tolist() == [False, False, False, False, True]
    assert scene.schedule.waits.own_ns.tolist() == [9_000, 2_000, 3_000, 7_000, 3_000]


@pytest.mark.parametrize(("dur", "own"), [(13, 5_000), (4, 4_000)], ids=["longer than that", "shorter"])
def test_where_every_call_of_the_name_waited_its_own_time_is_that_of_a_launch(dur, own):
    program = Program()
    program.launched("a", ts=0, start=3, dur=dur - 2)
    program.launch(STREAM_SYNC, ts=2, dur=dur)

    assert scene_of(program).schedule.waits.own_ns.tolist() == [own]


def test_the_tail_runs_from_the_end_of_the_work_to_the_return():
    # Rounds of 100: the kernel ends at 15, the call returns after 4, 6 and 20 µs; then a call with nothing to wait for
    # that returns at 245, 30 µs after the last end: the usual tail, 6
    program = Program()
    for number, tail in enumerate((4, 6, 20)):
        ts = 100 * number
        program.launched("a", ts=ts, start=ts + 5, dur=10)
        program.launch(STREAM_SYNC, ts=ts + 2, dur=13 + tail)
    program.launch(STREAM_SYNC, ts=243, dur=2)
    waits = scene_of(program).schedule.waits

    assert waits.waited.tolist() == [True, True, True, False]
    assert waits.tail_ns.tolist() == [4_000, 6_000, 20_000, 6_000]
    # A quarter of the way through 4, 6, 20 is 5: what goes beyond it is host time
    assert waits.work_ns.tolist() == [0, 1_000, 15_000, 0]


def full_queue(depth: int, launches: int, *, slow_copies: bool = False) -> Program:
    """A stream with room for `depth` launches: kernels of 100 µs from 10 on, calls of 1 µs unless they stand.

    Kernel i runs from 10 + 100 i. The call of launch i >= depth returns 1 µs after kernel i - depth has ended.
    """
    program = Program()
    host = 0
    for number in range(launches):
        dur = 1 if number < depth else 10 + 100 * (number - depth + 1) + 1 - host
        if slow_copies and number >= depth:
            program.copied("DtoD", ts=host, start=10 + 100 * number, dur=100, lasts=dur)
        else:
            program.launched(f"k{number}", ts=host, start=10 + 100 * number, dur=100, lasts=dur)
        host += dur
    return program


def test_launch_calls_that_stand_tell_the_depth_of_their_queue():
    scene = scene_of(full_queue(depth=70, launches=75))
    waits = scene.schedule.waits

    assert scene.schedule.depth == 70
    assert waits.kind.tolist() == [_QUEUE] * 5
    assert scene.names(waits.activity) == ["k0", "k1", "k2", "k3", "k4"]
    assert waits.own_ns.tolist() == [1_000] * 5
    assert waits.tail_ns.tolist() == [1_000] * 5
    # The 71st call begins at 70 and is let in as k0 ends, at 110; the next one as k1 does
    assert scene.schedule.launch_start[70:72].tolist() == [110_000, 210_000]


@pytest.mark.parametrize(
    "program",
    [
        pytest.param(full_queue(depth=70, launches=75, slow_copies=True), id="slow copies"),
        pytest.param(full_queue(depth=60, launches=75), id="too few ahead for a queue to be full"),
        pytest.param(full_queue(depth=70, launches=72), id="seen twice only"),
    ],
)
def test_other_slow_calls_do_not_tell_a_depth(program):
    schedule = scene_of(program).schedule

    assert schedule.depth == 0
    assert _QUEUE not in schedule.waits.kind.tolist()


def test_slow_calls_with_unequal_numbers_ahead_do_not_tell_a_depth():
    # Calls 70, 80, 90 and 100 of a run are slow although nothing has ended: 71, 81, 91 and 101 ahead
    program = Program()
    host = 0
    for number in range(110):
        dur = 50 if number in (70, 80, 90, 100) else 1
        program.launched("k", ts=host, start=1_000 + 10 * number, dur=10, lasts=dur)
        host += dur

    assert scene_of(program).schedule.depth == 0
