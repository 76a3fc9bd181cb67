"""The findings of the GPU run of ``sample``; the span is 10 ms, so 0.1 ms is 1.00 %."""

from __future__ import annotations

from tests.report.sample_names import GEMM_KERNEL, HEAD, SKINNY_KERNEL


def evidence(analyzer: str, findings: list[dict]) -> dict:
    return {
        **HEAD,
        "analyzer": analyzer,
        "summary": {"time_ms": 1.0, "groups_count": 1},
        "findings": findings,
    }


def _finding(name: str, category: str, high: float, evidence: dict, **rest: object) -> dict:
    return {
        "id": name,
        "tier": "compute",
        "category": category,
        "subject": f"{category} kernels",
        "score": rest.pop("score"),
        "score_basis": "gap_share",
        "gpu_time_score": high,
        "kind": "modelled",
        "members": [],
        "evidence": evidence,
        "patterns": ["default"],
        **rest,
    }


def gemm_f1() -> dict:
    # gap 1,825,612 of 10,000,000: high 18.26, mid * 0.875 = 15.97, low * 0.75 = 13.69
    return _finding(
        "gemm.F1",
        "gemm",
        18.26,
        {
            "time_ms": 3.2,
            "time_share_pct": 32.0,
            "gap_ms": 1.825612,
            "instances_count": 4,
            "kernels_count": 4,
            "members_count": 1,
            "bound": "compute",
            "library": "cuBLASLt",
            "efficiency_pct": 42.95,
            "datasheet_efficiency_pct": 17.37,
            "floor_ms": 1.374388,
            "ceilings_kind": "achievable",
            "precision": "bfloat16",
            "achieved_tflops": 171.8,
            "achieved_gbps": 125.83,
            "top_op": "aten::mm",
            "top_op_id": "op1",
            "top_share_pct": 100.0,
            "top_kernel": GEMM_KERNEL,
            "mean_kernel_us": 800.0,
            "op_names": "aten::mm",
            "phase": "forward",
            "modules": "Linear",
            "source": "train.py(31): forward",
            "m": 4096,
            "n": 4096,
            "k": 4096,
            "misaligned": False,
            "tf32": False,
            "graph_replayed": False,
            "kernels_per_instance": 1.0,
            "extra_kernels": "",
            "variation_pct": 0.0,
        },
        score={"low": 13.69, "mid": 15.97, "high": 18.26},
        members=["op1"],
    )


def gemm_f2() -> dict:
    # gap 687,280: high 6.87, mid 6.01, low 5.15
    return _finding(
        "gemm.F2",
        "gemm",
        6.87,
        {
            "time_ms": 0.8,
            "time_share_pct": 8.0,
            "gap_ms": 0.68728,
            "instances_count": 10,
            "kernels_count": 10,
            "members_count": 1,
            "bound": "memory",
            "library": "CUTLASS",
            "efficiency_pct": 14.09,
            "datasheet_efficiency_pct": 12.62,
            "floor_ms": 0.11272,
            "ceilings_kind": "achievable",
            "precision": "bfloat16",
            "achieved_tflops": 6.71,
            "achieved_gbps": 422.71,
            "top_op": "aten::mm",
            "top_op_id": "op3",
            "top_share_pct": 100.0,
            "top_kernel": SKINNY_KERNEL,
            "mean_kernel_us": 80.0,
            "op_names": "aten::mm",
            "phase": "forward",
            "modules": "Head",
            "source": "",
            "m": 16,
            "n": 4096,
            "k": 4096,
            "misaligned": False,
            "tf32": False,
            "graph_replayed": False,
            "kernels_per_instance": 1.0,
            "extra_kernels": "",
            "variation_pct": 0.0,
        },
        score={"low": 5.15, "mid": 6.01, "high": 6.87},
        members=["op3"],
    )


def elementwise_f1() -> dict:
    # gap 828,910: high 8.29, mid 7.25, low 6.22
    return _finding(
        "elementwise.F1",
        "elementwise",
        8.29,
        {
            "time_ms": 1.5,
            "time_share_pct": 15.0,
            "gap_ms": 0.82891,
            "instances_count": 5,
            "kernels_count": 5,
            "members_count": 1,
            "bound": "memory",
            "library": "PyTorch native",
            "efficiency_pct": 44.74,
            "datasheet_efficiency_pct": 40.06,
            "floor_ms": 0.67109,
            "ceilings_kind": "achievable",
            "precision": "bfloat16",
            "achieved_gbps": 1342.18,
            "top_op": "aten::add",
            "top_op_id": "op2",
            "top_share_pct": 100.0,
            "top_kernel": "vectorized_elementwise_kernel<add>",
            "mean_kernel_us": 300.0,
            "op_names": "aten::add",
            "phase": "forward",
            "modules": "Block",
            "source": "",
            "graph_replayed": False,
            "kernels_per_instance": 1.0,
            "extra_kernels": "",
            "variation_pct": 0.0,
        },
        score={"low": 6.22, "mid": 7.25, "high": 8.29},
        members=["op2"],
    )


