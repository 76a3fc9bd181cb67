"""What is said of collectives: sizes, bandwidths, what could hide them. Times are µs in the drawings."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.analyzers import batching, collectives, exposure, messages, multi_kernel
from rooftrace.analyzers.messages import Message
from rooftrace.calltree import Work
from tests.analyzers.workloads import workload_of
from tests.support.trace_builder import TraceBuilder, collective

ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
ALL_GATHER = "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
SEND_RECV = "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)"
GENERIC = "ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)"
EIGHT = tuple(range(8))


def messages_of(builder):
    """The messages of a trace's communication, by start."""
    workload = workload_of(builder)
    members = exposure.members_of(workload.activities, Work.COMMUNICATION)
    found, number = messages.find_messages(workload, members)
    return [found[at] for at in number.tolist()]


def drafts_of(builder):
    return multi_kernel.analyze(workload_of(builder))[1]


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("allreduce", "all_reduce"),
        ("allreduce_coalesced", "all_reduce"),
        ("c10d::allreduce_", "all_reduce"),
        ("_allgather_base", "all_gather"),
        ("all_gather_into_tensor_coalesced", "all_gather"),
        ("nccl:_reduce_scatter_base", "reduce_scatter"),
        ("reduce_scatter_tensor_coalesced", "reduce_scatter"),
        ("all_to_allv", "all_to_all"),
        ("c10d::alltoall_base_", "all_to_all"),
        ("All2All_Pooled_Req", "all_to_all"),
        ("nccl:broadcast", "broadcast"),
        ("c10d::reduce_", "reduce"),
        ("c10d::barrier", "barrier"),
        ("recv", "send_recv"),
        ("send", "send_recv"),
        ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>", "all_reduce"),
        ("multimem_all_reduce_kernel", "all_reduce"),
        ("deep_ep::intranode::dispatch<8>", "all_to_all"),
        (GENERIC, "unknown"),
    ],
)
def test_the_kind_of_a_collective_is_told_by_the_words_of_its_name(name, kind):
    assert messages.kind_of(name) == kind


def test_the_kernels_own_record_tells_kind_group_and_bytes():
    builder = TraceBuilder()
    builder.kernel(GENERIC, ts=0, dur=10, **collective("_allgather_base", 100, 800, dtype="BFloat16", ranks=EIGHT))

    assert messages_of(builder) == [
        Message(
            kind="all_gather",
            dtype="bfloat16",
            nbytes=1600,  # the larger of 100 and 800 elements, 2 bytes each
            group="0 (default_pg)",
            group_size=8,
            ranks="[0, 1, 2, 3, 4, 5, 6, 7]",
        )
    ]


def launched(builder, kernel, *calls, ts=0):
    """A kernel launched inside calls (name, arguments), the outermost first."""
    for depth, (name, args) in enumerate(calls):
        builder.op(name, ts + depth, 40 - 2 * depth, **args)
    builder.kernel(kernel, ts=ts + 60, dur=10, stream=20, correlation=builder.launch(ts=ts + 10))


def test_the_op_around_the_launch_tells_what_the_kernel_does_not():
    builder = TraceBuilder()
    launched(
        builder,
        GENERIC,
        ("record_param_comms", collective("reduce_scatter", 64, 8, dtype="Half", ranks=EIGHT)),
    )

    (message,) = messages_of(builder)
    assert (message.kind, message.dtype, message.nbytes, message.group_size) == (
        "reduce_scatter",
        "float16",
        128,
        8,
    )


def params(*sizes, concrete):
    """Inputs of a `record_param_comms` without named arguments."""
    count = len(concrete) - 1
    return {
        "dims": [list(sizes), *[[]] * count],
        "types": ["TensorList", *["Scalar"] * count],
        "concrete": concrete,
    }


def tensors(*dims, dtype="float"):
    return {"dims": [list(shape) for shape in dims], "types": [dtype] * len(dims)}


