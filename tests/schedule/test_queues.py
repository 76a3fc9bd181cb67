"""Queues: order, reach, what was launched before a time, and usual distances."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.calltree import build_tree, collect_activities
from rooftrace.schedule.ends import find_ends
from rooftrace.schedule.queues import build_queues
from tests.schedule.scenes import Program, scene_of

LONG_AGO = -(1 << 62)


def queues_of(builder):
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    return trace, activities, build_queues(tree, activities)


def test_an_activity_follows_the_one_before_it_on_its_stream_of_its_device():
    #               10   20   30   40
    # GPU 0, s 7    [a ] [b ]      [e ]
    # GPU 0, s 8         [c ]
    # GPU 1, s 7              [d ]
    program = Program()
    for ts, (name, start, stream, device) in enumerate(
        (("a", 10, 7, 0), ("b", 20, 7, 0), ("c", 20, 8, 0), ("d", 30, 7, 1), ("e", 40, 7, 0))
    ):
        program.launched(name, ts=ts, start=start, dur=5, stream=stream, device=device)
    scene = scene_of(program)

    previous = dict(zip("abced", scene.names(scene.schedule.previous), strict=True))  # device 0 first
    assert previous == {"a": None, "b": "a", "c": None, "e": "b", "d": None}


def test_reach_is_the_one_before_that_ends_last_which_need_not_be_the_last_to_start():
    # a [----------------]        0 to 50
    # b    [--]                  10 to 20
    # c       [--]               30 to 40
    # d                    [--]  60 to 70
    program = Program()
    for name, start, dur in (("a", 0, 50), ("b", 10, 10), ("c", 30, 10), ("d", 60, 10)):
        program.kernel(name, ts=start, dur=dur)
    scene = scene_of(program)

    assert scene.names(scene.schedule.previous) == [None, "a", "b", "c"]
    assert scene.names(scene.schedule.reach) == [None, "a", "a", "a"]


def test_what_a_stream_took_before_a_time_is_told_by_its_order_where_a_launch_is_not_known():
    # launches a 1, b unknown, c 5; order on the stream: a, b, c
    program = Program()
    program.op("the first event", 0, 1)
    program.launched("a", ts=1, start=10, dur=5)
    program.kernel("b", ts=20, dur=5)
    program.launched("c", ts=5, start=30, dur=5)
    trace, activities, queues = queues_of(program)

    def last_before(time_us):
        (found,) = queues.launched_before(0, np.array([1_000 * time_us]))
        return trace.names[activities.name[found]] if found >= 0 else None

    # b was taken after a, at an unknown time before c: it counts with a
    assert [last_before(time) for time in (1, 2, 5, 6)] == [None, "b", "b", "c"]


def test_a_stream_is_found_by_its_device_and_number():
    program = Program()
    program.kernel("a", ts=0, dur=1, stream=20, device=1)
    program.kernel("b", ts=0, dur=1, stream=7)
    _, _, queues = queues_of(program)

    assert [queues.find(0, 7), queues.find(1, 20), queues.find(1, 7)] == [0, 1, -1]


def test_a_trace_without_activities_has_no_queues():
    program = Program()
    program.launch("cudaDeviceSynchronize", ts=0, dur=5)
    schedule = scene_of(program).schedule

    assert (schedule.queue.size, schedule.waits.activity.tolist(), schedule.handovers.lane.size) == (0, [-1], 0)
    assert schedule.waits.own_ns.tolist() == [5_000]


def test_launch_latency_is_told_by_kernels_that_found_an_empty_stream_and_had_one_before_them():
    #                 launch  start  latency
    # first                0     50       50   nothing known before it: no sample
    # a                  100    104        4
    # b                  200    206        6
    # c                  300    308        8
    # queued             309    330       21   c ended at 318: no sample
    # copy               400    499       99   a copy: no sample
    program = Program()
    program.launched("first", ts=0, start=50, dur=10)
    for name, ts, start, dur in (("a", 100, 104, 10), ("b", 200, 206, 10), ("c", 300, 308, 10), ("q", 309, 330, 10)):
        program.launched(name, ts=ts, start=start, dur=dur)
    program.copied("DtoD", ts=400, start=499, dur=5, lasts=1)
    scene = scene_of(program)

    assert scene.schedule.usual_latency_ns == 6_000
    assert scene.schedule.latency_ns == 4_400  # a tenth of the way through 4, 6, 8: 4 + 0.2 * 2
    assert scene.schedule.found_empty.tolist() == [True, True, True, True, False, True]


def test_the_usual_gap_is_told_by_activities_launched_well_before_the_one_before_them_ended():
    # launched at 0 to 3; a 10 to 110, b 112 to 212 (gap 2), c 216 to 316 (gap 4), d 322 (gap 6); the median is 4
    # e was launched at 330, 20 µs before d ended at 350: less than four launch latencies (24 µs), so no sample
    program = Program()
    for ts, (name, start, dur) in enumerate((("a", 10, 100), ("b", 112, 100), ("c", 216, 100), ("d", 322, 28))):
        program.launched(name, ts=ts, start=start, dur=dur)
    program.launched("e", ts=330, start=359, dur=1)

    assert scene_of(program).schedule.usual_gap_ns == 4_000


def test_where_no_distance_was_seen_a_rule_of_thumb_stands():
    program = Program()
    program.launched("a", ts=0, start=10, dur=5)
    schedule = scene_of(program).schedule

    assert (schedule.latency_ns, schedule.usual_latency_ns, schedule.usual_gap_ns) == (6_000, 6_000, 1_000)


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 30])
def test_of_what_was_launched_before_a_time_the_last_end_by_another_is_found(count):
    # Launch and end of number i, in µs: two unrelated orders on three streams; the answer is looked for one by one
    program = Program()
    work = [(f"k{i}", (7 * i) % 31, 100 + (11 * i) % 37, i % 3) for i in range(count)]
    for name, launch, start, stream in work:
        program.launched(name, ts=launch, start=start, dur=3, stream=stream, tid=stream)
    trace, activities, queues = queues_of(program)
    ends = find_ends(activities, queues)
    taken = {}
    for place, at in enumerate(queues.order.tolist()):
        taken[trace.names[activities.name[at]]] = int(queues.taken[place])

    for before in (0, 5, 12, 40):
        for limit in (90, 110, 120, 200):
            found = int(ends.ended.last_by(np.array([1_000 * before]), np.array([1_000 * limit]))[0])
            fitting = [start + 3 for name, _, start, _ in work if taken[name] < 1_000 * before and start + 3 <= limit]
            assert (activities.end[found] if found >= 0 else None) == (1_000 * max(fitting) if fitting else None)


def test_nothing_is_found_before_the_first_launch_and_all_of_it_after_the_last():
    program = Program()
    program.op("the first event", 0, 1)
    program.launched("long", ts=1, start=10, dur=90, stream=7)
    program.launched("short", ts=3, start=12, dur=5, stream=8)
    _, activities, queues = queues_of(program)
    ends = find_ends(activities, queues)

    last = ends.launched.last(np.array([1_000, 2_000, 9_000]))
    assert [int(activities.end[at]) if at >= 0 else None for at in last.tolist()] == [None, 100_000, 100_000]


def test_of_what_ends_at_once_on_two_devices_that_of_the_first_one_counts():
    # both end at 20, launched at 1 and 2, the second device's first
    program = Program()
    program.op("the first event", 0, 1)
    program.launched("second", ts=1, start=10, dur=10, device=1)
    program.launched("first", ts=2, start=11, dur=9, device=0)
    trace, activities, queues = queues_of(program)
    ends = find_ends(activities, queues)
    times = np.array([1_500, 2_500])  # before which they were launched

    found = [ends.launched.last(times), ends.ended.last_by(times, np.array([20_000, 20_000]))]
    assert [[trace.names[activities.name[at]] for at in some.tolist()] for some in found] == 2 * [["second", "first"]]
    assert [device.last(times).tolist() for device in ends.devices] == [[-1, 0], [1, 1]]
