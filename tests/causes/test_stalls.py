"""Calls that stood still though they usually take no time, whatever the GPU did. Times are µs."""

from __future__ import annotations

import pytest

from rooftrace.causes import find_stalls
from tests.analyzers.workloads import workload_of
from tests.causes.runs import Run


def views(*, stalled=5000, count=10, op="aten::as_strided"):
    """Ops of 10 µs every 20 µs, the last of which takes `stalled`, and kernels all the while."""
    #           0  20  40 …       200           5200
    # ops       [] []  []         [as_strided   ]
    # kernel    [--------------------------------------]
    run = Run()
    run.run(at=-20, dur=20_000)
    for number in range(count):
        run.op(op, 20 * number, 10)
    run.op(op, 20 * count, stalled)
    return run


def stalls_of(run):
    workload = workload_of(run)
    found = find_stalls(workload.trace, workload.tree, workload.activities, workload.schedule, workload.causes)
    return [
        (workload.trace.names[workload.tree.name[node]], dur) for node, dur in zip(found.node, found.dur, strict=True)
    ]


def test_a_trivial_op_that_takes_milliseconds_stood_still_for_all_but_its_usual_time():
    assert stalls_of(views()) == [("aten::as_strided", 4_990_000)]


@pytest.mark.parametrize(("stalled", "count"), [(1100, 1), (900, 0)])
def test_a_stall_lasts_a_millisecond_at_least(stalled, count):
    assert len(stalls_of(views(stalled=stalled))) == count


def test_where_calls_mostly_take_long_none_stands_still():
    # 5 ms are less than 20 times 300 µs
    run = Run()
    run.run(at=-20, dur=20_000)
    for number in range(10):
        run.op("aten::sort", 400 * number, 300)
    run.op("aten::sort", 4000, 5000)

    assert stalls_of(run) == []


def test_what_few_calls_usually_take_nobody_knows():
    assert stalls_of(views(count=3)) == []


def test_an_op_in_which_something_happens_does_not_stand_still():
    run = views()
    for ts in range(300, 5100, 100):
        run.python("<built-in function f>", ts, 5)

    assert stalls_of(run) == []


def test_calls_that_wait_copy_allocate_or_communicate_have_their_own_reasons():
    for name in ("cudaMalloc", "cudaMemcpyAsync", "cudaStreamSynchronize"):
        run = views(stalled=10)
        for number in range(10):
            run.launch(name, ts=400 + 20 * number, dur=5)
        run.launch(name, ts=700, dur=5000)

        assert stalls_of(run) == [], name
    assert stalls_of(views(op="c10d::allreduce_")) == []


def test_threads_that_launch_nothing_do_not_count():
    run = views(stalled=10)
    for number in range(10):
        run.op("aten::view", 20 * number, 10, tid=5)
    run.op("aten::view", 300, 5000, tid=5)

    assert stalls_of(run) == []