def test_shapes_and_the_group_size_are_read_from_older_records():
    # Megatron's: all-reduce of [4, 2048, 4096] halves over 8 ranks, no named arguments
    builder = TraceBuilder()
    old = params([4, 2048, 4096], concrete=["", "337", "9382511", "0", "", "[]", "[]", "8"])
    call = tensors((4, 2048, 4096), dtype="c10::Half")
    launched(builder, ALL_REDUCE, ("record_param_comms", old), ("nccl:all_reduce", call))

    assert messages_of(builder) == [
        Message(kind="all_reduce", dtype="float16", nbytes=67_108_864, group_size=8)  # 4 * 2048 * 4096 * 2
    ]


@pytest.mark.parametrize(
    ("name", "args", "kind", "nbytes"),
    [
        pytest.param("nccl:all_to_all", tensors((6144,)), "all_to_all", 24_576, id="what is sent"),
        pytest.param(
            "c10d::alltoall_base_",
            tensors((768,), (3392,), dtype="int"),
            "all_to_all",
            13_568,
            id="the larger side",
        ),
        pytest.param("c10d::allreduce_", tensors((10,), (99,)), "all_reduce", 40, id="the first, in place"),
        pytest.param("nccl:allreduce_coalesced", tensors((10,), (20,)), "all_reduce", 120, id="all of one call"),
        pytest.param("nccl:_all_gather_base", tensors((5,)), "all_gather", -1, id="a part of an unknown number"),
        pytest.param("vllm::all_reduce", tensors((2, 8)), "all_reduce", 64, id="an engine's op"),
        pytest.param("aten::mm", tensors((2, 8)), "unknown", -1, id="an op that does not communicate"),
    ],
)
def test_bytes_come_from_the_shapes_of_the_call(name, args, kind, nbytes):
    builder = TraceBuilder()
    launched(builder, GENERIC, (name, args))

    (message,) = messages_of(builder)
    assert (message.kind, message.nbytes) == (kind, nbytes)


def test_a_part_that_is_gathered_from_each_rank_counts_for_all_of_them():
    builder = TraceBuilder()
    builder.header(distributedInfo={"rank": 0, "world_size": 2})
    launched(builder, ALL_GATHER, ("nccl:_all_gather_base", tensors((5,))))

    (message,) = messages_of(builder)
    assert (message.group_size, message.nbytes) == (
        2,
        40,
    )  # two parts of 5 floats; a group of a run of two is both


@pytest.mark.parametrize(
    ("kind", "size", "factor"),
    [
        ("all_reduce", 8, 1.75),  # 2 * 7 / 8
        ("all_gather", 8, 0.875),
        ("reduce_scatter", 4, 0.75),
        ("all_to_all", 2, 0.5),
        ("broadcast", 8, 1.0),
        ("send_recv", -1, 1.0),
        ("all_reduce", -1, None),
        ("all_reduce", 1, 0.0),
    ],
)
def test_bus_bandwidth_counts_what_a_link_of_a_ring_carries(kind, size, factor):
    assert Message(kind=kind, group_size=size).bus_factor == factor


def test_bandwidths_are_bytes_over_time_and_the_best_stands_against_the_links():
    # all-reduce of 45,000,000 fp32 = 180 MB over 8 ranks: 1,000 µs = 180 GB/s, 2,000 µs = 90 GB/s
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    for ts, dur in ((100, 1000), (1100, 2000)):
        builder.kernel(GENERIC, ts=ts, dur=dur, stream=20, **collective("allreduce", 45_000_000, ranks=EIGHT))
    (draft,) = drafts_of(builder)
    evidence = draft.finding.evidence

    assert (evidence["moved_bytes"], evidence["sized_pct"]) == (360_000_000, 100.0)
    assert (evidence["algorithm_gbps"], evidence["best_algorithm_gbps"]) == (120.0, 180.0)  # 360 MB in 3 ms
    assert (evidence["bus_gbps"], evidence["best_bus_gbps"]) == (210.0, 315.0)  # times 1.75
    assert (evidence["peer_link_gbps"], evidence["peer_link_pct"]) == (450.0, 70.0)  # H100 SXM: NVLink
    assert (evidence["group_size"], evidence["group_name"]) == (8, "0 (default_pg)")
    assert (evidence["top_message_bytes"], evidence["top_message_dtype"]) == (180_000_000, "float32")
    assert [evidence[f"top_message_{name}_us"] for name in ("min", "median", "max")] == [
        1000.0,
        1500.0,
        2000.0,
    ]


