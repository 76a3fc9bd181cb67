"""Which blocking calls count as the workload's."""

from __future__ import annotations

import pytest

from rooftrace.analyzers.idle_syncs import find_syncs
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder


def run_with(frame: str | None = None, step: tuple[float, float] | None = None) -> TraceBuilder:
    #            0         100       200       300 µs
    # kernel     [---------------]                       10 to 160
    # sync            [----------]                       50 to 170: blocked 120 less what the call takes by itself
    builder = TraceBuilder()
    if step is not None:
        builder.annotation("ProfilerStep#1", ts=step[0], dur=step[1])
    builder.kernel("k", ts=10, dur=150, correlation=builder.launch(ts=2))
    if frame is not None:
        builder.python(frame, ts=45, dur=130)
    builder.launch("cudaDeviceSynchronize", ts=50, dur=120)
    builder.kernel("k", ts=185, dur=50, correlation=builder.launch(ts=178))
    return builder


def calls(builder: TraceBuilder) -> list[str]:
    return [kind.call for kind in find_syncs(workload_of(builder))]


def test_a_call_that_waited_for_work_of_the_run_counts():
    assert calls(run_with()) == ["cudaDeviceSynchronize"]
    assert calls(run_with(frame="train.py(7): step")) == ["cudaDeviceSynchronize"]


@pytest.mark.parametrize("frame", ["torch/profiler/profiler.py(239): stop_trace", "torch/autograd/profiler.py(1): f"])
def test_the_profilers_own_wait_does_not(frame):
    assert calls(run_with(frame=frame)) == []


def test_a_wait_outside_the_annotated_steps_does_not():
    assert calls(run_with(step=(0, 300))) == ["cudaDeviceSynchronize"]
    assert calls(run_with(step=(175, 100))) == []


def test_a_wait_for_work_that_was_launched_before_the_window_does_not():
    builder = TraceBuilder()
    builder.kernel("earlier", ts=0, dur=150)
    builder.launch("cudaDeviceSynchronize", ts=50, dur=120)
    builder.kernel("k", ts=185, dur=50, correlation=builder.launch(ts=178))

    assert calls(builder) == []


def test_a_wait_in_a_trace_without_gpu_events_is_for_nothing_that_is_known():
    builder = TraceBuilder()
    builder.op("aten::add", 0, 5)
    builder.launch("cudaDeviceSynchronize", ts=50, dur=120)

    assert calls(builder) == []
