"""GPU activities: their order, their work, and how each launch is found. Times are µs in the drawings."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.calltree import LINK_NAMES, Link, Work, build_tree, collect_activities
from tests.support.trace_builder import HOST, TraceBuilder


def collected(builder):
    trace = builder.build()
    tree = build_tree(trace)
    return trace, tree, collect_activities(trace, tree)


def links(builder):
    """(kernel name, way of linking, name of the launch) of each activity, by device and start."""
    trace, tree, activities = collected(builder)
    return [
        (
            trace.names[code],
            LINK_NAMES[link],
            trace.names[tree.name[launch]] if launch >= 0 else None,
        )
        for code, link, launch in zip(
            activities.name.tolist(), activities.link.tolist(), activities.launch.tolist(), strict=True
        )
    ]


@pytest.mark.parametrize(
    ("call", "category"),
    [
        ("cudaLaunchKernel", "cuda_runtime"),
        ("cudaLaunchKernelExC", "cuda_runtime"),
        ("cuLaunchKernelEx", "cuda_driver"),
        ("hipExtModuleLaunchKernel", "cuda_runtime"),
        ("zeCommandListAppendLaunchKernel", "xpu_runtime"),
        ("a call nobody has heard of", "privateuse1_runtime"),
    ],
)
def test_the_call_with_the_same_correlation_launched_the_kernel_whatever_its_name(call, category):
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 10)
    builder.kernel("gemm", ts=8, dur=5, correlation=builder.launch(call, ts=2, dur=3, cat=category))

    assert links(builder) == [("gemm", "correlation", call)]


@pytest.mark.parametrize("correlation", [0, -1])
def test_zero_and_minus_one_are_no_correlations(correlation):
    builder = TraceBuilder()
    builder.launch("first", ts=0, correlation=correlation)
    builder.launch("second", ts=1, correlation=5)
    builder.kernel("b", ts=3, dur=2, correlation=5)
    builder.kernel("a", ts=6, dur=2, correlation=correlation)

    assert links(builder) == [("b", "correlation", "second"), ("a", "lost", None)]


def test_of_two_calls_with_one_correlation_the_outermost_launched_the_kernel():
    #            0    5
    # runtime    [-cudaLaunch-]
    # driver       [cuLaunch]
    builder = TraceBuilder()
    builder.launch("cuLaunchKernel", ts=1, dur=3, correlation=9, cat="cuda_driver")
    builder.launch("cudaLaunchKernel", ts=0, dur=6, correlation=9)
    builder.kernel("k", ts=7, dur=2, correlation=9)

    assert links(builder) == [("k", "correlation", "cudaLaunchKernel")]


def test_an_op_does_not_launch_by_correlation():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5, correlation=4)
    builder.launch(ts=1, correlation=3)
    builder.kernel("k", ts=7, dur=2, correlation=4)

    assert links(builder) == [("k", "lost", None)]


def test_without_a_correlation_the_op_with_the_same_external_id_stands_for_the_launch():
    builder = TraceBuilder()
    builder.op("aten::linear", 0, 9, external_id=17)
    builder.op("aten::addmm", 1, 7, external_id=17)  # of several with one id the innermost
    builder.kernel("k", ts=5, dur=2, external_id=17)

    assert links(builder) == [("k", "external_id", "aten::addmm")]


def test_an_op_cannot_follow_its_own_kernel():
    builder = TraceBuilder()
    builder.op("before", 0, 1)
    builder.op("aten::mm", 8, 4, external_id=17)
    builder.kernel("k", ts=5, dur=2, external_id=17)

    assert links(builder) == [("k", "lost", None)]


@pytest.mark.parametrize(
    ("honest", "expected"),
    [
        pytest.param(0, "lost", id="all 20 equal: no op ids"),
        pytest.param(1, "lost", id="19 of 20 equal is 95 %: no op ids"),
        pytest.param(2, "external_id", id="18 of 20 equal is 90 %: op ids"),
    ],
)
def test_external_ids_that_nearly_always_equal_the_correlation_are_no_op_ids(honest, expected):
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 90, external_id=1)
    builder.launch(ts=1, correlation=999)
    builder.kernel("anchor", ts=2, dur=1, correlation=999)
    builder.kernel("k", ts=5, dur=1, correlation=1, external_id=1)  # no call carries correlation 1
    for number in range(2, 21):
        own = 100 + number
        builder.kernel("other", ts=5 + number, dur=1, correlation=own, external_id=own + (number < 2 + honest))

    assert links(builder)[1] == ("k", expected, "aten::mm" if expected == "external_id" else None)


@pytest.mark.parametrize("category", ["ac2g", "async", "async_gpu", "async_cpu_to_gpu"])
def test_a_launch_flow_links_where_nothing_else_does(category):
    #            0    5    10
    # op         [---mm---]
    # call         [L]
    # flow         s----f
    # kernel            [k]
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9)
    builder.event(ph="X", cat="cuda_runtime", name="cudaLaunchKernel", pid=HOST, tid=1, ts=2, dur=2)
    builder.flow(31, ts=2, to_ts=6, cat=category)
    builder.kernel("k", ts=6, dur=2)

    assert links(builder) == [("k", "flow", "cudaLaunchKernel")]


def test_a_flow_from_forward_to_backward_launches_nothing():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9)
    builder.flow(31, ts=0, to_ts=6, cat="fwdbwd")
    builder.kernel("k", ts=6, dur=2)

    assert links(builder) == [("k", "lost", None)]


@pytest.mark.parametrize("half", [{"ts": 2}, {"to_ts": 6}], ids=["only the start", "only the end"])
def test_half_a_flow_launches_nothing_and_harms_nothing(half):
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9)
    builder.flow(31, **half)
    builder.flow(32, ts=0, to_ts=9)
    builder.kernel("a", ts=6, dur=2)
    builder.kernel("b", ts=9, dur=2)

    assert links(builder) == [("a", "carry_in", None), ("b", "flow", "aten::mm")]


def test_a_flow_ends_at_the_kernel_of_its_own_stream():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 9)
    builder.flow(31, ts=0, to_ts=6, stream=20)
    builder.kernel("a", ts=6, dur=2, stream=7)
    builder.kernel("b", ts=6, dur=2, stream=20)

    assert links(builder) == [("a", "lost", None), ("b", "flow", "aten::mm")]


def test_correlation_goes_before_external_id_and_that_before_flow():
    builder = TraceBuilder()
    builder.op("by id", 0, 9, external_id=5)
    builder.op("by flow", 10, 1)
    builder.kernel("a", ts=20, dur=1, correlation=builder.launch(ts=11), external_id=5)
    builder.kernel("b", ts=30, dur=1, external_id=5)
    for number, ts in enumerate((20, 30)):
        builder.flow(60 + number, ts=10, to_ts=ts)

    assert links(builder) == [("a", "correlation", "cudaLaunchKernel"), ("b", "external_id", "by id")]


def test_what_a_stream_ran_before_its_first_linked_kernel_was_launched_before_the_window():
    #            0    5    10   15   20
    # call       [L]
    # stream 7       [a]  [b]  [c]         b is linked
    # stream 9  [d]                        d starts before any recorded launch
    # stream 11           [e]              e starts after
    builder = TraceBuilder()
    launched = builder.launch(ts=1)
    builder.kernel("a", ts=4, dur=2)
    builder.kernel("b", ts=9, dur=2, correlation=launched)
    builder.kernel("c", ts=14, dur=2)
    builder.kernel("d", ts=0, dur=2, stream=9)
    builder.kernel("d2", ts=30, dur=2, stream=9)
    builder.kernel("e", ts=9, dur=2, stream=11)

    found = {name: link for name, link, _ in links(builder)}
    assert found == {
        "a": "carry_in",
        "b": "correlation",
        "c": "lost",
        "d": "carry_in",
        "d2": "carry_in",  # streams are first in, first out, but nothing of this one is linked: all or nothing
        "e": "lost",
    }


def test_a_stream_of_one_device_tells_nothing_of_the_same_stream_of_another():
    builder = TraceBuilder()
    launched = builder.launch(ts=0)
    builder.kernel("early", ts=5, dur=1, device=1)
    builder.kernel("linked", ts=9, dur=1, device=0, correlation=launched)

    assert links(builder) == [("linked", "correlation", "cudaLaunchKernel"), ("early", "lost", None)]


def test_kernels_of_a_trace_without_host_events_are_all_kept_and_lost():
    builder = TraceBuilder()
    builder.kernel("a", ts=0, dur=1)
    builder.kernel("b", ts=2, dur=1, correlation=8, external_id=3)

    assert links(builder) == [("a", "lost", None), ("b", "lost", None)]


@pytest.mark.parametrize(
    "call", ["cudaGraphLaunch", "cudaGraphLaunch_v10000", "cuGraphLaunch", "hipGraphLaunch", "hipGraphLaunch_spt"]
)
def test_all_kernels_of_a_graph_launch_belong_to_it_and_are_replayed(call):
    builder = TraceBuilder()
    graph = builder.launch(call, ts=0, dur=3)
    plain = builder.launch(ts=4)
    for number in range(3):
        builder.kernel(f"g{number}", ts=10 + 2 * number, dur=1, correlation=graph)
    builder.kernel("plain", ts=20, dur=1, correlation=plain)

    _, tree, activities = collected(builder)

    assert activities.graph.tolist() == [True, True, True, False]
    assert tree.row[activities.launch].tolist() == [0, 0, 0, 1]


def test_a_graph_of_one_kernel_is_a_graph():
    builder = TraceBuilder()
    builder.kernel("g", ts=10, dur=1, correlation=builder.launch("cudaGraphLaunch", ts=0))

    assert collected(builder)[2].graph.tolist() == [True]


def test_several_kernels_of_one_nameless_call_are_taken_for_a_graph():
    builder = TraceBuilder()
    call = builder.launch("unknown_1234", ts=0)
    for ts in (5, 7):
        builder.kernel("k", ts=ts, dur=1, correlation=call)

    assert collected(builder)[2].graph.tolist() == [True, True]


@pytest.mark.parametrize(
    ("name", "work"),
    [
        ("ampere_sgemm_128x64_tn", Work.COMPUTE),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", Work.COMMUNICATION),
        ("__amd_rocclr_copyBuffer", Work.COPY),
        ("__amd_rocclr_copyBufferAligned", Work.COPY),
        ("MEMORY_COPY_HOST_TO_DEVICE", Work.COPY),
        ("__amd_rocclr_fillBufferAligned", Work.COMPUTE),
    ],
)
def test_a_kernels_name_tells_whether_it_computes_communicates_or_copies(name, work):
    builder = TraceBuilder()
    builder.kernel(name, ts=0, dur=1)

    assert collected(builder)[2].work.tolist() == [work]


def test_copies_are_copies_whatever_their_direction_and_a_memset_is_compute():
    builder = TraceBuilder()
    for number, direction in enumerate(("HtoD", "DtoH", "DtoD", "PtoP")):
        builder.memcpy(direction, ts=2 * number, dur=1, bytes=64)
    builder.memset(ts=20, dur=1, bytes=32)

    activities = collected(builder)[2]

    assert activities.work.tolist() == [Work.COPY] * 4 + [Work.COMPUTE]
    assert activities.nbytes.tolist() == [64, 64, 64, 64, 32]


def test_the_gpus_copy_of_an_annotation_is_no_activity():
    builder = TraceBuilder()
    builder.gpu_annotation("ProfilerStep#1", ts=0, dur=50)
    builder.kernel("k", ts=3, dur=1)

    assert collected(builder)[2].row.size == 1


def lane_kernel(builder, name, ts, pid, tid, **args):
    builder.event(ph="X", cat="kernel", name=name, pid=pid, tid=tid, ts=ts, dur=1, args=args)


def test_a_device_that_is_not_recorded_is_the_process_id_of_the_lane():
    builder = TraceBuilder()
    lane_kernel(builder, "b", 4, 1, 7, stream=7)
    lane_kernel(builder, "a", 6, 0, 7, stream=7)
    lane_kernel(builder, "c", 2, 0, 7, stream=7, device=0)
    lane_kernel(builder, "d", 0, "GPU", 7, stream=7)  # a process that is no number: the first device

    trace, _, activities = collected(builder)

    assert activities.device.tolist() == [0, 0, 0, 1]
    assert [trace.names[code] for code in activities.name.tolist()] == ["d", "c", "a", "b"]


@pytest.mark.parametrize("tid", [7, "7", "stream 7", "stream 7 (compute)"], ids=str)
def test_a_stream_that_is_not_recorded_is_the_number_of_the_lane(tid):
    builder = TraceBuilder()
    lane_kernel(builder, "a", 0, 0, tid, device=0)
    lane_kernel(builder, "b", 2, 0, 7, device=0, stream=7)

    assert collected(builder)[2].stream.tolist() == [7, 7]


def test_lanes_without_a_number_are_streams_apart_from_all_others():
    builder = TraceBuilder()
    lane_kernel(builder, "a", 0, 0, "compute", device=0)
    lane_kernel(builder, "b", 2, 0, "copy", device=0)
    lane_kernel(builder, "c", 4, 0, 0, device=0, stream=0)
    lane_kernel(builder, "d", 6, 0, 1, device=0, stream=2**63 - 1)

    assert len(set(collected(builder)[2].stream.tolist())) == 4


def test_activities_stand_in_order_of_device_then_start_then_file():
    builder = TraceBuilder()
    for name, ts, device in (("e", 5, 1), ("c", 9, 0), ("a", 2, 0), ("d", 5, 1), ("b", 2, 0)):
        builder.kernel(name, ts=ts, dur=1, device=device)

    trace, _, activities = collected(builder)

    assert [trace.names[code] for code in activities.name.tolist()] == ["a", "b", "c", "e", "d"]


def test_a_selection_keeps_every_column_in_step():
    builder = TraceBuilder()
    for number in range(4):
        builder.kernel(f"k{number}", ts=2 * number, dur=1)
    activities = collected(builder)[2]
    whole = ("infos", "apart")

    chosen = activities.select(np.array([False, True, False, True]))

    assert chosen.start.tolist() == [2000, 6000]
    assert {getattr(chosen, name).size for name in chosen.__slots__ if name not in whole} == {2}


EVENT = st.tuples(
    st.sampled_from(("kernel", "memcpy", "memset")),
    st.integers(0, 50),  # start
    st.integers(0, 9),  # duration
    st.sampled_from((0, 1)),  # device
    st.sampled_from((7, 20)),  # stream
    st.sampled_from((None, -1, 0, 1, 2, 3)),  # correlation
    st.sampled_from((None, 1, 2)),  # External id
)
LAUNCHES = st.lists(st.integers(0, 50), max_size=3)


def _place(event):
    """What an event shares with none: equal ones are one that is written twice. No correlation counts as -1."""
    return (*event[:5], -1 if event[5] is None else event[5])


@settings(deadline=None)
@given(st.lists(EVENT, min_size=1, max_size=12, unique_by=_place), LAUNCHES)
def test_no_activity_and_no_nanosecond_is_lost_on_the_way_and_each_has_one_owner_at_most(events, launches):
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 60, external_id=1)
    for number, ts in enumerate(launches, start=1):
        builder.launch(ts=ts, dur=1, correlation=number)
    for kind, ts, dur, device, stream, correlation, external_id in events:
        place = {"device": device, "stream": stream, "correlation": correlation, "external_id": external_id}
        if kind == "kernel":
            builder.kernel("k", ts, dur, **place)
        elif kind == "memcpy":
            builder.memcpy("HtoD", ts, dur, **place)
        else:
            builder.memset(ts, dur, **place)

    _, tree, activities = collected(builder)

    assert activities.row.size == len(set(activities.row.tolist())) == len(events)
    assert int(activities.dur.sum()) == int(activities.raw_dur.sum()) == 1000 * sum(event[2] for event in events)
    assert ((activities.launch >= 0) == activities.linked).all()
    assert (activities.launch < tree.row.size).all()
    assert ((activities.link <= int(Link.FLOW)) == activities.linked).all()