def test_without_sizes_no_bandwidth_is_stated():
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel(ALL_REDUCE, ts=100, dur=100, stream=20)
    (draft,) = drafts_of(builder)

    assert not {"moved_bytes", "algorithm_gbps", "bus_gbps", "peer_link_pct", "top_message_bytes"} & set(
        draft.finding.evidence
    )


def repeated(*durations, elements=1000):
    """Compute for 100 µs, then all-reduces of equal size one after the other."""
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    at = 100
    for dur in durations:
        builder.kernel(GENERIC, ts=at, dur=dur, stream=20, **collective("allreduce", elements))
        at += dur
    return builder


def test_what_equal_messages_take_beyond_the_fastest_is_an_estimate_of_waiting():
    (draft,) = drafts_of(repeated(100, 100, 400))

    assert draft.finding.evidence["wait_estimate_ms"] == 0.3  # 400 - 100
    assert draft.finding.evidence["wait_estimate_pct"] == 50.0  # of 600


def test_the_fastest_of_many_is_the_lowest_tenth():
    # 11 messages: the lowest tenth is the second, 100; the first, 50, may be an error of the clock
    (draft,) = drafts_of(repeated(50, *[100] * 9, 200))

    assert draft.finding.evidence["wait_estimate_ms"] == 0.1  # only the last one waited, 200 - 100


def test_two_equal_messages_say_nothing_about_waiting():
    (draft,) = drafts_of(repeated(100, 400, elements=16_384))  # 64 KiB

    assert "wait_estimate_ms" not in draft.finding.evidence


def test_tiny_messages_wait_beyond_what_any_link_needs_however_few_are_equal():
    # 4 kB in 80 and 5,000 µs, 8 kB in 600: beyond 100 µs they wait, 4,900 + 500 of 5,680
    builder = repeated(80, 5000)
    builder.kernel(GENERIC, ts=5180, dur=600, stream=20, **collective("allreduce", 2000))
    draft = drafts_of(builder)[0]
    evidence = draft.finding.evidence

    assert (evidence["remedy"], draft.finding.kind, draft.finding.confidence) == ("peers", "modelled", "low")
    assert (evidence["wait_estimate_ms"], evidence["wait_estimate_pct"]) == (5.4, 95.07)
    assert sorted(draft.edit.saved_ns.tolist()) == [0, 500_000, 4_900_000]
    assert draft.finding.patterns[0] == "waiting_for_peers"


def test_waiting_for_peers_is_scored_by_what_goes_beyond_the_fastest():
    #            0     100  200  300   1400  1500
    # compute   [--A--]                [--B--]
    # comm             [100][100][--- 1200 ---]
    builder = repeated(100, 100, 1200, elements=1_000_000)
    builder.kernel("B", ts=1400, dur=100)
    (draft,) = drafts_of(builder)
    finding = draft.finding

    assert finding.evidence["remedy"] == "peers"
    assert draft.edit.saved_ns.tolist() == [0, 0, 1_100_000]  # 1,200 less the fastest, 100
    assert draft.most_ns == 1_100_000  # all of it fits into what is exposed of the last one, 1,100
    assert (finding.evidence["gap_ms"], finding.evidence["peers_saving_ms"]) == (1.1, 1.1)
    assert (finding.kind, finding.confidence) == ("modelled", "medium")
    assert finding.gpu_time_score == 73.33  # 1,100 of 1,500
    assert finding.evidence["exposed_comm_ms"] == 1.3  # the bound of all remedies
    assert finding.score.high == 73.33


def test_only_the_exposed_part_of_waiting_is_saved():
    # the last message runs from 300 to 1,500; compute covers 1,000 of it: 200 are exposed, 1,100 are waiting
    builder = repeated(100, 100, 1200, elements=1_000_000)
    builder.kernel("B", ts=400, dur=1000)
    (draft,) = drafts_of(builder)

    assert draft.edit.saved_ns.tolist() == [0, 0, 1_100_000]
    assert draft.most_ns == 200_000


