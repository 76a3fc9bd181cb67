"""A healthy trace of 46 events with a little of everything, and what is true of it, in literals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rooftrace.calltree import Link
from rooftrace.roofline import coverage
from rooftrace.workflow.facts import trace_info
from tests.support.trace_builder import HOST, TraceBuilder, collective
from tests.trace.cases.runs import MATRIX

if TYPE_CHECKING:
    from tests.trace.formats.reports import Result

ADD = {"dims": [[64, 32], [64, 32]], "types": ["float", "float"]}
# Two of metadata before the steps, two instants behind them; 14 a step.
EVENTS = 4 + 3 * 14
WITHOUT_HEADER: dict[str, Any] = {"platform": None, "rank": None, "rated_ns": 0}
# Of each step, in µs: the product from 20.125 to 60, the copy from 62 to 70, the collective from 72 to 82.
TOTALS: dict[str, Any] = {
    "parts": {
        "span_ns": 261_875,  # from 1020.125 to 1282
        "compute_ns": 119_625,  # 3 * 39.875
        "exposed_comm_ns": 30_000,  # 3 * 10
        "exposed_copy_ns": 24_000,  # 3 * 8
        "idle_ns": 88_250,  # 261.875 - 119.625 - 30 - 24
    },
    "ops": {"aten::mm": 119_625},
    "steps": ["ProfilerStep#0", "ProfilerStep#1", "ProfilerStep#2"],
    "links": ["CORRELATION"] * 9,
    "streams": [7] * 6 + [20] * 3,
    "bytes": 3 * 8_192,
    "flows": 12,
    "modules": [("Linear_0",)],
    "collectives": ["allreduce"],
    "grids": [(4, 1, 1)],
    "platform": "h100-sxm",
    "rank": 1,
    "rated_ns": 119_625,
}
NOTES = ["Only 9 GPU events: too few to speak for a workload."]


def healthy() -> TraceBuilder:
    """Three steps from 1000 µs on, 100 µs apart."""
    trace = TraceBuilder()
    trace.device()
    trace.header(
        record_shapes=1,
        with_stack=1,
        displayTimeUnit="ms",
        baseTimeNanoseconds=1_712_000_000_000_000_000,
        distributedInfo={"rank": 1, "world_size": 2},
    )
    trace.event(ph="M", name="process_name", pid=HOST, tid=0, ts=1000, args={"name": "python"})
    trace.event(ph="M", name="thread_name", pid=0, tid=7, ts=1000, args={"name": "stream 7"})
    for step in range(3):
        _step(trace, step, 1000 + 100 * step)
    trace.event(ph="i", cat="cpu_instant_event", name="[memory]", pid=HOST, tid=1, ts=1010, s="t", args={"Bytes": 512})
    trace.event(ph="i", name="Record Window End", pid="", tid="", ts=1400, s="g")
    return trace


def _step(trace: TraceBuilder, step: int, at: int) -> None:
    trace.annotation(f"ProfilerStep#{step}", ts=at, dur=99)
    trace.python("nn.Module: Linear_0", ts=at + 4, dur=30)
    trace.op("aten::mm", ts=at + 5, dur=10.5, external_id=10 + step, sequence=step, **MATRIX)
    launch = trace.launch(ts=at + 6.25, dur=3)
    block = {"grid": [4, 1, 1], "block": [128, 1, 1]}
    trace.kernel("sgemm", ts=at + 20.125, dur=39.875, correlation=launch, external_id=10 + step, **block)
    trace.flow(launch, ts=at + 6.25, to_ts=at + 20.125)
    trace.op("aten::copy_", ts=at + 16, dur=8, external_id=20 + step, **ADD)
    launch = trace.launch("cudaMemcpyAsync", ts=at + 17, dur=2)
    trace.memcpy("HtoD", ts=at + 62, dur=8, bytes=8192, correlation=launch, external_id=20 + step)
    trace.flow(launch, ts=at + 17, to_ts=at + 62)
    launch = trace.launch("cudaLaunchKernelExC", ts=at + 30, dur=1)
    name = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"
    trace.kernel(name, ts=at + 72, dur=10, stream=20, correlation=launch, **collective("allreduce", 1024))


def totals(result: Result) -> dict[str, Any]:
    """What is said of a trace, in the form of `TOTALS`."""
    workload, trace = result.prepared.workload, result.trace
    activities = workload.activities
    return {
        "parts": result.parts(),
        "ops": result.ops,
        "steps": result.steps,
        "links": [Link(link).name for link in activities.link.tolist()],
        "streams": sorted(activities.stream.tolist()),
        "bytes": int(activities.nbytes[activities.nbytes > 0].sum()),
        "flows": int(trace.flows.ts.size),
        "modules": sorted({workload.context.module_paths[p] for g in workload.groups for p in g.module_ns}),
        "collectives": [one.name for one in trace.collectives],
        "grids": trace.grids,
        "platform": result.platform,
        "rank": trace_info(workload, result.facts).rank,
        "rated_ns": coverage(activities, workload.groups, workload.ratings).rated_ns,
    }


def notes(result: Result) -> list[str]:
    """What Trace Health says, but not of how few events there are, of the GPU, and of how steps differ."""
    return [note.text for note in result.health.notes if note.code not in ("few_gpu_events", "unknown_gpu", "warm_up")]
