"""What is said of copies: ways, sizes, bandwidths, who waits for them. Times are µs in the drawings."""

from __future__ import annotations

import pytest

from rooftrace.analyzers import multi_kernel, transfers
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder

PAGEABLE = "Memcpy HtoD (Pageable -> Device)"
PINNED = "Memcpy HtoD (Pinned -> Device)"
BACK = "Memcpy DtoH (Device -> Pageable)"
ON_GPU = "Memcpy DtoD (Device -> Device)"


class Copies(TraceBuilder):
    """Compute first, then copies one after the other on one stream, each launched by an op of its own."""

    def __init__(self, compute=1000):
        super().__init__()
        self.kernel("compute", ts=0, dur=compute)
        self.host, self.gpu = 0.0, float(compute)

    def copy(self, name, dur, nbytes=None, *, op="aten::copy_", frame=None, stream=7):
        if frame:
            self.python(frame, self.host, 9)
        self.op(op, self.host + 1, 7)
        correlation = self.launch("cudaMemcpyAsync", ts=self.host + 2)
        size = {} if nbytes is None else {"bytes": nbytes}
        place = {"device": 0, "stream": stream, "correlation": correlation, **size}
        self.event(ph="X", cat="gpu_memcpy", name=name, pid=0, tid=stream, ts=self.gpu, dur=dur, args=place)
        self.host += 10
        self.gpu += dur


def drafts_of(builder, platform="h100-sxm"):
    return multi_kernel.analyze(workload_of(builder, platform))[1]


def test_exposed_time_is_divided_by_way_memory_and_size_and_sums_to_the_ledgers():
    #            1000                 1100    1150
    # pinned     [----------------------]              17 MB
    # on the GPU [------------------------------]      1 MB
    # 100 shared by two: 50 each; then 50 for the second
    builder = Copies()
    builder.copy(PINNED, 100, 17 << 20, stream=8)
    builder.gpu = 1000.0
    builder.copy(ON_GPU, 150, 1 << 20, stream=9)
    builder.copy(BACK, 10, 8)
    builder.copy(PAGEABLE, 7, (1 << 20) - 1)
    builder.copy(PAGEABLE, 3)  # no size recorded
    workload = workload_of(builder)
    found = transfers.find_transfers(workload)

    assert transfers.exposed_by_class(workload, found) == {
        "HtoD pinned large": 50_000,
        "DtoD device medium": 100_000,
        "DtoH pageable tiny": 10_000,
        "HtoD pageable small": 7_000,
        "HtoD pageable unknown": 3_000,
    }
    assert workload.ledgers[0].exposed_copy_ns == 170_000


def test_shares_of_copies_at_once_sum_in_whole_ns():
    builder = Copies()
    for stream, name in ((20, PINNED), (21, BACK), (22, ON_GPU)):
        builder.gpu = 1000.0
        builder.copy(name, 0.1, 8, stream=stream)
    workload = workload_of(builder)
    shares = transfers.exposed_by_class(workload, transfers.find_transfers(workload))

    assert sorted(shares.values()) == [33, 33, 34]  # 100 ns by three


def test_what_compute_or_communication_covers_is_not_exposed():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel("ncclDevKernel_AllGather_RING_LL", ts=100, dur=100, stream=20)
    builder.memcpy("HtoD", ts=50, dur=200, stream=8, bytes=10)
    workload = workload_of(builder)

    assert transfers.exposed_by_kind(workload, transfers.find_transfers(workload)) == {"HtoD pinned": 50_000}


@pytest.mark.parametrize(
    ("nbytes", "size"),
    [
        (0, "tiny"),
        (65_535, "tiny"),
        (65_536, "small"),
        (1_048_575, "small"),
        (1_048_576, "medium"),
        (16_777_215, "medium"),
        (16_777_216, "large"),
        (None, "unknown"),
    ],
)
def test_sizes_fall_into_classes(nbytes, size):
    builder = Copies()
    builder.copy(PINNED, 10, nbytes)

    assert transfers.find_transfers(workload_of(builder)).size.tolist() == [size]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        (PAGEABLE, "HtoD pageable"),
        ("Memcpy DtoH (Device -> Pinned)", "DtoH pinned"),
        (ON_GPU, "DtoD device"),
        ("Memcpy PtoP (Device -> Device)", "PtoP device"),
        ("MEMORY_COPY_HOST_TO_DEVICE", "HtoD unknown"),
        ("CopyDeviceToDevice", "DtoD device"),
        ("__amd_rocclr_copyBuffer", "unknown unknown"),
    ],
)
def test_way_and_memory_are_told_by_the_name(name, kind):
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=10)
    builder.kernel(name, ts=10, dur=10) if "Memcpy" not in name else builder.event(
        ph="X", cat="gpu_memcpy", name=name, pid=0, tid=7, ts=10, dur=10, args={"device": 0, "stream": 7}
    )

    assert transfers.find_transfers(workload_of(builder)).kind.tolist() == [kind]