def slow_link(elements=2_000_000):
    """All-reduces of 8 MB over 8 ranks: 1,000 µs for 14 MB over a link; H100's links usually reach 315 GB/s."""
    builder = TraceBuilder()
    builder.kernel("compute", ts=0, dur=100)
    builder.kernel(GENERIC, ts=100, dur=1000, stream=20, **collective("allreduce", elements, ranks=EIGHT))
    builder.kernel(GENERIC, ts=1100, dur=40, stream=20, **collective("allreduce", 100, ranks=EIGHT))
    return builder


def test_a_slow_link_is_scored_by_what_goes_beyond_its_usual_bandwidth():
    # 8 MB * 1.75 = 14 MB at 0.7 * 450 = 315 GB/s: 44,445 ns; the small one is the fastest that was seen
    (draft,) = drafts_of(slow_link())
    evidence = draft.finding.evidence

    assert (evidence["remedy"], evidence["peer_link_pct"]) == ("link", 3.11)  # 14 of 450 GB/s
    assert (draft.finding.kind, draft.finding.confidence) == ("modelled", "medium")
    assert draft.edit.saved_ns.tolist() == [955_555, 0]
    assert draft.most_ns == 955_555
    assert evidence["link_saving_ms"] == evidence["gap_ms"] == 0.955555
    assert evidence["exposed_comm_ms"] == 1.04
    assert draft.finding.patterns[0] == "slow_link_nvidia"


def test_messages_that_do_not_fill_a_link_do_not_show_that_it_is_slow():
    (draft,) = drafts_of(slow_link(elements=1_000_000))  # 4,000,000 bytes, below 4 MiB

    assert (draft.finding.evidence["remedy"], draft.finding.kind) == ("overlap", "upper_bound")
    assert draft.most_ns == 1_040_000  # all that is exposed


@pytest.mark.parametrize("builder", [repeated(100, 100, 1200, elements=1_000_000), slow_link(), repeated(500)])
def test_no_upper_bound_lies_below_the_exposed_time_and_no_saving_above_it(builder):
    (draft,) = drafts_of(builder)
    exposed = draft.finding.evidence["exposed_comm_ms"] * 1e6

    assert draft.most_ns == exposed if draft.finding.kind == "upper_bound" else 0 < draft.most_ns <= exposed


def test_communication_launched_before_the_window_is_in_the_summary_and_no_finding():
    builder = TraceBuilder()
    builder.kernel(ALL_REDUCE, ts=0, dur=500, stream=20)
    builder.kernel("A", ts=500, dur=400, correlation=builder.launch(ts=490))
    builder.kernel(ALL_GATHER, ts=900, dur=100, stream=20, correlation=builder.launch(ts=495))
    summary, (draft,) = multi_kernel.analyze(workload_of(builder))

    assert (summary["exposed_comm_pct"], summary["exposed_before_window_ms"]) == (60.0, 0.5)
    assert summary["exposed_all_gather_ms"] == 0.1
    assert draft.finding.subject == "exposed all-gather"
    assert draft.edit.activities.tolist() == [2]
    assert draft.finding.evidence["total_comm_ms"] == 0.1


@pytest.mark.parametrize(
    ("name", "pipelined"),
    [
        ("## sparse_data_dist ##", True),
        ("## wait_sparse_data_dist ##", True),
        ("## start_sparse_data_dist 3 ##", True),
        ("## forward ##", False),
    ],
)
def test_a_sparse_pipeline_is_told_by_its_annotations(name, pipelined):
    builder = TraceBuilder()
    builder.annotation(name, 0, 10)
    builder.kernel("A", ts=0, dur=100)
    builder.annotation("All2All_Pooled_Req", 20, 10)
    builder.kernel(SEND_RECV, ts=100, dur=100, stream=20, correlation=builder.launch(ts=25))
    (draft,) = drafts_of(builder)

    assert draft.finding.evidence["sparse_pipeline"] is pipelined


