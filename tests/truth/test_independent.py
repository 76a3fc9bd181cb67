"""The second opinion itself, on traces small enough to check by eye."""

from __future__ import annotations

import gzip
import json

from tests.truth.independent import describe, kind_of, load

# us         0    5    10   15   20   25   30   35
# stream 7   [--A--]             [-B-]
# stream 8        [---nccl---]
# stream 9             [---copy---]         [D]         device 1 has D only
OVERLAPS = [
    ("kernel", "A", 0, 7, 7, 0, 1),
    ("kernel", "ncclDevKernel_AllReduce", 5, 10, 8, 0, 2),
    ("gpu_memcpy", "Memcpy HtoD", 10, 10, 9, 0, 3),
    ("kernel", "B", 20, 5, 7, 0, 4),
    ("kernel", "D", 30, 3, 9, 1, 5),
]


def gpu(row):
    category, name, ts, dur, stream, device, correlation = row
    args = {"device": device, "stream": stream, "correlation": correlation}
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "ts": ts,
        "dur": dur,
        "pid": device,
        "tid": stream,
        "args": args,
    }


def host(category, name, ts, dur, **args):
    return {"ph": "X", "cat": category, "name": name, "ts": ts, "dur": dur, "pid": 1, "tid": 1, "args": args}


def described(tmp_path, events):
    path = tmp_path / "trace.json"
    path.write_bytes(gzip.compress(json.dumps({"traceEvents": events}).encode()))
    return describe(load(path))


def test_overlapping_activities_are_charged_once_and_each_device_has_its_own_ledger(tmp_path):
    first, second = described(tmp_path, [gpu(row) for row in OVERLAPS])["devices"]

    assert first["span_ns"] == 25_000
    assert first["compute_ns"] == 12_000  # A 0-7 and B 20-25
    assert first["exposed_comm_ns"] == 8_000  # 7-15
    assert first["exposed_copy_ns"] == 5_000  # 15-20
    assert first["idle_ns"] == 0
    assert (first["total_comm_ns"], first["total_copy_ns"]) == (10_000, 10_000)
    assert (second["device"], second["span_ns"], second["compute_ns"]) == (1, 3_000, 3_000)


def test_an_unlinked_kernel_is_carried_in_before_its_streams_first_linked_one_and_lost_after_it(tmp_path):
    kernels = [
        ("kernel", "early", 0, 1, 7, 0, 100),
        ("kernel", "linked", 12, 2, 7, 0, 1),
        ("kernel", "late", 20, 4, 7, 0, 101),
        ("kernel", "other stream, first before the launch", 5, 8, 8, 0, 102),
        ("kernel", "other stream, first after the launch", 11, 16, 9, 0, 0),
    ]
    events = [gpu(row) for row in kernels] + [host("cuda_runtime", "cudaLaunchKernel", 10, 1, correlation=1)]

    device = described(tmp_path, events)["devices"][0]

    assert (device["carry_in_events"], device["carry_in_sum_ns"]) == (2, 9_000)  # 1 + 8
    assert (device["lost_events"], device["lost_sum_ns"]) == (2, 20_000)  # 4 + 16; 0 is no id


def test_the_owner_is_the_innermost_op_open_at_the_launch_and_an_op_ending_there_is_closed(tmp_path):
    events = [
        host("cpu_op", "outer", 0, 20),
        host("cpu_op", "ended", 1, 4),
        host("cpu_op", "inner", 6, 3),
        host("cuda_runtime", "cudaLaunchKernel", 5, 1, correlation=1),
        host("cuda_driver", "cuLaunchKernel", 7, 1, correlation=2),
        host("cuda_runtime", "cudaGraphLaunch", 25, 1, correlation=3),
        host("cuda_runtime", "cudaLaunchKernel", 26, 1, correlation=9),
        host("cuda_runtime", "cudaLaunchHostFunc", 27, 1, correlation=10),
    ] + [gpu(("kernel", "k", 30 + 10 * n, 10 - n, 7, 0, n)) for n in (1, 2, 3)]

    result = described(tmp_path, events)

    assert result["top_ops"] == {"outer": 9_000, "inner": 8_000}
    assert result["unowned_ns"] == 7_000  # launched by the graph, outside any op
    assert result["top_kernels"] == {"k": 24_000}
    assert (result["launches"], result["launches_without_kernel"]) == (4, 1)


def test_old_spellings_and_decimal_times_read_like_new_ones(tmp_path):
    kernel = {"ph": "X", "cat": "Kernel", "name": "k", "ts": 1419247333430.849, "dur": 3.136, "pid": 3}
    memset = {"ph": "X", "cat": "Memset", "name": "Memset", "ts": 1419247333440, "dur": 1, "pid": 3}
    events = [{**kernel, "tid": "stream 7"}, {**memset, "tid": "stream 7", "args": {"correlation": 1}}]

    (device,) = described(tmp_path, events)["devices"]

    assert device["device"] == 3
    assert device["compute_ns"] == 4_136  # 3.136 + 1 us
    assert device["span_ns"] == 10_151  # 440 - 430.849 + 1 us


def test_rocm_copies_recorded_as_kernels_are_copies_and_its_fills_are_compute():
    assert kind_of("kernel", "__amd_rocclr_copyBufferAligned.kd") == "copy"
    assert kind_of("kernel", "MEMORY_COPY_DEVICE_TO_HOST") == "copy"
    assert kind_of("kernel", "__amd_rocclr_fillBufferAligned") == "compute"
    assert kind_of("memset", "Memset (Device)") == "compute"
    assert kind_of("kernel", "void cross_device_reduce_1stage<bf16>") == "comm"
