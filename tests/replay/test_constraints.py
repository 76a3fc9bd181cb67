"""Constraints of a run: what held each activity back, at which distance. Times are µs unless they say ns."""

from __future__ import annotations

import numpy as np

from rooftrace.replay.constraints import NEVER, Binding, Distances, fit, predict, usual_distances
from tests.schedule.scenes import RECORD, STREAM_WAIT, Program, scene_of


def fitted(scene):
    return fit(scene.activities, scene.schedule)


def bindings(scene) -> list[str]:
    return [Binding(code).name for code in fitted(scene).binding.tolist()]


def three_kernels() -> Program:
    """Usual gap 3 (b after a), usual latency 9 (c after its launch).

    launch     start  end   held by
    a    0      10    110   its launch: 10 after it, 1 more than usual
    b    5     113    133   its stream
    c  200     209    219   its launch
    """
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launched("b", ts=5, start=113, dur=20)
    program.launched("c", ts=200, start=209, dur=10)
    return program


def test_the_constraint_that_held_keeps_its_distance_and_the_others_get_the_usual_one():
    scene = scene_of(three_kernels())
    constraints = fitted(scene)

    assert (scene.schedule.usual_gap_ns, scene.schedule.usual_latency_ns) == (3_000, 9_000)
    assert bindings(scene) == ["LAUNCH", "QUEUE", "LAUNCH"]
    assert constraints.latency.tolist() == [10_000, 9_000, 9_000]  # b: 108 measured, but it did not hold
    assert constraints.gap.tolist() == [NEVER, 3_000, 3_000]  # c: 76 measured
    assert constraints.lag.tolist() == [NEVER] * 3
    assert constraints.slack.tolist() == [1_000, 0, 0]


def test_a_usual_distance_is_never_more_than_there_was_room_for():
    # d is launched at 215, c ends at 219, d starts at 221: 6 after the launch (usual 9), 2 after c (usual 3).
    # 215 + 9 = 224 is later than 219 + 3 = 222, so the launch held, at 6; the gap is 2 and not 3
    program = three_kernels()
    program.launched("d", ts=215, start=221, dur=5)
    constraints = fitted(scene_of(program))

    assert Binding(int(constraints.binding[3])) is Binding.LAUNCH
    assert (constraints.latency[3], constraints.gap[3], constraints.slack[3]) == (6_000, 2_000, 0)


def test_a_dependency_that_held_keeps_its_lag():
    # other runs until 300 on stream 8; d, launched at 225, starts at 304
    program = three_kernels()
    program.launched("other", ts=210, start=220, dur=80, stream=8)
    program.launch(RECORD, ts=212)
    program.launch(STREAM_WAIT, ts=214)
    program.launched("d", ts=225, start=304, dur=5)
    scene = scene_of(program)
    constraints, d = fitted(scene), scene.kernel("d")

    assert Binding(int(constraints.binding[d])) is Binding.DEPENDENCY
    assert constraints.lag[d] == 4_000
    assert constraints.latency[d] == 9_000
    assert constraints.slack[d] == 0


def test_what_was_launched_before_the_window_is_fixed_and_a_first_without_launch_is_bound_by_nothing():
    program = Program()
    program.kernel("carried", ts=0, dur=50)
    program.launched("a", ts=10, start=52, dur=10)
    program.kernel("lost", ts=100, dur=10, stream=8)
    scene = scene_of(program)

    assert dict(zip(scene.names(np.arange(3)), bindings(scene), strict=True)) == {
        "carried": "FIXED",
        "a": "QUEUE",
        "lost": "NOTHING",
    }
    assert fitted(scene).slack.tolist() == [0, 0, 0]  # the only gap between queued activities, 2, is the usual one


def test_a_start_well_inside_the_activity_before_it_follows_its_start():
    # A graph: b starts 30 after a, which runs from 10 to 110; c starts at 105, shortly before a's end at 110
    program = Program()
    call = program.launch("cudaGraphLaunch", ts=0)
    for name, start, dur in (("a", 10, 100), ("b", 40, 20)):
        program.kernel(name, ts=start, dur=dur, correlation=call)
    constraints = fitted(scene_of(program))

    assert constraints.beside.tolist() == [False, True]
    # Rules of thumb: b would have been ready at 10 + 1 after a's start, at 0 + 6 after the launch
    assert constraints.gap.tolist() == [NEVER, 30_000]
    assert constraints.latency.tolist() == [10_000, 6_000]
    assert constraints.slack.tolist() == [4_000, 29_000]

    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launched("b", ts=1, start=105, dur=20)
    constraints = fitted(scene_of(program))
    assert constraints.beside.tolist() == [False, False]
    assert constraints.gap.tolist() == [NEVER, -5_000]


def test_the_usual_lag_is_the_median_of_waits_that_nothing_else_explains():
    # Three rounds of 1,000: other on stream 8 until 100, d on stream 7 after 102, 104 and 130
    program = Program()
    for number, start in enumerate((102, 104, 130)):
        ts = 1_000 * number
        program.launched("other", ts=ts, start=ts + 10, dur=90, stream=8)
        program.launch(RECORD, ts=ts + 2)
        program.launch(STREAM_WAIT, ts=ts + 4)
        program.launched("d", ts=ts + 6, start=ts + start, dur=5)
    scene = scene_of(program)

    assert usual_distances(scene.activities, scene.schedule).lag == 4_000
    # Of the first round alone
    chosen = scene.activities.start < 1_000_000
    assert usual_distances(scene.activities, scene.schedule, chosen).lag == 2_000


def test_a_prediction_has_usual_distances_where_it_is_asked_for_and_fixed_times_elsewhere():
    scene = scene_of(three_kernels())
    usual = Distances(latency=7_000, gap=2_000, lag=500)
    constraints = predict(scene.activities, scene.schedule, usual, np.array([False, True, True]))

    assert [Binding(code).name for code in constraints.binding.tolist()] == ["FIXED", "QUEUE", "LAUNCH"]
    assert constraints.latency.tolist() == [10_000, 7_000, 7_000]
    assert constraints.gap.tolist() == [NEVER, 2_000, 2_000]
    assert constraints.slack.tolist() == [1_000, 0, 0]


def test_a_prediction_keeps_the_lag_of_a_device_that_drains():
    # a fills the device until 100 and b, ready at 36, starts at 95: it waited 5 µs less than a took
    program = Program()
    for ts in (1_000, 1_100, 1_200):
        program.launched("usual", ts=ts, start=ts + 6, dur=10, stream=20)
    program.launched("b0", ts=0, start=5, dur=10, stream=8)
    program.launched("a", ts=1, start=6, dur=94)
    program.launched("b", ts=30, start=95, dur=10, stream=8)
    scene = scene_of(program)
    usual = Distances(latency=6_000, gap=1_000, lag=2_000)
    constraints = predict(scene.activities, scene.schedule, usual, np.ones(6, dtype=bool))

    assert constraints.lag[scene.kernel("b")] == -5_000


def test_no_activity_has_no_constraints():
    program = Program()
    program.op("aten::mm", 0, 5)

    assert fitted(scene_of(program)).binding.tolist() == []
