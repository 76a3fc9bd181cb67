"""A run replayed with changes: spans worked out by hand. Times are µs, results ns."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from rooftrace.replay.constraints import predict, usual_distances
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.events import Step
from rooftrace.replay.run import Replay
from rooftrace.schedule import build_schedule
from tests.replay.drawn import possible_run
from tests.schedule.scenes import RECORD, STREAM_SYNC, STREAM_WAIT, Program, Scene, any_run, scene_of
from tests.support.trace_builder import TraceBuilder


def span(builder: TraceBuilder, *edits: Edit, closure: float = 1.0) -> float:
    """Span in µs with some edits made."""
    return scene_of(builder).replay().spans([tuple((edit, closure) for edit in edits)])[0] / 1_000


def shorter(scene: Scene, factor: float, *names: str) -> Edit:
    """Kernels of some names, or all, at a share of their time."""
    activities = scene.activities
    members = np.array([at for at in range(activities.row.size) if not names or scene.named(at) in names])
    return Edit(activities=members, saved_ns=np.rint(activities.dur[members] * (1 - factor)).astype(np.int64))


def cut(scene: Scene, start: float, end: float, share: float = 1.0, tid: int = 1) -> Edit:
    """Host time of a thread taken out, µs."""
    (lane,) = [at for at, (_, thread) in enumerate(scene.trace.lanes) if thread == tid and at in scene.tree.lane]
    times = np.array([int(start * 1_000)]), np.array([int(end * 1_000)])
    return Edit(host=(HostCut(lane=lane, start=times[0], end=times[1], share=share),))


@settings(max_examples=150, deadline=None)
@given(any_run())
def test_a_run_without_a_change_is_reproduced_to_the_nanosecond_whatever_was_recorded(builder):
    replay = scene_of(builder).replay()
    measured, timeline = replay.measured(), replay.timeline()

    assert timeline.start.tolist() == replay.activities.start.tolist()
    assert timeline.end.tolist() == replay.activities.end.tolist()
    host = replay.events.step != int(Step.ACTIVITY)
    assert timeline.event[host].tolist() == measured.event[host].tolist()
    bound = replay.events.launch_of >= 0
    assert timeline.launched[bound].tolist() == measured.launched[bound].tolist()
    assert replay.spans([()]) == [replay.measured_ns]


@settings(max_examples=30, deadline=None)
@given(possible_run())
def test_a_possible_run_without_a_change_is_reproduced(builder):
    replay = scene_of(builder).replay()

    assert replay.spans([()]) == [replay.measured_ns]
    assert replay.timeline().start.tolist() == replay.activities.start.tolist()


def test_a_dependency_that_clocks_put_after_its_start_holds_nothing_back():
    # b, launched at 1, starts at 10; a, which it waited for by the record, runs from 10.5 to 10.9 by another clock
    program = Program()
    program.launched("a", ts=0, start=10.5, dur=0.4, lasts=0.25)
    record = program.launch(RECORD, ts=0.3, dur=0.1)
    wait = program.launch(STREAM_WAIT, ts=0.6, dur=0.1)
    program.sync(ts=0.6, stream=8, correlation=wait, wait_stream=7, wait_record=record)
    program.launched("b", ts=1, start=10, dur=10, stream=8)
    scene = scene_of(program)

    assert scene.dependencies() == {"b": ("a", "RECORDED")}
    assert scene.replay().timeline().start.tolist() == scene.activities.start.tolist()


def test_work_that_starts_as_a_call_returns_by_the_clocks_was_not_waited_for():
    program = Program()
    program.launched("a", ts=0, start=15, dur=1)
    program.launch(STREAM_SYNC, ts=2, dur=13)
    program.launched("b", ts=18, start=28, dur=10)
    scene = scene_of(program)

    assert span(program) == 23
    assert scene.replay().timeline(((shorter(scene, 0.0, "a"), 1.0),)).launched.tolist() == [0, 18_000]


def back_to_back(c_launch: float = 2) -> Program:
    """Kernels of 100 from 10 to 310 without a gap, launched at 0, 1 and `c_launch`."""
    program = Program()
    for name, ts, start in (("a", 0, 10), ("b", 1, 110), ("c", c_launch, 210)):
        program.launched(name, ts=ts, start=start, dur=100)
    return program


def test_queued_kernels_at_half_their_time_take_half_the_span():
    program = back_to_back()

    assert span(program) == 300
    assert span(program, shorter(scene_of(program), 0.5)) == 150


def test_a_launch_takes_over_where_the_kernels_get_ahead_of_it():
    # a 10 to 60, b 60 to 110; c was launched at 150 and starts a usual latency, 6, later: 156 to 206
    program = back_to_back(c_launch=150)

    assert span(program, shorter(scene_of(program), 0.5)) == 196


def test_a_closure_is_a_share_of_every_part():
    # Half of the edit: kernels of 75
    program = back_to_back()

    assert span(program, shorter(scene_of(program), 0.5), closure=0.5) == 225


def test_a_kernel_may_take_longer():
    program = back_to_back()

    assert span(program, shorter(scene_of(program), 1.5, "b")) == 350


def test_a_kernel_never_takes_less_than_nothing():
    program = back_to_back()
    scene = scene_of(program)

    assert span(program, shorter(scene, 0.0, "b"), shorter(scene, 0.5, "b")) == 200


def test_a_removed_kernel_leaves_its_place_in_the_queue():
    program = back_to_back()
    scene = scene_of(program)
    edit = Edit(removed=np.array([scene.kernel("b")]))
    timeline = scene.replay().timeline(((edit, 1.0),))

    assert span(program, edit) == 200
    assert timeline.start.tolist() == [10_000, 110_000, 110_000]
    assert timeline.end.tolist() == [110_000, 110_000, 210_000]


def test_what_a_closure_leaves_of_a_removed_kernel_runs_right_after_the_one_before_it():
    program = back_to_back()
    scene = scene_of(program)
    edit = Edit(removed=np.array([scene.kernel("b")]))

    # b is a quarter gone: of its 100 are 75 left, directly behind a; then c as ever
    timeline = scene.replay().timeline(((edit, 0.25),))
    assert timeline.start.tolist() == [10_000, 110_000, 185_000]
    assert timeline.end.tolist() == [110_000, 185_000, 285_000]
    assert span(program, edit, closure=0.25) == 275
    assert span(program, edit, closure=0.0) == 300


def test_a_removed_branch_of_a_graph_does_not_put_the_others_in_a_row():
    # a [10 ------------- 110]
    # r    [30-50]              beside a, 20 after its start
    # c      [40 --------- 140] beside r, 10 after its start
    program = Program()
    call = program.launch("cudaGraphLaunch", ts=0)
    for name, start, dur in (("a", 10, 100), ("r", 30, 20), ("c", 40, 100)):
        program.kernel(name, ts=start, dur=dur, correlation=call)
    scene = scene_of(program)

    assert span(program) == 130
    assert span(program, Edit(removed=np.array([scene.kernel("r")]))) == 130


def test_who_waited_for_a_removed_branch_does_not_wait_for_the_others_instead():
    # As above without c; d on stream 8 waits for r alone and starts at 51, 1 after its end
    program = Program()
    call = program.launch("cudaGraphLaunch", ts=0)
    for name, start, dur in (("a", 10, 100), ("r", 30, 20)):
        program.kernel(name, ts=start, dur=dur, correlation=call)
    record = program.launch(RECORD, ts=2)
    wait = program.launch(STREAM_WAIT, ts=4)
    program.sync(ts=4, stream=8, correlation=wait, wait_stream=7, wait_record=record)
    program.launched("d", ts=6, start=51, dur=100, stream=8)
    scene = scene_of(program)
    timeline = scene.replay().timeline(((Edit(removed=np.array([scene.kernel("r")])), 1.0),))

    assert scene.dependencies() == {"d": ("r", "RECORDED")}
    assert timeline.start[scene.kernel("d")] == 31_000  # r would have started at 30


def host_bound() -> Program:
    """Launched at 0, 100 and 200; each kernel starts 10 later and takes 5."""
    program = Program()
    for number in range(3):
        program.launched(f"k{number}", ts=100 * number, start=100 * number + 10, dur=5)
    return program


def test_half_of_the_host_time_is_half_of_the_distance_between_launches():
    # Launches at 0, 50, 100: the last kernel ends at 115
    program = host_bound()

    assert span(program) == 205
    assert span(program, cut(scene_of(program), 0, 200, share=0.5)) == 105


def test_of_overlapping_cuts_the_larger_share_counts():
    # Half of 0 to 100 and all of 50 to 200: 25 + 50 gone until 100, 100 more until 200. Launches at 0, 25, 25;
    # kernels at 10 to 15, 35 to 40 and, a gap of 1 later, 41 to 46
    program = host_bound()
    scene = scene_of(program)

    assert span(program, cut(scene, 0, 100, share=0.5), cut(scene, 50, 200)) == 36
    assert span(program, cut(scene, 50, 200), cut(scene, 0, 100, share=0.5)) == 36


def test_a_cut_of_one_thread_leaves_the_others():
    # The two threads work at once, so that neither waits for the other
    program = host_bound()
    for tid in (1, 2):
        program.op("aten::mm", 0, 250, tid=tid)
    program.launched("other", ts=50, start=60, dur=5, stream=8, tid=2)

    assert span(program, cut(scene_of(program), 0, 200, share=0.5, tid=2)) == 205


def with_wait(tail: float = 5) -> Program:
    """A kernel from 10 to 110 that a call from 2 waits for; another launched 5 after its return, 10 before it runs."""
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch(STREAM_SYNC, ts=2, dur=108 + tail)
    program.launched("b", ts=115 + tail, start=125 + tail, dur=10)
    return program


def test_time_that_a_thread_waits_for_the_gpu_is_never_cut():
    # Cut: 2 before the call, 5 of the call itself, 5 after its return at 115; b is launched at 115 and ends at 135
    program = with_wait()

    assert span(program) == 130
    assert span(program, cut(scene_of(program), 0, 1_000)) == 125


def test_the_host_time_of_a_call_after_the_usual_return_is_cut():
    # One call returned 5 after its work, the other 45: of that, all beyond a quarter of the way, 15, which is more
    # than 10, the most that counts as usual: 35. The second launch after it moves by 5 + 35
    program = Program()
    for number, tail in enumerate((5, 45)):
        ts = 1_000 * number
        program.launched("a", ts=ts, start=ts + 10, dur=100)
        program.launch(STREAM_SYNC, ts=ts + 2, dur=108 + tail)
    program.launched("b", ts=1_160, start=1_170, dur=10)
    scene = scene_of(program)

    assert scene.schedule.waits.work_ns.tolist() == [0, 35_000]
    assert span(program, cut(scene, 1_003, 1_160)) == 1_170 - 40


def test_a_wait_ends_with_the_work_it_waited_for():
    # a takes 50: it ends at 60, the call returns at 65, b is launched at 70 and runs from 80 to 90
    program = with_wait()

    assert span(program, shorter(scene_of(program), 0.5, "a")) == 80


def test_a_wait_never_ends_before_the_call_itself_is_done():
    # a takes nothing: it ends at 10; the call takes 5 by itself, until 7, and returns 5 after the work, at 15
    program = with_wait()
    timeline = scene_of(program).replay().timeline(((shorter(scene_of(program), 0.0, "a"), 1.0),))

    assert timeline.launched.tolist() == [0, 20_000]


@pytest.mark.parametrize(
    ("closure", "launched", "expected"),
    [(1.0, 12, 111), (0.5, 66, 111), (0.0, 120, 130)],
    ids=["all", "half", "nothing"],
)
def test_an_unblocked_call_takes_its_own_time(closure, launched, expected):
    # Unblocked the call ends at 2 + 5 and b is launched 5 later; half of it leaves half of the 108 it had waited.
    # b follows a at the usual gap, 1: 111 to 121
    program = with_wait()
    edit = Edit(unblocked=np.array([0]))
    timeline = scene_of(program).replay().timeline(((edit, closure),))

    assert timeline.launched.tolist() == [0, 1_000 * launched]
    assert span(program, edit, closure=closure) == expected


def test_a_launch_at_the_very_time_of_a_return_comes_after_it():
    # The call returns at 115 and b is launched at 115. With a at half: returned and launched at 65, b from 75 to 85
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch(STREAM_SYNC, ts=2, dur=113)
    program.launched("b", ts=115, start=125, dur=10)

    assert span(program, shorter(scene_of(program), 0.5, "a")) == 75


def test_the_waiting_of_nested_calls_is_gone_once():
    # The outer call lasts from 2 to 117, the inner one from 3 to 115. Unblocked, the inner takes 5: until 8; what
    # follows it keeps its distance: b is launched 5 after it
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch("cudaDeviceSynchronize", ts=2, dur=115)
    program.launch("cuCtxSynchronize", ts=3, dur=112, cat="cuda_driver")
    program.launched("b", ts=120, start=130, dur=10)
    scene = scene_of(program)
    edit = Edit(unblocked=np.arange(scene.schedule.waits.node.size))

    assert scene.replay().timeline(((edit, 1.0),)).launched.tolist() == [0, 13_000]


def test_a_call_that_returned_before_the_end_of_its_work_by_the_clocks_keeps_that_distance():
    # The call returns at 109, a ends at 110. With a at half, 60: it returns at 59, b is launched at 64
    program = with_wait(tail=-1)
    scene = scene_of(program)
    timeline = scene.replay().timeline(((shorter(scene, 0.5, "a"), 1.0),))

    assert timeline.launched.tolist() == [0, 64_000]


def test_a_dependency_moves_with_what_it_is_on():
    # a on 7 from 5 to 105, b on 8 from 107; with a at half b starts at 57, and its launch is no hindrance
    program = Program()
    program.launched("a", ts=0, start=5, dur=100)
    program.launch(RECORD, ts=2)
    program.launch(STREAM_WAIT, ts=4)
    program.launched("b", ts=6, start=107, dur=10, stream=8)
    scene = scene_of(program)

    assert scene.dependencies() == {"b": ("a", "CALLS")}
    assert span(program) == 112
    assert span(program, shorter(scene, 0.5, "a")) == 62


def test_a_joined_dependency_takes_over_where_the_later_one_gets_shorter():
    # b waits for a (until 80) and c (until 100) and starts at 102: the usual lag is 2. Without c it starts at 82
    program = Program()
    program.launched("a", ts=0, start=10, dur=70, stream=7)
    program.launched("c", ts=1, start=10, dur=90, stream=9)
    records = [program.launch(RECORD, ts=2), program.launch(RECORD, ts=4)]
    waits = [program.launch(STREAM_WAIT, ts=6), program.launch(STREAM_WAIT, ts=8)]
    program.launched("b", ts=10, start=102, dur=10, stream=8)
    for wait, record, stream in zip(waits, records, (7, 9), strict=True):
        program.sync(ts=8, stream=8, correlation=wait, wait_stream=stream, wait_record=record)
    scene = scene_of(program)
    timeline = scene.replay().timeline(((shorter(scene, 0.0, "c"), 1.0),))

    assert timeline.start[scene.kernel("b")] == 82_000


def test_what_was_launched_before_the_window_stays_where_it_was():
    # Two carried kernels: the second starts 1 after the first one of another stream ends, by chance or because it
    # waited. Nobody knows its launch: it stays
    program = Program()
    program.kernel("c0", ts=0, dur=10, stream=8)
    program.kernel("c1", ts=5, dur=95, stream=7)
    program.kernel("c2", ts=101, dur=20, stream=8)
    program.launched("a", ts=60, start=150, dur=10, stream=8)
    program.launched("b", ts=62, start=150, dur=10, stream=7)
    scene = scene_of(program)
    timeline = scene.replay().timeline(((shorter(scene, 0.5, "c1"), 1.0),))

    assert timeline.start[[scene.kernel("c1"), scene.kernel("c2")]].tolist() == [5_000, 101_000]


def test_a_lost_launch_moves_with_its_stream():
    # lost follows a at 110 and ends at 120; with a at half both end 50 earlier
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.kernel("lost", ts=110, dur=10)

    assert span(program, shorter(scene_of(program), 0.5, "a")) == 60


def test_a_thread_goes_on_as_soon_as_the_other_is_done():
    # Main launches at 1 and ends its op at 20; the engine waits for the GPU from 30 to 115 and ends its op at 120,
    # main goes on at 140 and launches b at 141, which runs from 151 to 161. With a at half, 50 µs less of each
    program = Program()
    program.op("forward", 0, 20, tid=1)
    program.launched("a", ts=1, start=10, dur=100, tid=1)
    program.op("backward", 28, 92, tid=2)
    program.launch(STREAM_SYNC, ts=30, dur=85, tid=2)
    program.sync("Stream Sync", ts=30, stream=7, correlation=2)
    program.op("optimizer", 140, 20, tid=1)
    program.launched("b", ts=141, start=151, dur=10, tid=1)

    assert span(program) == 151
    assert span(program, shorter(scene_of(program), 0.5, "a")) == 101


def test_a_resumed_thread_that_launches_at_once_launches_when_it_resumes():
    # As above, but the last op's launch begins with the stretch itself, at 140: b from 150 to 160
    program = Program()
    program.op("forward", 0, 20, tid=1)
    program.launched("a", ts=1, start=10, dur=100, tid=1)
    program.op("backward", 28, 92, tid=2)
    program.launch(STREAM_SYNC, ts=30, dur=85, tid=2)
    program.sync("Stream Sync", ts=30, stream=7, correlation=2)
    program.launched("b", ts=140, start=150, dur=10, tid=1)

    assert span(program, shorter(scene_of(program), 0.5, "a")) == 100


def test_a_full_queue_lets_a_launch_in_as_its_oldest_ends():
    # Room for 70: kernels of 100 from 10 on; with all of them at half, kernel i ends at 60 + 50 i and the 75 run for
    # 3,750: the calls that stood are let in as early, so the queue never runs dry
    program = Program()
    host = 0
    for number in range(75):
        dur = 1 if number < 70 else 10 + 100 * (number - 69) + 1 - host
        program.launched(f"k{number}", ts=host, start=10 + 100 * number, dur=100, lasts=dur)
        host += dur
    scene = scene_of(program)
    timeline = scene.replay().timeline(((shorter(scene, 0.5), 1.0),))

    assert scene.schedule.depth == 70
    assert span(program, shorter(scene, 0.5)) == 3_750
    assert timeline.launched[70:72].tolist() == [70_000, 110_000]  # at 70 there is room since 60; k1 ends at 110


def test_spans_of_devices_add_up():
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launched("b", ts=1, start=500, dur=30, device=1)
    scene = scene_of(program)

    assert scene.replay().measured_ns == 130_000
    assert span(program, shorter(scene, 0.5)) == 65


def test_a_trace_without_activities_takes_no_time():
    program = Program()
    program.launch("cudaDeviceSynchronize", ts=0, dur=5)
    replay = scene_of(program).replay()

    assert (replay.measured_ns, replay.spans([(), ()])) == (0, [0, 0])
    assert replay.spans([]) == []


def test_a_selection_of_steps_is_replayed_as_it_was():
    program = Program()
    for step in range(3):
        ts = 1_000 * step
        program.annotation(f"ProfilerStep#{step}", ts, 900)
        program.launched("a", ts=ts + 5, start=ts + 20, dur=100)
        program.launch(STREAM_SYNC, ts=ts + 8, dur=117)
        program.launched("b", ts=ts + 130, start=ts + 140, dur=10)
    whole = scene_of(program)
    chosen = whole.activities.select((whole.activities.start > 1_000_000) & (whole.activities.start < 2_000_000))
    replay = Replay(whole.tree, chosen, build_schedule(whole.trace, whole.tree, chosen))

    assert replay.spans([()]) == [130_000]
    assert replay.timeline().start.tolist() == [1_020_000, 1_140_000]
    halved = Edit(activities=np.array([0]), saved_ns=np.array([50_000]))
    assert replay.spans([((halved, 1.0),)]) == [80_000]  # a until 70, the call until 75, b at 90 to 100


def test_a_step_predicted_from_another_ones_distances_leaves_the_rest_where_it_was():
    program = Program()
    for step, latency in enumerate((8, 8, 12)):
        for number in range(3):
            ts = 1_000 * step + 100 * number
            program.launched("k", ts=ts, start=ts + latency, dur=10)
    scene = scene_of(program)
    step = np.arange(9) // 3
    usual = usual_distances(scene.activities, scene.schedule, step == 1)
    constraints = predict(scene.activities, scene.schedule, usual, step == 2)
    timeline = Replay(scene.tree, scene.activities, scene.schedule, constraints).timeline()

    # The launches of the last step at 2,000, 2,100 and 2,200 start 8 later, as those before did
    assert timeline.start[6:].tolist() == [2_008_000, 2_108_000, 2_208_000]
    assert timeline.start[:6].tolist() == scene.activities.start[:6].tolist()


def steps_of(work: Any) -> int:
    """Calls of Python functions in some work."""
    count = 0

    def counted(_frame: Any, event: str, _argument: Any) -> None:
        nonlocal count
        count += event == "call"

    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize("streams", [1, 1_000], ids=["one stream", "a stream a kernel"])
def test_twice_the_events_are_twice_the_steps(streams):
    def repeated(count: int) -> Scene:
        program = Program()
        for number in range(count):
            ts, stream = 40 * number, 1 + number % streams
            program.launched("k", ts=ts, start=ts + 8, dur=10, stream=stream)
            program.launch("cudaDeviceSynchronize", ts=ts + 9, dur=12)
            program.launch("cudaFree", ts=ts + 22, dur=2)
            program.launch("cudaEventSynchronize", ts=ts + 25, dur=2)
        return scene_of(program)

    counts = []
    for count in (100, 200):
        scene = repeated(count)
        counts.append(steps_of(lambda scene=scene: build_schedule(scene.trace, scene.tree, scene.activities)))
        edit = cut(scene, 0, 40 * count, share=0.5)
        replay = scene.replay()
        counts.append(steps_of(lambda replay=replay, edit=edit: replay.spans([(), ((edit, 1.0),)])))

    assert counts[2] <= 2.2 * counts[0]
    assert counts[3] <= 2.2 * counts[1]
