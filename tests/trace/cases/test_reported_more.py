"""Reported cases of every chapter in which the totals stay what they are, and a note comes or does not."""

from __future__ import annotations

import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import pytest

from rooftrace.errors import InputError
from rooftrace.roofline import coverage
from rooftrace.trace import containers, fast, load
from tests.support.trace_builder import TraceBuilder, collective
from tests.trace.cases.runs import MATRIX, Result, result, result_of, run
from tests.trace.cases.test_kinds import THREE
from tests.trace.healthy import TOTALS, healthy, totals

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.trace.reading import Folder


def reasons(outcome: Result) -> dict[str, int]:
    """Why GPU time is not rated, ns."""
    workload = outcome.prepared.workload
    return dict(coverage(workload.activities, workload.groups, workload.ratings).reasons)


def rated(outcome: Result) -> int:
    workload = outcome.prepared.workload
    return coverage(workload.activities, workload.groups, workload.ratings).rated_ns


def test_a38_kernels_without_the_id_of_their_function_are_linked_all_the_same() -> None:
    named, unnamed = run(**{"Record function id": 7, "rf_id": 9}), run()

    assert result(named).ops == result(unnamed).ops == {"aten::mm": 120_000}


def test_a39_calls_that_no_op_surrounds_leave_kernels_their_time_and_no_op() -> None:
    """The calls are written on a thread of their own, beside the one of the ops."""
    trace = TraceBuilder()
    trace.device()
    for step in range(3):
        trace.op("aten::mm", ts=100 * step, dur=20, **MATRIX)
        trace.kernel("sgemm", ts=100 * step + 30, dur=40, correlation=trace.launch(ts=100 * step + 5, tid=9))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 240_000, "compute_ns": 120_000, "idle_ns": 120_000}
    assert outcome.ops == {"sgemm": 120_000}
    assert reasons(outcome) == {"launched outside any op": 120_000}


def series(dur: float, count: int = 30) -> TraceBuilder:
    """Steps of an op and its kernel, under a frame: enough of everything to be trusted."""
    trace = TraceBuilder()
    trace.device()
    for step in range(count):
        at = 100 * step
        trace.annotation(f"ProfilerStep#{step}", ts=at, dur=99)
        trace.python("nn.Module: Linear_0", ts=at + 1, dur=30)
        trace.op("aten::mm", ts=at + 2, dur=20, **MATRIX)
        trace.kernel("sgemm", ts=at + 30, dur=dur, correlation=trace.launch(ts=at + 5))
    return trace


def test_a49_a_trace_that_is_sane_is_told_to_be_so_whatever_a_viewer_shows() -> None:
    outcome = result(series(40))

    assert (outcome.health.verdict, outcome.health.notes) == ("good", [])
    assert (outcome.health.dropped, outcome.health.recovered) == (0, 0)
    # 30 kernels of 40 µs, from 30 to 2970 µs
    assert outcome.parts() == {"span_ns": 2_940_000, "compute_ns": 1_200_000, "idle_ns": 1_740_000}


def test_a49_events_that_really_have_no_length_are_told() -> None:
    """What a viewer draws as triangles: the span is there, but how busy the GPU was nobody knows."""
    outcome = result(series(0))

    assert outcome.parts() == {"span_ns": 2_900_000, "idle_ns": 2_900_000}
    assert outcome.note("impossible_duration") == (
        "30 of 30 GPU events last 0 ns: their ends were not recorded, and how busy the GPU was is not known."
    )
    assert outcome.health.verdict == "unusable"


TRITON = {
    "dims": [[1024, 1024], [1024, 1024], []],
    "types": ["float", "float", "Scalar"],
    "concrete": ["", "", "1048576"],
    "kernel_kwargs": "XBLOCK=1024",
    "kernel_file": "/tmp/torchinductor/cabc.py",  # noqa: S108 - as it stands in a trace
    "kernel_hash": "cabc",
    "kernel_backend": "triton",
    "grid": "grid(1024,)",
}


@pytest.mark.parametrize(("told", "rated_ns"), [(TRITON, 120_000), ({}, 0)], ids=["with metadata", "without"])
def test_a54_a_generated_kernel_is_rated_by_its_metadata_and_counted_without(
    told: dict[str, Any], rated_ns: int
) -> None:
    trace = TraceBuilder()
    trace.device()
    for step in range(3):
        trace.op("triton_poi_fused_add_relu_0", ts=100 * step, dur=20, **told)
        launch = trace.launch("cuLaunchKernel", ts=100 * step + 5, cat="cuda_driver")
        trace.kernel("triton_poi_fused_add_relu_0", ts=100 * step + 30, dur=40, correlation=launch, grid=[1024, 1, 1])
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 240_000, "compute_ns": 120_000, "idle_ns": 120_000}
    assert outcome.ops == {"triton_poi_fused_add_relu_0": 120_000}
    assert [group.category for group in outcome.prepared.workload.groups] == ["elementwise"]
    assert rated(outcome) == rated_ns
    assert ("no_shapes" in outcome.codes) is (rated_ns == 0)


