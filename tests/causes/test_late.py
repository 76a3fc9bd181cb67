"""Gaps whose next activity was launched too late: what the host did instead. Times in the drawings are µs."""

from __future__ import annotations

import pytest

from rooftrace import causes
from rooftrace.causes import Cause
from tests.causes.runs import Run, causes_of, longest


def late(until=1000, **last):
    """A run whose device has nothing to do from 15 µs on: its next kernel is launched at `until`."""
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.run(at=until, **last)
    return run


def test_ops_back_to_back_that_launch_nothing_in_time_are_launch_bound():
    #          0      200    400    600    800    1000
    # ops      [mm][view][view][view] …           [mm]
    # kernels   [k]                                 [k]
    run = late()
    for ts in range(10, 1000, 20):
        run.op("aten::view", ts, 18)

    assert longest(run) == {
        "cause": "launch_bound",
        "us": 990.0,  # 15 to 1005
        "call": "cudaLaunchKernel",
        "op": "aten::mm",
        "frame": None,
        "reason": "",
    }


def test_a_short_gap_is_dispatch_even_without_ops():
    # 99 µs of Python between two launches is slow dispatch, 200 are something else
    assert longest(late(until=114))["cause"] == "launch_bound"
    assert longest(late(until=215))["cause"] == "host_code"


def test_time_without_ops_is_host_code_and_its_frame_is_named():
    run = late()
    run.python("train.py(10): main", -200, 2000)
    run.python("train.py(30): tokenize", 50, 900)
    run.python("json/decoder.py(5): decode", 60, 10)

    found = longest(run)
    assert (found["cause"], found["frame"]) == ("host_code", "train.py(30): tokenize")


def test_a_stall_inside_an_op_is_host_code_and_names_the_op():
    run = late(until=5000)
    run.op("aten::sort", 20, 4900)

    found = longest(run)
    assert (found["cause"], found["call"], found["op"]) == ("host_code", "aten::sort", "aten::sort")


def test_a_blocking_call_that_kept_the_host_from_launching_ahead_is_synchronisation():
    #          0        100       200     250
    # host     [k][item: sync-----]       [k]
    # kernels   [------k---------]          [k]
    # gap                        [   60     ]
    run = Run()
    run.warm_up()
    run.run(at=0, dur=180)
    run.op("aten::item", 5, 190)
    run.op("aten::_local_scalar_dense", 6, 188)
    run.launch("cudaStreamSynchronize", ts=10, dur=180)
    run.python("train.py(7): log", 4, 192)
    run.run(at=240)

    found = longest(run)
    assert (found["cause"], found["us"]) == ("synchronisation", 60.0)  # 185 to 245
    assert (found["call"], found["op"]) == ("cudaStreamSynchronize", "aten::_local_scalar_dense")
    assert found["frame"] == "train.py(7): log"


def test_a_blocking_call_that_hardly_waited_is_not_to_blame_for_a_long_gap():
    # the call blocks for some 10 µs, the gap lasts 500
    run = Run()
    run.warm_up()
    run.run(at=0, dur=20)
    run.launch("cudaStreamSynchronize", ts=10, dur=20)
    run.run(at=520)

    assert longest(run)["cause"] == "host_code"


def test_the_waits_that_drained_the_queue_are_told_with_the_gap():
    run = Run()
    run.warm_up()
    run.run(at=0, dur=180)
    run.launch("cudaStreamSynchronize", ts=10, dur=180)
    run.run(at=240)

    _, _, found = causes_of(run)
    gap = int(found.dur.argmax())
    assert found.wait_gap.tolist() == [gap]
    assert found.blocked_ns[gap] >= 170_000


@pytest.mark.parametrize(
    ("cause", "event"),
    [
        ("data_loading", lambda run: run.annotation("enumerate(DataLoader)#_MultiIter.__next__", 20, 900)),
        ("data_loading", lambda run: run.python("torch/utils/data/dataloader.py(700): __next__", 20, 900)),
        ("garbage_collection", lambda run: run.python("Python GC", 20, 900)),
        ("garbage_collection", lambda run: run.python("<built-in function collect>", 20, 900)),
        ("memory_management", lambda run: run.launch("cudaMalloc", ts=20, dur=900)),
        ("memory_management", lambda run: run.launch("hipFree", ts=20, dur=900)),
        ("memory_management", lambda run: run.launch("cuMemCreate", ts=20, dur=900, cat="cuda_driver")),
        ("compilation", lambda run: run.launch("cuModuleLoadData", ts=20, dur=900, cat="cuda_driver")),
        ("compilation", lambda run: run.launch("hipModuleLoadDataEx", ts=20, dur=900)),
        ("compilation", lambda run: run.annotation("_compile.compile_inner (dynamo_timed)", 20, 900)),
        ("compilation", lambda run: run.python("torch/_dynamo/convert_frame.py(500): __call__", 20, 900)),
        ("compilation", lambda run: run.python("triton/compiler/compiler.py(200): compile", 20, 900)),
        ("profiler", lambda run: run.python("torch/profiler/profiler.py(821): step", 20, 900)),
        ("communication_setup", lambda run: run.launch("ncclCommInitRankConfig", ts=20, dur=900)),
        (
            "communication_setup",
            lambda run: run.python("torch/distributed/distributed_c10d.py(9): _new_process_group_helper", 20, 900),
        ),
    ],
)
def test_special_work_on_the_launching_thread_is_told_by_its_name(cause, event):
    run = late()
    event(run)

    assert longest(run)["cause"] == cause


