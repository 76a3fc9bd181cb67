"""The peer's tables against the independent program, and the package against both.

Shown with `pytest -s`: the compared values, and each named difference with what it changes.
"""

from __future__ import annotations

import pytest

from tests.truth import reference
from tests.truth.independent import linked_only, sweep
from tests.truth.runs import loaded, need
from tests.truth.traces import REFERENCES, missing_reason

pytestmark = pytest.mark.real_traces

TIME_TOLERANCE = 1e-3
FLOPS_TOLERANCE = 1e-4
COMPARED_TIMES = ("compute_ns", "exposed_comm_ns", "exposed_copy_ns", "busy_ns")


def by_reference(test):
    """Run a test on each trace with tables; skipped where the tables or the trace are absent."""
    return pytest.mark.parametrize("name", REFERENCES)(test)


def skip_if_missing(name):
    for relative in (f"{name}.json.gz", f"reference/{name}"):
        if reason := missing_reason(relative):
            pytest.skip(reason)


def with_busy(ledger):
    return {**ledger, "busy_ns": ledger["span_ns"] - ledger["idle_ns"]}


def differences(name, ours, theirs, tolerance):
    """Print the comparison; the names whose values differ by more than `tolerance` of the peer's."""
    print(f"\n{name}\n  {'':16}{'ours':>18}{'peer':>20}{'difference':>14}")
    wrong = []
    for key, expected in theirs.items():
        off = abs(ours[key] - expected)
        print(f"  {key:16}{ours[key]:>18,}{expected:>20,.1f}{off / expected if expected else off:>14.2e}")
        if off > tolerance * expected:
            wrong.append(key)
    return wrong


@by_reference
def test_the_independent_sweep_over_linked_activities_is_the_peers_timeline(name):
    skip_if_missing(name)
    activities = linked_only(loaded(f"{name}.json.gz"))

    wrong = differences(name, with_busy(sweep(activities)), reference.timeline(name), TIME_TOLERANCE)

    assert len({activity.device for activity in activities}) == 1  # the peer merges devices
    assert wrong == []


@by_reference
def test_the_independent_owners_and_sums_are_the_peers_kernel_summary(name):
    skip_if_missing(name)
    theirs = reference.kernel_sums(name)
    ours = reference.own_kernel_sums(loaded(f"{name}.json.gz"))

    assert ours.keys() == theirs.keys()
    off = {k: (ours[k], theirs[k]) for k in ours if ours[k][0] != theirs[k][0] or abs(ours[k][1] - theirs[k][1]) > 1}
    assert off == {}


@by_reference
def test_the_packages_ledger_is_the_peers_timeline_once_the_same_kernels_are_counted(name, analysed):
    skip_if_missing(name)
    trace = loaded(f"{name}.json.gz")
    (device,) = need(analysed(f"{name}.json.gz").report, "ledger", "devices")
    package = with_busy(
        {f: need(device, f) for f in ("span_ns", "idle_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns")}
    )
    # What unlinked activities add to each part is taken off by the independent program, not by the package.
    everything, linked = with_busy(sweep(trace.activities)), with_busy(sweep(linked_only(trace)))
    same_kernels = {part: package[part] - (everything[part] - linked[part]) for part in COMPARED_TIMES}

    theirs = {part: reference.timeline(name)[part] for part in COMPARED_TIMES}

    assert differences(name, same_kernels, theirs, TIME_TOLERANCE) == []


def groups_of(row, ops):
    """The package's op groups that hold this row's calls, carried-in kernels aside: they have no op."""
    return [
        op
        for op in ops
        if not need(op, "carry_in")
        and reference.is_same_call(row, need(op, "name"), reference.tensor_shapes(need(op, "shapes")))
    ]


def problem(row, groups):
    """What is wrong with the package's figures for this row, or None; prints the comparison."""
    if not groups:
        return f"{row.name} {row.shapes}: no op group"
    count = sum(need(op, "count") for op in groups)
    expected = reference.expected_flops(row, groups[0]["name"])
    flops = sorted({op.get("flops") for op in groups}, key=str)
    print(
        f"  {groups[0]['name']:34} x{count:<5}{float(row.printed):>20,.0f} {row.difference:28}"
        f"{float(expected):>20,.0f} {flops} {row.shapes}"
    )
    if count != row.count:
        return f"{row.name} {row.shapes}: {count} calls, the peer has {row.count}"
    if any(value is None or abs(value - expected) > FLOPS_TOLERANCE * expected for value in flops):
        return f"{row.name} {row.shapes}: flops {flops}, expected {float(expected):.0f}"
    return None


@by_reference
def test_the_packages_flops_are_the_peers_after_the_named_differences(name, analysed):
    skip_if_missing(name)
    rows = reference.costs(name)
    ops = need(analysed(f"{name}.json.gz").report, "ops")
    print(f"\n{name}: printed by the peer, its named difference, expected, the package")

    problems = [problem(row, groups_of(row, ops)) for row in rows]

    assert rows, "no GEMM, convolution or attention row in the table"
    assert [p for p in problems if p] == []
