"""Reported cases, A5 to A9: stacks and annotations, shapes, collectives, vendors, size."""

from __future__ import annotations

import json

import pytest

from tests.support.trace_builder import TraceBuilder, collective
from tests.trace.cases.runs import MATRIX, result, result_of, run
from tests.trace.cases.test_kinds import THREE
from tests.trace.reading import document, kernel


def test_a41_a_step_that_begins_inside_a_frame_is_cut_and_still_a_step() -> None:
    trace = run()
    trace.python("train.py(3): loop", ts=990, dur=60)
    trace.op("aten::x", ts=991, dur=2)
    outcome = result(trace)

    assert outcome.steps == ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"]
    assert outcome.parts() == THREE
    assert "host_overlap" in outcome.codes


def test_a42_frames_that_never_return_are_tolerated() -> None:
    trace = run()
    trace.python("model.py(1): f", ts=1001, dur=1_000_000, finished=False)
    trace.python("model.py(2): g", ts=1002, dur=0, finished=False)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}
    # the first step, from 1000 to 1099, is the one that the endless frame began in
    assert outcome.note("host_overlap") == "1 host events end after the event they began in; they are cut there."


def test_a43_stacks_that_the_header_promises_and_no_frame_shows_are_missed() -> None:
    trace = run()
    trace.header(with_stack=1)

    assert result(trace).note("no_stacks").startswith("No Python stacks recorded although its header says so: ")


def test_a44_annotations_of_the_gpu_are_never_busy_time() -> None:
    trace = run()
    trace.gpu_annotation("Optimizer.step", ts=1000, dur=300)
    trace.gpu_annotation("ProfilerStep#1", ts=1020, dur=40)

    assert result(trace).parts() == THREE


def test_a45_kernels_of_the_warm_up_that_run_in_the_first_step_are_not_its() -> None:
    trace = run(range(1, 4))
    launch = trace.launch(ts=950)
    trace.kernel("of the warm-up", ts=1101, dur=15, correlation=launch)
    outcome = result(trace)

    assert outcome.prepared.workload.steps.of_activity.tolist() == [-1, 0, 1, 2]
    assert outcome.steps == ["ProfilerStep#1", "ProfilerStep#2", "ProfilerStep#3"]


def test_a46_compiled_kernels_that_are_written_as_ops_and_ddp_as_an_annotation_keep_the_totals() -> None:
    trace = run()
    trace.annotation("DistributedDataParallel.forward", ts=1004, dur=12)
    trace.op("triton_poi_fused_add_0", ts=1030, dur=5, dims=[[100]], types=["float"], grid="grid(100,)")
    trace.kernel("triton_poi_fused_add_0", ts=1062, dur=3, correlation=trace.launch("cuLaunchKernel", ts=1031))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 240_000, "compute_ns": 123_000, "idle_ns": 117_000}
    assert outcome.ops["triton_poi_fused_add_0"] == 3_000


def test_a47_a_header_that_promises_memory_events_changes_nothing() -> None:
    trace = run()
    trace.header(profile_memory=1)

    assert result(trace).parts() == THREE


def test_a48_kernels_that_overlap_in_one_lane_are_all_kept() -> None:
    content = document(*(kernel(f"k{number}", 10 + number, 50) for number in range(30)))
    outcome = result_of(content)

    assert outcome.prepared.workload.activities.row.size == 30
    # 10 to 89 µs
    assert outcome.parts() == {"span_ns": 79_000, "compute_ns": 79_000}


def test_a50_a_trace_without_steps_and_ranks_is_analysed() -> None:
    outcome = result(run(annotated=False))

    assert outcome.parts() == THREE
    assert outcome.steps == ["whole trace"]
    assert "no_steps" in outcome.codes


@pytest.mark.parametrize(
    "event",
    ['{"ph":"X","ts":5,"dur":1}', '{"ph":"X","ts":5}', '{"ph":"X","cat":null,"name":null,"ts":5,"dur":1}'],
)
def test_a51_events_without_keys_are_of_no_kind_and_harm_nothing(event: str) -> None:
    outcome = result_of(document(kernel("k", 10, 5), event))

    assert outcome.parts() == {"span_ns": 5_000, "compute_ns": 5_000}


def test_a52_and_a57_kernels_without_ops_or_with_empty_shapes_stay_unrated_with_a_reason() -> None:
    from rooftrace.roofline import coverage

    trace = TraceBuilder()
    trace.device()
    trace.op("aten::mm", ts=0, dur=5, dims=[[], []], types=["", ""])
    trace.kernel("sgemm", ts=10, dur=30, correlation=trace.launch(ts=1))
    trace.kernel("flash_fwd_kernel", ts=50, dur=20, correlation=trace.launch(ts=8))
    workload = result(trace).prepared.workload

    found = coverage(workload.activities, workload.groups, workload.ratings)
    assert (found.kernel_ns, found.rated_ns) == (50_000, 0)
    assert sum(found.reasons.values()) == 50_000