@pytest.mark.parametrize(("dur", "cause"), [(500, "memory_management"), (480, "host_code")])
def test_special_work_has_to_cover_at_least_half_of_the_gap(dur, cause):
    # the gap lasts from 15 to 1005: half are 495 µs
    run = late()
    run.launch("cudaMalloc", ts=20, dur=dur)

    assert longest(run)["cause"] == cause


def test_of_two_kinds_of_special_work_the_longer_one_decides():
    run = late()
    run.python("torch/utils/data/dataloader.py(700): __next__", 20, 950)
    run.python("Python GC", 100, 700)

    assert longest(run)["cause"] == "data_loading"


def test_overheads_without_a_thread_count_for_every_thread():
    for name, cause in (("Activity Buffer Request", "profiler"), ("Lazy Function Loading", "compilation")):
        run = late()
        run.event(ph="X", cat="overhead", name=name, pid=-1, tid=0, ts=30, dur=900, args={})

        assert longest(run)["cause"] == cause


def test_the_call_that_launches_a_graph_may_fill_the_gap_itself():
    #          0    20                 620
    # host     [k] [cudaGraphLaunch     ]
    # kernels   [k]                  [g1][g2]
    run = Run()
    run.warm_up()
    run.run(at=0)
    graph = run.launch("cudaGraphLaunch", ts=20, dur=600)
    for ts in (600, 610):
        run.kernel("g", ts=ts, dur=10, correlation=graph)

    found = longest(run)
    assert (found["cause"], found["us"], found["call"]) == ("graph_launch", 585.0, "cudaGraphLaunch")


def test_the_first_launch_of_a_kernel_that_takes_long_loads_it():
    run = late(until=50, kernel="new", call_dur=800, start=845)

    found = longest(run)
    assert (found["cause"], found["call"]) == ("compilation", "cudaLaunchKernel")


def test_one_slow_first_launch_among_many_quick_ones_loads_nothing():
    run = Run()
    for number in range(20):
        run.run(f"k{number}", at=20 * number)
    run.run("new", at=450, call_dur=800, start=1245)

    assert longest(run)["cause"] == "launch_bound"


def test_a_later_launch_that_takes_long_is_a_slow_launch():
    run = late(until=50, call_dur=800, start=845)

    assert longest(run)["cause"] == "launch_bound"


def test_the_hand_over_of_a_collective_counts_where_the_gap_ends_at_one():
    for kernel, cause in (
        ("ncclDevKernel_AllReduce_Sum_f32_RING_LL", "communication_setup"),
        ("k", "launch_bound"),
    ):
        run = late(kernel=kernel, op=None)
        run.op("c10d::allreduce_", 20, 990)

        assert longest(run)["cause"] == cause


def test_a_thread_that_was_handed_the_work_is_excused_by_what_the_other_thread_did():
    #           0                      900  1000
    # thread 1  [k][ data loading      ]
    # thread 2                            [k]
    run = Run()
    run.warm_up()
    run.run(at=0)
    run.annotation("enumerate(DataLoader)#_MultiIter.__next__", 20, 900)
    run.run(at=1000, tid=2)

    assert longest(run)["cause"] == "data_loading"


def test_ops_on_the_thread_before_the_hand_over_are_dispatch():
    run = Run()
    run.warm_up()
    run.run(at=0)
    for ts in range(10, 1000, 20):
        run.op("aten::view", ts, 18)
    run.run(at=1000, tid=2)

    assert longest(run)["cause"] == "launch_bound"


def test_without_any_op_recorded_a_long_gap_is_unknown_and_a_short_one_is_dispatch():
    run = Run()
    for at in (0, 20, 40, 60, 1000):
        run.run(at=at, op=None)

    _, _, found = causes_of(run)
    assert [Cause(code).name for code in found.cause.tolist()] == ["LAUNCH_BOUND"] * 3 + ["UNKNOWN"]
    assert causes.REASON_NAMES[int(found.reason[3])] == "no ops recorded on the launching thread"


def test_the_stretches_to_blame_are_those_of_all_responsible_calls():
    # two allocations of 300 and 400 µs in one gap
    run = late()
    run.launch("cudaMalloc", ts=20, dur=300)
    run.launch("cudaMalloc", ts=500, dur=400)

    _, _, found = causes_of(run)
    gap = int(found.dur.argmax())
    mine = found.pieces.gap == gap
    zero = int(found.start[gap]) - 15_000  # the gap begins at 15 µs
    assert (found.pieces.start[mine] - zero).tolist() == [20_000, 500_000]
    assert (found.pieces.end[mine] - zero).tolist() == [320_000, 900_000]
