"""When each pattern about communication and copies fires, and when it does not."""

from __future__ import annotations

import pytest

from rooftrace.patterns import load_patterns, matching_patterns

COMM = {
    "aspect": "exposed_communication",
    "category": "communication",
    "kind": "upper_bound",
    "collective": "all_reduce",
    "collectives": "all_reduce",
    "overlap_pct": 50.0,
    "hideable_pct": 100.0,
    "sparse_pipeline": False,
    "comm_calls": "nccl:all_reduce < record_param_comms < c10d::allreduce_",
    "comm_phase": "forward",
    "top_collective": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL",
    "top_message_bytes": 64 << 20,
    "top_message_dtype": "bfloat16",
    "peer_link_pct": 80.0,
    "wait_estimate_pct": 5.0,
    "gpu_vendor": "nvidia",
}
SMALL = {
    "aspect": "small_collectives",
    "category": "communication",
    "kind": "modelled",
    "collective": "all_reduce",
    "comm_calls": "nccl:all_reduce",
}
COPY = {
    "aspect": "exposed_copies",
    "category": "copy",
    "kind": "upper_bound",
    "direction": "HtoD",
    "memory": "pinned",
    "top_copy": "Memcpy HtoD (Pinned -> Device)",
    "top_copy_op": "aten::copy_",
    "htod_ms": 1.0,
    "dtoh_ms": 0.0,
    "dtod_ms": 0.0,
    "pageable_ms": 0.0,
    "on_compute_stream_pct": 0.0,
    "ddp_bucket_pct": 0.0,
    "ddp_buffer_pct": 0.0,
    "ddp_pct": 0.0,
    "blocking_count": 0,
    "blocked_ms": 0.0,
    "tiny_pct": 1.0,
    "tiny_count": 3,
    "link_pct": 80.0,
}
REPEATED = {"aspect": "repeated_transfers", "category": "copy", "kind": "upper_bound", "top_copy_frame": ""}
DDP = {"comm_calls": "c10d::allreduce_ < autograd::engine::evaluate_function: torch::autograd::AccumulateGrad"}
BACK = {"direction": "DtoH", "top_copy": "Memcpy DtoH (Device -> Pinned)", "htod_ms": 0.0, "dtoh_ms": 1.0}
ON_GPU = {
    "direction": "DtoD",
    "memory": "device",
    "top_copy": "Memcpy DtoD (Device -> Device)",
    "dtod_ms": 1.0,
}
PAGEABLE = {"memory": "pageable", "pageable_ms": 1.0, "top_copy": "Memcpy HtoD (Pageable -> Device)"}
A2A = {"collective": "all_to_all"}

