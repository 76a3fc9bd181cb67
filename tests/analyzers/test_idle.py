"""Findings about idle devices. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import idle
from rooftrace.contracts.base import Score
from tests.analyzers.workloads import Program, workload_of
from tests.patterns import fields
from tests.support.trace_builder import TraceBuilder


def findings_of(builder):
    return idle.analyze(workload_of(builder))[1]


def evidence_of(builder):
    (finding,) = findings_of(builder)
    return finding.evidence


def test_a_finding_describes_the_gaps_of_its_device():
    #            0    20   40   60   80   100  ...  2000  2100
    # mm        [L]       [L]                       [L]
    # kernels        [-a--]    [-b--]                   [-c-]
    # gaps                [20 ]      [ 1,900                ]
    builder = TraceBuilder()
    for name, launch, start, dur in (("a", 0, 20, 20), ("b", 40, 60, 20), ("c", 1970, 1980, 60)):
        builder.op(f"aten::op_{name}", launch, 9)
        builder.kernel(name, ts=start, dur=dur, correlation=builder.launch(ts=launch + 1))
    summary, (finding,) = idle.analyze(workload_of(builder))
    evidence = finding.evidence

    # span 20 to 2,040: 2,020; busy 100; idle 20 + 1,900
    assert (finding.id, finding.tier, finding.category, finding.kind) == ("idle.F1", "system", "idle", "upper_bound")
    assert (evidence["device"], evidence["idle_ms"], evidence["idle_pct"], evidence["busy_pct"]) == (
        0,
        1.92,
        95.05,
        4.95,
    )
    assert (evidence["gaps_count"], evidence["median_gap_us"], evidence["max_gap_ms"]) == (2, 960.0, 1.9)
    assert (evidence["top_gap_before"], evidence["top_gap_after"], evidence["top_gap_op"]) == ("b", "c", "aten::op_c")
    assert (evidence["gaps_over_1ms_count"], evidence["gaps_over_1ms_pct"]) == (1, 98.96)  # 1,900 of 1,920
    assert evidence["short_gaps_pct"] == 0.0  # a gap of exactly 20 µs is not short
    assert (evidence["kernels_count"], evidence["mean_kernel_us"]) == (3, 33.333)
    assert evidence["launches_per_ms"] == 1.49  # 3 in 2.02 ms
    assert finding.score == Score(low=95.05, mid=95.05, high=95.05)
    assert summary == {"time_ms": 1.92, "time_share_pct": 95.05}


@pytest.mark.parametrize(("gap", "count"), [(3.0, 0), (3.2, 1)])
def test_less_than_three_per_cent_of_idle_is_no_finding(gap, count):
    # 100 µs of kernels: 3.0 of 103.0 is 2.91 %, 3.2 of 103.2 is 3.10 %
    program = Program()
    program.call("aten::mm", "a", 50)
    program.call("aten::mm", "b", 50, gap=gap)

    assert len(findings_of(program)) == count


def test_every_device_that_idles_has_a_finding_the_idlest_first_and_shares_are_of_all_devices():
    # device 0: 100 busy of 200; device 1: 100 of 400; device 2: always busy, 200
    builder = TraceBuilder()
    for device, ends in ((0, (0, 150)), (1, (0, 350)), (2, (0, 50, 100, 150))):
        for ts in ends:
            builder.kernel("k", ts=ts, dur=50, device=device)
    findings = findings_of(builder)

    assert [(f.id, f.evidence["device"], f.evidence["idle_pct"]) for f in findings] == [
        ("idle.F1", 1, 75.0),
        ("idle.F2", 0, 50.0),
    ]
    assert [f.score.mid for f in findings] == [37.5, 12.5]  # 300 and 100 of 200 + 400 + 200


def starting(delays, *, warm=40):
    """Kernels that start so many µs after their launches; `warm` ones begin with a latency of 5 µs."""
    builder = TraceBuilder()
    at = 0.0
    for delay in (*[5.0] * warm, *delays):
        builder.op("aten::mm", at, 4)
        builder.kernel("k", ts=at + 1 + delay, dur=1, correlation=builder.launch(ts=at + 1))
        at += 1000
    return builder


@pytest.mark.parametrize(
    ("builder", "share", "host_bound"),
    [
        pytest.param(starting([]), 100.0, True, id="each starts as soon as a launch allows"),
        pytest.param(starting([10.0] * 10), 100.0, True, id="twice the usual latency is still at once"),
        pytest.param(starting([10.1] * 10), 80.0, True, id="more is a wait: 40 of 50"),
        pytest.param(starting([50.0] * 40), 50.0, False, id="exactly half is not host-bound"),
        pytest.param(starting([50.0] * 60), 40.0, False, id="most wait in the queue"),
    ],
)
def test_a_device_is_host_bound_if_most_kernels_found_an_empty_queue(builder, share, host_bound):
    evidence = evidence_of(builder)

    assert (evidence["empty_queue_pct"], evidence["host_bound"]) == (share, host_bound)
    assert ("host_bound_launches" in findings_of(builder)[0].patterns) is host_bound


def test_graph_kernels_and_copies_tell_nothing_of_the_queue():
    builder = TraceBuilder()
    graph = builder.launch("cudaGraphLaunch", ts=0)
    for ts in (5, 50, 100):
        builder.kernel("k", ts=ts, dur=1, correlation=graph)
    builder.memcpy("HtoD", ts=200, dur=1, correlation=builder.launch("cudaMemcpyAsync", ts=150))

    assert not {"empty_queue_pct", "host_bound"} & set(evidence_of(builder))


def test_gaps_between_steps_and_within_them_are_told_apart():
    #             0    10   20   30   40   50   60
    # steps      [----1------------][------2------]
    # kernels     [a]       [b]             [c]
    # gaps           [ 8   ]   [    17     ]
    builder = TraceBuilder()
    builder.annotation("ProfilerStep#1", 0, 30)
    builder.annotation("ProfilerStep#2", 30, 30)
    for name, start, launch in (("a", 2, 1), ("b", 12, 11), ("c", 31, 30.5)):
        builder.kernel(name, ts=start, dur=2, correlation=builder.launch(ts=launch, dur=0.2))

    assert evidence_of(builder)["in_step_pct"] == 32.0  # 8 of 25


def test_the_op_after_a_gap_may_be_unknown():
    builder = TraceBuilder()
    for ts in (0, 100):
        builder.kernel("k", ts=ts, dur=5)

    assert evidence_of(builder)["top_gap_op"] == "none recorded"


def test_a_device_whose_kernels_have_no_durations_idles_and_is_described():
    builder = TraceBuilder()
    for ts in (0, 40, 100):
        builder.kernel("k", ts=ts, dur=0)
    evidence = evidence_of(builder)

    assert (evidence["idle_pct"], evidence["gaps_count"], evidence["max_gap_ms"]) == (100.0, 2, 0.06)


def test_a_device_that_only_copies_has_no_mean_kernel():
    builder = TraceBuilder()
    for ts in (0, 100):
        builder.memcpy("HtoD", ts=ts, dur=5)
    evidence = evidence_of(builder)

    assert evidence["kernels_count"] == 0
    assert "mean_kernel_us" not in evidence


@pytest.mark.parametrize(
    ("launches", "promised"),
    [
        pytest.param(True, fields.IDLE | fields.IDLE_OPTIONAL, id="with launches"),
        pytest.param(False, fields.IDLE | {"mean_kernel_us"}, id="without"),
    ],
)
def test_every_field_that_patterns_rely_on_is_there(launches, promised):
    builder = TraceBuilder()
    for ts in (5, 100):
        builder.kernel("k", ts=ts, dur=5, correlation=builder.launch(ts=ts - 5) if launches else None)

    assert promised <= set(evidence_of(builder))


def test_a_trace_without_devices_has_no_findings():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)

    assert idle.analyze(workload_of(builder)) == ({"time_ms": 0.0, "time_share_pct": 0.0}, [])
