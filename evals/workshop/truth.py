"""What a run really was: the device's time by kind, whole and by step, from the simulator's own records.

Written without the product's code and by another method (a sweep over the sorted edges of all intervals),
so that the two can be compared. Integer nanoseconds; compute, exposed copy and idle sum to the span.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

from evals.workshop.instructions import Executed, Span, Timeline
from evals.workshop.program import Gemm

STEP_PREFIX = "ProfilerStep#"


@dataclass(frozen=True, kw_only=True)
class DeviceTime:
    """One device's time in a window.

    ``compute_ns``: some kernel or memset runs. ``exposed_copy_ns``: a copy runs and no kernel. ``idle_ns``:
    neither.
    """

    span_ns: int
    compute_ns: int
    exposed_copy_ns: int
    idle_ns: int


@dataclass(frozen=True, kw_only=True)
class Interval:
    """A named window on the trace's clock."""

    name: str
    start_ns: int
    end_ns: int


def device_time(activities: Sequence[Executed], start_ns: int, end_ns: int) -> DeviceTime:
    """The device's time between two instants."""
    edges: list[tuple[int, int, int]] = []
    for row in activities:
        low, high = max(row.start_ns, start_ns), min(row.end_ns, end_ns)
        if low < high:
            is_copy = int(row.kind == "gpu_memcpy")
            edges += [(low, 1, is_copy), (high, -1, is_copy)]
    running, spent, last = [0, 0], [0, 0, 0], start_ns
    for at, change, is_copy in sorted(edges):
        spent[_state(running)] += at - last
        running[is_copy] += change
        last = at
    spent[2] += end_ns - last
    compute, copy, idle = spent
    return DeviceTime(span_ns=end_ns - start_ns, compute_ns=compute, exposed_copy_ns=copy, idle_ns=idle)


def _state(running: list[int]) -> int:
    """0 with a kernel running, 1 with only copies, 2 with nothing."""
    if running[0]:
        return 0
    return 1 if running[1] else 2


def span_ns(timeline: Timeline) -> int:
    """First start to last end of the activities."""
    rows = timeline.activities
    return max(row.end_ns for row in rows) - min(row.start_ns for row in rows)


def steps_of(timeline: Timeline) -> list[Span]:
    """The step annotations, earliest first."""
    return [span for span in timeline.spans if span.name.startswith(STEP_PREFIX)]


def step_windows(timeline: Timeline) -> list[Interval]:
    """The device's timeline cut at the first activity launched in each step; the last one ends it."""
    began = {call.correlation: call.start_ns for call in timeline.calls}
    firsts: list[tuple[str, int]] = []
    for step in steps_of(timeline):
        inside = [row for row in timeline.activities if step.start_ns <= began[row.correlation] < step.end_ns]
        if inside:
            firsts.append((step.name, min(row.start_ns for row in inside)))
    ends = [start for _, start in firsts[1:]] + [max((row.end_ns for row in timeline.activities), default=0)]
    return [Interval(name=name, start_ns=start, end_ns=end) for (name, start), end in zip(firsts, ends, strict=True)]


def window_facts(timeline: Timeline, gemms: Sequence[Gemm], window: tuple[int, int]) -> dict[str, int | dict[str, int]]:
    """What is stated about a window: device time, counts of what started inside it, matrix products."""
    inside = [row for row in timeline.activities if window[0] <= row.start_ns < window[1]]
    kernels = [row for row in inside if row.kind == "kernel"]
    bounds = {name: sum(row.bound == name for row in inside) for name in ("launch", "stream", "event", "graph")}
    return {
        **asdict(device_time(timeline.activities, *window)),
        "exposed_comm_ns": 0,
        "carry_in_ns": 0,
        "kernel_count": len(kernels),
        "copy_count": sum(row.kind == "gpu_memcpy" for row in inside),
        "kernel_ns": sum(row.end_ns - row.start_ns for row in kernels),
        "gemm_calls": len(gemms),
        "gemm_flops": sum(product.flops for product in gemms),
        "starts_bound_by": bounds,
    }
