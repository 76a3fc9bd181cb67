"""Op groups: which instances are the same work, and what they took. Times are µs in the drawings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.calltree import (
    Link,
    Work,
    build_context,
    build_tree,
    collect_activities,
    group_ops,
    kernel_totals,
    part_of,
    quarantine,
)
from tests.support.trace_builder import TraceBuilder

MM = {"dims": [[4, 8], [8, 2]], "types": ["float", "float"], "strides": [[8, 1], [2, 1]], "concrete": ["", ""]}


def grouped(builder):
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    quarantine(activities, trace.names)
    return trace, activities, group_ops(trace, tree, build_context(trace, tree), activities)


def groups_of(builder):
    """(op, instances, kernel µs) of each group."""
    return [(group.name, group.count, group.kernel_ns / 1000) for group in grouped(builder)[2]]


def call(builder, ts, name="aten::mm", kernels=("gemm",), dur=5, **inputs):
    """An op of 10 µs that launches kernels one after the other, each 20 µs later on the device."""
    builder.op(name, ts, 10, **inputs)
    for number, kernel in enumerate(kernels):
        launched = builder.launch(ts=ts + 1 + 2 * number)
        builder.kernel(kernel, ts=ts + 20 + dur * number, dur=dur, correlation=launched)


def twice(first, second):
    """A builder with two calls of aten::mm whose inputs differ as given."""
    builder = TraceBuilder()
    call(builder, 0, **{**MM, **first})
    call(builder, 100, **{**MM, **second})
    return builder


def test_calls_of_one_name_and_equal_inputs_are_one_group():
    assert groups_of(twice({}, {})) == [("aten::mm", 2, 10)]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({}, {"dims": [[4, 8], [8, 3]]}, id="shapes"),
        pytest.param({}, {"types": ["float", "c10::BFloat16"]}, id="dtypes"),
        pytest.param({}, {"strides": [[1, 4], [2, 1]]}, id="order of the strides"),
        pytest.param({}, {"strides": [[8, 1], [0, 1]]}, id="a broadcast operand"),
        pytest.param({"concrete": ["", "1"]}, {"concrete": ["", "2"]}, id="an integer argument"),
        pytest.param({"concrete": ["", "True"]}, {"concrete": ["", "False"]}, id="a boolean argument"),
        pytest.param({"concrete": ["", "[1, 2]"]}, {"concrete": ["", "[2, 1]"]}, id="a list argument"),
        pytest.param({}, {"kernels": ("other",)}, id="kernels"),
        pytest.param({}, {"kernels": ("gemm", "splitk_reduce")}, id="number of distinct kernels"),
        pytest.param({}, {"name": "aten::bmm"}, id="names"),
    ],
)
def test_calls_that_differ_in_what_makes_the_work_are_groups_apart(first, second):
    assert len(groups_of(twice(first, second))) == 2


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param({"concrete": ["", "0.1"]}, {"concrete": ["", "0.25"]}, id="a float argument"),
        pytest.param({"concrete": ["", "1e-05"]}, {"concrete": ["", "-3.5e+10"]}, id="a float with an exponent"),
        pytest.param({"concrete": ["", "-inf"]}, {"concrete": ["", "0."]}, id="infinity"),
        pytest.param({}, {"strides": [[16, 1], [64, 1]]}, id="other strides in the same order"),
        pytest.param({}, {"kernels": ("gemm", "gemm")}, id="the same kernel twice"),
        pytest.param({}, {"dur": 9}, id="another duration"),
    ],
)
def test_calls_that_differ_in_anything_else_are_one_group(first, second):
    assert len(groups_of(twice(first, second))) == 1


def test_strides_of_dimensions_of_size_one_mean_nothing():
    # both hold 8 elements in a row; a dimension of size one may have any stride
    builder = twice(
        {"dims": [[8, 1], [1, 8]], "strides": [[1, 1], [8, 1]]}, {"dims": [[8, 1], [1, 8]], "strides": [[1, 8], [1, 1]]}
    )

    assert groups_of(builder) == [("aten::mm", 2, 10)]


def test_the_same_op_in_forward_and_backward_is_two_groups():
    builder = TraceBuilder()
    call(builder, 0, **MM)
    builder.op("MmBackward0", 100, 30)
    call(builder, 105, **MM)

    assert sorted((group.phase, group.count) for group in grouped(builder)[2]) == [("backward", 1), ("forward", 1)]


def test_an_instance_is_busy_while_any_of_its_kernels_runs():
    #             0    5    10   15   20   25
    # stream 7             [---a---]
    # stream 9                 [--b--]
    # stream 7                             [c]
    # busy                 [---------]     [-]     20 - 10 + 3
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9, **MM)
    for name, ts, dur, stream in (("a", 10, 8, 7), ("b", 14, 6, 9), ("c", 24, 3, 7)):
        builder.kernel(name, ts=ts, dur=dur, stream=stream, correlation=builder.launch(ts=1))
    (group,) = grouped(builder)[2]

    assert group.instance_busy.tolist() == [13_000]
    assert group.busy_ns == 13_000
    assert group.kernel_ns == 17_000  # 8 + 6 + 3
    assert group.count == 1
    assert group.activities.size == 3


def test_an_op_with_a_cost_gathers_the_kernels_of_the_ops_below_it():
    builder = TraceBuilder()
    builder.op("aten::addmm", 0, 30, **MM)
    call(builder, 2, "aten::copy_", ("copy_kernel",))
    builder.kernel("gemm", ts=60, dur=7, correlation=builder.launch(ts=20))
    trace, _, groups = grouped(builder)

    assert [(g.name, g.category, g.count, g.kernel_ns) for g in groups] == [("aten::addmm", "gemm", 1, 12_000)]
    assert [trace.names[code] for code in groups[0].kernel_codes] == ["gemm", "copy_kernel"]  # most time first


def test_kernels_launched_outside_any_op_are_grouped_by_name_under_their_own_category():
    builder = TraceBuilder()
    builder.annotation("step", 0, 50)
    for ts, name in ((1, "ampere_sgemm_128x64_tn"), (3, "ampere_sgemm_128x64_tn"), (5, "my_own_kernel")):
        builder.kernel(name, ts=ts + 20, dur=2, correlation=builder.launch(ts=ts))
    groups = grouped(builder)[2]

    assert [(g.category, g.count, g.node, g.inputs, g.phase) for g in groups] == [
        ("gemm", 2, -1, None, "forward"),
        ("generic", 1, -1, None, "forward"),
    ]


def test_carry_in_and_lost_kernels_are_groups_apart_from_linked_ones_of_the_same_name():
    builder = TraceBuilder()
    builder.kernel("k", ts=0, dur=4)  # before the first linked one of its stream
    builder.kernel("k", ts=20, dur=2, correlation=builder.launch(ts=10))
    builder.kernel("k", ts=30, dur=3)
    groups = grouped(builder)[2]

    assert [(g.link, g.kernel_ns) for g in groups] == [
        (Link.CARRY_IN, 4_000),
        (Link.LOST, 3_000),
        (Link.CORRELATION, 2_000),
    ]


def test_kernels_replayed_from_a_graph_are_groups_apart():
    builder = TraceBuilder()
    builder.kernel("k", ts=20, dur=2, correlation=builder.launch(ts=0))
    graph = builder.launch("cudaGraphLaunch", ts=2)
    for ts in (30, 40, 50):
        builder.kernel("k", ts=ts, dur=2, correlation=graph)

    assert [(g.graph, g.count) for g in grouped(builder)[2]] == [(True, 3), (False, 1)]


def test_the_op_around_a_graphs_launch_does_not_own_the_kernels_of_the_graph():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10, **MM)
    graph = builder.launch("cudaGraphLaunch", ts=2)
    for ts in (30, 40):
        builder.kernel("k", ts=ts, dur=2, correlation=graph)

    assert [(g.name, g.count, g.node, g.inputs) for g in grouped(builder)[2]] == [("k", 2, -1, None)]


def test_communication_and_copies_are_in_no_group_and_a_memset_is():
    builder = TraceBuilder()
    builder.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL()", ts=0, dur=9)
    builder.memcpy("HtoD", ts=10, dur=9)
    builder.memset(ts=20, dur=9)

    assert [(g.category, g.count) for g in grouped(builder)[2]] == [("memory", 1)]


def test_an_op_nobody_knows_takes_the_category_of_its_kernels_but_not_of_a_copy_among_them():
    builder = TraceBuilder()
    builder.op("mylib::project", 0, 10)
    for ts, name in ((20, "__amd_rocclr_fillBufferAligned"), (30, "ampere_sgemm_128x64_tn")):
        builder.kernel(name, ts=ts, dur=3, correlation=builder.launch(ts=1))

    assert [(g.name, g.category) for g in grouped(builder)[2]] == [("mylib::project", "gemm")]


def test_the_example_of_a_group_is_its_slowest_instance_and_modules_share_its_time():
    builder = TraceBuilder()
    for number, dur in enumerate((5, 9, 7)):
        ts = 100 * number
        builder.python(f"nn.Module: Linear_{number % 2}", ts, 50)
        call(builder, ts + 1, dur=dur, **MM)
    trace = builder.build()
    tree = build_tree(trace)
    context = build_context(trace, tree)
    (group,) = group_ops(trace, tree, context, collect_activities(trace, tree))

    assert int(tree.start[group.node]) == 101_000  # the second call, of 9 µs
    assert {context.module_paths[path]: ns for path, ns in group.module_ns.items()} == {
        ("Linear_0",): 12_000,  # 5 + 7
        ("Linear_1",): 9_000,
    }


def test_recomputed_time_is_an_of_which():
    builder = TraceBuilder()
    call(builder, 0, **MM, dur=5)
    builder.python("torch/utils/checkpoint.py(1100): recompute_fn", 100, 50)
    call(builder, 101, **MM, dur=7)
    (group,) = grouped(builder)[2]

    assert (group.kernel_ns, group.recompute_ns) == (12_000, 7_000)


def test_groups_stand_in_order_of_kernel_time_then_name():
    builder = TraceBuilder()
    for ts, name, dur in ((0, "aten::mm", 5), (100, "aten::bmm", 5), (200, "aten::add", 6)):
        call(builder, ts, name, dur=dur)

    assert [name for name, _, _ in groups_of(builder)] == ["aten::add", "aten::bmm", "aten::mm"]


def test_kernel_totals_list_each_kernel_once_most_time_first():
    codes = np.array([3, 1, 3, 2], dtype=np.int32)
    durations = np.array([5, 9, 5, 10], dtype=np.int64)

    # 3 and 2 take 10 each: the smaller code first
    assert list(kernel_totals(codes, durations)) == [(2, 1, 10), (3, 2, 10), (1, 1, 9)]


def test_no_kernels_no_groups():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)

    assert groups_of(builder) == []


CALLS = st.lists(
    st.tuples(
        st.sampled_from(("aten::mm", "aten::add", "mylib::op", None)),  # None: outside any op
        st.sampled_from(([[4, 8], [8, 2]], [[2, 2], [2, 2]], None)),
        st.lists(
            st.tuples(
                st.sampled_from(("gemm", "copy_kernel", "ncclKernel_AllReduce()", "__amd_rocclr_copyBuffer")),
                st.integers(0, 60),  # start after the call
                st.integers(0, 9),
                st.sampled_from((7, 20)),
                st.booleans(),  # launch recorded
            ),
            max_size=3,
        ),
        st.sampled_from(("cudaLaunchKernel", "cudaGraphLaunch")),
    ),
    min_size=1,
    max_size=6,
)


@settings(deadline=None)
@given(CALLS)
def test_every_compute_kernel_is_in_one_group_and_kernel_time_is_conserved(calls):
    builder = TraceBuilder()
    for number, (op, dims, kernels, launch) in enumerate(calls):
        ts = 100 * number
        if op:
            builder.op(op, ts, 30, dims=dims, types=["float", "float"] if dims else None)
        for at, (name, start, dur, stream, recorded) in enumerate(kernels):
            correlation = builder.launch(launch, ts=ts + 1 + at, dur=0.5) if recorded else None
            builder.kernel(name, ts=ts + 5 + start, dur=dur, stream=stream, correlation=correlation)

    builder.op("aten::end", 1000, 1)
    _, activities, groups = grouped(builder)

    members = sorted(index for group in groups for index in group.activities.tolist())
    compute = [index for index, work in enumerate(activities.work.tolist()) if work == Work.COMPUTE]
    assert members == compute
    assert sum(group.kernel_ns for group in groups) == int(activities.dur[compute].sum())
    for group in groups:
        assert group.busy_ns <= group.kernel_ns
        assert sum(group.module_ns.values()) <= group.kernel_ns
        assert int(group.instance_busy.min()) >= 0


def test_an_op_nobody_knows_takes_the_category_of_its_heaviest_kernel():
    builder = TraceBuilder()
    builder.op("mylib::layer", 0, 10)
    light = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float> >(int)"
    builder.kernel(light, ts=20, dur=1, correlation=builder.launch(ts=1))
    builder.kernel("ampere_sgemm_128x64_tn", ts=30, dur=500, correlation=builder.launch(ts=3))

    assert [(g.name, g.category) for g in grouped(builder)[2]] == [("mylib::layer", "gemm")]


def lookup(indices, tables=2):
    """Inputs of FBGEMM's lookup in tables of width 8 by 4 samples."""
    return {
        "dims": [[0], [3200], [0], [0], [tables], [tables], [tables + 1], [], [], [3], [], [indices], [4 * tables + 1]],
        "types": [*["float"] * 4, "int", "long", "int", "Scalar", "Scalar", "long", "Scalar", "long", "long"],
        "strides": [],
        "concrete": [*[""] * 7, str(8 * tables), "8", "", "7", "", ""],
    }


