"""Findings about exposed communication and exposed copies. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import multi_kernel
from rooftrace.contracts.base import Score
from tests.analyzers.workloads import workload_of
from tests.patterns import fields
from tests.support.trace_builder import TraceBuilder, collective

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"


def findings_of(builder):
    return [draft.finding for draft in multi_kernel.analyze(workload_of(builder))[1]]


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
    summary, (draft,) = multi_kernel.analyze(workload_of(builder))
    finding = draft.finding
    evidence = finding.evidence

    assert (finding.id, finding.tier, finding.category, finding.subject) == (
        "multi_kernel.F1",
        "system",
        "communication",
        "exposed all-reduce",
    )
    assert (evidence["exposed_comm_ms"], evidence["exposed_comm_pct"]) == (0.2, 20.0)
    assert (evidence["total_comm_ms"], evidence["overlap_pct"]) == (0.4, 50.0)  # 200 of 400 hidden
    assert evidence["collectives"] == "all_reduce"
    assert str(evidence["top_collective"]).startswith("ncclDevKernel_AllReduce")
    assert evidence["comm_kernels_count"] == 1
    assert finding.score == Score(low=20.0, mid=20.0, high=20.0)
    assert (finding.score_basis, finding.kind, draft.most_ns) == ("gap_share", "upper_bound", 200_000)
    assert summary == {
        "exposed_comm_pct": 20.0,
        "exposed_copy_pct": 0.0,
        "time_ms": 0.2,
        "time_share_pct": 20.0,
        "exposed_all_reduce_ms": 0.2,
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


def test_many_collectives_that_compute_hides_are_no_finding():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=10_000)
    for number in range(500):
        builder.kernel(ALL_REDUCE, ts=10 * number, dur=5, stream=20, **collective("allreduce", 100))

    assert findings_of(builder) == []


@pytest.mark.parametrize(("dur", "found"), [(10, True), (9, False)])
def test_copies_are_a_finding_from_one_per_cent_of_the_span(dur, found):
    # span 1,000: 10 is 1.0 %, 9 is 0.9 %
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=1000 - dur)
    builder.memcpy("HtoD", ts=1000 - dur, dur=dur)

    assert bool(findings_of(builder)) is found


def test_copies_that_rocm_records_as_kernels_are_copies():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel("MEMORY_COPY_DEVICE_TO_HOST", ts=100, dur=60)
    builder.kernel("__amd_rocclr_copyBuffer", ts=160, dur=40)
    back, other = findings_of(builder)

    assert (back.evidence["direction"], back.evidence["dtoh_ms"], back.evidence["exposed_copy_pct"]) == (
        "DtoH",
        0.06,
        30.0,
    )
    assert (other.evidence["direction"], other.subject) == ("unknown", "exposed copies of unknown direction")


@pytest.mark.parametrize(
    ("comm", "copy", "order"),
    [
        (30, 50, ["copy", "communication"]),
        (50, 30, ["communication", "copy"]),
        (40, 40, ["communication", "copy"]),
    ],
)
def test_the_larger_saving_comes_first(comm, copy, order):
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel(ALL_REDUCE, ts=100, dur=comm)
    builder.memcpy("DtoH", ts=100 + comm, dur=copy)
    findings = findings_of(builder)

    assert [finding.category for finding in findings] == order
    assert [finding.id for finding in findings] == ["multi_kernel.F1", "multi_kernel.F2"]


def test_every_field_that_patterns_rely_on_is_there():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=1000)
    at = 1000.0
    for elements, count in ((1000, 50), (1_500_000, 3)):
        for _ in range(count):
            builder.kernel(ALL_REDUCE, ts=at, dur=20, stream=20, **collective("allreduce", elements))
            at += 21
    for number in range(3):
        launched = builder.launch("cudaMemcpyAsync", ts=10 * number)
        builder.memcpy("HtoD", ts=at, dur=100, bytes=4 << 20, correlation=launched)
        at += 100
    found = {str(finding.evidence["aspect"]): finding for finding in findings_of(builder)}

    assert set(found) == set(fields.ASPECTS)
    for aspect, finding in found.items():
        missing = fields.ASPECTS[aspect] - set(finding.evidence)
        assert not missing, aspect
        known = fields.ASPECTS[aspect] | fields.MULTI_KERNEL_OPTIONAL
        assert not set(finding.evidence) - known, aspect
    communication = set(found["exposed_communication"].evidence)
    for group in (fields.MESSAGES, fields.GROUP, fields.SIZED, fields.PEER_LINK, fields.WAITING):
        assert group <= communication
    assert set(found["exposed_copies"].evidence) >= fields.COPIES_OPTIONAL | fields.COPY_LINK


def test_without_communication_and_copies_there_is_nothing_to_find():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)

    assert findings_of(builder) == []


def test_a_run_without_host_events_and_platform_is_analysed():
    builder = communicating(hidden=10, exposed=100)
    builder.memcpy("DtoH", ts=1000, dur=100)

    drafts = multi_kernel.analyze(workload_of(builder, platform=None))[1]

    assert [draft.finding.category for draft in drafts] == ["communication", "copy"]
    assert "peer_link_gbps" not in drafts[0].finding.evidence