# Pattern, evidence, a change with which it fires, one with which it does not.
CASES = [
    ("exposed_communication", COMM, {"overlap_pct": 30.0}, {"overlap_pct": 29.9}),
    ("no_overlap", COMM, {"overlap_pct": 29.9}, {"overlap_pct": 30.0}),
    ("little_compute_to_hide", COMM, {"hideable_pct": 49.9}, {"hideable_pct": 50.0}),
    ("waiting_for_peers", COMM, {"wait_estimate_pct": 50.0}, {"wait_estimate_pct": 49.9}),
    ("ddp_all_reduce", COMM, DDP, {"comm_calls": "c10d::allreduce_ < _ReduceFromModelParallelRegion"}),
    ("ddp_all_reduce", COMM, DDP, {**DDP, "collective": "all_gather"}),
    (
        "wide_gradients",
        COMM,
        {"top_message_dtype": "float32", "comm_phase": "backward"},
        {"top_message_dtype": "float32", "comm_phase": "forward"},
    ),
    (
        "wide_gradients",
        COMM,
        {"top_message_dtype": "float32", "comm_phase": "backward"},
        {"top_message_dtype": "float32", "comm_phase": "backward", "top_message_bytes": 4096},
    ),
    ("tensor_parallel", COMM, {"comm_calls": "c10d::allreduce_ < _ReduceFromModelParallelRegion"}, DDP),
    ("serving_all_reduce", COMM, {"comm_calls": "vllm::all_reduce"}, {}),
    ("serving_all_reduce", COMM, {"top_collective": "cross_device_reduce_1stage<bfloat16, 8>"}, {}),
    (
        "sharded_parameters",
        COMM,
        {
            "collective": "all_gather",
            "comm_calls": "nccl:_all_gather_base < FullyShardedDataParallel.forward",
        },
        {"collective": "all_gather"},
    ),
    ("embedding_exchange", COMM, {**A2A, "comm_calls": "nccl:all_to_all < All2All_Pooled_Req"}, A2A),
    (
        "embedding_exchange",
        COMM,
        {**A2A, "comm_calls": "nccl:all_to_all < All2All_Pooled_Req"},
        {**A2A, "comm_calls": "nccl:all_to_all < All2All_Pooled_Req", "sparse_pipeline": True},
    ),
    ("embedding_exchange_pipelined", COMM, {**A2A, "sparse_pipeline": True}, A2A),
    ("expert_exchange", COMM, {**A2A, "comm_calls": "c10d::alltoall_base_ < MoEDispatch"}, A2A),
    ("pipeline_transfers", COMM, {"collective": "send_recv"}, {}),
    ("slow_link_nvidia", COMM, {"peer_link_pct": 24.9}, {"peer_link_pct": 25.0}),
    ("slow_link_nvidia", COMM, {"peer_link_pct": 3.0}, {"peer_link_pct": 3.0, "top_message_bytes": 1 << 20}),
    ("slow_link_amd", COMM, {"peer_link_pct": 3.0, "gpu_vendor": "amd"}, {"peer_link_pct": 3.0}),
    ("small_collectives", SMALL, {}, {"aspect": "exposed_communication"}),
    ("small_buckets", SMALL, DDP, {}),
    ("exposed_copies", COPY, {}, {"aspect": "repeated_transfers"}),
    ("pageable_htod", COPY, PAGEABLE, {**PAGEABLE, "pageable_ms": 0.0}),
    ("pageable_htod", COPY, {**PAGEABLE, "direction": "mixed"}, {**PAGEABLE, **BACK}),
    ("dtoh_in_loop", COPY, BACK, {}),
    ("dtod_copies", COPY, ON_GPU, {}),
    ("dtod_copies", COPY, ON_GPU, {**ON_GPU, "ddp_pct": 50.0}),
    ("exposed_copies", COPY, {}, {"ddp_pct": 50.0}),
    ("ddp_bucket_copies", COPY, {"ddp_bucket_pct": 25.0}, {"ddp_bucket_pct": 24.9}),
    ("ddp_buffer_broadcast", COPY, {"ddp_buffer_pct": 25.0}, {"ddp_buffer_pct": 24.9}),
    ("small_copies", COPY, {"tiny_pct": 50.0}, {"tiny_pct": 49.9}),
    ("small_copies", COPY, {"tiny_pct": 99.0}, {"tiny_pct": 99.0, "tiny_count": 1}),
    ("copies_on_compute_stream", COPY, {"on_compute_stream_pct": 50.0}, {"on_compute_stream_pct": 49.9}),
    (
        "copies_on_compute_stream",
        COPY,
        {"on_compute_stream_pct": 99.0},
        {"on_compute_stream_pct": 99.0, "memory": "pageable"},
    ),
    ("slow_pinned_copies", COPY, {"link_pct": 49.9}, {"link_pct": 50.0}),
    (
        "slow_pinned_elsewhere",
        COPY,
        {**ON_GPU, "htod_ms": 0.0, "pinned_link_pct": 27.0, "pinned_exposed_pct": 3.4},
        {**ON_GPU, "htod_ms": 0.0, "pinned_link_pct": 27.0, "pinned_exposed_pct": 0.9},
    ),
    (
        "slow_pinned_elsewhere",
        COPY,
        {**ON_GPU, "htod_ms": 0.0, "pinned_link_pct": 49.9, "pinned_exposed_pct": 3.4},
        {"pinned_link_pct": 49.9, "pinned_exposed_pct": 3.4},
    ),
    ("blocking_copies", COPY, {"blocking_count": 2, "blocked_ms": 0.1}, {}),
    (
        "blocking_copies",
        COPY,
        {"blocking_count": 2, "blocked_ms": 0.1},
        {**BACK, "blocking_count": 2, "blocked_ms": 0.1},
    ),
    ("peer_copies", COPY, {"direction": "PtoP", "memory": "device"}, {}),
    ("repeated_transfers", REPEATED, {}, {"aspect": "exposed_copies"}),
    ("repeated_transfers_in_frame", REPEATED, {"top_copy_frame": "model.py(3): mask"}, {}),
    ("unrated", COMM, {}, {"kind": "modelled"}),
]


@pytest.mark.parametrize(("pattern", "known", "fires", "does_not"), CASES, ids=[case[0] for case in CASES])
def test_a_pattern_fires_on_its_evidence_and_not_beside_it(pattern, known, fires, does_not):
    assert pattern in matching_patterns("multi_kernel", {**known, **fires})
    assert pattern not in matching_patterns("multi_kernel", {**known, **does_not})


def test_every_pattern_has_such_a_case_but_the_default():
    assert {pattern.id for pattern in load_patterns("multi_kernel")} == {case[0] for case in CASES} | {"default"}


@pytest.mark.parametrize(
    ("known", "change", "writer"),
    [
        pytest.param(COMM, {}, "exposed_communication", id="half hidden"),
        pytest.param(COMM, {"overlap_pct": 0.0}, "no_overlap", id="not hidden"),
        pytest.param(COMM, {**DDP, "overlap_pct": 0.0}, "ddp_all_reduce", id="DDP"),
        pytest.param(COMM, {**DDP, "wait_estimate_pct": 70.0}, "waiting_for_peers", id="waiting before all else"),
        pytest.param(COMM, {**DDP, "peer_link_pct": 1.0}, "slow_link_nvidia", id="a slow link before the framework"),
        pytest.param(COPY, PAGEABLE, "pageable_htod", id="pageable"),
        pytest.param(COPY, {**ON_GPU, "tiny_pct": 90.0}, "small_copies", id="small before where"),
        pytest.param(SMALL, DDP, "small_buckets", id="small buckets"),
    ],
)
def test_the_cause_nearest_to_a_remedy_writes_the_finding(known, change, writer):
    assert matching_patterns("multi_kernel", {**known, **change})[0] == writer
