"""The 25 kinds of failure, by how likely a user meets them: totals are right, and Trace Health tells what was met."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rooftrace.calltree import Link
from rooftrace.errors import NotATrace
from tests.support.trace_builder import TraceBuilder, wrapped
from tests.trace.cases.runs import MATRIX, result, result_of, run
from tests.trace.reading import document, kernel

# Three steps of 40 µs of work each: from 1020 to 1260 µs.
THREE = {"span_ns": 240_000, "compute_ns": 120_000, "idle_ns": 120_000}


def test_a_clean_run_has_no_note_but_that_stacks_are_missing_and_kernels_are_few() -> None:
    assert result(run()).parts() == THREE
    assert result(run()).codes == ["few_gpu_events", "no_stacks"]


def test_01_kernels_of_a_graph_replay_are_reported_one_by_one() -> None:
    trace = TraceBuilder()
    trace.device()
    for step in range(3):
        launch = trace.launch("cudaGraphLaunch", ts=step * 100, dur=5)
        for number, name in enumerate(("gemm", "norm", "gemm", "act")):
            trace.kernel(name, ts=step * 100 + 10 + 20 * number, dur=10, correlation=launch)
    outcome = result(trace)

    # each replay: 4 kernels of 10 µs
    assert outcome.ops == {"gemm": 60_000, "norm": 30_000, "act": 30_000}
    assert outcome.parts()["compute_ns"] == 120_000
    assert outcome.note("graph_replay") == (
        "100.0 % of GPU time is replayed from graphs (12 events): it has kernel names but no ops and no shapes."
    )


def cpu_alone() -> TraceBuilder:
    trace = TraceBuilder()
    trace.op("aten::mm", ts=1, dur=5, **MATRIX)
    return trace


def test_02_without_gpu_events_the_reason_is_told() -> None:
    listed, lost, capture = cpu_alone(), cpu_alone(), cpu_alone()
    listed.device()
    lost.device()
    lost.launch(ts=2)
    lost.launch(ts=3)
    capture.launch("cudaStreamBeginCapture_v10000", ts=2)
    capture.launch(ts=3)

    notes = {
        name: result(trace).note("no_gpu_events")
        for name, trace in (("cpu", cpu_alone()), ("listed", listed), ("lost", lost), ("capture", capture))
    }

    assert notes == {
        "cpu": "No GPU events: a run on the CPU, or a profile without ProfilerActivity.CUDA.",
        "listed": "A GPU is listed but neither launches nor GPU events were recorded: profile with "
        "ProfilerActivity.CUDA.",
        "lost": "2 kernel launches but no GPU events: the GPU activity was lost (driver and profiler versions, or a "
        "missing ProfilerActivity.CUDA).",
        "capture": "No GPU events: the trace covers the capture of a graph, not its replay.",
    }
    assert result(lost).health.verdict == "unusable"
    assert result(cpu_alone()).health.verdict == "limited"


def test_03_shapes_that_the_header_promises_and_no_op_has_are_missed() -> None:
    trace = TraceBuilder()
    trace.header(record_shapes=1)
    trace.op("aten::mm", ts=1, dur=9)
    trace.kernel("sgemm", ts=10, dur=5, correlation=trace.launch(ts=2))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 5_000, "compute_ns": 5_000}
    assert outcome.note("no_shapes").startswith("No input shapes recorded although its header says so: ")


def test_04_work_launched_before_the_window_is_kept_and_told() -> None:
    trace = run()
    for number in range(5):
        trace.kernel("backlog", ts=900 + 20 * number, dur=10)
    outcome = result(trace)

    # 900 to 1260 µs: 5 of 10 µs before the first step, 3 of 40 in the steps
    assert outcome.parts() == {"span_ns": 360_000, "compute_ns": 170_000, "idle_ns": 190_000}
    # 50 of 170 µs
    assert outcome.note("carry_in") == (
        "5 of 8 GPU events (29.4 % of GPU time) were launched before the recorded window; they count in the ledger "
        "and are not rated."
    )


@pytest.mark.parametrize("flows", ["none", "starts alone", "ends alone", "of other ids"])
def test_05_links_do_not_depend_on_flows(flows: str) -> None:
    trace = run()
    for step in range(3):
        at = 1000 + 100 * step
        trace.flow(
            step + 1 + (50 if flows == "of other ids" else 0),
            ts=at + 6 if flows in ("starts alone", "of other ids") else None,
            to_ts=at + 20 if flows in ("ends alone", "of other ids") else None,
        )
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}


@pytest.mark.parametrize("correlation", [0, -1, None])
def test_05_without_a_correlation_all_gpu_time_is_kept(correlation: int | None) -> None:
    outcome = result(run(correlation=correlation))

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}  # by External id


def test_06_an_external_id_that_is_the_correlation_again_is_no_op() -> None:
    """The second op has the id 1: a kernel of correlation 1 that is told to be of External id 1 is not its."""
    trace = TraceBuilder()
    for number in range(20):
        trace.op("aten::mm", ts=10 * number, dur=8, external_id=100 + number, **MATRIX)
        launch = trace.launch(ts=10 * number + 1)
        trace.kernel("sgemm", ts=10 * number + 4, dur=5, correlation=launch, external_id=launch)
    trace.op("aten::relu", ts=0, dur=1, tid=2, external_id=3, **MATRIX)
    outcome = result(trace)

    assert outcome.ops == {"aten::mm": 100_000}


def long_one(dur: int) -> TraceBuilder:
    """A kernel of 10 µs every 20 µs, 40 of them; the one at 100 µs ends `dur` µs after it began."""
    trace = TraceBuilder()
    for number in range(40):
        trace.op("aten::mm", ts=20 * number, dur=2, **MATRIX)
        launch = trace.launch(ts=20 * number + 1)
        trace.kernel("k", ts=20 * number + 3, dur=dur if number == 5 else 10, correlation=launch)
    return trace


def test_07_an_impossible_duration_changes_the_health_and_not_the_busy_time() -> None:
    outcome = result(long_one(1_754_000))

    # 3 to 793 µs; 39 kernels of 10 µs, and one cut at its successor, after 20
    assert outcome.parts() == {"span_ns": 790_000, "compute_ns": 410_000, "idle_ns": 380_000}
    assert outcome.note("impossible_duration") == (
        "1 GPU events have impossible durations (1.754 s recorded); totals count 20.0 µs of them."
    )


def test_08_overlap_in_one_stream_is_no_fault() -> None:
    """Programmatic dependent launch: each kernel begins 3 µs before the one before it ends."""
    trace = TraceBuilder()
    for number in range(40):
        launch = trace.launch(ts=10 * number, dur=1)
        trace.kernel("k", ts=10 * number + 5, dur=13, correlation=launch)
    outcome = result(trace)

    # 5 to 408 µs without a gap
    assert outcome.parts() == {"span_ns": 403_000, "compute_ns": 403_000}
    assert "impossible_duration" not in outcome.codes


def test_09_memory_stays_in_proportion_to_the_events_kept() -> None:
    """Columns take a fixed number of bytes an event, whatever stands in the text: names and shapes are stored once."""
    padding = {"Call stack": "x" * 2000}
    trace = TraceBuilder()
    for number in range(2000):
        trace.op("aten::mm", ts=number, dur=1, **MATRIX, **padding)
    columns = result(trace).trace

    arrays = [value for value in vars_of(columns) if isinstance(value, np.ndarray)]
    assert sum(value.nbytes for value in arrays) < 2000 * 200
    assert len(columns.names) == len(columns.signatures) == 1


def vars_of(columns: object) -> list[object]:
    return [getattr(columns, name) for name in columns.__slots__]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ProfilerStep#{}", True),
        ("execute_context_1(32)_generation_{}(8)", True),
        ("execute_{}_context_1", True),
        ("step[DECODE bs={} toks=1]", True),
        ("prefill[bs={}]", True),
        ("my own marker {}", False),
    ],
)
def test_10_steps_are_found_by_the_markers_of_every_engine(name: str, found: bool) -> None:
    trace = run(annotated=False)
    for step in range(3):
        trace.annotation(name.format(step), ts=1000 + 100 * step, dur=99)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.steps == ([name.format(step) for step in range(3)] if found else ["whole trace"])
    assert ("no_steps" in outcome.codes) is not found


def test_10_without_markers_the_period_of_the_kernels_makes_steps() -> None:
    trace = TraceBuilder()
    for step in range(4):
        for number in range(9):
            launch = trace.launch(ts=1000 * step + 10 * number)
            trace.kernel(f"k{number}", ts=1000 * step + 10 * number + 5, dur=8, correlation=launch)

    assert result(trace).steps == ["step 0", "step 1", "step 2", "step 3"]


@pytest.mark.parametrize(
    ("name", "category"),
    [
        ("triton_poi_fused_add_relu_0", "elementwise"),
        ("triton_per_fused__softmax_3", "reduction"),
        ("triton_red_fused_native_layer_norm_5", "normalization"),
        ("triton_", "triton"),
    ],
)
def test_11_generated_kernels_without_metadata_are_told_by_their_names(name: str, category: str) -> None:
    trace = TraceBuilder()
    trace.device()
    trace.kernel(name, ts=10, dur=20, correlation=trace.launch("cuLaunchKernel", ts=1, cat="cuda_driver"))
    outcome = result(trace)

    assert [(group.category, group.name) for group in outcome.prepared.workload.groups] == [(category, name)]
    assert outcome.parts() == {"span_ns": 20_000, "compute_ns": 20_000}


@pytest.mark.parametrize(
    "name",
    [
        "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)",
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
        "ncclDevKernel_Generic(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
        "nccl:all_reduce",
        "void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*, int)",
        "deep_ep::intranode::dispatch<8, 768>",
        "two_shot_all_reduce_kernel",
    ],
)
def test_12_communication_is_told_by_every_name_it_ever_had(name: str) -> None:
    trace = TraceBuilder()
    trace.kernel(name, ts=10, dur=20, stream=20, correlation=trace.launch(ts=1))

    assert result(trace).parts() == {"span_ns": 20_000, "exposed_comm_ns": 20_000}


def test_13_host_events_that_do_not_nest_are_cut_and_counted() -> None:
    #            0    5    10   15
    # outer      [-------]
    # straddling    [--------]
    # ops         [-]  [-]
    trace = run()
    trace.python("outer", ts=0, dur=10, tid=9)
    trace.python("straddling", ts=5, dur=10, tid=9)
    trace.op("aten::a", ts=1, dur=2, tid=9)
    trace.op("aten::b", ts=6, dur=2, tid=9)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.note("host_overlap") == "1 host events end after the event they began in; they are cut there."


def test_14_durations_that_are_none_are_counted_and_cost_no_other_event() -> None:
    """Of six kernels, one is of 0 µs, one ends before it begins, one has no duration; an op never ended."""
    content = document(
        '{"ph":"X","cat":"cpu_op","name":"unfinished","pid":1,"tid":1,"ts":1000,"dur":-1}',
        kernel("zero", 1000, 0),
        kernel("negative", 1010, -5),
        '{"ph":"X","cat":"kernel","name":"without","pid":0,"tid":7,"ts":1020}',
        kernel("a", 1030, 10),
        kernel("b", 1050, 10),
        kernel("c", 1060, 40),
    )
    outcome = result_of(content)

    # 1000 to 1100 µs, of which 60 are busy
    assert outcome.parts() == {"span_ns": 100_000, "compute_ns": 60_000, "idle_ns": 40_000}
    assert [note.text for note in outcome.health.notes if note.code == "repaired"] == [
        "1 events repaired: GPU event with a negative duration.",
        "1 events repaired: event without a duration.",
        "1 events repaired: unfinished host event.",
    ]


def test_14_kernels_at_time_zero_are_dropped_and_counted() -> None:
    start = 1_700_000_000_000_000
    content = document(kernel("k", 0, 5), kernel("k", 0, 7), kernel("k", start, 10), kernel("k", start + 20, 10))
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 20_000, "idle_ns": 10_000}
    assert outcome.note("dropped") == "2 events dropped: GPU event at time zero."


def test_15_an_idle_share_that_lost_replays_make_is_told_as_unreliable() -> None:
    """Of 10 replays of a graph, the kernels of one were recorded: nearly all the rest looks idle."""
    trace = TraceBuilder()
    trace.device()
    for step in range(10):
        launch = trace.launch("hipGraphLaunch", ts=100 * step, dur=5)
        if step in (0, 9):
            trace.kernel("gemm", ts=100 * step + 10, dur=80, correlation=launch)
            trace.kernel("norm", ts=100 * step + 90, dur=5, correlation=launch)
    outcome = result(trace)

    # 10 to 995 µs, of which two replays of 85 are busy
    assert outcome.parts() == {"span_ns": 985_000, "compute_ns": 170_000, "idle_ns": 815_000}
    assert outcome.note("launch_without_kernel") == (
        "8 of 10 kernel launches have no GPU event: their kernels were captured into a graph, ran after the window, "
        "or were lost."
    )
    assert outcome.health.verdict == "limited"


def test_16_steps_whose_kernels_were_dropped_are_told() -> None:
    trace = run(range(4))
    for step in (4, 5):
        trace.annotation(f"ProfilerStep#{step}", ts=1000 + 100 * step, dur=99)
        trace.launch(ts=1006 + 100 * step)
    outcome = result(trace)

    assert outcome.note("empty_steps") == "2 of 6 steps launched no GPU work."
    assert outcome.note("launch_without_kernel").startswith("2 of 6 kernel launches have no GPU event")
    assert outcome.parts() == {"span_ns": 340_000, "compute_ns": 160_000, "idle_ns": 180_000}


def test_17_a_name_that_breaks_the_json_is_mended_where_it_stands() -> None:
    broken = '{"ph":"X","cat":"python_function","name":"{"device": "cpu"}(12): run","pid":1,"tid":1,"ts":15,"dur":5}'
    content = document(kernel("a", 10, 10), broken, kernel("b", 30, 10))
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 20_000, "idle_ns": 10_000}
    offset = content.index(b'{"ph":"X","cat":"python_function"')
    assert outcome.note("repaired") == (f"1 events repaired: unescaped quote in a name, the first at byte {offset}.")


def test_18_the_rank_comes_from_the_file_then_from_its_name() -> None:
    from rooftrace.workflow.facts import trace_info

    told = run()
    told.header(distributedInfo={"backend": "nccl", "rank": 3, "world_size": 8})
    ranks = []
    for trace, name in ((told, "rank5.json"), (run(), "rank5.json"), (run(), "trace.json")):
        outcome = result(trace, name=name)
        info = trace_info(outcome.prepared.workload, outcome.facts)
        ranks.append((info.rank, info.world_size))

    assert ranks == [(3, 8), (5, None), (None, None)]


@pytest.mark.parametrize("container", ["plain", "gzip", "zstd"])
def test_19_of_a_file_cut_short_the_whole_prefix_is_analysed(container: str) -> None:
    whole = document(*(kernel(f"k{number}", 10 * number, 5) for number in range(2000)))
    content = wrapped(whole, container)
    outcome = result_of(content[: len(content) * 9 // 10])

    kernels = outcome.trace.kind.size
    assert 1 < kernels < 2000
    # kernels of 5 µs every 10 µs, from 0 on
    assert outcome.parts()["compute_ns"] == kernels * 5_000
    assert outcome.parts()["span_ns"] == (kernels - 1) * 10_000 + 5_000
    assert outcome.note("truncated").startswith("The file is cut short (")


def test_19_a_second_trace_in_the_same_file_is_told() -> None:
    outcome = result_of(document(kernel("a", 10, 10)) + document(kernel("b", 30, 10)))

    assert outcome.parts() == {"span_ns": 10_000, "compute_ns": 10_000}
    assert outcome.note("dropped").startswith("1 events dropped: second trace in the same file, the first at byte ")


def test_20_numbers_that_are_none_are_read_as_none() -> None:
    content = document(
        kernel("a", 10, 10, '{"memory bandwidth (GB/s)":inf,"stream":7}'),
        kernel("b", 30, 10, '{"est. achieved occupancy %":-nan,"stream":7}'),
    )
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 20_000, "idle_ns": 10_000}
    offset = content.index(b'{"ph":"X"')
    assert outcome.note("repaired") == f"2 events repaired: not a finite number, the first at byte {offset}."


def test_21_old_spellings_give_the_totals_of_the_new_ones() -> None:
    events = [
        {"cat": "Operator", "name": "aten::mm", "pid": 9, "tid": "9", "ts": 10, "dur": 30},
        {"cat": "Runtime", "name": "cudaLaunchKernel", "pid": 9, "tid": "9", "ts": 12, "dur": 5, "corr": 4},
        {"cat": "Kernel", "name": "sgemm", "pid": 0, "tid": "stream 7", "ts": 20, "dur": 18, "corr": 4},
        {
            "cat": "Memcpy",
            "name": "Memcpy HtoD (Pageable -> Device)",
            "pid": 0,
            "tid": "stream 7",
            "ts": 40,
            "dur": 2,
        },
        {"cat": "Memset", "name": "Memset (Device)", "pid": 0, "tid": "stream 7", "ts": 45, "dur": 5},
    ]
    for event in events:
        event |= {"ph": "X", "args": {"correlation": event.pop("corr", 0), "external id": 4}}
    outcome = result_of(json.dumps(events).encode())

    # 20 to 50 µs: a kernel of 18, a fill of 5, a copy of 2
    assert outcome.parts() == {
        "span_ns": 30_000,
        "compute_ns": 23_000,
        "exposed_copy_ns": 2_000,
        "idle_ns": 5_000,
    }
    assert outcome.ops["aten::mm"] == 18_000


VENDORS = {
    "XPU": (
        "xpu_runtime",
        "kernel",
        "urEnqueueKernelLaunch",
        {"sycl queue": "0x1", "l0 queue": 1},
        0,
        "queue 1",
    ),
    "MTIA": ("mtia_runtime", "mtia_ccp_events", "runFunction", {}, 3, 2),
    "MUSA": ("privateuse1_runtime", "kernel", "musaLaunchKernel", {"stream": 3}, 0, 3),
    "ROCm's default stream": ("cuda_runtime", "kernel", "hipLaunchKernel", {"stream": 0, "device": 0}, 0, 0),
}


@pytest.mark.parametrize("vendor", VENDORS)
def test_22_every_vendors_kernels_count(vendor: str) -> None:
    runtime, category, call, args, pid, tid = VENDORS[vendor]
    trace = TraceBuilder()
    trace.op("aten::mm", ts=1, dur=9, **MATRIX)
    launch = trace.launch(call, ts=2, cat=runtime)
    where = {"pid": pid, "tid": tid}
    trace.event(ph="X", cat=category, name="gemm", ts=20, dur=30, args={"correlation": launch, **args}, **where)
    outcome = result(trace)

    assert outcome.parts(device=pid) == {"span_ns": 30_000, "compute_ns": 30_000}
    assert outcome.ops == {"aten::mm": 30_000}


def test_22_times_that_npus_write_as_text_are_exact() -> None:
    content = document(
        '{"ph":"X","cat":"kernel","name":"MatMulV2","pid":0,"tid":1,"ts":"1700000000000000.125","dur":"10.250"}',
        '{"ph":"X","cat":"kernel","name":"Add","pid":0,"tid":1,"ts":"1700000000000020.375","dur":"5.000"}',
    )

    # from .125 on: 10.250 busy, then 10 until .375, then 5
    assert result_of(content).parts() == {"span_ns": 25_250, "compute_ns": 15_250, "idle_ns": 10_000}


@pytest.mark.parametrize("unit", ["ns", "ms", None])
def test_23_the_unit_of_display_changes_nothing(unit: str | None) -> None:
    trace = run()
    trace.header(**({"displayTimeUnit": unit, "baseTimeNanoseconds": 1_700_000_000_000_000_000} if unit else {}))

    assert result(trace).parts() == THREE


def test_24_ids_beyond_64_bits_with_sign_are_kept_apart() -> None:
    """Two ids that a double cannot tell apart, beyond 2^63: each kernel has the op of its own."""
    trace = TraceBuilder()
    for number in range(2):
        trace.op(f"aten::op{number}", ts=10 * number, dur=9, **MATRIX)
        correlation = 2**63 + 2**62 + number
        trace.launch(ts=10 * number + 1, correlation=correlation)
        trace.kernel("k", ts=100 * number + 50, dur=10, correlation=correlation, **{"Comms Id": 2**64 - 1})
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 110_000, "compute_ns": 20_000, "idle_ns": 90_000}
    assert outcome.ops == {"aten::op0": 10_000, "aten::op1": 10_000}
    assert len(set(outcome.trace.correlation.tolist()) - {-1}) == 2


def test_25_frames_without_a_name_do_not_change_the_totals() -> None:
    trace = run()
    for number in range(300):
        trace.python("unknown", ts=1000 + number, dur=0.5)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.codes == ["few_gpu_events"]
    assert outcome.ops == {"aten::mm": 120_000}


def test_a_file_of_metadata_alone_is_refused_in_one_line() -> None:
    with pytest.raises(NotATrace, match=r"holds no intact event with a time \(1 read, none usable\)"):
        result_of(document('{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"python"}}'))


def test_links_of_a_run_are_all_by_correlation() -> None:
    """What the cases above compare with: nothing in a clean run is linked by less."""
    links = result(run()).prepared.workload.activities.link

    assert links.tolist() == [int(Link.CORRELATION)] * 3
