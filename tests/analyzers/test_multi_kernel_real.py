"""Numbers about communication and copies of real traces, against a program that shares no code with the package.

They were counted from the raw events by walking through all starts and ends of GPU events, sharing each stretch among
what runs in it; bytes are products of the recorded shapes or the recorded numbers of elements.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rooftrace.analyzers import collectives, multi_kernel, transfers
from rooftrace.trace import load
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload

TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))

pytestmark = [
    pytest.mark.real_traces,
    pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces at {TRACES.name}; set ROOFTRACE_TRACES"),
]


def workload_of(name):
    return prepare_workload(load(TRACES / f"{name}.json.gz")[0], AnalyzeOptions()).workload


def findings_of(workload):
    return {draft.finding.subject: draft for draft in multi_kernel.analyze(workload)[1]}


def test_tensor_parallel_all_reduce_of_megatron():
    workload = workload_of("ranks/megatron_tp8/rank0")
    draft = findings_of(workload)["exposed all-reduce"]
    evidence = draft.finding.evidence

    # 81 of fp16 and 3 of fp32, 227,411 + 13,780 us, none under compute; compute alone: 131,516 us
    assert collectives.exposed_by_kind(workload, collectives.find_collectives(workload)) == {"all_reduce": 241_191_000}
    assert (evidence["comm_kernels_count"], evidence["overlap_pct"]) == (84, 0.0)
    assert evidence["hideable_ms"] == 131.516
    assert (evidence["remedy"], draft.most_ns) == ("peers", 193_117_000)
    assert evidence["top_message_bytes"] == 67_108_864  # 4 * 2048 * 4096 * 2
    assert (evidence["top_message_min_us"], evidence["top_message_max_us"]) == (582.0, 19_142.0)
    assert evidence["top_message_median_us"] == 626.0
    assert evidence["best_algorithm_gbps"] == 115.31  # 67,108,864 B in 582 us
    assert evidence["best_bus_gbps"] == 201.79  # times 2 * 7 / 8
    assert evidence["wait_estimate_ms"] == 193.117  # beyond the lowest tenth: 179,409 + 13,708 us
    assert draft.finding.patterns[:2] == ["waiting_for_peers", "tensor_parallel"]


@pytest.mark.parametrize(
    ("rank", "exposed"),
    [
        (0, {"all_reduce": 1_655_000, "all_to_all": 3_882_000}),
        (3, {"all_reduce": 1_547_000, "all_to_all": 7_893_000}),
    ],
)
def test_exchange_of_embeddings_is_told_from_the_reduction_of_gradients(rank, exposed):
    workload = workload_of(f"ranks/dlrm8/rank{rank}")
    found = collectives.find_collectives(workload)

    assert collectives.exposed_by_kind(workload, found) == exposed
    assert sorted(message.nbytes for message in found.messages if message.kind == "all_reduce") == [
        448,
        907_840,
        1_576_964,
    ]
    assert findings_of(workload)["exposed all-to-all"].finding.patterns[:2] == [
        "waiting_for_peers",
        "embedding_exchange_pipelined",
    ]


def test_few_kilobytes_in_milliseconds_are_waiting():
    draft = findings_of(workload_of("ranks/dlrm8/rank4"))["exposed all-to-all"]
    evidence = draft.finding.evidence

    # 4,882, 1,108, 170, 132 and 61 us for 24,576, 192, 1,536, 13,568 and 24,576 bytes: beyond 100 us each
    assert (evidence["moved_bytes"], evidence["wait_estimate_ms"]) == (64_448, 5.892)  # 4,782 + 1,008 + 70 + 32
    assert (evidence["remedy"], draft.most_ns, draft.finding.kind) == ("peers", 5_892_000, "modelled")
    assert evidence["sparse_pipeline"] is True


def test_gradients_and_copies_of_ddp_on_amd():
    workload = workload_of("mi300/resnet_act_checkpoint")
    found = findings_of(workload)
    evidence = found["exposed all-reduce"].finding.evidence

    # five kernels were launched before the window
    assert collectives.exposed_by_kind(workload, collectives.find_collectives(workload)) == {
        "all_reduce": 35_026_757,
        "broadcast": 61_755,
        "before_window": 20_282_745,
    }
    assert evidence["top_message_bytes"] == 17_632_384  # 8,816,192 of bf16
    assert evidence["moved_bytes"] == 70_137_072  # 3 * (2,873,320 + 8,816,192) * 2
    assert evidence["best_bus_gbps"] == 3.56  # 17,632,384 B in 8,656.708 us, times 7 / 4
    assert evidence["hideable_ms"] == 10.029687  # compute beside no communication
    assert (evidence["remedy"], found["exposed all-reduce"].finding.kind) == ("link", "modelled")
    # 17,632,384 B times 7 / 4 at 0.7 * 448 GB/s take 98,396 ns of the fastest's 8,656,708: 3 * 8,558,312; the others
    # are exposed for less than goes: 2,869,930 + 2,659,775 + 2,698,812
    assert found["exposed all-reduce"].most_ns == 33_903_453
    assert set(found) == {"exposed all-reduce", "exposed copies on the GPU"}
    copies = found["exposed copies on the GPU"].finding
    assert [copies.evidence[f"ddp_{name}_count"] for name in ("bucket", "buffer")] == [186, 180]
    assert copies.evidence["ddp_pct"] == 100.0
    assert copies.patterns[:2] == ["ddp_bucket_copies", "ddp_buffer_broadcast"]
    assert transfers.exposed_by_class(workload, transfers.find_transfers(workload)) == {
        "DtoD device medium": 89_742,
        "DtoD device small": 156_527,
        "DtoD device tiny": 1_337_355,
        "DtoD device unknown": 872_222,
    }


def test_gradients_of_ddp_with_recorded_sizes():
    workload = workload_of("nvidia/a100_nccl_metadata")
    draft = findings_of(workload)["exposed all-reduce"]
    evidence = draft.finding.evidence

    assert (evidence["exposed_comm_ms"], evidence["total_comm_ms"]) == (39.414993, 46.762159)
    assert evidence["uncovered_compute_ms"] == 108.699398
    assert evidence["moved_bytes"] == 306_684_384  # 12 * (2,049,000 + 2,431,040 + 6,563,840 + 6,637,568 + 7,875,584)
    assert evidence["bus_gbps"] == 6.56  # that in 46,762.159 us; the factor of two ranks is 1
    assert evidence["wait_estimate_ms"] == 13.270414  # excess over the fastest of five sizes of three each
    assert draft.finding.patterns[:2] == ["slow_link_nvidia", "ddp_all_reduce"]


def test_copies_and_exchanges_that_overlap_in_part():
    workload = workload_of("nvidia/diff_v100")

    # 43 all-to-alls, 71,593 us, and 21 all-reduces, 766 us; the first of each was launched before the window
    assert collectives.exposed_by_kind(workload, collectives.find_collectives(workload)) == {
        "all_reduce": 662_000,
        "all_to_all": 69_349_000,
        "before_window": 2_348_000,
    }
    assert transfers.exposed_by_class(workload, transfers.find_transfers(workload)) == {
        "DtoD device large": 60_095_000,
        "DtoD device medium": 13_797_000,
        "DtoD device small": 4_382_000,
        "DtoD device tiny": 6_133_500,
        "DtoH pageable tiny": 14_500,
        "HtoD pinned large": 9_285_000,
        "HtoD pinned medium": 1_324_000,
        "HtoD pinned small": 206_000,
        "HtoD pinned tiny": 40_000,
    }
    copies = findings_of(workload)["exposed copies on the GPU"].finding.evidence
    assert (copies["copies_count"], copies["copy_bytes"]) == (4645, 27_916_597_296)
    assert copies["total_copy_ms"] == 92.932


def test_a_pageable_copy_against_the_link():
    (draft,) = findings_of(workload_of("h100/facebook_timesformer-base-finetuned-k400__1016002")).values()

    # 38,535,168 bytes in 3,461.358 us; at 63 GB/s they take 611.67
    assert draft.finding.evidence["achieved_gbps"] == 11.13
    assert draft.edit.saved_ns.tolist() == [2_849_688]
    assert draft.finding.patterns[0] == "pageable_htod"


def test_few_copies_and_no_exposed_communication_are_no_finding():
    # copies are exposed for 0.77 % of the span
    assert findings_of(workload_of("nvidia/v100_ns_resolution")) == {}


def test_results_that_go_to_pageable_memory_are_a_finding_of_their_own():
    (draft,) = findings_of(workload_of("h100/google_owlv2-large-patch14-ensemble__1016001")).values()
    evidence = draft.finding.evidence

    # the events of the file, summed: 55 copies from the GPU, 146,418,600 bytes in 12,903.459 of 1,078,288.379 us
    assert (draft.finding.subject, evidence["copies_count"]) == ("exposed pageable copies from the GPU", 55)
    assert (evidence["copy_bytes"], evidence["dtoh_ms"], evidence["exposed_copy_pct"]) == (146_418_600, 12.903459, 1.2)
    assert evidence["htod_blocked_ms"] == 0.0