def test_a_memset_is_no_copy():
    builder = Copies(compute=100)
    builder.memset(ts=100, dur=50, bytes=1 << 20)

    assert drafts_of(builder) == []


def test_each_way_and_memory_of_one_per_cent_is_a_finding_and_the_rest_one():
    # span 10,000: 300, 100, and 90 + 80 together
    builder = Copies(compute=9430)
    builder.copy(PINNED, 300)
    builder.copy(ON_GPU, 100)
    builder.copy(BACK, 90)
    builder.copy(PAGEABLE, 80)
    findings = [draft.finding for draft in drafts_of(builder)]

    assert [(finding.subject, finding.evidence["exposed_copy_pct"]) for finding in findings] == [
        ("exposed pinned copies to the GPU", 3.0),
        ("exposed copies", 1.7),
        ("exposed copies on the GPU", 1.0),
    ]
    assert [finding.evidence["direction"] for finding in findings] == ["HtoD", "mixed", "DtoD"]


def test_pinning_brings_pageable_copies_to_the_bandwidth_of_the_link():
    # H100 SXM: 63 GB/s each way. 6.3 MB take 100 µs at it, 12.6 MB take 200 µs; 64 bytes no less than 2 µs
    builder = Copies()
    builder.copy(PAGEABLE, 400, 6_300_000)
    builder.copy(PAGEABLE, 550, 12_600_000)
    builder.copy(PAGEABLE, 50, 64)
    (draft,) = drafts_of(builder)

    assert draft.finding.kind == "modelled"
    assert draft.edit.saved_ns.tolist() == [300_000, 350_000, 48_000]
    assert draft.most_ns == 698_000
    assert draft.finding.evidence["pinned_saving_ms"] == 0.698
    assert draft.finding.score.high == 34.9  # 698 of 2,000
    assert draft.finding.score.low == 26.18  # three quarters of it: 26.175


def test_a_copy_is_not_said_to_become_faster_than_the_fastest_that_was_seen():
    builder = Copies()
    builder.copy(PINNED, 1, 64)
    builder.copy(PAGEABLE, 50, 64)
    (draft,) = drafts_of(builder)

    assert draft.edit.saved_ns.tolist() == [49_000]  # one of 1 µs was seen, below the usual 2


def test_without_sizes_the_bound_is_the_exposed_time():
    builder = Copies()
    builder.copy(PAGEABLE, 400)
    (draft,) = drafts_of(builder)

    assert (draft.finding.kind, draft.most_ns, draft.edit.saved_ns.tolist()) == (
        "upper_bound",
        400_000,
        [400_000],
    )


def blocking(name):
    """A copy of 100 µs in a call that lasts from 50 to 160, after compute until 100, and 40 µs later a kernel."""
    builder = TraceBuilder()
    builder.kernel("compute", ts=10, dur=50, correlation=builder.launch(ts=0))
    copied = builder.launch("cudaMemcpyAsync", ts=50, dur=115)
    place = {"device": 0, "stream": 7, "correlation": copied, "bytes": 630_000}
    builder.event(ph="X", cat="gpu_memcpy", name=name, pid=0, tid=7, ts=60, dur=100, args=place)
    builder.kernel("next", ts=200, dur=50, correlation=builder.launch(ts=190))
    return builder


def test_a_pinned_copy_to_the_gpu_blocks_its_call_no_more():
    (draft,) = drafts_of(blocking(PAGEABLE))
    evidence = draft.finding.evidence

    assert (evidence["blocking_count"], evidence["blocked_ms"]) == (
        1,
        0.11,
    )  # from 50 to the end of the copy, 160
    assert (evidence["htod_blocked_ms"], evidence["dtoh_blocked_ms"]) == (0.11, 0.0)
    assert draft.edit.unblocked.size == 1
    # 630,000 bytes take 10 µs at 63 GB/s; and at most the idle time, 40 µs, goes with the standing still
    assert draft.edit.saved_ns.tolist() == [90_000]
    assert draft.most_ns == 130_000
    assert draft.finding.score.high == 37.5  # 90 of 240: what follows from it is for the replay to tell


