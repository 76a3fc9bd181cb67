"""Traces of the profiler before Kineto: two processes by name, arrows between them, no categories."""

from __future__ import annotations

import json

from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder


def host(name: str, ts: float, dur: float, tid: int = 1) -> dict[str, object]:
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": tid, "pid": "CPU functions", "args": {}}


def gpu(name: str, ts: float, dur: float, device: int = 0) -> dict[str, object]:
    return {"name": name, "ph": "X", "ts": ts, "dur": dur, "tid": device, "pid": "CUDA functions", "args": {}}


def arrow(number: int, ts: float, to_ts: float) -> list[dict[str, object]]:
    plain = {"name": "x", "id": number, "cat": "cpu_to_cuda", "args": {}}
    return [
        {"ph": "s", "ts": ts, "tid": 1, "pid": "CPU functions", **plain},
        {"ph": "f", "ts": to_ts, "tid": 0, "pid": "CUDA functions", **plain},
    ]


EVENTS = [
    host("aten::mm", 10.5, 20),
    *arrow(1, 10.5, 40),
    gpu("sgemm", 40, 30),
    host("aten::add", 32, 5),
    *arrow(2, 32, 75),
    gpu("add_kernel", 75, 5),
]


def test_ops_and_kernels_are_told_by_their_process(folder: Folder) -> None:
    trace, facts = folder.load(json.dumps(EVENTS).encode())

    assert facts.format == "plain, legacy autograd"
    assert events_of(trace) == [
        ("CPU_OP", "aten::mm", 0, 20_000),
        ("KERNEL", "sgemm", 29_500, 30_000),
        ("CPU_OP", "aten::add", 21_500, 5_000),
        ("KERNEL", "add_kernel", 64_500, 5_000),
    ]


def test_arrows_give_kernels_their_ops(folder: Folder) -> None:
    result = analysed(folder, json.dumps(EVENTS).encode())

    # 40 to 80 µs: kernels of 30 and 5
    assert result.parts() == {"span_ns": 40_000, "compute_ns": 35_000, "idle_ns": 5_000}
    assert result.ops == {"aten::mm": 30_000, "aten::add": 5_000}


def test_a_trailing_comma_of_its_writer_harms_nothing(folder: Folder) -> None:
    content = json.dumps(EVENTS).encode()[:-1] + b", ]"

    assert len(folder.trace(content).kind) == 4