def test_communication_is_hidden_at_most_by_compute_that_hides_none_yet():
    #            0     100        300         600
    # compute   [-A--][----B----]
    # comm            [---------------------]
    # uncovered compute: A, 100; exposed: 300 to 600
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    builder.kernel("B", ts=100, dur=200)
    builder.kernel(ALL_REDUCE, ts=100, dur=500, stream=20)
    (draft,) = drafts_of(builder)
    evidence = draft.finding.evidence

    assert (evidence["remedy"], draft.most_ns) == ("overlap", 300_000)  # sending less may take what overlap cannot
    assert (evidence["hideable_ms"], evidence["hideable_pct"], evidence["uncovered_compute_ms"]) == (
        0.1,
        33.33,
        0.1,
    )
    assert (evidence["hidden_comm_ms"], evidence["exposed_comm_ms"]) == (0.2, 0.3)
    assert (draft.edit.activities.tolist(), draft.edit.saved_ns.tolist()) == (
        [2],
        [300_000],
    )
    assert (evidence["top_neighbour"], evidence["neighbours_ms"]) == ("A", 0.1)  # B hides something already
    assert draft.finding.gpu_time_score == 50.0  # 300 of 600
    assert draft.finding.score.high == 50.0


def test_each_collective_is_cut_by_its_exposed_part_where_compute_is_enough():
    #            0         500     600    700        800
    # compute   [------------------][---]
    # comm                [--1-----------][----2------]
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=600)
    builder.kernel(ALL_REDUCE, ts=500, dur=200, stream=20)
    builder.kernel(ALL_REDUCE, ts=700, dur=100, stream=20)
    (draft,) = drafts_of(builder)

    assert draft.edit.saved_ns.tolist() == [100_000, 100_000]  # 600 to 700 and 700 to 800
    assert draft.most_ns == 200_000  # 500 of compute are free


def test_kinds_share_the_exposed_time_of_an_instant():
    #              0        100      200       300
    # compute     [---------]
    # all-reduce            [--------]
    # all-gather            [------------------]
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    builder.kernel(ALL_REDUCE, ts=100, dur=100, stream=20)
    builder.kernel(ALL_GATHER, ts=100, dur=200, stream=21)
    workload = workload_of(builder)
    found = collectives.find_collectives(workload)

    assert collectives.exposed_by_kind(workload, found) == {"all_gather": 150_000, "all_reduce": 50_000}
    assert workload.ledgers[0].exposed_comm_ns == 200_000
    assert [draft.finding.subject for draft in drafts_of(builder)] == [
        "exposed all-gather",
        "exposed all-reduce",
    ]


def test_small_kinds_are_one_finding():
    # span 10,000: all-reduce 190 (1.9 %) and all-gather 110 (1.1 %), neither is a finding of its own
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=9700)
    builder.kernel(ALL_REDUCE, ts=9700, dur=190)
    builder.kernel(ALL_GATHER, ts=9890, dur=110)
    (draft,) = drafts_of(builder)

    assert (draft.finding.subject, draft.finding.evidence["collective"]) == ("exposed communication", "mixed")
    assert draft.finding.evidence["collectives"] == "all_gather, all_reduce"
    assert draft.finding.evidence["exposed_comm_pct"] == 3.0


@pytest.mark.parametrize(("rest", "subjects"), [(49, 1), (50, 2)])
def test_what_stands_beside_a_large_kind_is_told_if_it_can_be_ranked(rest, subjects):
    # span 10,000: 0.5 % is 50
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=9000)
    builder.kernel(ALL_REDUCE, ts=9000, dur=1000 - rest)
    builder.kernel(ALL_GATHER, ts=10000 - rest, dur=rest)

    assert len(drafts_of(builder)) == subjects


def test_compute_of_another_device_hides_nothing():
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=500, device=1)
    builder.kernel("B", ts=0, dur=50)
    builder.kernel(ALL_REDUCE, ts=50, dur=450)
    (draft,) = drafts_of(builder)

    assert draft.finding.evidence["exposed_comm_ms"] == 0.45
    assert draft.finding.evidence["hideable_ms"] == 0.05  # B alone, on its own device