def test_a_copy_to_the_host_has_to_be_waited_for():
    (draft,) = drafts_of(blocking(BACK))

    evidence = draft.finding.evidence
    assert (evidence["blocking_count"], evidence["htod_blocked_ms"], evidence["dtoh_blocked_ms"]) == (1, 0.0, 0.11)
    assert draft.edit.unblocked.size == 0


def test_a_finding_tells_sizes_bandwidth_and_issuer():
    builder = Copies(compute=100)
    for nbytes in (999, 1000, 1001):
        builder.copy(PINNED, 2, nbytes, op="aten::to", frame="train.py(7): batch", stream=8)
    builder.copy(PINNED, 100, 3_150_000, op="aten::to", frame="train.py(9): load", stream=8)
    (draft,) = drafts_of(builder)
    evidence = draft.finding.evidence

    assert (evidence["copy_bytes"], evidence["largest_bytes"], evidence["copies_count"]) == (
        3_153_000,
        3_150_000,
        4,
    )
    assert evidence["achieved_gbps"] == 29.75  # 3,153,000 bytes in 106 µs
    assert (evidence["large_gbps"], evidence["link_gbps"], evidence["link_pct"]) == (31.5, 63.0, 50.0)
    assert (evidence["tiny_count"], evidence["tiny_ms"], evidence["tiny_pct"]) == (3, 0.006, 5.66)  # 6 of 106
    # one of 3,000 bytes at 31.5 GB/s in place of three: 6,000 - 2,000 - 95 ns
    assert evidence["tiny_saving_ms"] == 0.003905
    assert (evidence["top_copy_op"], evidence["top_copy_frame"]) == ("aten::to", "train.py(9): load")
    assert evidence["on_compute_stream_pct"] == 0.0
    assert (draft.edit.saved_ns.tolist(), draft.most_ns) == ([2000, 2000, 2000, 100_000], 106_000)


def test_copies_of_ddp_are_told_from_those_of_the_loop():
    # 30 out of buckets, 40 of buffers, 30 of the loop: 100 in the window; 50 more were launched before it
    builder = Copies(compute=100)
    builder.event(
        ph="X", cat="gpu_memcpy", name=ON_GPU, pid=0, tid=9, ts=40, dur=50, args={"device": 0, "stream": 9, "bytes": 8}
    )
    builder.annotation("torch.distributed.ddp.reducer::copy_bucket_to_grad", builder.host, 10)
    builder.copy(ON_GPU, 30, 8, stream=9)
    builder.python("<built-in method _broadcast_coalesced of PyCapsule object at 0x7f46>", builder.host, 10)
    builder.copy(ON_GPU, 40, 8, stream=9)
    builder.copy(ON_GPU, 30, 8, stream=9)
    (draft,) = drafts_of(builder)
    evidence = draft.finding.evidence

    assert [evidence[f"ddp_bucket_{unit}"] for unit in ("count", "ms", "pct")] == [1, 0.03, 30.0]
    assert [evidence[f"ddp_buffer_{unit}"] for unit in ("count", "ms", "pct")] == [1, 0.04, 40.0]
    assert evidence["ddp_pct"] == 70.0
    assert draft.finding.patterns == ["ddp_bucket_copies", "ddp_buffer_broadcast", "small_copies", "unrated", "default"]


def test_slow_pinned_copies_get_a_sentence_in_a_finding_about_others():
    # 6.3 MB in 400 µs are 15.75 GB/s of 63, exposed for 400 of 1,550
    builder = Copies(compute=1000)
    builder.copy(PINNED, 400, 6_300_000, stream=8)
    builder.copy(ON_GPU, 150, 1 << 20)
    on_gpu = next(draft.finding for draft in drafts_of(builder) if draft.finding.evidence["direction"] == "DtoD")

    assert [on_gpu.evidence[f"pinned_{name}"] for name in ("gbps", "link_gbps", "link_pct")] == [15.75, 63.0, 25.0]
    assert (on_gpu.evidence["pinned_exposed_ms"], on_gpu.evidence["pinned_exposed_pct"]) == (0.4, 25.81)
    assert on_gpu.patterns[:2] == ["dtod_copies", "slow_pinned_elsewhere"]


