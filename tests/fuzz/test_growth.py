"""Ten times the input takes about ten times as long, on inputs that were made to be slow."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rooftrace.trace import load
from rooftrace.workflow import AnalyzeOptions, findings
from rooftrace.workflow.prepare import prepare_workload
from tests.support.trace_builder import TraceBuilder
from tests.trace.reading import document, kernel

if TYPE_CHECKING:
    from collections.abc import Callable

# Below this much time, in seconds, a measurement says nothing.
FLOOR_S, FACTOR = 0.1, 12
# ROOFTRACE_GROWTH=100 compares 100,000 events on one stack with a million, and so on: minutes a case.
SCALE = int(os.environ.get("ROOFTRACE_GROWTH") or 1)


def one_stack(count: int) -> bytes:
    """Every op inside the one before; the innermost launches."""
    trace = TraceBuilder()
    for number in range(count):
        trace.op("aten::mm", ts=number, dur=3 * count - 2 * number)
    trace.kernel("k", ts=5 * count, dur=5, correlation=trace.launch(ts=count + 1, dur=1))
    return trace.json()


def many_streams(count: int) -> bytes:
    trace = TraceBuilder()
    for number in range(count):
        launch = trace.launch(ts=number, dur=0.5)
        trace.kernel("k", ts=number + 1, dur=5, stream=number, correlation=launch)
    return trace.json()


def one_graph(count: int) -> bytes:
    trace = TraceBuilder()
    launch = trace.launch("cudaGraphLaunch", ts=0)
    for number in range(count):
        trace.kernel(f"k{number % 10}", ts=10 + 2 * number, dur=1, correlation=launch)
    return trace.json()


def long_names(count: int) -> bytes:
    trace = TraceBuilder()
    trace.op("x::" * count, ts=0, dur=9)
    for number, name in enumerate(("void a<" * count, "_ZN" * count, "(" * count, "<" * count + ">" * count)):
        trace.kernel(name, ts=10 * number, dur=5, correlation=trace.launch(ts=number))
    return trace.json()


def many_shapes(count: int) -> bytes:
    trace = TraceBuilder()
    trace.device()
    for number in range(count):
        dims = [[number + 1, 32], [32, 16]]
        trace.op("aten::mm", ts=10 * number, dur=8, dims=dims, types=["float", "float"])
        trace.kernel("sgemm", ts=10 * number + 3, dur=6, correlation=trace.launch(ts=10 * number + 1))
    return trace.json()


def many_names(count: int) -> bytes:
    trace = TraceBuilder()
    for number in range(count):
        trace.kernel(f"void kernel_{number}<float, {number}>(int)", ts=10 * number, dur=6)
    return trace.json()


def many_steps(count: int) -> bytes:
    trace = TraceBuilder()
    for number in range(count):
        trace.annotation(f"ProfilerStep#{number}", ts=10 * number, dur=9)
        trace.kernel("k", ts=10 * number + 3, dur=4, correlation=trace.launch(ts=10 * number + 1))
    return trace.json()


def all_overlap(count: int) -> bytes:
    """Every kernel of every stream begins before all others end."""
    trace = TraceBuilder()
    for number in range(count):
        launch = trace.launch(ts=number, dur=0.5)
        trace.kernel("k", ts=number + 1, dur=3 * count, stream=number % 50, correlation=launch)
    return trace.json()


def straddling(count: int) -> bytes:
    """Every host event begins in the one before and ends after it."""
    trace = TraceBuilder()
    for number in range(count):
        trace.op("aten::mm", ts=number, dur=count)
    return trace.json()


def all_at_once(count: int) -> bytes:
    """Ops that begin and end together lie in one another, as deep as there are; each has launched something."""
    trace = TraceBuilder()
    for _ in range(count):
        trace.op("aten::mm", ts=10, dur=5)
        trace.kernel("k", ts=10, dur=3, correlation=trace.launch(ts=10, dur=3))
    return trace.json()


def one_sequence(count: int) -> bytes:
    """Ops in one another that all carry one sequence number, and their backward calls."""
    trace = TraceBuilder()
    for number in range(count):
        at, dur = number, 3 * count - 2 * number
        trace.op("aten::mul", ts=at, dur=dur, sequence=7)
        trace.op("MulBackward0", ts=at, dur=dur, tid=2, sequence=7, dims=[[8, 8]], types=["float"])
        launch = trace.launch(ts=at + 0.25, dur=0.25, tid=2)
        trace.kernel("k", ts=at + 0.5, dur=0.25, correlation=launch)
    return trace.json()


def waits(count: int) -> bytes:
    """Streams that wait for one another after every kernel."""
    trace = TraceBuilder()
    for number in range(count):
        at = 10 * number
        trace.kernel("k", ts=at + 3, dur=4, stream=7 + number % 2, correlation=trace.launch(ts=at))
        record = trace.launch("cudaEventRecord", ts=at + 2, dur=0.5)
        wait = trace.launch("cudaStreamWaitEvent", ts=at + 4, dur=0.5)
        trace.sync(ts=at + 4, stream=8 - number % 2, wait_stream=7 + number % 2, wait_record=record, correlation=wait)
    return trace.json()


def begun_names(count: int) -> bytes:
    """A damaged event in which a name begins again and again and never ends."""
    return b"[" + kernel("a", 1, 1).encode() + b',{"ph":"X",' + b'"name":"x ' * count + b"1}]"


def quotes(count: int) -> bytes:
    return document(kernel("a", 1, 1), '{"ph":"X","name":"' + '"},{"' * count, kernel("b", 2, 1))


def backslashes(count: int) -> bytes:
    return document(kernel("a", 1, 1), '{"ph":"X","name":"' + "\\" * count + '","x":nan}', kernel("b", 2, 1))


HAZARDS: dict[str, tuple[Callable[[int], bytes], int]] = {
    "one stack": (one_stack, 1000),
    "many streams": (many_streams, 500),
    "one graph": (one_graph, 2000),
    "long names": (long_names, 10_000),
    "many shapes": (many_shapes, 250),
    "many kernel names": (many_names, 500),
    "many steps": (many_steps, 1000),
    "all overlap": (all_overlap, 1000),
    "straddling": (straddling, 1000),
    "all at once": (all_at_once, 500),
    "one sequence number": (one_sequence, 300),
    "waits": (waits, 1000),
    "begun names": (begun_names, 400),
    "quotes": (quotes, 3000),
    "backslashes": (backslashes, 10_000),
}


def seconds(content: bytes) -> float:
    """CPU time of the whole way to the findings."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(content)
        started = time.process_time()
        trace, _ = load(path)
        findings.find_and_score(prepare_workload(trace, AnalyzeOptions()).workload)
        return time.process_time() - started


@pytest.mark.skipif(
    not os.environ.get("ROOFTRACE_GROWTH"), reason="times a run: set ROOFTRACE_GROWTH=1 on a quiet machine (make fuzz)"
)
@pytest.mark.parametrize("hazard", HAZARDS)
def test_ten_times_the_input_takes_about_ten_times_as_long(hazard: str) -> None:
    build, count = HAZARDS[hazard]
    small, large = build(SCALE * count), build(10 * SCALE * count)
    base = max(FLOOR_S, min(seconds(small), seconds(small)))

    assert min(seconds(large), seconds(large)) < FACTOR * base