def test_a53_to_a55_odd_records_of_inputs_cost_no_kernel_its_time() -> None:
    trace = TraceBuilder()
    trace.device()
    odd = [
        {"dims": [[24576, 96], [1, 1536, 200, 96]], "types": ["float", "float"]},
        {"dims": [[]] * 55, "types": [""] * 55, "concrete": [""] * 55},
        {"dims": [[[2873320]], [], [[1], [2]]], "types": ["TensorList", "Scalar", "TensorList"]},
        {"dims": "not a list", "types": 5},
        {"dims": [[-1, 2**63]], "types": ["float"]},
        {"dims": [["s0", "s1"]], "types": ["float"]},
    ]
    for number, inputs in enumerate(odd):
        trace.op("aten::addmm", ts=10 * number, dur=8, **inputs)
        trace.kernel("k", ts=100 + 10 * number, dur=5, correlation=trace.launch(ts=10 * number + 1))
    outcome = result(trace)

    assert sum(outcome.ops.values()) == 6 * 5_000


def test_a56_a_collectives_op_without_a_kernel_is_no_error() -> None:
    trace = run()
    trace.op("record_param_comms", ts=1030, dur=5, **collective("barrier", 0))

    assert result(trace).parts() == THREE


def test_a60_collectives_without_metadata_in_a_group_are_communication() -> None:
    trace = run()
    launch = trace.launch("ncclGroupEnd", ts=1065)
    trace.kernel("ncclDevKernel_SendRecv(ncclDevComm*)", ts=1070, dur=10, stream=20, correlation=launch)

    assert result(trace).parts()["exposed_comm_ns"] == 10_000


def test_a61_a_custom_all_reduce_is_communication() -> None:
    trace = run()
    launch = trace.launch(ts=1065)
    trace.kernel("void vllm::cross_device_reduce_2stage<half, 4>()", ts=1070, dur=10, correlation=launch)

    assert result(trace).parts()["exposed_comm_ns"] == 10_000


@pytest.mark.parametrize("told", [None, {}, "x", [1], {"rank": "0"}, {"rank": -1, "world_size": 1.5}], ids=repr)
def test_a63_a_trace_needs_no_word_about_its_rank(told: object) -> None:
    from rooftrace.workflow.facts import trace_info

    trace = run()
    trace.header(distributedInfo=told)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert trace_info(outcome.prepared.workload, outcome.facts).rank is None


def test_a65_the_default_stream_of_rocm_is_a_stream() -> None:
    trace = TraceBuilder()
    trace.kernel("k", ts=10, dur=5, stream=0, correlation=trace.launch("hipLaunchKernel", ts=1))

    assert result(trace).parts() == {"span_ns": 5_000, "compute_ns": 5_000}
    assert result(trace).prepared.workload.activities.stream.tolist() == [0]


def test_a67_host_records_without_kernels_of_a_vendor_are_lost_activity() -> None:
    trace = TraceBuilder()
    trace.op("aten::mm", ts=1, dur=5, **MATRIX)
    trace.launch("urEnqueueKernelLaunch", ts=2, cat="xpu_runtime")

    assert result(trace).note("no_gpu_events").startswith("1 kernel launches but no GPU events")


def test_a68_repeated_correlations_and_overlaps_of_mtia_are_tolerated() -> None:
    trace = TraceBuilder()
    for number in range(10):
        trace.launch("runFunction", ts=10 * number, dur=15, cat="mtia_runtime", correlation=1 + number % 2)
        place = {"pid": 3, "tid": 2}
        args = {"correlation": 1 + number % 2}
        trace.event(ph="X", cat="mtia_ccp_events", name="op", ts=10 * number + 5, dur=12, args=args, **place)
    outcome = result(trace)

    # 5 to 107 µs, all covered
    assert outcome.parts(device=3) == {"span_ns": 102_000, "compute_ns": 102_000}


def test_a69_durations_of_zero_throughout_divide_by_nothing() -> None:
    content = document(kernel("a", 10, 0, '{"context":"39932"}'), kernel("b", 10, 0))

    assert result_of(content).parts() == {}


def test_a71_an_unknown_gpu_has_everything_but_a_roofline() -> None:
    trace = run()
    trace.header(deviceProperties=[])
    content = trace.document() | {"deviceProperties": [{"id": 0, "name": "AMD Instinct MI999X"}]}
    outcome = result_of(json.dumps(content).encode())

    assert outcome.parts() == THREE
    assert outcome.ops == {"aten::mm": 120_000}
    assert "no platform is named `AMD Instinct MI999X`" in outcome.note("unknown_gpu")


@pytest.mark.parametrize("name", ["bs_24_rank0.json.gz", "x.bin", "trace", "t.pt.trace.json.tmp"])
def test_a72_the_name_of_a_file_does_not_matter(name: str) -> None:
    assert result(run(), name=name).parts() == THREE


def test_a73_frames_in_another_layout_are_frames() -> None:
    trace = run()
    trace.python("<built-in method mm of type object at 0x7f>", ts=1004, dur=12)
    trace.python("", ts=1004, dur=12)
    trace.python("no brackets at all", ts=1004, dur=12)

    assert result(trace).parts() == THREE


def test_a74_a_trace_of_hardly_anything_is_told() -> None:
    assert result(run()).note("few_gpu_events") == "Only 3 GPU events: too few to speak for a workload."


def test_a75_frames_by_the_thousand_do_not_change_what_the_gpu_did() -> None:
    trace = run()
    for number in range(3000):
        trace.python(f"f.py({number % 50}): g", ts=1000 + number / 10, dur=0.05)
    outcome = result(trace)

    assert outcome.parts() == THREE
    assert outcome.trace.event_count == 3000 + 3 * 4
