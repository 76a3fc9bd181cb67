"""The critical path: which resource decided each instant of the span. Times are µs, results ns."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from rooftrace.replay.edits import Edit
from rooftrace.replay.facts import describe_replay, everywhere
from rooftrace.replay.path import Resource, critical_path, critical_paths
from rooftrace.replay.run import Replay
from tests.schedule.scenes import RECORD, STREAM_SYNC, STREAM_WAIT, Program, any_run, scene_of

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def stretches(builder, device: int = 0) -> list[tuple[int, int, str]]:
    """(start, end, resource) of the path as recorded, µs."""
    path = critical_path(scene_of(builder).replay(), device)
    rows = zip(path.start.tolist(), path.end.tolist(), path.resource.tolist(), strict=True)
    return [(start // 1_000, end // 1_000, Resource(code).name.lower()) for start, end, code in rows]


def spent(builder) -> dict[str, int]:
    """Time of each resource on the path of device 0, µs."""
    times = critical_path(scene_of(builder).replay(), 0).by_resource()
    return {name: ns // 1_000 for name, ns in times.items() if ns}


@settings(max_examples=60, deadline=None)
@given(any_run())
def test_the_path_covers_the_span_without_gap_or_overlap(builder):
    replay = scene_of(builder).replay()
    changed = replay.timeline(((Edit(host=everywhere(replay, 0.5)), 1.0),))
    for timeline in (replay.measured(), replay.timeline(), changed):
        for device in np.unique(replay.activities.device).tolist():
            mine = replay.activities.device == device
            low, high = int(timeline.start[mine].min()), int(timeline.end[mine].max())
            path = critical_path(replay, device, timeline)

            assert np.r_[path.start, high].tolist() == np.r_[low, path.end].tolist()
            assert bool((path.end > path.start).all())
            assert sum(path.by_resource().values()) == high - low


def test_the_paths_of_all_devices_are_those_of_each_and_the_host_is_looked_at_once_for_all(monkeypatch):
    program = Program()
    for device in range(3):
        program.launched("k", ts=20 * device, start=20 * device + 8, dur=30, device=device)
    program.launch("cudaDeviceSynchronize", ts=62, dur=20)
    replay, asked = scene_of(program).replay(), []
    measured = Replay.measured
    monkeypatch.setattr(Replay, "measured", lambda self: asked.append(self) or measured(self))
    paths = critical_paths(replay)

    assert len(asked) == 1
    assert [path.by_resource() for path in paths] == [critical_path(replay, at).by_resource() for at in range(3)]


def test_kernels_queued_back_to_back_are_compute():
    # Gaps of 2, the usual one, between kernels of 100
    program = Program()
    for ts, start in enumerate((10, 112, 214)):
        program.launched("k", ts=ts, start=start, dur=100)

    assert stretches(program) == [
        (10, 110, "compute"),
        (110, 112, "device"),
        (112, 212, "compute"),
        (212, 214, "device"),
        (214, 314, "compute"),
    ]


def test_what_a_gap_exceeds_the_usual_one_by_is_unexplained():
    # Gaps of 2, 2 and 12; the usual one is 2
    program = Program()
    for ts, start in enumerate((10, 112, 214, 326)):
        program.launched("k", ts=ts, start=start, dur=100)

    assert spent(program) == {"compute": 400, "device": 6, "unexplained": 10}
    assert stretches(program)[-3:] == [(314, 316, "device"), (316, 326, "unexplained"), (326, 426, "compute")]


def test_launches_that_find_an_idle_device_make_the_host_the_bottleneck():
    # Launched at 0, 100, 200; started 10 later; 5 each. From 10 to 100 and from 100 to 200 the host is at work
    program = Program()
    for number in range(3):
        program.launched("k", ts=100 * number, start=100 * number + 10, dur=5)

    assert stretches(program) == [(10, 200, "host"), (200, 210, "launch"), (210, 215, "compute")]


def test_copies_and_collectives_are_named_for_what_they_are():
    program = Program()
    program.copied("DtoD", ts=0, start=10, dur=50, lasts=1)
    program.launched(NCCL, ts=2, start=60, dur=30)
    program.launched("k", ts=4, start=90, dur=20)

    assert spent(program) == {"copy": 50, "communication": 30, "compute": 20}


def test_a_wait_leads_to_what_it_waited_for():
    # a from 10 to 110, the call returns at 115, b is launched at 120 and starts at 130
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch(STREAM_SYNC, ts=2, dur=113)
    program.launched("b", ts=120, start=130, dur=10)

    assert stretches(program) == [
        (10, 110, "compute"),
        (110, 115, "synchronisation"),
        (115, 120, "host"),
        (120, 130, "launch"),
        (130, 140, "compute"),
    ]


def test_a_dependency_leads_to_the_other_stream():
    # a on 7 until 105, b on 8 from 107
    program = Program()
    program.launched("a", ts=0, start=5, dur=100)
    program.launch(RECORD, ts=2)
    program.launch(STREAM_WAIT, ts=4)
    program.launched("b", ts=6, start=107, dur=10, stream=8)

    assert stretches(program) == [(5, 105, "compute"), (105, 107, "dependency"), (107, 117, "compute")]


def test_a_hand_over_leads_to_the_thread_that_worked():
    # The engine waits for a until 115 and ends its op at 120; main goes on at 140 and launches at 141
    program = Program()
    program.op("forward", 0, 20, tid=1)
    program.launched("a", ts=1, start=10, dur=100, tid=1)
    program.op("backward", 28, 92, tid=2)
    call = program.launch(STREAM_SYNC, ts=30, dur=85, tid=2)
    program.sync("Stream Sync", ts=30, stream=7, correlation=call)
    program.op("optimizer", 140, 20, tid=1)
    program.launched("b", ts=141, start=151, dur=10, tid=1)
    scene = scene_of(program)
    path = critical_path(scene.replay(), 0)

    assert [(start, end) for start, end, name in stretches(program) if name == "host"] == [
        (115, 120),
        (120, 140),
        (140, 141),
    ]
    threads = [scene.trace.lanes[lane][1] for lane in path.lane.tolist() if lane >= 0]
    assert threads == [2, 2, 1, 1]  # the return of the call and the rest of its op; being handed over and going on


def test_before_the_window_only_the_queue_tells():
    # Carried: 0 to 50 and 90 to 100; a queued behind them. Of the 40 between, 1 is the usual gap
    program = Program()
    program.kernel("c0", ts=0, dur=50)
    program.kernel("c1", ts=90, dur=10)
    program.launched("a", ts=20, start=101, dur=10)

    assert stretches(program) == [
        (0, 50, "compute"),
        (50, 89, "unexplained"),
        (89, 90, "device"),
        (90, 100, "compute"),
        (100, 101, "device"),
        (101, 111, "compute"),
    ]


def test_a_device_that_begins_later_begins_its_path_there():
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launched("b", ts=50, start=60, dur=30, device=1)

    assert stretches(program, device=1) == [(60, 90, "compute")]


def test_the_path_of_a_changed_run_names_what_bounds_it_then():
    # b, launched at 50, waits for a until 110. With a at nothing its launch decides
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launched("b", ts=50, start=110, dur=10)
    scene = scene_of(program)
    replay = scene.replay()
    gone = Edit(activities=np.array([scene.kernel("a")]), saved_ns=np.array([100_000]))
    times = critical_path(replay, 0, replay.timeline(((gone, 1.0),))).by_resource()

    # b starts a usual latency, 6, after 50 and ends at 66; the span begins at 10
    assert {name: ns for name, ns in times.items() if ns} == {"host": 40_000, "launch": 6_000, "compute": 10_000}


def test_work_without_duration_that_waits_in_a_circle_ends_the_path():
    # Two threads with ops of no length at one time, each of which could have handed over to the other
    program = Program()
    program.launched("a", ts=0, start=1, dur=1, tid=3)
    for tid in (1, 2):
        program.launched("k", ts=50, start=50, dur=0, tid=tid, lasts=0, stream=tid)
    program.launched("end", ts=50, start=50, dur=10, tid=1, lasts=0, stream=1)

    assert sum(spent(program).values()) == 59


@pytest.mark.parametrize(
    ("durations", "strip"),
    [
        ((50, 50), ["copy:50", "compute:50"]),
        ((1, 99), ["copy:1", "compute:99"]),
    ],
)
def test_the_strip_names_the_resource_of_each_hundredth(durations, strip):
    copy, compute = durations
    program = Program()
    program.copied("DtoD", ts=0, start=10, dur=copy, lasts=1)
    program.launched("k", ts=2, start=10 + copy, dur=compute)

    assert describe_replay(scene_of(program).replay()).paths[0].strip == strip


def test_a_span_of_few_nanoseconds_has_a_short_strip_and_one_of_none_has_none():
    for dur, strip in ((0.003, ["compute:3"]), (0, [])):
        program = Program()
        program.launched("k", ts=0, start=5, dur=dur)

        assert describe_replay(scene_of(program).replay()).paths[0].strip == strip