def test_members_are_the_longest_by_correlation():
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=1000)
    for number in range(25):
        builder.kernel(ALL_REDUCE, ts=1000 + 100 * number, dur=50 + number, stream=20, correlation=number + 1)
    builder.kernel(ALL_REDUCE, ts=4000, dur=99, stream=20)
    (draft,) = drafts_of(builder)

    assert len(draft.finding.members) == 20
    assert draft.finding.members[:3] == [
        "comm:at26",
        "comm:25",
        "comm:24",
    ]  # 99, 74, 73 µs; one without a launch


def small(count, *, gap=0, dur=20, elements=1000):
    """Compute of 100 µs, then small all-reduces, `gap` µs of compute that needs nothing between them."""
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    at = 100
    for _ in range(count):
        builder.kernel(GENERIC, ts=at, dur=dur, stream=20, **collective("allreduce", elements))
        at += dur + gap
    return builder


def batches_of(builder):
    workload = workload_of(builder)
    found = collectives.find_collectives(workload)
    return found, batching.find_batches(workload, found)


def test_small_collectives_that_nothing_uses_in_between_are_a_batch():
    found, batches = batches_of(small(5))

    assert [batch.tolist() for batch in batches] == [[0, 1, 2, 3, 4]]
    # 5 x 20 µs; one instead: a latency of 20 and 5 x 4,000 bytes at 4,000 bytes in 20 µs = 100: nothing to gain
    assert batching.savings_ns(found, batches) == [0]


def test_the_saving_counts_the_best_bandwidth_of_the_group_and_no_waiting():
    builder = small(4)
    builder.kernel(GENERIC, ts=1000, dur=40, stream=20, **collective("allreduce", 1_000_000))  # 4 MB in 40 µs: 100 GB/s
    builder.kernel(GENERIC, ts=1100, dur=500, stream=20, **collective("allreduce", 1000))  # waits for a peer
    found, (batch,) = batches_of(builder)

    assert batch.tolist() == [0, 1, 2, 3, 5]
    # each takes 20 as most of its size do: 5 x 20 - (20 + 20,000 bytes / 100 GB/s = 0.2) = 79.8
    assert batching.savings_ns(found, [batch]) == [79_800]


def test_without_sizes_a_batch_saves_all_latencies_but_one():
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    for ts, dur in ((100, 10), (110, 15), (125, 49), (200, 50)):
        builder.kernel(ALL_REDUCE, ts=ts, dur=dur, stream=20)
    found, (batch,) = batches_of(builder)

    assert batch.tolist() == [0, 1, 2]  # the fourth is not below 50 µs
    assert batching.savings_ns(found, [batch]) == [20_000]  # two of the shortest, 10


def test_a_collective_that_work_of_its_stream_follows_ends_a_batch():
    # stream 20: comm, kernel, comm: the kernel may use the first result
    builder = small(1)
    builder.kernel("uses it", ts=125, dur=5, stream=20)
    builder.kernel(GENERIC, ts=140, dur=20, stream=20, **collective("allreduce", 1000))

    assert batches_of(builder)[1] == []


def test_a_collective_that_another_stream_waited_for_ends_a_batch():
    builder = TraceBuilder()
    builder.kernel("A", ts=30, dur=40, correlation=builder.launch(ts=0))
    first = builder.launch(ts=3)
    builder.kernel(GENERIC, ts=70, dur=20, stream=20, correlation=first, **collective("allreduce", 1000))
    recorded = builder.launch("cudaEventRecord", ts=5)
    waiting = builder.launch("cudaStreamWaitEvent", ts=7)
    builder.sync(ts=7, stream=7, wait_stream=20, wait_record=recorded, correlation=waiting)
    builder.kernel("uses it", ts=91, dur=10, correlation=builder.launch(ts=9))
    second = builder.launch(ts=11)
    builder.kernel(GENERIC, ts=110, dur=20, stream=20, correlation=second, **collective("allreduce", 1000))

    assert batches_of(builder)[1] == []


