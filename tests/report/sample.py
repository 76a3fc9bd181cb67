"""Small runs written by hand: the files that `report` reads, with round numbers.

The GPU run, in milliseconds of a 10 ms span on one device:

    compute 6.0 (gemm 4.0, elementwise 1.5, memory 0.48, reduction 0.02)
    exposed communication 1.0 of 1.4, exposed copies 0.5 of 0.6, idle 2.5
"""

from __future__ import annotations

import csv
import io
import json
from typing import TYPE_CHECKING

from rooftrace.contracts import tables
from tests.report.sample_findings import (
    communication,
    copies,
    elementwise_f1,
    elementwise_f2,
    evidence,
    gemm_f1,
    gemm_f2,
    idle_f1,
    reduction_f1,
)
from tests.report.sample_names import ADD_KERNEL, GEMM_KERNEL, HASH, HEAD, SKINNY_KERNEL

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Files = dict[str, object]


def gpu_files() -> Files:
    """Files of the GPU run by path: JSON artifacts as dictionaries, tables as lists of rows."""
    return {
        "manifest.json": _manifest(),
        "evidence/ledger.json": {**HEAD, "devices": [_device()]},
        "evidence/ops.csv": _ops(),
        "evidence/kernels.csv": _kernels(),
        "evidence/gaps.csv": _gaps(),
        "evidence/gemm.json": evidence("gemm", [gemm_f1(), gemm_f2()]),
        "evidence/elementwise.json": evidence("elementwise", [elementwise_f1(), elementwise_f2()]),
        "evidence/reduction.json": evidence("reduction", [reduction_f1()]),
        "evidence/idle.json": evidence("idle", [idle_f1()]),
        "evidence/multi_kernel.json": evidence("multi_kernel", [communication(), copies()]),
    }


def cpu_files() -> Files:
    """Files of a run on a trace without GPU activity."""
    manifest = _manifest()
    manifest["trace"] = {**manifest["trace"], "gpu_events": 0, "devices": [], "workload": "unknown"}
    manifest["platform"] = None
    manifest["coverage"] = {**dict.fromkeys(manifest["coverage"], 0), "reasons": {}}
    manifest["analyzers"] = []
    return {
        "manifest.json": manifest,
        "evidence/ledger.json": {**HEAD, "devices": []},
        "evidence/ops.csv": [],
        "evidence/kernels.csv": [],
        "evidence/gaps.csv": [],
    }


def write_files(run: Path, files: Files) -> Path:
    """Write a run's files as they would lie on disk."""
    for name, content in files.items():
        path = run / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if name.endswith(".csv"):
            path.write_text(_csv(name, content), encoding="utf-8", newline="")
        else:
            path.write_text(json.dumps(content), encoding="utf-8")
    return run


def renamed(value: object, change: Callable[[str], str]) -> object:
    """`value` with `change` applied to every string that a trace could have chosen."""
    if isinstance(value, dict):
        return {key: item if key in _NOT_FROM_TRACE else renamed(item, change) for key, item in value.items()}
    if isinstance(value, list):
        return [renamed(item, change) for item in value]
    return change(value) if isinstance(value, str) else value


# Closed lists, ids and hashes: rooftrace writes them, no trace can.
_NOT_FROM_TRACE = frozenset(
    {
        "schema_version",
        "tool_version",
        "source_sha256",
        "sha256",
        "workload",
        "verdict",
        "severity",
        "code",
        "slug",
    }
    | {
        "analyzer",
        "analyzers",
        "id",
        "tier",
        "category",
        "score_basis",
        "kind",
        "members",
        "patterns",
        "bound",
    }
    | {
        "confidence",
        "op_id",
        "linked",
        "phase",
        "step_source",
        "detected_by",
        "ceilings_kind",
        "flag",
        "cause",
    }
    | {"files", "unit"}
)


def _csv(name: str, rows: object) -> str:
    table = tables.TABLES[name.removeprefix("evidence/").removesuffix(".csv")]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    columns = [column.name for column in table.columns]
    writer.writerow(columns)
    assert isinstance(rows, list)
    for row in rows:
        writer.writerow([_cell(row.get(column)) for column in columns])
    return out.getvalue()


def _cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return json.dumps(value) if isinstance(value, list | dict) else value


