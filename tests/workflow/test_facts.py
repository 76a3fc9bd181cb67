"""Facts of a trace that the report states: host ops."""

from __future__ import annotations

from rooftrace.contracts.report import CpuOp
from rooftrace.workflow import AnalyzeOptions, facts
from rooftrace.workflow.prepare import prepare_workload
from tests.support.trace_builder import TraceBuilder


def test_host_ops_tell_the_usual_and_the_longest_call_apart() -> None:
    trace = TraceBuilder()
    # Four calls of 10, 20, 30 and 940 µs, the last with 900 in an op of its own: the longest is not the usual one
    for ts, dur in ((0, 10), (100, 20), (200, 30), (300, 940)):
        trace.op("aten::to", ts, dur)
    trace.op("aten::copy_", 320, 900)

    assert facts.top_host_ops(prepare_workload(trace.build(), AnalyzeOptions()).workload) == [
        CpuOp(name="aten::copy_", count=1, total_ns=900_000, self_ns=900_000, median_ns=900_000, max_ns=900_000),
        # 10 + 20 + 30 + 940 in all, without the 900; the median of an even number is the mean of 20 and 30
        CpuOp(name="aten::to", count=4, total_ns=1_000_000, self_ns=100_000, median_ns=25_000, max_ns=940_000),
    ]
