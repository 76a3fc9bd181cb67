"""Scores: what a gap or a time is worth of the span."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from rooftrace.analyzers import compute
from rooftrace.analyzers.workload import bound_score, covered_ns, gap_score
from rooftrace.contracts.base import Score
from tests.analyzers.counted import counted, looks_of
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder


@pytest.mark.parametrize(
    ("gap", "span", "score"),
    [
        (400, 1000, (30.0, 35.0, 40.0)),  # 75, 87.5 and 100 % of 40 %
        (1, 3, (25.0, 29.17, 33.33)),
        (0, 1000, (0.0, 0.0, 0.0)),
        (5, 0, (0.0, 0.0, 0.0)),
    ],
)
def test_a_gap_scores_what_closing_75_87_5_and_100_per_cent_of_it_saves(gap, span, score):
    low, mid, high = score

    assert gap_score(gap, span) == Score(low=low, mid=mid, high=high)


@pytest.mark.parametrize(("time", "span", "share"), [(250, 1000, 25.0), (5, 0, 0.0)])
def test_an_upper_bound_scores_all_of_its_time(time, span, share):
    assert bound_score(time, span) == Score(low=share, mid=share, high=share)


def test_kernels_that_overlap_can_save_no_more_than_the_time_in_which_any_of_them_runs():
    #            0         100 µs
    # stream 1   [---------]
    # stream 2   [---------]
    # stream 3   [---------]      300 µs of kernels, 100 µs of span
    builder = TraceBuilder()
    for stream in (1, 2, 3):
        builder.kernel("ampere_sgemm_128x64_tn", ts=10, dur=100, stream=stream, correlation=builder.launch(ts=stream))
    workload = workload_of(builder)

    assert covered_ns(workload, workload.groups) == 100_000
    (draft,) = compute.analyze(workload)["gemm"][1]
    finding = draft.finding
    assert (finding.score.low, finding.score.high, finding.gpu_time_score) == (100.0, 100.0, 100.0)


def on_devices(count):
    """On each device two kernels of 10 µs, of which the second starts 5 after the first."""
    builder = TraceBuilder()
    for device in range(count):
        for stream in (1, 2):
            builder.kernel("k", ts=5 * stream, dur=10, stream=stream, device=device)
    return workload_of(builder)


@pytest.mark.parametrize("count", [1, 3, 40])
def test_the_time_in_which_kernels_run_is_summed_over_devices(count):
    workload = on_devices(count)

    assert covered_ns(workload, workload.groups) == count * 15_000


def test_the_time_in_which_kernels_run_costs_a_look_at_each_and_not_one_for_each_device():
    def looks(count):
        workload = on_devices(count)
        activities = replace(workload.activities, device=counted(workload.activities.device))
        workload = replace(workload, activities=activities)
        return looks_of(lambda: covered_ns(workload, workload.groups))

    few, many = looks(20), looks(100)

    assert 0 < many < 6 * few  # five times the devices
