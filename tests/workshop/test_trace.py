"""The written trace: consistent by itself, and like what the profiler writes."""

from __future__ import annotations

import ast
import gzip
import json
from collections import Counter
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from evals.workshop.example import TRACE_NAME, TRUTH_NAME, WORKLOAD, build, truth_text
from evals.workshop.hardware import GPUS
from evals.workshop.kineto import Header, microseconds, trace_text
from evals.workshop.simulator import simulate
from evals.workshop.transformer import Workload, inference, training

ROOT = Path(__file__).resolve().parents[2]
Event = dict[str, Any]


@cache
def example() -> tuple[str, dict[str, Any]]:
    return build()


def events(text: str) -> list[Event]:
    return json.loads(text)["traceEvents"]


def small(gpu: str) -> Workload:
    return Workload(gpu=GPUS[gpu], layers=1, width=256, heads=4, vocabulary=1000, batch=2, length=64, steps=2)


def written(workload: Workload, *, trains: bool = True) -> str:
    programs = (training if trains else inference)(workload)
    threads = {thread.tid: thread.name for thread in programs.threads}
    header = Header(gpu=workload.gpu, threads=threads, trace_name="small.json", trace_id="0" * 32)
    return trace_text(simulate(programs.threads), header)


def of(rows: list[Event], *categories: str) -> list[Event]:
    return [row for row in rows if row.get("cat") in categories and row["ph"] == "X"]


def test_the_committed_example_is_what_the_generator_writes_today():
    text, truth = example()

    assert gzip.decompress((ROOT / "examples" / TRACE_NAME).read_bytes()).decode() == text
    assert (ROOT / "examples" / TRUTH_NAME).read_text(encoding="utf-8") == truth_text(truth)


def test_two_runs_write_the_same_bytes_and_another_seed_writes_others():
    first, second = written(small("h100-sxm")), written(small("h100-sxm"))

    assert first == second
    assert first != written(replace(small("h100-sxm"), seed="another"))


def test_the_example_is_small_and_says_that_it_is_synthetic():
    text, _ = example()
    document = json.loads(text)
    names = {row["args"]["name"] for row in document["traceEvents"] if row["name"] == "process_name"}

    assert document["synthetic"] is True
    assert names == {"python3 (synthetic)"}
    assert (ROOT / "examples" / TRACE_NAME).stat().st_size < 300_000


def test_the_parts_of_each_window_sum_to_its_span_and_the_windows_to_the_whole():
    _, truth = example()
    whole, steps = truth["whole"], truth["steps"]

    for window in (whole, *steps):
        parts = window["compute_ns"] + window["exposed_copy_ns"] + window["idle_ns"]
        assert parts == window["span_ns"] == window["end_ns"] - window["start_ns"]
    for key in ("span_ns", "compute_ns", "exposed_copy_ns", "idle_ns", "kernel_count", "copy_count"):
        assert sum(step[key] for step in steps) == whole[key]


def test_the_products_of_the_example_are_those_of_its_model():
    _, truth = example()

    # A layer, forward: 8192 tokens x 1024 x (3072 + 1024 + 4096 + 4096) = 103,079,215,104 multiply-adds; the
    # head: 8192 x 1024 x 32000 = 268,435,456,000. Backward twice that again; 4 layers, 3 steps, 2 FLOPs each.
    assert truth["whole"]["gemm_flops"] == 2 * 3 * 3 * (4 * 103_079_215_104 + 268_435_456_000)
    # A step: 4 layers of 4 linears and the head, one product forward and two backward each: 17 x 3 = 51
    assert truth["whole"]["gemm_calls"] == 153