def _manifest() -> dict:
    return {
        **HEAD,
        "trace": {
            "file": "train_small.json.gz",
            "sha256": HASH,
            "format": "gzip, kineto object",
            "events": 5_200,
            "gpu_events": 31,
            "devices": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
            "steps": [
                {"name": "ProfilerStep#4", "start_ns": 0, "end_ns": 5_400_000},
                {"name": "ProfilerStep#5", "start_ns": 5_400_000, "end_ns": 10_200_000},
            ],
            "step_source": "annotation",
            "rank": 0,
            "world_size": 8,
            "versions": {"cuda_runtime_version": "12040"},
            "workload": "training",
        },
        "health": {
            "verdict": "limited",
            "notes": [
                {
                    "code": "HEALTH_STACKS",
                    "text": "Python stacks were not recorded, so source lines are missing",
                    "count": None,
                    "severity": "limit",
                }
            ],
            "recovered": 0,
            "dropped": 2,
        },
        "platform": {
            "slug": "h100-sxm",
            "product": "NVIDIA H100 SXM5 80 GB",
            "ceilings_kind": "achievable",
            "detected_by": "name",
        },
        # 7.4 ms of kernels = 1.4 communication + 6.0 ratable; 0.48 of it (op4) has no shapes.
        "coverage": {
            "kernel_ns": 7_400_000,
            "comm_ns": 1_400_000,
            "copy_ns": 600_000,
            "carry_in_ns": 0,
            "lost_launch_ns": 0,
            "ratable_ns": 6_000_000,
            "shaped_ns": 5_520_000,
            "modelled_ns": 5_520_000,
            "rated_ns": 5_520_000,
            "reasons": {"no input shapes recorded": 480_000},
        },
        "cpu_ops": [
            _host_op("aten::mm", (14, 900_000, 700_000, 60_000, 120_000)),
            _host_op("aten::add", (5, 250_000, 200_000, 40_000, 90_000)),
        ],
        "analyzers": ["gemm", "elementwise", "reduction", "idle", "multi_kernel"],
        "files": [],
    }


def _host_op(name: str, facts: tuple[int, int, int, int, int]) -> dict:
    return dict(zip(("count", "total_ns", "self_ns", "median_ns", "max_ns"), facts, strict=True), name=name)


def _parts(span: int, compute: int, comm: int, copy: int, idle: int) -> dict:
    return {
        "span_ns": span,
        "compute_ns": compute,
        "exposed_comm_ns": comm,
        "exposed_copy_ns": copy,
        "idle_ns": idle,
        "idle_by_cause": {"unattributed": idle},
    }


def _device() -> dict:
    whole = {"gemm": 4_000_000, "elementwise": 1_500_000, "memory": 480_000, "reduction": 20_000}
    first = {"gemm": 2_000_000, "elementwise": 900_000, "memory": 380_000, "reduction": 20_000}
    second = {"gemm": 2_000_000, "elementwise": 600_000, "memory": 100_000}
    return {
        "device": 0,
        "start_ns": 100_000,
        "carry_in_ns": 0,
        "window_ns": 10_200_000,
        **_parts(10_000_000, 6_000_000, 1_000_000, 500_000, 2_500_000),
        "total_comm_ns": 1_400_000,
        "total_copy_ns": 600_000,
        "compute_by_category": whole,
        "steps": [
            {
                "name": "ProfilerStep#4",
                "start_ns": 100_000,
                **_parts(5_500_000, 3_300_000, 500_000, 300_000, 1_400_000),
                "total_comm_ns": 700_000,
                "total_copy_ns": 300_000,
                "carry_in_ns": 0,
                "compute_by_category": first,
            },
            {
                "name": "ProfilerStep#5",
                "start_ns": 5_600_000,
                **_parts(4_500_000, 2_700_000, 500_000, 200_000, 1_100_000),
                "total_comm_ns": 700_000,
                "total_copy_ns": 300_000,
                "carry_in_ns": 0,
                "compute_by_category": second,
            },
        ],
    }


def _op(name: str, number: int, category: str, kernel: dict, **rest: object) -> dict:
    count, each = rest.pop("count"), kernel["ns"] // rest.get("instances", 1)
    rest.pop("instances", None)
    return {
        "id": f"op{number}",
        "name": name,
        "category": category,
        "phase": "forward",
        "count": count,
        "kernel_ns": kernel["ns"],
        "busy_ns": kernel["ns"],
        "min_ns": each,
        "median_ns": each,
        "mean_ns": float(each),
        "max_ns": each,
        "cov": 0.0,
        "kernel_count": kernel["count"],
        "kernels": [kernel],
        "modules": [],
        "carry_in": False,
        "graph_replayed": False,
        "recompute_ns": 0,
        "notes": [],
        **rest,
    }


