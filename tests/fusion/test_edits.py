from __future__ import annotations

import numpy as np

from rooftrace.fusion import find_candidates
from rooftrace.fusion.edits import HostCalls, kernel_edit
from tests.fusion.programs import MUL, Model, X, inputs_of


def edit(durations, fused):
    dur = np.array(durations, dtype=np.int64)
    shortened, saved, removed = kernel_edit(np.arange(dur.size)[None, :], dur, fused)
    return shortened.tolist(), saved.tolist(), sorted(removed.tolist())


def test_the_first_kernel_becomes_the_fused_one():
    assert edit([30, 40, 20], 25) == ([0], [5], [1, 2])


def test_where_the_first_is_too_short_the_longest_stands_for_the_fused_kernel():
    assert edit([10, 40, 20], 25) == ([1], [15], [0, 2])


def test_where_none_is_long_enough_several_stand_for_it():
    # fused 50: 40 stays whole, 20 gives up 40 + 20 - 50 = 10
    assert edit([10, 40, 20], 50) == ([2], [10], [0])


def test_an_epilogue_without_traffic_removes_its_kernels():
    assert edit([30], 0) == ([], [], [0])


def test_an_instance_as_fast_as_the_fused_kernel_stays():
    assert edit([10, 10], 25) == ([], [], [])


def test_host_time_is_cut_for_all_calls_but_the_first_with_the_ops_around_them():
    model = Model()
    with model.module("Head_0"):
        model.call("aten::cos", 30, X)  # 11 to 19 µs
        model.op("aten::tanh_outer", model.host, 12)  # around the second call: 21 to 33 µs
        model.host += 1
        model.call("aten::tanh", 30, X)
    run = inputs_of(model)
    result = find_candidates(run)

    ((_, start, end),) = HostCalls(run, result.calls).cuts(result.candidates)

    base = int(run.trace.base_ns)
    assert ((start + base).tolist(), (end + base).tolist()) == ([21_000], [33_000])


def test_a_call_that_loads_a_module_keeps_its_host_time():
    model = Model()
    for number in range(21):
        with model.module(f"Head_{number}"):
            model.call("aten::cos", 30, X)
            slow = 2000 if number == 0 else 8
            model.op("aten::mul", model.host, slow, dims=[X[0], X[0]], types=["float"] * 2, concrete=["", ""])
            correlation = model.launch(ts=model.host + 2, dur=3)
            model.kernel(MUL, ts=model.gpu, dur=30, correlation=correlation)
            model.gpu, model.host = model.gpu + 30, model.host + slow + 2
    run = inputs_of(model)
    result = find_candidates(run)

    ((_, start, end),) = HostCalls(run, result.calls).cuts(result.candidates)

    assert (start.size, int((end - start).sum())) == (20, 160_000)  # 20 calls of 8 µs, not the one of 2 ms