# recorded inputs, the reason why nothing is rated, whether no shapes at all were recorded
DYNAMIC = {
    "empty": ([[], []], "arguments not as the op defines them", True),
    "none": ([], "shapes not recorded", True),
    "null": (None, "no input shapes recorded", True),
    "symbols": ([["s0", "s1"], ["s1", "s2"]], "shapes not recorded", True),
    "unknown sizes": ([[-1, -1], [-1, -1]], "shapes not recorded", False),
}


@pytest.mark.parametrize("case", DYNAMIC)
def test_a57_sizes_that_are_not_known_yet_are_no_shapes_and_cost_no_time(case: str) -> None:
    dims, reason, missing = DYNAMIC[case]
    trace = TraceBuilder()
    trace.device()
    trace.header(record_shapes=1)
    trace.op("aten::mm", ts=1, dur=9, dims=dims, types=["float", "float"])
    trace.kernel("sgemm", ts=20, dur=30, correlation=trace.launch(ts=2))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 30_000}
    assert outcome.ops == {"aten::mm": 30_000}
    assert reasons(outcome) == {reason: 30_000}
    assert [note.text for note in outcome.health.notes if note.code == "no_shapes"] == [
        "No input shapes recorded although its header says so: kernels cannot be rated. "
        "Profile with record_shapes=True."
    ] * missing


REGIONS: dict[str, Callable[[TraceBuilder, int], None]] = {
    "none": lambda *_: None,
    "region of 2.5": lambda trace, at: trace.op("Torch-Compiled Region: 0/0", ts=at, dur=30),
    "region of 2.4": lambda trace, at: trace.op("Torch-Compiled Region", ts=at, dur=30),
    "function": lambda trace, at: trace.op("CompiledFunction", ts=at, dur=30),
    "graph": lambda trace, at: trace.annotation("## Call CompiledFxGraph fabc ##", ts=at, dur=30),
}


@pytest.mark.parametrize("case", REGIONS)
def test_a58_what_only_some_versions_write_around_compiled_code_changes_nothing(case: str) -> None:
    trace = TraceBuilder()
    trace.device()
    for step in range(3):
        REGIONS[case](trace, 100 * step)
        trace.op("aten::mm", ts=100 * step + 2, dur=20, **MATRIX)
        trace.kernel("sgemm", ts=100 * step + 30, dur=40, correlation=trace.launch(ts=100 * step + 5))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 240_000, "compute_ns": 120_000, "idle_ns": 120_000}
    assert outcome.ops == {"aten::mm": 120_000}
    assert rated(outcome) == 120_000


# Beside the work of `THREE`: a collective of 10 µs from 1070, 1170 and 1270 µs on.
WITH_COMM = {"span_ns": 260_000, "compute_ns": 120_000, "exposed_comm_ns": 30_000, "idle_ns": 110_000}


def with_collectives(name: str, **told: Any) -> TraceBuilder:
    trace = run()
    for step in range(3):
        launch = trace.launch("cudaLaunchKernelExC", ts=1031 + 100 * step)
        trace.kernel(name, ts=1070 + 100 * step, dur=10, stream=20, correlation=launch, **told)
    return trace


@pytest.mark.parametrize(
    "name", ["ncclDevKernel_AllReduce_Sum_f32_RING_LL", "nccldevkernel_allreduce_sum_f32_ring_ll", "nccl:all_reduce"]
)
def test_a59_communication_counts_once_by_any_spelling_and_never_by_its_annotations(name: str) -> None:
    trace = with_collectives(name)
    for step in range(3):
        trace.annotation("nccl:all_reduce", ts=1030 + 100 * step, dur=5)
        trace.gpu_annotation("nccl:all_reduce", ts=1065 + 100 * step, dur=20, stream=20)
    outcome = result(trace)

    assert outcome.parts() == WITH_COMM
    assert outcome.codes == ["few_gpu_events", "no_stacks"]


@pytest.mark.parametrize(
    "ids", [{}, {"Seq": 1}, {"Seq": 1, "Comms Id": 2**64 - 3}, {"Seq": "x", "Comms Id": None}], ids=repr
)
def test_a62_numbers_of_collectives_that_are_missing_or_the_same_keep_them_apart(ids: dict[str, Any]) -> None:
    told = collective("allreduce", 1024) | ids
    outcome = result(with_collectives("ncclDevKernel_AllReduce_Sum_f32_RING_LL", **told))

    assert outcome.parts() == WITH_COMM
    trace = outcome.trace
    assert trace.collective[trace.collective >= 0].tolist() == [0, 0, 0]  # three of one kind
    assert [one.name for one in trace.collectives] == ["allreduce"]
    assert outcome.codes == ["few_gpu_events", "no_stacks"]