def test_a_collective_that_the_host_waited_for_ends_a_batch():
    builder = TraceBuilder()
    builder.kernel("A", ts=5, dur=15, correlation=builder.launch(ts=0))
    first = builder.launch(ts=3)
    builder.kernel(GENERIC, ts=20, dur=20, stream=20, correlation=first, **collective("allreduce", 1000))
    synchronised = builder.launch("cudaStreamSynchronize", ts=10, dur=35)
    builder.sync("Stream Sync", ts=10, dur=35, stream=20, correlation=synchronised)
    second = builder.launch(ts=50)
    builder.kernel(GENERIC, ts=60, dur=20, stream=20, correlation=second, **collective("allreduce", 1000))

    assert batches_of(builder)[1] == []


def test_a_larger_message_that_was_faster_shows_that_a_smaller_one_waited():
    # 4 kB in 80 and 70 µs, 400 kB in 30: both small ones need no more than 30
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    for ts, dur, elements in ((100, 80, 1000), (200, 70, 1001), (300, 30, 100_000)):
        builder.kernel(GENERIC, ts=ts, dur=dur, stream=20, **collective("allreduce", elements))
    found, (batch,) = batches_of(builder)

    # 3 x 30 - (30 + 408,004 bytes at 400,000 bytes in 30 µs = 30.6003) = 29.3997
    assert batching.savings_ns(found, [batch]) == [29_400]


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(collective("allreduce", 1000), collective("broadcast", 1000), id="of another kind"),
        pytest.param(collective("allreduce", 1000), collective("allreduce", 1000, group="1"), id="of another group"),
        pytest.param(collective("allreduce", 1000), collective("allreduce", 1 << 18), id="of 1 MiB"),
        pytest.param(collective("barrier", 1), collective("barrier", 1), id="barriers"),
        pytest.param(collective("send", 9), collective("send", 9), id="to single ranks"),
    ],
)
def test_collectives_that_cannot_be_one_are_no_batch(first, second):
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    builder.kernel(GENERIC, ts=100, dur=20, stream=20, **first)
    builder.kernel(GENERIC, ts=120, dur=20, stream=20, **second)

    assert batches_of(builder)[1] == []


def test_batches_that_save_enough_are_a_finding():
    builder = small(50, gap=1)
    builder.kernel(GENERIC, ts=1200, dur=30, stream=20, **collective("allreduce", 1_500_000))  # 6 MB: 200 GB/s
    drafts = {draft.finding.evidence["aspect"]: draft for draft in drafts_of(builder)}
    draft = drafts["small_collectives"]
    evidence = draft.finding.evidence

    assert (draft.finding.kind, draft.finding.subject) == ("modelled", "small collectives one by one")
    assert (evidence["comm_kernels_count"], evidence["batches_count"], evidence["time_ms"]) == (50, 1, 1.0)
    assert (evidence["remedy"], evidence["gap_ms"]) == ("batching", 0.979)
    # 50 x 20 - (20 + 200,000 bytes / 200 GB/s = 1) = 979
    assert evidence["saving_ms"] == 0.979
    # one takes 21: the last, and of the one before it nothing but the gap of 1; the others are gone
    assert draft.edit.saved_ns.tolist() == [20_000]
    assert draft.edit.removed.size == 48
    assert draft.most_ns == 979_000  # no launches are recorded, so no host time goes with them
    assert draft.finding.patterns == ["small_collectives", "default"]


def test_what_merging_mostly_takes_away_is_no_exposed_communication_as_well():
    # 50 small ones expose 1,000, of which 979 go; two of 20 MB expose 100 each
    builder = small(50, gap=1)
    for at in (1200, 1400):
        builder.kernel("B", ts=at - 50, dur=50)
        builder.kernel(GENERIC, ts=at, dur=100, stream=20, **collective("allreduce", 5_000_000))
    drafts = {draft.finding.evidence["aspect"]: draft for draft in drafts_of(builder)}

    assert drafts["small_collectives"].finding.evidence["comm_kernels_count"] == 50
    assert drafts["exposed_communication"].finding.evidence["comm_kernels_count"] == 2
    assert drafts["exposed_communication"].finding.evidence["exposed_comm_ms"] == 0.2


