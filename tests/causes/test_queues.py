"""Depth of launch queues, launch latencies and times of blocking calls. Times are µs in the drawings."""

from __future__ import annotations

import numpy as np

from rooftrace import calltree
from rooftrace.causes import blocked_times, launch_delays, queue_curve, queue_depths
from rooftrace.schedule import build_schedule
from tests.causes.runs import Run


def parts_of(run):
    trace = run.build()
    tree = calltree.build_tree(trace)
    activities = calltree.collect_activities(trace, tree)
    return tree, activities, build_schedule(trace, tree, activities)


def full_queue():
    #          0  1  2            100   200
    # host     a  b  c
    # kernels     [----a----------][-b-][-c-]
    run = Run()
    run.run("a", at=0, start=5, dur=95)
    run.run("b", at=10, start=100, dur=100)
    run.run("c", at=20, start=200, dur=100)
    return run


def test_the_depth_at_a_launch_counts_what_is_launched_and_not_begun():
    _, activities, schedule = parts_of(full_queue())

    # a: itself; b: a has begun, so itself; c: b and itself
    assert queue_depths(activities, schedule, np.arange(3)).tolist() == [1, 1, 2]


def test_the_curve_runs_over_the_span():
    _, activities, schedule = parts_of(full_queue())
    times, depths = queue_curve(activities, schedule, 0, points=3)

    assert times.tolist() == [5_000, 152_500, 300_000]
    assert depths.tolist() == [0, 1, 0]  # a begins; c waits; nothing
    assert queue_curve(activities, schedule, 9)[0].size == 0


def test_only_launches_that_found_an_empty_queue_tell_the_latency():
    _, activities, schedule = parts_of(full_queue())

    assert launch_delays(activities, schedule, np.arange(3)).tolist() == [5_000]


def test_a_call_blocks_until_what_it_waited_for_has_ended():
    run = full_queue()
    run.launch("cudaStreamSynchronize", ts=50, dur=260)  # c ends at 300, the call returns at 310
    run.launch("cudaStreamSynchronize", ts=400, dur=7)
    tree, activities, schedule = parts_of(run)

    assert blocked_times(tree, activities, schedule.waits).tolist() == [250_000, 0]
