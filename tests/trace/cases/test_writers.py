"""What Kineto's writer has done over the years: every version's files give the same totals."""

from __future__ import annotations

import json

import pytest

from rooftrace.trace import Kind
from tests.support.trace_builder import TraceBuilder, collective
from tests.trace.cases.runs import MATRIX, result, result_of, run
from tests.trace.cases.test_kinds import THREE
from tests.trace.reading import document, kernel, times_of


def test_of_1_8_a_top_level_array_with_capitals_and_streams_by_name() -> None:
    events = [
        {
            "cat": "Operator",
            "name": "aten::mm",
            "pid": 9,
            "tid": "9",
            "ts": 10,
            "dur": 30,
            "args": {"external id": 4},
        },
        {
            "cat": "Kernel",
            "name": "sgemm",
            "pid": 0,
            "tid": "stream 7",
            "ts": 20,
            "dur": 18,
            "args": {"external id": 4, "queued": 0},
        },
        {"cat": "Kernel", "name": "other", "pid": 0, "tid": "stream 8", "ts": 30, "dur": 10, "args": {}},
    ]
    outcome = result_of(json.dumps([{"ph": "X", **event} for event in events]).encode())

    # 20 to 40 µs, two streams at once for 8
    assert outcome.parts() == {"span_ns": 20_000, "compute_ns": 20_000}
    assert outcome.ops == {"aten::mm": 18_000, "other": 10_000}
    assert outcome.prepared.workload.activities.stream.tolist() == [7, 8]


def test_of_2021_memory_instants_and_both_spellings_of_occupancy_change_nothing() -> None:
    trace = run(**{"est. achieved occupancy %": 50, "theoretical occupancy %": 100, "occupancy": {"x": 2147483647}})
    place = {"pid": 4242, "tid": 1, "ts": 1010, "s": "t"}
    args = {
        "Addr": 140_000_000_000_000,
        "Bytes": -512,
        "Device Type": 1,
        "Total Allocated": 0,
        "Total Reserved": 0,
    }
    trace.event(ph="i", cat="cpu_instant_event", name="[memory]", args=args, **place)

    assert result(trace).parts() == THREE


def backward(*, flows: bool) -> TraceBuilder:
    """A forward op in a module, and its backward op on another thread, which launches the kernel."""
    trace = TraceBuilder()
    trace.device()
    trace.python("nn.Module: Linear_0", ts=0, dur=20)
    trace.op("aten::mm", ts=5, dur=5, sequence=3, **MATRIX)
    trace.op("MmBackward0", ts=30, dur=10, tid=2, sequence=3, forward_thread=1)
    trace.op("aten::mm", ts=31, dur=8, tid=2, **MATRIX)
    trace.kernel("sgemm", ts=40, dur=20, correlation=trace.launch(ts=32, tid=2))
    if flows:
        trace.flow(1, ts=5, to_ts=30, to_tid=2, cat="fwdbwd")
    return trace


@pytest.mark.parametrize("flows", [True, False])
def test_of_1_11_to_2_0_backward_finds_its_module_without_flows(flows: bool) -> None:
    workload = result(backward(flows=flows)).prepared.workload

    (group,) = workload.groups
    paths = workload.context.module_paths
    assert {paths[path]: ns for path, ns in group.module_ns.items()} == {("Linear_0",): 20_000}


def test_of_2022_the_profilers_overhead_is_its_own_and_not_the_gpus() -> None:
    trace = run()
    place = {"pid": -1, "tid": 0}
    for number, name in enumerate(("Activity Buffer Request", "Lazy Function Loading", "Command Buffer Full")):
        trace.event(ph="X", cat="overhead", name=name, ts=1000 + number, dur=500, args={}, **place)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.note("profiler_overhead") == "The profiler itself recorded 1.500 ms of overhead in 3 events."


@pytest.mark.parametrize("category", ["cpu_to_cuda", "async", "async_gpu", "async_cpu_to_gpu", "ac2g"])
def test_the_flow_category_of_every_year_links_where_nothing_else_does(category: str) -> None:
    trace = run(correlation=None, external_id=None)
    for step in range(3):
        trace.flow(step + 1, ts=1006 + 100 * step, to_ts=1020 + 100 * step, cat=category)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}


def test_before_2023_a_windows_path_in_a_name_is_no_escape() -> None:
    content = document(
        kernel("a", 10, 10),
        r'{"ph":"X","cat":"python_function","name":"torch\cuda\__init__.py(219): f","pid":1,"tid":1,"ts":1,"dur":5}',
    )
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 10_000, "compute_ns": 10_000}
    offset = content.index(b'{"ph":"X","cat":"python_function"')
    assert outcome.note("repaired") == f"1 events repaired: unknown escape in a string, the first at byte {offset}."


