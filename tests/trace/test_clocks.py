"""Events on other clocks: strays are left out, a host on a clock of its own is moved beside the GPU."""

from __future__ import annotations

import pytest

from tests.support.trace_builder import TraceBuilder
from tests.trace.cases.runs import MATRIX, result
from tests.trace.reading import Folder, document, kernel, names_of

HOUR_US, DAY_US = 3.6e9, 8.64e10


def kernels(count: int, *others: str) -> bytes:
    """Kernels of 5 µs, one every 10 µs from 1e15 µs on, and others."""
    return document(*(kernel("k", 1e15 + 10 * number, 5) for number in range(count)), *others)


@pytest.mark.parametrize("distance", [-300 * DAY_US, -2 * DAY_US, 2 * DAY_US, 300 * DAY_US])
def test_a_stray_before_or_after_the_run_is_left_out_and_counted(folder: Folder, distance: float) -> None:
    trace = folder.trace(kernels(100, kernel("stray", 1e15 + distance, 1)))

    assert set(names_of(trace)) == {"k"}
    assert trace.dropped.counts == {"event a day or more from all others": 1}
    assert trace.base_ns == 10**18
    assert int(trace.end.max()) == 995_000


@pytest.mark.parametrize(
    ("count", "distance", "strays"),
    [(100, 0.9 * DAY_US, 1), (48, 300 * DAY_US, 1), (100, 300 * DAY_US, 3)],
    ids=["less than a day", "too few others", "too many"],
)
def test_what_may_be_part_of_the_run_is_kept(folder: Folder, count: int, distance: float, strays: int) -> None:
    far = [kernel("far", 1e15 + distance + number, 1) for number in range(strays)]

    trace = folder.trace(kernels(count, *far))

    assert trace.kind.size == count + strays
    assert trace.dropped.counts == {}


def test_the_only_kernel_of_a_run_on_the_host_is_no_stray() -> None:
    trace = TraceBuilder()
    for number in range(100):
        trace.op("aten::mm", ts=1e15 + 10 * number, dur=5)
    trace.kernel("k", ts=1e15 + 3 * DAY_US, dur=7)

    assert result(trace).parts() == {"span_ns": 7_000, "compute_ns": 7_000}


def test_an_event_that_spans_the_pause_joins_both_ends(folder: Folder) -> None:
    """Three days with work at both ends, under one range."""
    long_range = (
        f'{{"ph":"X","cat":"user_annotation","name":"r","pid":1,"tid":1,"ts":1000000000000000,"dur":{3.1 * DAY_US}}}'
    )

    trace = folder.trace(kernels(100, kernel("late", 1e15 + 3 * DAY_US, 1), long_range))

    assert trace.dropped.counts == {}


def apart(offset_us: float, *, calls_on_gpu: bool = False) -> TraceBuilder:
    """Five steps of 100 µs; the GPU's clock is `offset_us` ahead of the host's, and with it perhaps the calls'.

    In each an op of 10 µs at 5 launches at 6 a kernel of 40 µs, which begins 14 + number µs later.
    """
    trace = TraceBuilder()
    trace.device()
    for number in range(5):
        at = 1000 + 100 * number
        trace.annotation(f"ProfilerStep#{number}", ts=at, dur=99)
        trace.op("aten::mm", ts=at + 5, dur=10, **MATRIX)
        launch = trace.launch(ts=at + 6 + (offset_us if calls_on_gpu else 0), dur=3)
        trace.kernel("sgemm", ts=at + 20 + number + offset_us, dur=40, correlation=launch)
    return trace