def test_the_truth_counts_what_the_file_holds():
    text, truth = example()
    rows = events(text)
    kernels, copies = of(rows, "kernel"), of(rows, "gpu_memcpy")

    assert (len(kernels), len(copies)) == (truth["whole"]["kernel_count"], truth["whole"]["copy_count"])
    assert sum(nanoseconds(row["dur"]) for row in kernels) == truth["whole"]["kernel_ns"]
    first = min(nanoseconds(row["ts"]) for row in kernels + copies)
    last = max(nanoseconds(row["ts"]) + nanoseconds(row["dur"]) for row in kernels + copies)
    assert (first, last) == (truth["whole"]["start_ns"], truth["whole"]["end_ns"])


def test_a_late_batch_costs_what_it_is_late_while_the_loss_is_read_each_step():
    _, truth = example()
    costs = {row["name"]: row["cost_ns"] for row in truth["problems"]}

    assert costs["data_loader_stall"] == 3_500_000  # the queue is empty by then, so nothing of it is hidden
    assert all(cost > 0 for cost in costs.values())


def test_taking_a_problem_out_leaves_every_other_kernel_as_it_was():
    with_it = simulate(training(WORKLOAD).threads).activities
    without = simulate(training(replace(WORKLOAD, problems=WORKLOAD.problems - {"slow_gemm"})).threads).activities
    changed = {
        (before.name, after.name)
        for before, after in zip(with_it, without, strict=True)
        if before.end_ns - before.start_ns != after.end_ns - after.start_ns
    }

    slow = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"
    assert changed == {
        (f"void cutlass::Kernel2<{slow}>({slow}::Params)", "nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN")
    }


@pytest.mark.parametrize("gpu", sorted(GPUS))
def test_each_activity_has_one_launch_before_it_and_both_ends_of_an_arrow(gpu: str):
    rows = events(written(small(gpu)))
    launches = {row["args"]["correlation"]: row for row in of(rows, "cuda_runtime", "cuda_driver")}
    arrows = Counter((row["ph"], row["id"], row["pid"], row["tid"], row["ts"]) for row in flows(rows, "ac2g"))
    activities = of(rows, "kernel", "gpu_memcpy", "gpu_memset")

    assert len(launches) == len(of(rows, "cuda_runtime", "cuda_driver"))
    assert activities
    for activity in activities:
        launch = launches[activity["args"]["correlation"]]
        number = activity["args"]["correlation"]
        assert launch["ts"] < activity["ts"]
        assert launch["args"]["External id"] == activity["args"]["External id"]
        assert arrows["s", number, launch["pid"], launch["tid"], launch["ts"]] == 1
        assert arrows["f", number, activity["pid"], activity["tid"], activity["ts"]] == 1
    assert len(arrows) == 2 * len(activities)


def flows(rows: list[Event], category: str) -> list[Event]:
    return [row for row in rows if row.get("cat") == category]


def test_no_two_activities_of_a_stream_overlap():
    text, _ = example()
    rows = sorted(of(events(text), "kernel", "gpu_memcpy", "gpu_memset"), key=lambda row: row["ts"])

    ends = [round(1000 * (row["ts"] + row["dur"])) for row in rows]
    starts = [round(1000 * row["ts"]) for row in rows]
    assert all(end <= start for end, start in zip(ends, starts[1:], strict=False))


def test_spans_of_a_thread_lie_inside_the_span_they_began_in():
    text, _ = example()
    categories = ("cpu_op", "python_function", "user_annotation", "cuda_runtime", "cuda_driver")
    rows = sorted(of(events(text), *categories), key=lambda row: (row["tid"], nanoseconds(row["ts"]), -row["dur"]))
    open_ends: list[tuple[int, int]] = []
    for row in rows:
        start = nanoseconds(row["ts"])
        end = start + nanoseconds(row["dur"])
        while open_ends and (open_ends[-1][0] != row["tid"] or open_ends[-1][1] <= start):
            open_ends.pop()
        assert not open_ends or end <= open_ends[-1][1], row["name"]
        open_ends.append((row["tid"], end))


def nanoseconds(value: float) -> int:
    return round(value * 1000)


