"""The run that what-if questions are asked about. Times are µs."""

from __future__ import annotations

from tests.support.trace_builder import TraceBuilder

NVJET = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"
NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def questioned() -> TraceBuilder:
    """A product, an addition, an all-reduce and a copy, a wait for them, and a second product: a span of 340.

              10     110    160    200    230 235 240 250     350
    host      launches at 1, 3, 5, 7; aten::item from 9, its call from 10 to 235; the last launch at 240
    stream 7  [ mm  ][ add ][nccl ][copy ]          [  mm  ]
    """
    trace = TraceBuilder()
    _launched(trace, "aten::mm", NVJET, ts=1, start=10, dur=100)
    _launched(trace, "aten::add", "add_kernel", ts=3, start=110, dur=50)
    _launched(trace, "c10d::allreduce_", NCCL, ts=5, start=160, dur=40)
    trace.memcpy("DtoD", 200, 30, correlation=trace.launch("cudaMemcpyAsync", ts=7))
    trace.op("aten::item", 9, 228)
    trace.launch("cudaStreamSynchronize", ts=10, dur=225)
    _launched(trace, "aten::mm", NVJET, ts=240, start=250, dur=100)
    return trace


def _launched(trace: TraceBuilder, op: str, kernel: str, *, ts: float, start: float, dur: float) -> None:
    trace.op(op, ts - 1, 2)
    trace.kernel(kernel, ts=start, dur=dur, correlation=trace.launch(ts=ts, dur=0.5))