@pytest.mark.parametrize(
    ("base_ns", "moved_us"),
    [(1_712_000_000_000_000_000, 0), (1_712_000_000_000_317_250, 0), (1_712_000_001_000_000_000, -1_000), (0, 10**15)],
)
def test_a64_ranks_whose_clocks_and_bases_differ_have_the_same_totals(base_ns: int, moved_us: int) -> None:
    trace = healthy()
    trace.header(baseTimeNanoseconds=base_ns)
    document = trace.document()
    for event in document["traceEvents"]:
        event["ts"] = f"{event['ts'] + moved_us:.3f}" if moved_us < 10**15 else _exactly(event["ts"], moved_us)

    assert totals(result_of(json.dumps(document).encode())) == TOTALS


def _exactly(ts: float, moved_us: int) -> str:
    """A sum that a double would round."""
    whole, _, part = f"{ts:.3f}".partition(".")
    return f"{int(whole) + moved_us}.{part}"


def test_a64b_the_file_that_was_not_renamed_is_named_and_analysed_as_far_as_it_goes(folder: Folder) -> None:
    whole = healthy().json()
    folder.write(whole[: len(whole) // 2], "trace.json.tmp")

    with pytest.raises(InputError) as caught:
        load(folder.path / "trace.json")
    outcome = result_of(whole[: len(whole) // 2], name="trace.json.tmp")

    assert caught.value.hint == (
        "`trace.json.tmp` lies beside it: the profiler was stopped while writing; analyse that file"
    )
    # the first step is whole, of the second one the product: from 1020.125 to 1160, of which 97.75 are busy
    assert outcome.parts() == {
        "span_ns": 139_875,
        "compute_ns": 79_750,
        "exposed_comm_ns": 10_000,
        "exposed_copy_ns": 8_000,
        "idle_ns": 42_125,
    }
    assert outcome.note("truncated").startswith("The file is cut short (the event array is not closed); the 2")


def test_a66_queues_of_xpu_are_streams() -> None:
    trace = TraceBuilder()
    for queue in (1, 2):
        launch = trace.launch("urEnqueueKernelLaunch", ts=2 * queue, cat="xpu_runtime")
        args = {"correlation": launch, "sycl queue": f"0x{queue}", "l0 queue": queue, "device": 0}
        trace.event(ph="X", cat="kernel", name="gemm", pid=0, tid=queue, ts=20 + 5 * queue, dur=30, args=args)
    outcome = result(trace)

    # 25 to 60 µs, both at once for 25
    assert outcome.parts() == {"span_ns": 35_000, "compute_ns": 35_000}
    assert outcome.prepared.workload.activities.stream.tolist() == [1, 2]


def test_a76_one_rank_after_the_other_takes_the_memory_of_one(folder: Folder) -> None:
    paths = [folder.write(series(40, 800).json(), f"rank{rank}.json") for rank in range(4)]
    load(paths[0])  # what is kept for good is kept by now

    tracemalloc.start()
    try:
        peaks = []
        for path in paths:
            tracemalloc.reset_peak()
            load(path)
            peaks.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()

    assert max(peaks[1:]) < 1.2 * peaks[0]


def test_a78_events_are_not_decoded_one_by_one(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece of the text is decoded at a time, into columns."""
    typed, decoded = fast.typed, []
    monkeypatch.setattr(fast, "typed", lambda text, **how: (decoded.append(len(text)), typed(text, **how))[1])
    content = series(40, 1_500).json()

    trace = fast.read(containers.open_source(folder.write(content)))

    assert trace.event_count > 4_000
    assert len(decoded) < 20  # two pieces, and what stands round their ends
    assert sum(decoded) > len(content) // 2


def test_a79_shapes_stacks_and_memory_events_in_masses_change_no_total() -> None:
    trace = run()
    for number in range(2_000):
        at = 1000 + number / 10
        trace.python(f"model.py({number}): forward", ts=at, dur=0.05, tid=2)
        trace.op("aten::empty", ts=at, dur=0.05, tid=3, dims=[[number]], types=["float"], concrete=["x" * 200])
        place = {"pid": 4242, "tid": 1, "ts": at, "s": "t"}
        args = {"Addr": number, "Bytes": 512, "Total Allocated": number}
        trace.event(ph="i", cat="cpu_instant_event", name="[memory]", args=args, **place)
    trace.header(record_shapes=1, with_stack=1, profile_memory=1)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}
    assert outcome.trace.event_count == 6_000 + 3 * 4
    assert outcome.trace.kind.size == 4_000 + 3 * 4  # an instant takes no row
    assert outcome.codes == ["few_gpu_events"]