def elementwise_f2() -> dict:
    # 480,000 unrated: high 4.80, mid 4.20, low 3.60
    return _finding(
        "elementwise.F2",
        "memory",
        4.8,
        {
            "time_ms": 0.48,
            "time_share_pct": 4.8,
            "instances_count": 2,
            "kernels_count": 2,
            "members_count": 1,
            "library": "unknown",
            "top_op": "aten::copy_",
            "top_op_id": "op4",
            "top_share_pct": 100.0,
            "top_kernel": "copy_kernel",
            "mean_kernel_us": 240.0,
            "op_names": "aten::copy_",
            "phase": "forward",
            "modules": "",
            "source": "",
            "graph_replayed": False,
            "unmodelled": "no input shapes recorded",
            "kernels_per_instance": 1.0,
            "extra_kernels": "",
            "variation_pct": 0.0,
        },
        score={"low": 3.6, "mid": 4.2, "high": 4.8},
        kind="upper_bound",
        members=["op4"],
        patterns=["unrated"],
    )


def reduction_f1() -> dict:
    # gap 10,000: high 0.10, mid 0.09, low 0.08
    return _finding(
        "reduction.F1",
        "reduction",
        0.1,
        {
            "time_ms": 0.02,
            "time_share_pct": 0.2,
            "gap_ms": 0.01,
            "instances_count": 1,
            "kernels_count": 1,
            "members_count": 1,
            "bound": "memory",
            "library": "PyTorch native",
            "efficiency_pct": 50.0,
            "datasheet_efficiency_pct": 44.8,
            "floor_ms": 0.01,
            "ceilings_kind": "achievable",
            "precision": "float32",
            "achieved_gbps": 838.86,
            "top_op": "aten::sum",
            "top_op_id": "op5",
            "top_share_pct": 100.0,
            "top_kernel": "reduce_kernel",
            "mean_kernel_us": 20.0,
            "op_names": "aten::sum",
            "phase": "forward",
            "modules": "",
            "source": "",
            "graph_replayed": False,
            "kernels_per_instance": 1.0,
            "extra_kernels": "",
            "variation_pct": 0.0,
        },
        score={"low": 0.08, "mid": 0.09, "high": 0.1},
        members=["op5"],
    )


def idle_f1() -> dict:
    # 2.5 ms of 10: high 25.00, mid 21.88, low 18.75
    return _finding(
        "idle.F1",
        "idle",
        25.0,
        {
            "idle_ms": 2.5,
            "idle_pct": 25.0,
            "gaps_count": 2,
            "median_gap_us": 1250.0,
            "max_gap_ms": 1.3,
            "top_gap_before": "reduce_kernel",
            "top_gap_after": "copy_kernel",
            "top_gap_op": "",
            "gaps_over_1ms_count": 2,
            "gaps_over_1ms_pct": 100.0,
            "short_gaps_pct": 0.0,
            "kernels_count": 24,
            "mean_kernel_us": 308.33,
            "launches_per_ms": 2.4,
            "host_bound": False,
            "empty_queue_pct": 12.5,
            "device": 0,
            "in_step_pct": 100.0,
            "busy_pct": 75.0,
        },
        score={"low": 18.75, "mid": 21.88, "high": 25.0},
        tier="system",
        kind="measured",
        patterns=["few_long_gaps", "default"],
    )


def communication() -> dict:
    # 1.0 ms of 10 exposed: high 10.00, mid 8.75, low 7.50; 0.4 of 1.4 hidden = 28.57 %
    return _finding(
        "multi_kernel.F1",
        "communication",
        10.0,
        {
            "exposed_comm_ms": 1.0,
            "exposed_comm_pct": 10.0,
            "total_comm_ms": 1.4,
            "overlap_pct": 28.57,
            "collectives": "all_reduce",
            "top_collective": "ncclDevKernel_AllReduce",
            "comm_kernels_count": 2,
        },
        score={"low": 7.5, "mid": 8.75, "high": 10.0},
        tier="system",
        kind="measured",
    )


def copies() -> dict:
    # 0.48 ms of 10 counted exposed here, so that the score ties with elementwise.F2: ids decide
    return _finding(
        "multi_kernel.F2",
        "copy",
        4.8,
        {
            "exposed_copy_ms": 0.48,
            "exposed_copy_pct": 4.8,
            "total_copy_ms": 0.6,
            "htod_ms": 0.6,
            "dtoh_ms": 0.0,
            "dtod_ms": 0.0,
            "pageable_ms": 0.6,
            "copies_count": 2,
            "copy_bytes": 6_000_000,
            "top_copy": "Memcpy HtoD (Pageable -> Device)",
            "top_copy_op": "aten::to",
            "achieved_gbps": 10.0,
        },
        score={"low": 3.6, "mid": 4.2, "high": 4.8},
        tier="system",
        kind="measured",
        patterns=["pageable_htod", "default"],
    )
