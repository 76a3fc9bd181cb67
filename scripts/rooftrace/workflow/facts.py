"""What was read, in the words of the report: trace facts, versions, devices, steps, top host ops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from rooftrace.contracts.report import CpuOp, Device, PlatformInfo, Step, TraceInfo
from rooftrace.roofline import Rating
from rooftrace.trace import Kind
from rooftrace.workflow.prepare import device_properties

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers import RatedRun, Workload
    from rooftrace.trace import FileFacts, Trace
    from rooftrace.workflow.prepare import PlatformChoice

_TOP_HOST_OPS = 20
_MANY = 2**31  # no rank and no world size is larger
_RANK_IN_NAME = re.compile(r"rank[-_\[/]?(\d{1,9})(?!\d)", re.IGNORECASE)


def trace_info(workload: Workload, facts: FileFacts) -> TraceInfo:
    """The report's `trace` block."""
    trace, steps = workload.trace, workload.steps
    distributed = trace.header.get("distributedInfo")
    distributed = distributed if isinstance(distributed, dict) else {}
    return TraceInfo(
        file=facts.name.encode("utf-8", "replace").decode("utf-8"),  # a name need not be UTF-8, a report must
        sha256=facts.sha256,
        format=facts.format,
        events=trace.event_count,
        gpu_events=int(workload.activities.row.size),
        devices=_devices(workload),
        steps=[
            Step(name=name, start_ns=int(start), end_ns=int(end))
            for name, start, end in zip(steps.names, steps.start.tolist(), steps.end.tolist(), strict=True)
        ],
        step_source=steps.source,
        rank=_rank(distributed, facts.name),
        world_size=_count(distributed.get("world_size")),
        versions=_versions(trace),
        workload=_workload_kind(workload),
    )


def _devices(workload: Workload) -> list[Device]:
    properties = device_properties(workload.trace)
    # A process that sees one GPU lists it as device 0, whatever number its kernels carry.
    only = next(iter(properties.values())) if len(properties) == 1 else {}
    return [
        Device(id=ledger.device, name=str(properties.get(ledger.device, only).get("name") or ""))
        for ledger in workload.ledgers
    ]


def _rank(distributed: dict[str, Any], file_name: str) -> int | None:
    rank = _count(distributed.get("rank"))
    if rank is not None:
        return rank
    match = _RANK_IN_NAME.search(file_name)
    return int(match.group(1)) if match else None


def _count(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MANY else None


def _versions(trace: Trace) -> dict[str, str]:
    found = {key: str(value) for key, value in trace.header.items() if key.endswith("_version")}
    distributed = trace.header.get("distributedInfo")
    if isinstance(distributed, dict) and isinstance(distributed.get("nccl_version"), str):
        found["nccl_version"] = distributed["nccl_version"]
    return dict(sorted(found.items()))


def _workload_kind(workload: Workload) -> Literal["training", "inference", "unknown"]:
    context = workload.context
    if context.has_backward or context.has_optimizer:
        return "training"
    if (workload.tree.kind == int(Kind.CPU_OP)).any():
        return "inference"
    return "unknown"


def platform_info(workload: Workload, choice: PlatformChoice) -> PlatformInfo | None:
    """The report's `platform` block."""
    if choice.platform is None:
        return None
    kinds = {rating.ceilings_kind for rating in workload.ratings if isinstance(rating, Rating)}
    return PlatformInfo(
        slug=choice.platform.slug,
        product=choice.platform.product,
        ceilings_kind=kinds.pop() if len(kinds) == 1 else "mixed" if kinds else "datasheet-dense",
        detected_by=choice.how,
    )


def top_host_ops(workload: RatedRun) -> list[CpuOp]:
    """Host ops by self time, heaviest first."""
    tree, names = workload.tree, workload.trace.names
    nodes = np.flatnonzero(tree.kind == int(Kind.CPU_OP))
    if not nodes.size:
        return []
    own = tree.self_time()[nodes]
    codes, at = np.unique(tree.name[nodes], return_inverse=True)
    count = np.bincount(at)
    self_ns, total = np.zeros(codes.size, dtype=np.int64), np.zeros(codes.size, dtype=np.int64)
    np.add.at(self_ns, at, own)
    np.add.at(total, at, tree.dur[nodes])
    order = sorted(range(codes.size), key=lambda i: (-int(self_ns[i]), names[codes[i]]))
    return [
        CpuOp(
            name=names[codes[i]],
            count=int(count[i]),
            total_ns=int(total[i]),
            self_ns=max(0, int(self_ns[i])),
            **_of_calls(tree.dur[nodes[at == i]]),
        )
        for i in order[:_TOP_HOST_OPS]
    ]


def _of_calls(durations: NDArray[np.int64]) -> dict[str, int]:
    return {"median_ns": round(float(np.median(durations))), "max_ns": int(durations.max())}