def test_small_collectives_that_mostly_wait_stay_exposed_communication():
    # 50 of 20 µs, of which half wait 180 more: merging saves 979 of 5,500, less than half
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=100)
    at = 100
    for number in range(50):
        dur = 20 if number % 2 else 200
        builder.kernel(GENERIC, ts=at, dur=dur, stream=20, **collective("allreduce", 1000))
        at += dur + 1
    builder.kernel(GENERIC, ts=at + 100, dur=20, stream=20, **collective("allreduce", 1_000_000))
    drafts = {draft.finding.evidence["aspect"]: draft for draft in drafts_of(builder)}

    assert drafts["exposed_communication"].finding.evidence["comm_kernels_count"] == 51


def test_the_calls_of_merged_collectives_are_gone_but_for_the_last():
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=500, correlation=builder.launch(ts=-5))
    for number in range(20):
        builder.op("c10d::allreduce_", 10 * number, 8)
        launched = builder.launch(ts=10 * number + 2)
        builder.kernel(
            GENERIC, ts=500 + 20 * number, dur=20, stream=20, correlation=launched, **collective("allreduce", 1000)
        )
    builder.kernel(GENERIC, ts=1000, dur=30, stream=20, **collective("allreduce", 1_500_000))
    draft = {draft.finding.evidence["aspect"]: draft for draft in drafts_of(builder)}["small_collectives"]
    (cut,) = draft.edit.host

    assert (cut.end - cut.start).tolist() == [8000] * 19
    assert int(cut.end.max()) == 193_000  # 188 on a clock that begins 5 earlier; the twentieth begins at 190
    # 20 x 20 - (20 + 80,000 bytes at 200 GB/s = 0.4) = 379.6, and 19 x 8 of the host
    assert draft.most_ns == 379_600 + 152_000


def test_small_collectives_under_compute_are_no_finding():
    builder = small(50, gap=1)
    builder.kernel(GENERIC, ts=1200, dur=300, stream=20, **collective("allreduce", 15_000_000))
    builder.kernel("B", ts=100, dur=1100, stream=8)

    assert [draft.finding.evidence["aspect"] for draft in drafts_of(builder)] == ["exposed_communication"]


def test_the_calls_around_the_launch_of_the_longest_are_named():
    builder = TraceBuilder()
    builder.annotation("ProfilerStep#1", 0, 100)
    builder.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 1, 50)
    builder.op("c10d::allreduce_", 2, 40)
    builder.kernel("A", ts=0, dur=100)
    builder.kernel(ALL_REDUCE, ts=100, dur=100, stream=20, correlation=builder.launch(ts=5))
    (draft,) = drafts_of(builder)
    evidence = draft.finding.evidence

    assert evidence["comm_calls"] == (
        "c10d::allreduce_ < autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    )
    assert evidence["comm_op"] == "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"
    assert evidence["comm_phase"] == "backward"
    assert draft.finding.patterns[0] == "ddp_all_reduce"


def test_shares_of_many_collectives_sum_to_the_exposed_part_in_whole_ns():
    # three at once in an odd number of ns: thirds do not come out even
    builder = TraceBuilder()
    builder.kernel("A", ts=0, dur=10)
    for stream, name in ((20, ALL_REDUCE), (21, ALL_GATHER), (22, SEND_RECV)):
        builder.kernel(name, ts=10, dur=0.1, stream=stream)
    workload = workload_of(builder)
    shares = collectives.exposed_by_kind(workload, collectives.find_collectives(workload))

    assert sum(shares.values()) == 100
    assert sorted(shares.values()) == [33, 33, 34]


def test_nearest_stops_at_the_first_wanted_ancestor():
    parent = np.array([-1, 0, 1, 2])
    wanted = np.array([True, True, False, False])

    assert messages.nearest(parent, np.array([3, 1, -1, 0]), wanted).tolist() == [1, 1, -1, 0]
    assert messages.nearest(parent, np.array([3]), np.zeros(4, dtype=bool)).tolist() == [-1]
