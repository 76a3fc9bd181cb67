"""Steps: annotated, periodic, or the whole trace; and which step an activity belongs to. Times are µs in drawings."""

from __future__ import annotations

import time

import numpy as np
import pytest

from rooftrace.calltree import build_tree, collect_activities, find_steps
from rooftrace.calltree.steps import _period
from tests.support.trace_builder import TraceBuilder


def steps_of(builder):
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    return find_steps(trace, tree, activities)


def marked(names, *, tid=1, every=100, dur=90, method="annotation"):
    """A builder with one marker a name, a launch in the middle of each and its kernel soon after."""
    builder = TraceBuilder()
    for number, name in enumerate(names):
        getattr(builder, method)(name, every * number, dur, tid)
        builder.kernel("k", ts=every * number + 60, dur=5, correlation=builder.launch(ts=every * number + 40, tid=tid))
    return builder


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("ProfilerStep#3", "ProfilerStep#4"), id="torch.profiler"),
        pytest.param(("ProfilerStep*", "ProfilerStep*"), id="torch.profiler without numbers"),
        pytest.param(("execute_context_1(8)_generation_0(0)", "execute_context_0(0)_generation_4(4)"), id="vLLM"),
        pytest.param(
            (
                "execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086sqsq32sqsk55086)",
                "execute_33_context_1(sq9sk9sqsq81sqsk81)_generation_32(sq32sk55086sqsq32sqsk55086)",
            ),
            id="vLLM with counts",
        ),
        pytest.param(("step[DECODE bs=32]", "step[EXTEND bs=4 toks=900]"), id="SGLang"),
        pytest.param(("prefill[bs=1 tok=512]", "decode[bs=16 tok=16]"), id="ATOM"),
        pytest.param(("execute_diffusion_step_0", "execute_diffusion_step_1"), id="xDiT"),
    ],
)
@pytest.mark.parametrize("method", ["annotation", "op"], ids=["as annotation", "as op, the old spelling"])
def test_markers_of_profilers_and_engines_are_steps(names, method):
    steps = steps_of(marked(names, method=method))

    assert (steps.names, steps.source, steps.annotated) == (names, "annotation", True)
    assert steps.start.tolist() == [0, 100_000]
    assert steps.end.tolist() == [90_000, 190_000]
    assert steps.of_activity.tolist() == [0, 1]


@pytest.mark.parametrize(
    "name", ["Optimizer.step#AdamW.step", "decode", "step", "ProfilerStepX", "my execute_context_1", "stepping[DECODE"]
)
def test_other_annotations_are_no_steps(name):
    assert steps_of(marked((name, name))).source == "whole trace"


def test_the_profilers_steps_go_before_an_engines():
    builder = marked(("ProfilerStep#1", "ProfilerStep#2"))
    for number in range(6):
        builder.annotation(f"step[DECODE bs={number}]", 10 + 12 * number, 9)

    assert steps_of(builder).names == ("ProfilerStep#1", "ProfilerStep#2")


def test_a_marker_inside_another_and_one_written_twice_are_no_further_steps():
    #               0    10   20   30   40
    # execute_a    [-----------]
    # execute_a    [-----------]            written twice
    # execute_b      [---]                  nested
    # execute_c                 [-------]
    builder = TraceBuilder()
    builder.annotation("execute_context_a", 0, 25)
    builder.annotation("execute_context_a", 0, 25)
    builder.annotation("execute_context_b", 5, 10)
    builder.annotation("execute_context_c", 30, 15)

    assert steps_of(builder).names == ("execute_context_a", "execute_context_c")


def test_a_step_that_begins_a_moment_before_the_last_one_ends_is_still_a_step():
    # the profiler's clock is read twice: once to end a step, once to begin the next
    builder = TraceBuilder()
    for number in range(3):
        builder.annotation(f"ProfilerStep#{number}", 10 * number, 10.001)

    assert steps_of(builder).names == ("ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2")


def test_of_several_threads_the_one_with_most_markers_tells_the_steps():
    builder = marked(("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"), tid=2)
    builder.annotation("ProfilerStep#1", 3, 80, tid=1)
    builder.annotation("ProfilerStep#9", 103, 80, tid=1)

    assert steps_of(builder).names == ("ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3")


def test_a_kernel_belongs_to_the_step_that_launched_it_not_to_the_one_it_runs_in():
    #             0    10   20   30   40
    # steps      [--1-----][--2-----]
    # calls            [a]  [b]
    # kernels                    [a][b]
    builder = TraceBuilder()
    builder.annotation("ProfilerStep#1", 0, 20)
    builder.annotation("ProfilerStep#2", 20, 20)
    first, second = builder.launch(ts=15), builder.launch(ts=22)
    builder.kernel("a", ts=30, dur=4, correlation=first)
    builder.kernel("b", ts=35, dur=4, correlation=second)

    assert steps_of(builder).of_activity.tolist() == [0, 1]


def test_a_launch_on_another_thread_belongs_to_the_step_of_its_time():
    builder = marked(("ProfilerStep#1", "ProfilerStep#2"))
    builder.kernel("backward", ts=170, dur=5, correlation=builder.launch(ts=150, tid=9))

    assert steps_of(builder).of_activity.tolist() == [0, 1, 1]


