"""Ledgers of several devices from the columns of a run. Times are µs, results ns."""

from __future__ import annotations

from msgspec.structs import replace

from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import device_ledgers_of, prepare_workload
from tests.analyzers.counted import counted, looks_of
from tests.support.trace_builder import TraceBuilder


def devices(count):
    """On each device two kernels of 10 and a gap between, of 1 on device 0, of 2 on device 1 and so on."""
    builder = TraceBuilder()
    for device in reversed(range(count)):
        builder.kernel("k", ts=100 * device, dur=10, device=device)
        builder.kernel("k", ts=100 * device + 11 + device, dur=10, device=device)
    return prepare_workload(builder.build(), AnalyzeOptions()).workload


def test_each_device_has_a_ledger_of_its_own_activities_and_gaps():
    ledgers = devices(3).ledgers

    assert [(ledger.device, ledger.span_ns, ledger.compute_ns, ledger.idle_ns) for ledger in ledgers] == [
        (0, 21_000, 20_000, 1_000),
        (1, 22_000, 20_000, 2_000),
        (2, 23_000, 20_000, 3_000),
    ]
    assert [sum(ledger.idle_by_cause.values()) for ledger in ledgers] == [1_000, 2_000, 3_000]


def test_a_device_costs_a_look_at_its_own_activities_and_gaps_and_not_at_all():
    def looks(count):
        workload = devices(count)
        activities = replace(workload.activities, device=counted(workload.activities.device))
        idle = replace(workload.causes, device=counted(workload.causes.device))
        return looks_of(lambda: device_ledgers_of(activities, workload.groups, workload.steps, idle))

    few, many = looks(10), looks(50)

    assert 0 < many < 6 * few  # five times the devices