def test_each_backward_node_points_at_the_operator_that_recorded_it():
    rows = events(written(small("h100-sxm")))
    ops = of(rows, "cpu_op")
    starts = {row["id"]: row for row in flows(rows, "fwdbwd") if row["ph"] == "s"}
    ends = {row["id"]: row for row in flows(rows, "fwdbwd") if row["ph"] == "f"}
    pairs = {(op_at(ops, starts[number])["name"], op_at(ops, ends[number])["name"]) for number in sorted(starts)}

    assert starts.keys() == ends.keys()
    assert {
        ("aten::addmm", "AddmmBackward0"),
        ("aten::mm", "MmBackward0"),
        ("aten::native_layer_norm", "NativeLayerNormBackward0"),
        ("aten::_scaled_dot_product_flash_attention", "ScaledDotProductFlashAttentionBackward0"),
        ("aten::gelu", "GeluBackward0"),
        ("aten::embedding", "EmbeddingBackward0"),
        ("aten::nll_loss_forward", "NllLossBackward0"),
    } <= pairs


def op_at(ops: list[Event], flow: Event) -> Event:
    """The innermost operator that begins where the arrow is tied."""
    here = [row for row in ops if row["tid"] == flow["tid"] and row["ts"] == flow["ts"]]
    return min(here, key=lambda row: row["dur"])


def test_python_frames_name_their_parents():
    text, _ = example()
    frames = of(events(text), "python_function")
    by_id = {row["args"]["Python id"]: row for row in frames}

    assert len(by_id) == len(frames)
    roots = [row["name"] for row in frames if row["args"]["Python parent id"] is None]
    assert roots == ["train.py(96): <module>"]
    for row in frames:
        parent = by_id.get(row["args"]["Python parent id"])
        assert parent is None or parent["ts"] <= row["ts"]


def test_an_nvidia_kernel_carries_its_geometry_and_an_amd_launch_does():
    nvidia = of(events(written(small("h100-sxm"))), "kernel")[0]["args"]
    amd_rows = events(written(small("mi300x")))
    amd_kernel, amd_call = of(amd_rows, "kernel")[0]["args"], of(amd_rows, "cuda_runtime")[1]["args"]

    assert list(nvidia) == [
        "External id",
        "queued",
        "device",
        "context",
        "stream",
        "correlation",
        "registers per thread",
        "shared memory",
        "blocks per SM",
        "warps per SM",
        "grid",
        "block",
        "est. achieved occupancy %",
    ]
    assert list(amd_kernel) == ["External id", "device", "stream", "correlation", "kind"]
    assert (amd_kernel["kind"], amd_kernel["stream"]) == ("Dispatch Kernel", 0)
    assert list(amd_call) == ["External id", "kernel", "cid", "correlation", "grid", "block", "shared memory"]


def test_inference_records_no_sequence_numbers_and_no_backward():
    rows = events(written(small("h100-sxm"), trains=False))

    assert of(rows, "kernel")
    assert not flows(rows, "fwdbwd")
    assert not [row for row in rows if "Sequence number" in row.get("args", {})]


def test_several_ranks_are_named_in_the_header():
    workload = small("h100-sxm")
    programs = inference(workload)
    header = Header(gpu=workload.gpu, threads={}, trace_name="r", trace_id="0", rank=1, world_size=2)
    document = json.loads(trace_text(simulate(programs.threads), header))

    assert document["distributedInfo"]["rank"] == 1
    assert document["distributedInfo"]["pg_config"][0]["ranks"] == [0, 1]


def test_times_are_written_with_three_decimals():
    assert [microseconds(ns) for ns in (0, 7, 1_000, 1_234_567)] == ["0.000", "0.007", "1.000", "1234.567"]


def test_the_workshop_imports_nothing_of_the_product():
    for path in sorted((ROOT / "evals" / "workshop").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not [name for name in names if "rooftrace" in name.split(".")], path.name
