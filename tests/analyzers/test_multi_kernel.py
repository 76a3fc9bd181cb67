"""Findings about exposed communication and exposed copies. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import multi_kernel
from rooftrace.contracts.base import Score
from tests.analyzers.workloads import workload_of
from tests.patterns import fields
from tests.support.trace_builder import TraceBuilder

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def findings_of(builder):
    return multi_kernel.analyze(workload_of(builder))[1]


def communicating(hidden, exposed, span=1000):
    """Compute of `span` less the exposed time, communication half under it and half after it."""
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=span - exposed)
    builder.kernel(ALL_REDUCE, ts=span - exposed - hidden, dur=hidden + exposed, stream=20)
    return builder


def test_a_finding_tells_what_of_the_communication_nothing_hides():
    #            0                  600       800       1000
    # compute   [------------------------------]
    # comm                         [---------------------]
    # exposed                                  [---------]
    builder = communicating(hidden=200, exposed=200)
    builder.kernel(ALL_GATHER, ts=0, dur=100, stream=20)
    summary, (finding,) = multi_kernel.analyze(workload_of(builder))
    evidence = finding.evidence

    assert (finding.id, finding.tier, finding.category, finding.subject) == (
        "multi_kernel.F1",
        "system",
        "communication",
        "exposed communication",
    )
    assert (evidence["exposed_comm_ms"], evidence["exposed_comm_pct"]) == (0.2, 20.0)
    assert (evidence["total_comm_ms"], evidence["overlap_pct"]) == (0.5, 60.0)  # 300 of 500 hidden
    assert evidence["collectives"] == "all_gather, all_reduce"
    assert str(evidence["top_collective"]).startswith("ncclDevKernel_AllReduce")
    assert evidence["comm_kernels_count"] == 2
    assert finding.score == Score(low=20.0, mid=20.0, high=20.0)
    assert summary == {
        "exposed_comm_pct": 20.0,
        "exposed_copy_pct": 0.0,
        "time_ms": 0.2,
        "time_share_pct": 20.0,
    }


@pytest.mark.parametrize(
    ("hidden", "exposed", "found"),
    [
        pytest.param(500, 20, True, id="2 % exposed, however well hidden the rest"),
        pytest.param(500, 19, False, id="1.9 % exposed, 96 % hidden"),
        pytest.param(29, 15, True, id="1.5 % exposed; 4.4 % communication of which 66 % is hidden"),
        pytest.param(45, 15, False, id="1.5 % exposed; 6 % communication of which 75 % is hidden"),
        pytest.param(4, 6, True, id="1 % communication, 40 % hidden"),
        pytest.param(3, 6, False, id="0.9 % communication, 33 % hidden"),
    ],
)
def test_communication_is_a_finding_if_two_per_cent_are_exposed_or_it_is_badly_hidden(hidden, exposed, found):
    assert bool(findings_of(communicating(hidden, exposed))) is found


def copying(*copies, span=1000):
    """Compute for the first half of the span, then copies (direction, µs, bytes, op) one after the other."""
    builder = TraceBuilder()
    builder.kernel("compute", ts=50, dur=span - 50 - sum(copy[1] for copy in copies))
    at = span - sum(copy[1] for copy in copies)
    for number, (direction, dur, nbytes, op) in enumerate(copies):
        if op:
            builder.op(op, 10 * number, 5)
        launched = builder.launch("cudaMemcpyAsync", ts=10 * number + 1)
        builder.memcpy(direction, ts=at, dur=dur, bytes=nbytes, correlation=launched)
        at += dur
    return builder


def test_a_finding_about_copies_tells_directions_sizes_and_who_asked_for_them():
    # span 950: from 50 to 1,000
    builder = copying(
        ("HtoD", 40, 400_000, "aten::to"), ("DtoH", 30, 100_000, "aten::item"), ("DtoD", 20, 400_000, "aten::item")
    )
    (finding,) = findings_of(builder)
    evidence = finding.evidence

    assert (finding.category, finding.subject) == ("copy", "exposed copy")
    assert (evidence["exposed_copy_ms"], evidence["total_copy_ms"], evidence["exposed_copy_pct"]) == (0.09, 0.09, 9.47)
    assert (evidence["htod_ms"], evidence["dtoh_ms"], evidence["dtod_ms"]) == (0.04, 0.03, 0.02)
    assert (evidence["copies_count"], evidence["copy_bytes"], evidence["achieved_gbps"]) == (3, 900_000, 10.0)
    assert evidence["top_copy"] == "Memcpy HtoD (Pinned -> Device)"
    assert evidence["top_copy_op"] == "aten::item"  # 30 + 20 against 40
    assert evidence["pageable_ms"] == 0.0


def test_pageable_copies_are_told_by_their_names():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    name = "Memcpy HtoD (Pageable -> Device)"
    builder.event(ph="X", cat="gpu_memcpy", name=name, pid=0, tid=7, ts=100, dur=50, args={"device": 0, "stream": 7})
    (finding,) = findings_of(builder)

    assert (finding.evidence["pageable_ms"], finding.evidence["htod_ms"]) == (0.05, 0.05)
    assert finding.patterns[0] == "pageable_htod"
    assert not fields.COPIES_OPTIONAL & set(finding.evidence)  # no sizes recorded
    assert finding.evidence["top_copy_op"] == "none recorded"


@pytest.mark.parametrize(("dur", "found"), [(19, True), (18, False)])
def test_copies_are_a_finding_from_two_per_cent_of_the_span(dur, found):
    # span 950: 19 is 2.0 %, 18 is 1.89 %
    assert bool(findings_of(copying(("HtoD", dur, 1, None)))) is found


def test_copies_that_rocm_records_as_kernels_are_copies():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel("MEMORY_COPY_DEVICE_TO_HOST", ts=100, dur=60)
    builder.kernel("__amd_rocclr_copyBuffer", ts=160, dur=40)
    (finding,) = findings_of(builder)

    assert (finding.evidence["total_copy_ms"], finding.evidence["dtoh_ms"]) == (0.1, 0.06)


@pytest.mark.parametrize(
    ("comm", "copy", "order"),
    [(30, 50, ["copy", "communication"]), (50, 30, ["communication", "copy"]), (40, 40, ["communication", "copy"])],
)
def test_the_larger_of_both_comes_first(comm, copy, order):
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel(ALL_REDUCE, ts=100, dur=comm)
    builder.memcpy("DtoH", ts=100 + comm, dur=copy)
    findings = findings_of(builder)

    assert [finding.category for finding in findings] == order
    assert [finding.id for finding in findings] == ["multi_kernel.F1", "multi_kernel.F2"]


def test_every_field_that_patterns_rely_on_is_there():
    builder = communicating(hidden=10, exposed=100)
    builder.memcpy("DtoH", ts=1000, dur=100, bytes=64)
    comm, copies = findings_of(builder)

    assert set(comm.evidence) >= fields.COMMUNICATION
    assert set(copies.evidence) >= fields.COPIES | fields.COPIES_OPTIONAL


def test_without_communication_and_copies_there_is_nothing_to_find():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)

    assert findings_of(builder) == []
