"""Reported cases, A3 and A4: kernels and their launches, and graphs."""

from __future__ import annotations

import pytest

from rooftrace.calltree import Link
from tests.support.trace_builder import TraceBuilder, collective
from tests.trace.cases.runs import MATRIX, Result, result, run
from tests.trace.cases.test_kinds import THREE


def links(outcome: Result) -> list[str]:
    return [Link(link).name for link in outcome.prepared.workload.activities.link.tolist()]


def test_a30_without_the_start_halves_of_flows_all_is_linked() -> None:
    trace = run()
    for step in range(3):
        trace.flow(step + 1, to_ts=1020 + 100 * step)

    assert links(result(trace)) == ["CORRELATION"] * 3


def test_a31_collectives_of_correlation_zero_are_kept_and_told() -> None:
    trace = run()
    for step in range(3):
        trace.kernel("ncclDevKernel_Generic_4", ts=1070 + 100 * step, dur=10, stream=20, correlation=0)
    outcome = result(trace)

    assert outcome.parts() == {
        "span_ns": 260_000,
        "compute_ns": 120_000,
        "exposed_comm_ns": 30_000,
        "idle_ns": 110_000,
    }
    assert outcome.note("lost_launch") == (
        "3 of 6 GPU events (20.0 % of GPU time) have no recorded launch; they count in the ledger and have no op."
    )


@pytest.mark.parametrize(
    "call",
    [
        "hipExtModuleLaunchKernel",
        "hipDrvLaunchKernelEx",
        "cuLaunchKernelEx",
        "cudaLaunchKernelExC",
        "musaLaunchKernel",
        "something of next year",
    ],
)
def test_a32_and_a33_any_call_with_the_correlation_is_the_launch(call: str) -> None:
    trace = TraceBuilder()
    trace.op("aten::mm", ts=1, dur=9, **MATRIX)
    trace.kernel("k", ts=20, dur=5, correlation=trace.launch(call, ts=2))
    outcome = result(trace)

    assert links(outcome) == ["CORRELATION"]
    assert outcome.ops == {"aten::mm": 5_000}


def test_a34_a_collectives_op_is_the_innermost_one_around_its_launch() -> None:
    """The External id tells the op outside; by time it is the one inside."""
    trace = TraceBuilder()
    trace.op("record_param_comms", ts=1, dur=30, external_id=17)
    trace.op("nccl:_all_gather_base", ts=2, dur=20, external_id=18, **collective("_allgather_base", 64))
    launch = trace.launch("cudaLaunchKernelExC", ts=5)
    trace.kernel("ncclDevKernel_AllGather_RING_LL", ts=40, dur=10, stream=20, correlation=launch, external_id=17)
    outcome = result(trace)
    workload = outcome.prepared.workload

    op = workload.context.op[workload.activities.launch[0]]
    assert outcome.trace.names[workload.tree.name[op]] == "nccl:_all_gather_base"


def test_a36_kernels_launched_outside_any_op_are_listed_by_name() -> None:
    trace = TraceBuilder()
    trace.kernel("custom_pybind_kernel", ts=20, dur=5, correlation=trace.launch(ts=2))

    assert result(trace).ops == {"custom_pybind_kernel": 5_000}


def test_a37_fills_and_copies_without_a_call_are_kept() -> None:
    trace = run()
    trace.memset(ts=1061, dur=4, bytes=64)
    trace.memcpy("HtoD", ts=1066, dur=4, bytes=64)
    outcome = result(trace)

    assert outcome.parts() == {
        "span_ns": 240_000,
        "compute_ns": 124_000,
        "exposed_copy_ns": 4_000,
        "idle_ns": 112_000,
    }


def test_a38_and_a39_kernels_without_any_id_but_in_the_lane_of_a_stream_count() -> None:
    trace = TraceBuilder()
    trace.event(ph="X", cat="kernel", name="k", pid=0, tid=7, ts=10, dur=5)

    assert result(trace).parts() == {"span_ns": 5_000, "compute_ns": 5_000}


def test_a40_a_stream_that_is_missing_is_seen_by_its_launches() -> None:
    trace = run()
    for step in range(3):
        trace.launch("hipLaunchKernel", ts=1040 + 100 * step)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.note("launch_without_kernel").startswith("3 of 6 kernel launches have no GPU event: ")
    assert outcome.health.verdict == "limited"