def test_work_launched_before_the_first_step_or_the_window_belongs_to_none_and_lost_work_to_the_step_it_runs_in():
    #             0    10   20   30   40
    # steps                [--1-----][--2-
    # calls      [a]        [b]
    # stream 7   [c]  [a]        [b]   [l]
    builder = TraceBuilder()
    early = builder.launch(ts=1)
    builder.annotation("ProfilerStep#1", 20, 20)
    builder.annotation("ProfilerStep#2", 40, 20)
    late = builder.launch(ts=22)
    builder.kernel("c", ts=0, dur=3)
    builder.kernel("a", ts=10, dur=3, correlation=early)
    builder.kernel("b", ts=30, dur=3, correlation=late)
    builder.kernel("l", ts=45, dur=3)

    assert steps_of(builder).of_activity.tolist() == [-1, -1, 0, 1]


def test_what_is_launched_after_the_last_marker_belongs_to_the_last_step():
    builder = marked(("ProfilerStep#1", "ProfilerStep#2"))
    builder.kernel("late", ts=300, dur=5, correlation=builder.launch(ts=250))

    assert steps_of(builder).of_activity.tolist() == [0, 1, 1]


def kernels(names, *, device=0, start=0):
    builder = TraceBuilder()
    for number, name in enumerate(names):
        builder.kernel(name, ts=start + 10 * number, dur=5, device=device)
    return builder


STEP = ("embed", *("qkv", "attn", "mlp") * 4, "head")  # 14 kernels


@pytest.mark.parametrize("repeats", [3, 4, 9])
def test_a_sequence_of_kernels_that_repeats_three_times_or_more_is_as_many_steps(repeats):
    steps = steps_of(kernels(STEP * repeats))

    assert steps.source == "kernel period"
    assert not steps.annotated
    assert steps.names == tuple(f"step {number}" for number in range(repeats))
    assert steps.start.tolist() == [140_000 * number for number in range(repeats)]  # 14 kernels, 10 µs each
    assert steps.end.tolist()[:-1] == steps.start.tolist()[1:]
    assert steps.end.tolist()[-1] == 140_000 * repeats - 5_000
    assert steps.of_activity.tolist() == [number for number in range(repeats) for _ in STEP]


def test_steps_that_differ_in_a_kernel_here_and_there_are_steps():
    names = list(STEP * 20)
    names[37] = "another"  # two of 266 comparisons fail: 99.2 % agree

    assert len(steps_of(kernels(names)).names) == 20


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(STEP * 2, id="twice is not thrice"),
        pytest.param(("a", "b", "c") * 90, id="a loop of three kernels is too short to be a step"),
        pytest.param(("a",) * 300, id="nor is a single kernel"),
        pytest.param(("a", "b", "c", "d", "e") * 3, id="15 kernels are too few"),
        pytest.param(tuple(f"k{number}" for number in range(60)), id="nothing repeats"),
    ],
)
def test_without_a_period_the_whole_trace_is_one_step(names):
    steps = steps_of(kernels(names))

    assert (steps.names, steps.source) == (("whole trace",), "whole trace")
    assert set(steps.of_activity.tolist()) == {0}


LAYER = ("norm", "qkv", "rope", "attn", "out", "add", "norm", "gate_up", "silu", "down", "add")  # 11 kernels


@pytest.mark.parametrize(
    "names",
    [
        pytest.param(("embed", *LAYER * 36, "norm", "head", "argmax"), id="embedding and head"),
        pytest.param(("norm", "embed", *LAYER * 36, "norm", "head", "argmax"), id="begins like a layer"),
        pytest.param(("embed", *LAYER * 36), id="embedding only"),
        pytest.param((*LAYER * 36, "norm", "head", "argmax"), id="head only"),
    ],
)
def test_the_layers_of_one_forward_pass_are_not_taken_for_steps(names):
    assert steps_of(kernels(names)).source == "whole trace"


def test_three_forward_passes_of_36_layers_are_three_steps():
    steps = steps_of(kernels(("embed", *LAYER * 36, "norm", "head", "argmax") * 3))

    assert steps.names == ("step 0", "step 1", "step 2")


def test_work_on_other_devices_belongs_to_the_step_of_the_busiest_device_in_which_it_starts():
    builder = kernels(STEP * 3)
    builder.kernel("other", ts=150, dur=5, device=1)

    assert steps_of(builder).of_activity.tolist() == [*([0] * 14), *([1] * 14), *([2] * 14), 1]


def test_a_huge_device_number_costs_no_memory():
    assert steps_of(kernels(STEP * 3, device=2_000_000_000)).names == ("step 0", "step 1", "step 2")


def test_the_whole_trace_reaches_from_the_first_event_to_the_last_end():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9)
    builder.kernel("k", ts=5, dur=20)

    steps = steps_of(builder)

    assert (steps.start.tolist(), steps.end.tolist()) == ([0], [25_000])


def test_a_trace_without_events_of_either_side_has_one_step():
    builder = TraceBuilder()
    builder.gpu_annotation("x", 0, 5)

    steps = steps_of(builder)

    assert (steps.names, steps.of_activity.size) == (("whole trace",), 0)


def test_a_long_sequence_in_which_the_first_kernel_recurs_everywhere_is_searched_in_reasonable_time():
    # every other kernel is like the first: 33,000 candidates, and 0.1 ms to compare the whole sequence with one
    names = np.random.default_rng(7).integers(0, 2, 200_000).astype(np.int32)
    started = time.perf_counter()

    assert _period(names) is None
    assert time.perf_counter() - started < 2