def _ops() -> list[dict]:
    return [
        # 2 * 4096^3 = 137,438,953,472 FLOPs; at 400 TFLOP/s 343,597 ns; 343,597 / 800,000 = 42.95 %;
        # 3 * 2 * 4096^2 = 100,663,296 bytes; gap (800,000 - 343,597) * 4 = 1,825,612
        _op(
            "aten::mm",
            1,
            "gemm",
            {"name": GEMM_KERNEL, "count": 4, "ns": 3_200_000, "library": "cuBLASLt"},
            count=4,
            instances=4,
            shapes=[[4096, 4096], [4096, 4096]],
            dtypes=["c10::BFloat16", "c10::BFloat16"],
            modules=["Model/Block_0/Linear_0"],
            source="train.py(31): forward",
            flops=137_438_953_472,
            bytes=100_663_296,
            precision="bfloat16",
            unit="matrix",
            bound="compute",
            floor_ns=343_597,
            efficiency_pct=42.95,
            datasheet_efficiency_pct=17.37,
            gap_ns=1_825_612,
        ),
        # 3 * 2 * 8192^2 = 402,653,184 bytes; at 3 TB/s 134,218 ns; / 300,000 = 44.74 %; gap 165,782 * 5 = 828,910
        _op(
            "aten::add",
            2,
            "elementwise",
            {"name": ADD_KERNEL, "count": 5, "ns": 1_500_000, "library": "PyTorch native"},
            count=5,
            instances=5,
            shapes=[[8192, 8192], [8192, 8192], []],
            dtypes=["c10::BFloat16", "c10::BFloat16", "Scalar"],
            modules=["Model/Block_0"],
            flops=67_108_864,
            bytes=402_653_184,
            precision="bfloat16",
            unit="vector",
            bound="memory",
            floor_ns=134_218,
            efficiency_pct=44.74,
            datasheet_efficiency_pct=40.06,
            gap_ns=828_910,
        ),
        # 2 * 16 * 4096^2 = 536,870,912 FLOPs; 2 * (16*4096 + 4096*4096 + 16*4096) = 33,816,576 bytes,
        # at 3 TB/s 11,272 ns; / 80,000 = 14.09 %; gap (80,000 - 11,272) * 10 = 687,280
        _op(
            "aten::mm",
            3,
            "gemm",
            {"name": SKINNY_KERNEL, "count": 10, "ns": 800_000, "library": "CUTLASS"},
            count=10,
            instances=10,
            shapes=[[16, 4096], [4096, 4096]],
            dtypes=["c10::BFloat16", "c10::BFloat16"],
            modules=["Model/Head"],
            flops=536_870_912,
            bytes=33_816_576,
            precision="bfloat16",
            unit="matrix",
            bound="memory",
            floor_ns=11_272,
            efficiency_pct=14.09,
            datasheet_efficiency_pct=12.62,
            gap_ns=687_280,
        ),
        _op(
            "aten::copy_",
            4,
            "memory",
            {"name": "copy_kernel", "count": 2, "ns": 480_000, "library": None},
            count=2,
            instances=2,
            shapes=[],
            dtypes=[],
            unmodelled="no input shapes recorded",
        ),
        # 20,000 ns against 10,000: half; gap 10,000 = 0.10 % of the span
        _op(
            "aten::sum",
            5,
            "reduction",
            {"name": "reduce_kernel", "count": 1, "ns": 20_000, "library": "PyTorch native"},
            count=1,
            instances=1,
            shapes=[[2048, 2048]],
            dtypes=["float"],
            flops=4_194_304,
            bytes=16_777_220,
            precision="float32",
            unit="vector",
            bound="memory",
            floor_ns=10_000,
            efficiency_pct=50.0,
            datasheet_efficiency_pct=44.8,
            gap_ns=10_000,
        ),
    ]


def _kernel(name: str, short: str, category: str, op: str, numbers: tuple[int, int], **rest: object) -> dict:
    count, total = numbers
    each = total // count
    return {
        "device": 0,
        "stream": 7,
        "kernel": name,
        "short": short,
        "kind": "kernel",
        "category": category,
        "op_id": op,
        "linked": "correlation",
        "graph_replayed": False,
        "count": count,
        "total_ns": total,
        "min_ns": each,
        "median_ns": each,
        "max_ns": each,
        "facts": {},
        **rest,
    }


def _kernels() -> list[dict]:
    return [
        _kernel(
            GEMM_KERNEL,
            GEMM_KERNEL,
            "gemm",
            "op1",
            (4, 3_200_000),
            library="cuBLASLt",
            facts={"tile": [128, 256, 64]},
        ),
        _kernel(
            ADD_KERNEL,
            "vectorized_elementwise_kernel<add>",
            "elementwise",
            "op2",
            (5, 1_500_000),
            library="PyTorch native",
        ),
        _kernel(
            "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
            "ncclDevKernel_AllReduce",
            "communication",
            "",
            (2, 1_400_000),
            kind="communication",
            library="NCCL",
        ),
        _kernel(SKINNY_KERNEL, SKINNY_KERNEL, "gemm", "op3", (10, 800_000), library="CUTLASS"),
        _kernel("Memcpy HtoD (Pageable -> Device)", "Memcpy HtoD", "memory", "", (2, 600_000), kind="copy"),
        _kernel("copy_kernel", "copy_kernel", "memory", "op4", (2, 480_000)),
        _kernel("reduce_kernel", "reduce_kernel", "reduction", "op5", (1, 20_000), library="PyTorch native"),
    ]


def _gaps() -> list[dict]:
    return [
        {
            "device": 0,
            "start_ns": 2_000_000,
            "dur_ns": 1_200_000,
            "cause": "unattributed",
            "step": "ProfilerStep#4",
            "before": GEMM_KERNEL,
            "after": "Memcpy HtoD (Pageable -> Device)",
            "op": "aten::to",
            "source": "train.py(12): load",
        },
        {
            "device": 0,
            "start_ns": 6_000_000,
            "dur_ns": 1_300_000,
            "cause": "unattributed",
            "step": "ProfilerStep#5",
            "before": "reduce_kernel",
            "after": "copy_kernel",
            "op": None,
            "source": None,
        },
    ]
