"""The package's report against literals that a program without a line in common with it made."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.truth.independent import describe
from tests.truth.literals import EXPECTED
from tests.truth.runs import loaded, need
from tests.truth.traces import TEN, missing_reason

pytestmark = pytest.mark.real_traces

# Recorded while a graph was captured: hundreds of launches whose kernels never ran.
CAPTURE = "serving/sglang_decode/capture_traces/bs_32_rank0.json.gz"
CAPTURE_LAUNCHES_WITHOUT_KERNEL = 544

LEDGER_FIELDS = (
    "span_ns",
    "compute_ns",
    "exposed_comm_ns",
    "exposed_copy_ns",
    "idle_ns",
    "total_comm_ns",
    "total_copy_ns",
)


def by_trace(test):
    """Run a test on each of the ten traces."""
    return pytest.mark.parametrize("relative", TEN, ids=[name.removesuffix(".json.gz") for name in TEN])(test)


def noted(report, code):
    """The events that a kind of health note counts; 0 where there is no such note."""
    notes = [note for note in need(report, "health", "notes") if need(note, "code") == code]
    return sum(need(note, "count") for note in notes)


def summed(rows, column, value="total_ns"):
    """Integer sums of `value` by the text in `column`."""
    sums = Counter()
    for row in rows:
        sums[need(row, column)] += int(need(row, value))
    return sums


def over_devices(relative, field):
    return sum(device[field] for device in EXPECTED[relative]["devices"])


def test_the_literals_cover_the_ten_traces():
    assert tuple(EXPECTED) == TEN


@by_trace
def test_the_program_still_prints_the_literals(relative):
    if reason := missing_reason(relative):
        pytest.skip(reason)

    assert describe(loaded(relative)) == EXPECTED[relative]


@by_trace
def test_each_devices_ledger_is_the_independent_one(relative, analysed):
    report = analysed(relative).report
    devices = need(report, "ledger", "devices")

    found = {need(d, "device"): {f: need(d, f) for f in LEDGER_FIELDS} for d in devices}

    assert found == {d["device"]: {f: d[f] for f in LEDGER_FIELDS} for d in EXPECTED[relative]["devices"]}


@by_trace
def test_every_gpu_event_and_every_nanosecond_of_it_is_in_the_kernel_table_once(relative, analysed):
    run = analysed(relative)

    assert need(run.report, "trace", "gpu_events") == EXPECTED[relative]["gpu_events"]
    assert sum(int(need(row, "count")) for row in run.kernels) == EXPECTED[relative]["gpu_events"]
    assert sum(int(need(row, "total_ns")) for row in run.kernels) == sum(
        over_devices(relative, f"{kind}_sum_ns") for kind in ("compute", "comm", "copy")
    )


@by_trace
def test_kernels_without_a_launch_are_carried_in_or_lost_as_the_stream_rule_says(relative, analysed):
    run = analysed(relative)
    unlinked = [row for row in run.kernels if need(row, "linked") in ("carry_in", "lost")]

    assert noted(run.report, "carry_in") == over_devices(relative, "carry_in_events")
    assert {need(d, "device"): need(d, "carry_in_ns") for d in need(run.report, "ledger", "devices")} == {
        d["device"]: d["carry_in_sum_ns"] for d in EXPECTED[relative]["devices"]
    }
    sums = summed(unlinked, "linked")
    assert sums["carry_in"] == over_devices(relative, "carry_in_sum_ns")
    assert sums["lost"] == over_devices(relative, "lost_sum_ns")
    assert summed(unlinked, "linked", "count")["carry_in"] == over_devices(relative, "carry_in_events")


@by_trace
def test_coverage_divides_the_summed_durations_without_rest(relative, analysed):
    coverage = need(analysed(relative).report, "coverage")

    found = {
        name: need(coverage, name)
        for name in ("kernel_ns", "comm_ns", "copy_ns", "carry_in_ns", "lost_launch_ns", "ratable_ns")
    }

    # Kernels and fills; communication and what was carried in or lost of the rest leave what can be rated.
    assert found == {
        "kernel_ns": over_devices(relative, "compute_sum_ns") + over_devices(relative, "comm_sum_ns"),
        "comm_ns": over_devices(relative, "comm_sum_ns"),
        "copy_ns": over_devices(relative, "copy_sum_ns"),
        "carry_in_ns": over_devices(relative, "carry_in_compute_sum_ns"),
        "lost_launch_ns": over_devices(relative, "lost_compute_sum_ns"),
        "ratable_ns": over_devices(relative, "linked_compute_sum_ns"),
    }


@by_trace
def test_no_launch_of_the_ten_lost_its_kernel(relative, analysed):
    assert EXPECTED[relative]["launches_without_kernel"] == 0
    assert noted(analysed(relative).report, "launch_without_kernel") == 0


def test_launches_during_a_graph_capture_are_reported_as_having_no_kernel(analysed):
    if reason := missing_reason(CAPTURE):
        pytest.skip(reason)
    seen = describe(loaded(CAPTURE))["launches_without_kernel"]

    assert seen == CAPTURE_LAUNCHES_WITHOUT_KERNEL
    assert noted(analysed(CAPTURE).report, "launch_without_kernel") == CAPTURE_LAUNCHES_WITHOUT_KERNEL


@by_trace
def test_the_three_kernels_with_most_time_are_the_independent_ones(relative, analysed):
    sums = summed(analysed(relative).kernels, "kernel")

    assert dict(sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:3]) == EXPECTED[relative]["top_kernels"]


@by_trace
def test_the_three_ops_that_launch_most_kernel_time_are_the_independent_ones(relative, analysed):
    sums = summed(analysed(relative).kernels, "owner_op")
    outside_ops = sums.pop("", 0)

    assert dict(sorted(sums.items(), key=lambda item: (-item[1], item[0]))[:3]) == EXPECTED[relative]["top_ops"]
    assert outside_ops == EXPECTED[relative]["unowned_ns"]
