"""Gaps whose next activity was queued, or whose launch is not known. Times in the drawings are µs."""

from __future__ import annotations

from rooftrace.causes import Cause
from tests.causes.runs import Run, causes_of, longest


def test_an_activity_that_was_launched_well_before_the_gap_waited_for_the_device():
    #          0    100  200  300  400
    # host     [a][b]
    # kernels  [-----a---]      [-b-]
    # gap                [ 150 ]
    run = Run()
    run.warm_up()
    run.run("k", at=10, dur=200)
    run.run("k", at=20, start=365, dur=10)

    assert longest(run) == {
        "cause": "device",
        "us": 150.0,  # 10 + 5 + 200 to 365
        "call": "cudaLaunchKernel",
        "op": "aten::mm",
        "frame": None,
        "reason": "",
    }


def test_a_launch_shortly_before_the_gap_leaves_it_to_the_device_if_most_of_it_is_no_latency():
    # b is launched as the gap begins and could start 5 µs later; it starts after 60: 55 of 60 are not the host's
    run = Run()
    run.warm_up()
    run.run("k", at=10, dur=100)
    run.run("k", at=115, start=175)

    assert longest(run)["cause"] == "device"


def test_an_activity_that_waited_for_another_stream_has_a_dependency():
    #           0    100  200  300
    # host      [a][b][record][wait][c]
    # stream 7  [---a---]            [c]      c starts 40 µs after b has ended
    # stream 9     [---b-------]
    run = Run()
    run.warm_up()
    run.run("k", at=10, dur=100)
    run.run("k", at=20, dur=200, stream=9)
    record = run.launch("cudaEventRecord", ts=30)
    wait = run.launch("cudaStreamWaitEvent", ts=32)
    run.sync("Stream Wait Event", ts=32, stream=7, correlation=wait, wait_stream=9, wait_record=record)
    run.run("k", at=40, start=265)

    found = longest(run)
    assert (found["cause"], found["us"]) == ("dependency", 40.0)  # 20 + 5 + 200 to 265


def test_what_the_dependency_ended_long_ago_does_not_explain_is_the_devices():
    # as above, but c starts 5 ms after b has ended
    run = Run()
    run.warm_up()
    run.run("k", at=20, dur=200, stream=9)
    record = run.launch("cudaEventRecord", ts=30)
    wait = run.launch("cudaStreamWaitEvent", ts=32)
    run.sync("Stream Wait Event", ts=32, stream=7, correlation=wait, wait_stream=9, wait_record=record)
    run.run("k", at=40, start=5225)

    assert longest(run)["cause"] == "device"


def test_the_kernels_of_a_graph_after_its_first_one_are_queued():
    #          0      200   300  400  500
    # host     [graph launch ]
    # kernels               [k1]  [k2]
    run = Run()
    run.warm_up()
    graph = run.launch("cudaGraphLaunch", ts=5, dur=200)
    run.kernel("g1", ts=200, dur=20, correlation=graph)
    run.kernel("g2", ts=520, dur=20, correlation=graph)

    assert longest(run)["cause"] == "device"  # 300 µs between the two


def test_a_gap_before_work_of_before_the_window_is_the_windows():
    run = Run()
    run.kernel("carried", ts=0, dur=10)
    run.kernel("carried", ts=500, dur=10)
    run.run("k", at=520)

    found = longest(run)
    assert (found["cause"], found["us"], found["call"]) == ("before_window", 490.0, None)


def test_a_gap_before_an_activity_whose_launch_is_lost_is_unknown():
    run = Run()
    run.warm_up()
    run.kernel("lost", ts=500, dur=10)
    run.run("k", at=520)

    found = longest(run)
    assert (found["cause"], found["reason"]) == ("unknown", "no launch recorded")


def test_a_launch_after_the_start_of_its_activity_explains_nothing():
    run = Run()
    run.warm_up()
    run.run("k", at=510, start=500)

    found = longest(run)
    assert (found["cause"], found["reason"]) == ("unknown", "launch recorded after its activity began")


def test_a_trace_of_nothing_but_kernels_is_unknown():
    run = Run()
    for ts in (0, 100, 250):
        run.kernel("k", ts=ts, dur=10)

    _, _, found = causes_of(run)
    assert found.cause.tolist() == [int(Cause.UNKNOWN)] * 2


def test_gaps_of_every_device_are_told_apart():
    run = Run()
    for device in (3, 1):
        for ts in (0, 100):
            run.kernel("k", ts=ts, dur=10 * device, device=device)

    _, _, found = causes_of(run)
    assert found.device.tolist() == [1, 3]
    assert found.dur.tolist() == [90_000, 70_000]
    assert found.idle_ns(3) == {Cause.UNKNOWN: 70_000}


def test_a_trace_without_a_gpu_has_no_gaps():
    run = Run()
    run.op("aten::mm", 0, 10)

    _, _, found = causes_of(run)
    assert found.start.size == 0