@pytest.mark.parametrize("offset_us", [2 * HOUR_US, 1.7e15], ids=["hours", "years"])
def test_two_clocks_leave_ops_steps_and_the_ledger_as_they_are(offset_us: float) -> None:
    """From the first kernel at 20 to the end of the last at 464: 444 µs, 5 * 40 of work."""
    outcome = result(apart(offset_us))

    assert outcome.parts() == {"span_ns": 444_000, "compute_ns": 200_000, "idle_ns": 244_000}
    assert outcome.ops == {"aten::mm": 200_000}
    assert [step.span_ns for step in outcome.prepared.workload.ledgers[0].steps] == [101_000] * 4 + [40_000]
    assert "clocks_apart" in outcome.codes


def test_a_gpu_clock_behind_the_hosts_is_the_same() -> None:
    trace = TraceBuilder()
    for number in range(3):
        launch = trace.launch(ts=1_700_000_000_000_000 + 100 * number)
        trace.kernel("k", ts=5_000 + 100 * number, dur=40, correlation=launch)
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 240_000, "compute_ns": 120_000, "idle_ns": 120_000}
    assert "clock" not in outcome.codes  # of kernels before their launch nothing can be said
    assert "clocks_apart" in outcome.codes


def test_the_host_is_moved_so_that_the_quickest_launch_takes_no_time() -> None:
    """The quickest is that of the first step: 14 µs. The launch at 1006 comes to stand at its kernel's 1020."""
    trace = result(apart(2 * HOUR_US)).trace

    assert trace.host_moved_ns == 7_200_000_014_000  # two hours and 14 µs
    assert trace.clocks_apart_ns == 7_200_000_020_000  # from the first event at 1000 to the first kernel at 1020
    assert sorted(trace.start.tolist())[:3] == [0, 5_000, 6_000]


def test_no_gap_has_a_cause_and_the_replay_explains_little_where_clocks_are_apart() -> None:
    from rooftrace.causes import CAUSE_NAMES, REASON_NAMES
    from rooftrace.replay.run import Replay

    workload = result(apart(2 * HOUR_US)).prepared.workload
    causes = workload.causes

    assert {CAUSE_NAMES[code] for code in causes.cause.tolist()} == {"unknown"}
    assert {REASON_NAMES[code] for code in causes.reason.tolist()} == {"host and GPU have clocks of their own"}
    assert workload.ledgers[0].idle_by_cause == {"unknown": 244_000}
    replay = Replay(workload.tree, workload.activities, workload.schedule)
    assert (replay.activities.launch == -1).all()
    assert replay.spans([()]) == [444_000]


def test_where_the_launches_are_on_the_gpus_clock_the_ops_stay_where_they_are() -> None:
    """Nothing then tells how far the two are apart: an op beside a launch by chance must not own its kernel."""
    outcome = result(apart(2 * HOUR_US, calls_on_gpu=True))

    assert outcome.trace.host_moved_ns == 0
    assert outcome.ops == {"sgemm": 200_000}
    assert "clocks_apart" in outcome.codes


def test_flows_of_the_host_are_moved_with_it() -> None:
    """Without correlations: the starts of the two sides are laid on one another, and flows still join both."""
    trace = TraceBuilder()
    for number in range(3):
        at = 1000 + 100 * number
        trace.op("aten::mm", ts=at, dur=50, **MATRIX)
        trace.launch(ts=at + 5, dur=3)
        trace.kernel("k", ts=at + 2 * HOUR_US, dur=40)
        trace.flow(number + 1, ts=at + 5, to_ts=at + 2 * HOUR_US)
    outcome = result(trace)

    assert outcome.ops == {"aten::mm": 120_000}
    assert outcome.trace.host_moved_ns == 7_200_000_000_000


def test_one_clock_and_a_long_pause_are_no_two_clocks() -> None:
    """Work at both ends of two hours, each with its launches."""
    trace = TraceBuilder()
    for number in range(6):
        at = 1000 + 100 * number + (2 * HOUR_US if number >= 3 else 0)
        trace.kernel("k", ts=at + 10, dur=40, correlation=trace.launch(ts=at))
    outcome = result(trace)

    assert "clocks_apart" not in outcome.codes
    assert outcome.trace.host_moved_ns == 0