@pytest.mark.parametrize("where", ["kernel", "op", "nowhere"])
def test_a_collective_counts_wherever_its_metadata_stands(where: str) -> None:
    told = collective("allreduce", 1024)
    trace = TraceBuilder()
    trace.op("record_param_comms", ts=1, dur=9, **(told if where == "op" else {"concrete": ["1024", "", "0"]}))
    trace.kernel(
        "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
        ts=20,
        dur=30,
        stream=20,
        correlation=trace.launch("cudaLaunchKernelExC", ts=2),
        **(told if where == "kernel" else {}),
    )

    assert result(trace).parts() == {"span_ns": 30_000, "exposed_comm_ns": 30_000}


def test_before_february_2024_external_ids_are_correlations_and_mean_nothing() -> None:
    trace = run()
    outcome = result(trace)
    mixed = TraceBuilder()
    mixed.device()
    for step in range(3):
        at = 1000 + 100 * step
        mixed.annotation(f"ProfilerStep#{step}", ts=at, dur=99)
        mixed.op("aten::mm", ts=at + 5, dur=10, external_id=70 + step, **MATRIX)
        mixed.op("aten::other", ts=at + 1, dur=1, tid=3, external_id=step + 1)
        launch = mixed.launch(ts=at + 6, dur=3)
        mixed.kernel("sgemm", ts=at + 20, dur=40, correlation=launch, external_id=launch)

    assert result(mixed).ops == outcome.ops == {"aten::mm": 120_000}
    assert result(mixed).parts() == THREE


def nightly(*times: tuple[str, str]) -> bytes:
    """Kernels with times as they stand in the file, under the header of those weeks."""
    whole = document(*(kernel("k", ts, dur) for ts, dur in times))
    return whole.replace(b'"schemaVersion":1,', b'"schemaVersion":1,"displayTimeUnit":"ns",', 1)


def test_of_march_2024_times_get_the_zeros_that_their_fractions_lack() -> None:
    """10.5 is 10 µs and 5 ns: nine kernels of 2 µs and 50 ns, 10 µs and 1 ns apart."""
    outcome = result_of(nightly(*((f"{1000 + 10 * number}.{number}", "2.50") for number in range(9))))

    # the last begins at 1080 µs and 8 ns, the first at 1000: 80.008 + 2.050
    assert outcome.parts() == {"span_ns": 82_058, "compute_ns": 9 * 2_050, "idle_ns": 82_058 - 9 * 2_050}
    assert outcome.note("repaired").startswith("9 events repaired: time without the zeros of its fraction, the first")
    assert "clock_precision" not in outcome.codes


def test_of_march_2024_times_that_prove_nothing_are_told_as_imprecise_and_left() -> None:
    outcome = result_of(nightly(("1000.5", "10.25"), ("1020.5", "10.25")))

    assert outcome.parts() == {"span_ns": 30_250, "compute_ns": 20_500, "idle_ns": 9_750}
    assert outcome.note("clock_precision").startswith("4 times have fractions that may lack zeros")
    assert "repaired" not in outcome.codes


def test_of_april_2024_times_count_from_a_base_of_each_file() -> None:
    """Two files of one run, with bases a second apart: events of one moment have times a second apart."""
    starts = []
    for base, ts in ((1_712_000_000_000_000_000, 5_000_000.125), (1_712_000_001_000_000_000, 4_000_000.125)):
        trace = TraceBuilder()
        trace.header(baseTimeNanoseconds=base, displayTimeUnit="ms")
        trace.kernel("k", ts=ts, dur=10)
        columns = trace.build()
        starts.append(columns.header["baseTimeNanoseconds"] + columns.base_ns + int(columns.start[0]))

    # base + 5 s and 125 ns
    assert starts == [1_712_000_005_000_000_125] * 2


def test_of_june_2024_an_annotation_on_the_gpu_that_begins_early_is_not_busy_time() -> None:
    trace = run()
    trace.gpu_annotation("ProfilerStep#0", ts=900, dur=2000)

    assert result(trace).parts() == THREE


def test_before_october_2024_threads_may_be_negative() -> None:
    trace = TraceBuilder()
    trace.op("aten::mm", ts=1, dur=9, tid=-1_234_567, **MATRIX)
    trace.kernel("sgemm", ts=20, dur=30, correlation=trace.launch(ts=2, tid=-1_234_567))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 30_000}
    assert outcome.ops == {"aten::mm": 30_000}


def test_of_2025_unreadable_names_are_unknown_and_still_frames() -> None:
    trace = run()
    trace.python("unknown", ts=1004, dur=12)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert int((outcome.trace.kind == Kind.PYTHON).sum()) == 1