def replay(replays: int, kernels: int, call: str = "hipGraphLaunch", recorded: int | None = None) -> TraceBuilder:
    """A graph of kernels of 5 µs, launched every 1000 µs; of how many replays the kernels were recorded."""
    trace = TraceBuilder()
    trace.device()
    for step in range(replays):
        launch = trace.launch(call, ts=1000 * step, dur=5)
        for number in range(kernels if recorded is None or step < recorded else 0):
            trace.kernel(f"k{number % 7}", ts=1000 * step + 10 + 6 * number, dur=5, correlation=launch)
    return trace


def test_a20_a_graphs_kernels_are_a_table_and_not_one_row() -> None:
    outcome = result(replay(10, 100))

    # 1000 kernels of 5 µs; of each 100, k0 and k1 come 15 times, the others 14
    assert outcome.ops == {f"k{n}": (15 if n < 2 else 14) * 10 * 5_000 for n in range(7)}
    assert outcome.parts()["compute_ns"] == 5_000_000
    assert "graph_replay" in outcome.codes


def test_a21_kernels_whose_calls_lie_in_frames_and_no_ops_are_listed() -> None:
    trace = TraceBuilder()
    trace.python("sglang/model_runner.py(12): forward", ts=0, dur=50)
    trace.kernel("k", ts=20, dur=5, correlation=trace.launch(ts=2))

    assert result(trace).ops == {"k": 5_000}


@pytest.mark.parametrize("recorded", [1, 5])
def test_a22_a23_and_a25_replays_that_were_not_recorded_are_told(recorded: int) -> None:
    outcome = result(replay(10, 20, recorded=recorded))

    assert outcome.note("launch_without_kernel").startswith(
        f"{10 - recorded} of 10 kernel launches have no GPU event: "
    )
    assert outcome.health.verdict == "limited"
    assert outcome.parts()["compute_ns"] == recorded * 20 * 5_000


def test_a24_kernels_belong_to_the_step_of_their_launch_however_late_they_run() -> None:
    """Three steps launch a kernel each; all three run after the last marker."""
    trace = TraceBuilder()
    for step in range(3):
        trace.annotation(f"step[DECODE bs={step}]", ts=100 * step, dur=99)
        trace.kernel("k", ts=1000 + 10 * step, dur=5, correlation=trace.launch(ts=100 * step + 10))
    outcome = result(trace)

    assert outcome.prepared.workload.steps.of_activity.tolist() == [0, 1, 2]
    assert "empty_steps" not in outcome.codes


@pytest.mark.parametrize("count", [40, 1500])
def test_a26_and_a27_one_launch_may_have_any_number_of_kernels(count: int) -> None:
    outcome = result(replay(1, count))

    assert outcome.parts()["compute_ns"] == count * 5_000
    assert links(outcome) == ["CORRELATION"] * count


def test_a28_regions_of_a_graph_on_streams_of_their_own_overlap_and_count_once() -> None:
    trace = TraceBuilder()
    launch = trace.launch("cudaGraphLaunch", ts=0)
    for number in range(200):
        trace.kernel("k", ts=10 + number, dur=5, stream=100 + number, correlation=launch)

    # 10 to 214 µs, all covered
    assert result(trace).parts() == {"span_ns": 204_000, "compute_ns": 204_000}


def test_a29_a_trace_of_a_capture_is_known_by_its_calls() -> None:
    trace = TraceBuilder()
    trace.launch("cudaStreamBeginCapture", ts=0)
    for number in range(50):
        trace.launch(ts=10 + number, dur=0.5)
    outcome = result(trace)

    assert outcome.note("no_gpu_events") == "No GPU events: the trace covers the capture of a graph, not its replay."


def test_a29b_graph_kernels_without_a_node_have_none() -> None:
    outcome = result(replay(1, 3))

    assert set(outcome.trace.graph_node.tolist()) == {-1}
    assert outcome.note("graph_replay").startswith("100.0 % of GPU time is replayed from graphs (3 events)")


def test_a35_ids_that_collide_with_ops_are_not_believed() -> None:
    """20 kernels: 19 of their External ids are their correlations, which are ids of ops elsewhere."""
    trace = TraceBuilder()
    for number in range(20):
        trace.op("aten::elsewhere", ts=number, dur=0.5, tid=5, external_id=number + 1)
        trace.op("aten::mm", ts=100 + 10 * number, dur=5, external_id=500 + number, **MATRIX)
        launch = trace.launch(ts=101 + 10 * number)
        external = launch if number else 500
        trace.kernel("k", ts=104 + 10 * number, dur=3, correlation=launch, external_id=external)

    assert result(trace).ops == {"aten::mm": 60_000}