def test_lookups_that_differ_only_in_their_number_of_indices_are_one_group():
    builder = TraceBuilder()
    for number, indices in enumerate((10, 90, 20)):
        call(builder, 100 * number, "fbgemm::split_embedding_codegen_lookup_sgd_function", **lookup(indices))
    call(builder, 300, "fbgemm::split_embedding_codegen_lookup_sgd_function", **lookup(20, tables=3))
    first, second = grouped(builder)[2]

    assert (first.count, second.count) == (3, 1)
    # The middle one stands for all: 20 rows of 8 are 160 additions; 640 bytes, 20 + 9 indices of 8; 4 * 16 floats out
    assert (first.cost.flops, first.cost.bytes_read, first.cost.bytes_written) == (160, 640 + 232, 256)
    assert first.inputs.dims[11] == [20]


def test_a_part_of_a_group_keeps_only_the_instances_that_have_it():
    # Two calls of kernels a and b, of 5 each: all of the second, and b of the first
    builder = TraceBuilder()
    for ts in (0, 100):
        call(builder, ts, kernels=("a", "b"), **MM)
    trace, activities, (group,) = grouped(builder)
    context = build_context(trace, build_tree(trace))

    kept = part_of(group, activities, context, np.array([False, True, True, True]))
    assert (kept.count, kept.kernel_ns, kept.firsts.tolist()) == (2, 15_000, [0, 1])
    assert kept.instance_busy.tolist() == [5_000, 10_000]
    assert [trace.names[code] for code in kept.kernel_codes] == ["b", "a"]  # most time first

    last = part_of(group, activities, context, np.array([False, False, False, True]))
    assert (last.count, last.kernel_ns, last.firsts.tolist(), len(last.kernel_codes)) == (1, 5_000, [0], 1)