def test_a_copy_on_the_gpu_moves_each_byte_twice():
    builder = Copies(compute=100)
    builder.copy(ON_GPU, 100, 83_750_000)
    (draft,) = drafts_of(builder)
    ceiling = draft.finding.evidence["link_gbps"]

    assert draft.finding.evidence["large_gbps"] == 837.5
    assert ceiling == 1590.0  # half of the 3,180 GB/s that were measured on this memory
    assert draft.finding.evidence["on_compute_stream_pct"] == 100.0


def test_copies_between_gpus_stand_against_the_links_between_them():
    builder = Copies()
    builder.copy("Memcpy PtoP (Device -> Device)", 100, 45_000_000)
    (draft,) = drafts_of(builder)

    assert (draft.finding.evidence["link_gbps"], draft.finding.evidence["link_pct"]) == (
        450.0,
        100.0,
    )  # NVLink


def repeating(count, *, steps=1, nbytes=4096, name=PINNED, dur=10.0, frames=("model.py(3): mask",)):
    builder = Copies(compute=100)
    for step in range(steps):
        start = builder.host
        for number in range(count):
            builder.copy(name, dur, nbytes, frame=frames[number % len(frames)])
        builder.annotation(f"ProfilerStep#{step}", start, builder.host - start)
    return builder


def repeats_of(builder):
    return [draft for draft in drafts_of(builder) if draft.finding.evidence["aspect"] == "repeated_transfers"]


def test_equal_transfers_from_one_place_in_a_step_are_told_once():
    (draft,) = repeats_of(repeating(5, steps=2))
    evidence = draft.finding.evidence

    # the first of each step has to stay: 4 of 5, twice
    assert (evidence["copies_count"], evidence["classes_count"], evidence["time_ms"]) == (8, 2, 0.08)
    assert (evidence["top_repeat_count"], evidence["top_repeat_bytes"], evidence["top_repeat_us"]) == (
        5,
        4096,
        10.0,
    )
    assert draft.edit.removed.size == 8
    assert draft.edit.activities.size == 0
    assert (draft.most_ns, draft.finding.kind, draft.finding.confidence) == (80_000, "upper_bound", "medium")
    assert draft.finding.patterns == [
        "repeated_transfers_in_frame",
        "repeated_transfers",
        "unrated",
        "default",
    ]


@pytest.mark.parametrize(
    "builder",
    [
        pytest.param(repeating(2), id="two in a step"),
        pytest.param(repeating(2, steps=3), id="two in each of three steps"),
        pytest.param(repeating(6, frames=("a.py(1): f", "b.py(2): g", "c.py(3): h")), id="from three lines"),
        pytest.param(repeating(5, name=ON_GPU), id="on the GPU"),
        pytest.param(repeating(5, name=BACK), id="results that come back"),
        pytest.param(repeating(5, nbytes=None), id="of unknown size"),
    ],
)
def test_transfers_that_need_not_be_the_same_are_not_called_repeated(builder):
    assert repeats_of(builder) == []


@pytest.mark.parametrize(("dur", "count"), [(0.25, 0), (0.3, 1)])
def test_repeated_transfers_need_half_a_per_cent_of_the_span(dur, count):
    # compute 100 and one other copy of 10; of three copies two repeat: 0.5 of 110.75, 0.6 of 110.9
    builder = repeating(3, dur=dur)
    builder.copy(ON_GPU, 10, 8)

    assert len(repeats_of(builder)) == count


def test_without_stacks_the_same_op_is_a_weak_sign():
    builder = Copies(compute=100)
    for _ in range(3):
        builder.copy(PINNED, 10, 4096)
    (draft,) = repeats_of(builder)

    assert draft.finding.confidence == "low"
    assert draft.finding.patterns == ["repeated_transfers", "unrated", "default"]


def test_what_repeats_is_listed_by_start_over_all_places():
    # a b a b a b: of each place all but the first, the activities 3 to 6 after compute and the first two
    builder = repeating(6, frames=("a.py(1): f", "b.py(2): g"))
    (draft,) = repeats_of(builder)

    assert draft.finding.evidence["classes_count"] == 2
    assert draft.edit.removed.tolist() == [3, 4, 5, 6]