@pytest.mark.parametrize("where", ["before", "behind"])
def test_the_base_may_stand_before_or_behind_the_events(where: str) -> None:
    base = b'"baseTimeNanoseconds":1712000000000000000,"displayTimeUnit":"ms"'
    events = b'"traceEvents":[' + kernel("k", 10, 5).encode() + b"]"
    content = b"{" + b",".join((base, events) if where == "before" else (events, base)) + b"}"

    assert result_of(content).trace.header["baseTimeNanoseconds"] == 1_712_000_000_000_000_000


def test_versions_in_the_header_are_told_even_without_devices() -> None:
    from rooftrace.workflow.facts import trace_info

    trace = run()
    trace.header(deviceProperties=[], hip_runtime_version=60_200_000, hip_driver_version=6, roctracer_version=4)
    trace = _without_devices(trace)
    outcome = result_of(trace)

    assert trace_info(outcome.prepared.workload, outcome.facts).versions == {
        "hip_driver_version": "6",
        "hip_runtime_version": "60200000",
        "roctracer_version": "4",
    }
    assert outcome.note("unknown_gpu").startswith("The GPU is unknown")


def _without_devices(trace: TraceBuilder) -> bytes:
    content = trace.document()
    content["deviceProperties"] = []
    return json.dumps(content).encode()


def test_of_2026_the_profilers_environment_is_passed_over() -> None:
    trace = run()
    trace.header(PT_PROFILER_JOB_NAME="x", PT_PROFILER_VERSION={"a": [1, {"b": None}]})

    assert result(trace).parts() == THREE


def test_of_2026_kernels_tell_their_graph_and_node() -> None:
    trace = TraceBuilder()
    launch = trace.launch("cudaGraphLaunch", ts=0)
    for node in (3, 4):
        trace.kernel("k", ts=10 * node, dur=5, correlation=launch, **{"graph id": 1, "graph node id": node})
    outcome = result(trace)

    assert outcome.trace.graph_node.tolist() == [-1, 3, 4]
    assert "graph_replay" in outcome.codes


def test_of_2026_a_collectives_id_beyond_63_bits_harms_nothing() -> None:
    trace = TraceBuilder()
    told = collective("allreduce", 1024) | {"Seq": 7, "Comms Id": 2**64 - 1}
    trace.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL", ts=1, dur=5, stream=20, correlation=1, **told)
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 5_000, "exposed_comm_ns": 5_000}
    assert outcome.trace.collectives[0].in_elements == 1024
    assert outcome.trace.repaired.counts == {}


def test_of_april_2026_waits_on_a_thread_of_their_own_are_no_stream_of_the_gpu() -> None:
    trace = run()
    place = {"pid": 0, "tid": 1_000_007}
    trace.event(
        ph="X",
        cat="cuda_sync",
        name="Stream Sync",
        ts=1000,
        dur=500,
        args={"stream": 7, "device": 0},
        **place,
    )
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert set(outcome.prepared.workload.activities.stream.tolist()) == {7}


@pytest.mark.parametrize("escaped", [True, False])
def test_of_july_2026_quotes_in_names_are_escaped_and_log_lines_are_gone(escaped: bool) -> None:
    quote = b'\\"' if escaped else b'"'
    name = b"f(" + quote + b"x" + quote + b")"
    logs = b"" if escaped else b'"WARNING": ["said "stop" here", "a\nb"],'
    event = b'{"ph":"X","cat":"kernel","name":"' + name + b'","pid":0,"tid":7,"ts":20,"dur":5}'
    content = b'{"schemaVersion":1,' + logs + b'"traceEvents":[' + event + b"]}"
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 5_000, "compute_ns": 5_000}
    assert outcome.trace.names == ['f("x")']
    assert outcome.trace.repaired.counts == ({} if escaped else {"unescaped quote in a name": 1})


def test_of_august_2026_sampled_counters_are_no_events() -> None:
    trace = run()
    for number in range(50):
        trace.event(
            ph="C",
            name="sm__cycles_active",
            pid="GPU 0 Counters",
            tid=0,
            ts=900 + number,
            args={"value": 1.5},
        )

    assert result(trace).parts() == THREE


def test_negative_durations_of_before_august_2022_count_as_none() -> None:
    outcome = result_of(document(kernel("a", 10, 5), kernel("b", 20, -3), kernel("c", 30, 5)))

    assert outcome.parts() == {"span_ns": 25_000, "compute_ns": 10_000, "idle_ns": 15_000}
    assert outcome.note("repaired") == "1 events repaired: GPU event with a negative duration."
    assert [dur for _, dur in times_of(outcome.trace)] == [5_000, 0, 5_000]
