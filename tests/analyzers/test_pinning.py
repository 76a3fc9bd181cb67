"""What pinned memory changes of a blocking copy: both calls of its op, and the copy's own time. Times are µs."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import idle, multi_kernel
from rooftrace.schedule import WaitKind
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
OF_HIP = "Memcpy HtoD (Host -> Device)"


def blocking(name=PAGEABLE, *, compute=50.0, blocks=True, nbytes=630_000):
    """A copy of 100 µs whose op copies and then synchronises; 630,000 bytes take 10 µs at the link's 63 GB/s."""
    #               0        60           160 165  175  190 200
    # host          [launch] [memcpy          ][sync]  [launch]
    # GPU            [compute] [copy         ]             [next]
    builder = TraceBuilder()
    begin = compute + 10
    builder.kernel("compute", ts=10, dur=compute, correlation=builder.launch(ts=0))
    builder.op("aten::to", begin - 14, 131)
    builder.op("aten::copy_", begin - 12, 128)
    copied = builder.launch("cudaMemcpyAsync", ts=begin - 10, dur=115 if blocks else 5)
    place = {"device": 0, "stream": 7, "correlation": copied, "bytes": nbytes}
    builder.event(ph="X", cat="gpu_memcpy", name=name, pid=0, tid=7, ts=begin, dur=100, args=place)
    if blocks:
        builder.launch("cudaStreamSynchronize", ts=begin + 106, dur=8)
    builder.kernel("next", ts=begin + 140, dur=50, correlation=builder.launch(ts=begin + 130))
    return builder


def test_the_synchronising_call_of_the_same_op_goes_with_the_blocking_one():
    workload = workload_of(blocking())
    (draft,) = multi_kernel.analyze(workload)[1]
    waits = workload.schedule.waits
    names = [workload.trace.names[workload.tree.name[waits.node[at]]] for at in draft.edit.unblocked.tolist()]
    (cut,) = draft.edit.host

    assert names == ["cudaMemcpyAsync", "cudaStreamSynchronize"]
    assert [WaitKind(kind) for kind in waits.kind[draft.edit.unblocked].tolist()] == [WaitKind.COPY, WaitKind.STREAM]
    assert list(zip(cut.start.tolist(), cut.end.tolist(), strict=True)) == [(166_000, 174_000)]
    assert draft.edit.saved_ns.tolist() == [90_000]


def test_a_copy_from_memory_of_unknown_kind_that_blocks_can_be_pinned():
    (draft,) = multi_kernel.analyze(workload_of(blocking(OF_HIP)))[1]

    assert (draft.finding.kind, draft.finding.confidence) == ("modelled", "medium")
    assert draft.edit.saved_ns.tolist() == [90_000]
    assert draft.finding.patterns[0] == "blocking_copies"


def test_a_copy_from_memory_of_unknown_kind_that_does_not_block_is_a_bound():
    (draft,) = multi_kernel.analyze(workload_of(blocking(OF_HIP, blocks=False)))[1]

    assert (draft.finding.kind, draft.edit.saved_ns.tolist()) == ("upper_bound", [100_000])


@pytest.mark.parametrize(
    ("compute", "saved"), [(12_000.0, [90_000]), (50.0, [])], ids=["little exposed", "much exposed"]
)
def test_copies_too_few_to_be_analysed_get_faster_with_the_finding_about_their_calls(compute, saved):
    # 100 of 12,200 µs exposed are below 1 %: no finding about copies; of 240 they are one
    workload = workload_of(blocking(compute=compute))
    drafts = idle.analyze(workload)[1]
    mine = [draft for draft in drafts if draft.finding.evidence.get("sync_op") == "aten::to"]

    assert len(multi_kernel.analyze(workload)[1]) == (0 if saved else 1)
    assert [draft.edit.saved_ns.tolist() for draft in mine][:1] == [saved]
    assert all(draft.edit.unblocked.size == 2 for draft in mine)
