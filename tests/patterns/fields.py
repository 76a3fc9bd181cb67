"""The evidence that findings carry, as the knowledge patterns may rely on it."""

from __future__ import annotations

# Known of every finding.
OF_ALL = frozenset({"category", "analyzer", "kind", "subject", "score_low_pct", "score_mid_pct", "score_high_pct"})

# What the report adds to every finding for citation; predicates are tested before.
CITED_ONLY = frozenset({"category_kernels"})

# Compute findings: always there.
COMPUTE = frozenset(
    {
        "time_ms",
        "time_share_pct",
        "instances_count",
        "kernels_count",
        "members_count",
        "mean_kernel_us",
        "kernels_per_instance",
        "library",
        "top_op",
        "top_op_id",
        "top_share_pct",
        "top_kernel",
        "op_names",
        "phase",
        "modules",
        "attention_module",
        "source",
        "graph_replayed",
        "variation_pct",
        "extra_kernels",
        "layout_ms",
        "layout_pct",
        "tf32",
        "fused",
        "gpu_name",
        "gpu_vendor",
        "gpu_tf32",
        "gpu_bf16",
        "top_kernel_ms",
        "top_kernel_us",
        "top_kernel_pct",
        "beside_pct",
        "kernel_arch",
        "old_arch_kernel",
        "old_arch_ms",
        "align1",
        "align1_ms",
        "cleared_ms",
        "training",
        "causal_lm",
        "engine",
    }
)
# Compute findings with a rating; `precision` also without one, where kernel names spell it.
RATED = frozenset(
    {
        "gap_ms",
        "floor_ms",
        "bound",
        "precision",
        "efficiency_pct",
        "top_efficiency_pct",
        "datasheet_efficiency_pct",
        "ceilings_kind",
        "achieved_tflops",
        "achieved_gbps",
    }
)
# Compute findings, where the shapes are those of a matrix product; or without a rating.
PRODUCT = frozenset({"m", "n", "k", "misaligned", "odd_dims", "batched"})
SPELLED = frozenset({"precision"})
UNRATED = frozenset({"unmodelled", "unmodelled_share_pct"})
# Of calls of attention whose shapes are recorded; of lookups in several tables at once.
ATTENTION = frozenset({"causal", "heads_count", "query_tokens", "key_tokens", "tiles_per_unit"})
# Of convolutions whose shapes and stride are recorded; of calls that are rated without their layout copies.
CONVOLUTION = frozenset({"in_channels", "patches"})
APART = frozenset({"layout_apart_ms"})
LOOKUPS = frozenset({"tables_count", "indices_count", "stored_bytes", "fits_cache"})
# Products in float32 that another precision would make faster.
REMEDY = frozenset({"remedy_floor_ms", "remedy_precision"})
# Findings about a part of their kernels: layout copies, and forward work run again.
PARTS = frozenset({"part", "calls_ms", "ratable_pct"})
# Loops of small products, which always have the shapes of a product.
LOOPS = PRODUCT | {
    "part",
    "loops_count",
    "calls_per_loop",
    "batched_us",
    "batched_ms",
    "launches_removed_count",
    "host_cut_ms",
}
COMPUTE_OPTIONAL = frozenset({"claimed_by_fusion_ms"}).union(
    RATED, REMEDY, PRODUCT, SPELLED, UNRATED, ATTENTION, CONVOLUTION, APART, LOOKUPS, PARTS, LOOPS
)
# What the scoring adds to findings of any analyzer.
HALVED = frozenset({"half_host_score_pct", "profiler_sensitive"})
SCORED = HALVED | {"after_first_pct", "first_id", "wait_may_move"}

# Idle findings: always there; by cause; of blocking calls; of slow hosts; of launch sequences that repeat.
IDLE = frozenset(
    {
        "device",
        "cause",
        "inventory",
        "call",
        "frame",
        "idle_ms",
        "idle_pct",
        "all_idle_ms",
        "all_idle_pct",
        "kernels_count",
        "launches_per_ms",
        "stacks_recorded",
        "shapes_recorded",
    }
)
GAPS = frozenset(
    {
        "gaps_ms",
        "warmup_pct",
        "annotation",
        "annotation_pct",
        "generated",
        "cause_share_pct",
        "busy_pct",
        "gaps_count",
        "median_gap_us",
        "max_gap_ms",
        "gaps_over_1ms_count",
        "gaps_over_1ms_pct",
        "short_gaps_pct",
        "in_step_pct",
        "top_gap_before",
        "top_gap_after",
        "top_gap_op",
        "top_gap_frame",
        "top_gap_annotation",
        "call_pct",
        "call_gaps_pct",
        "op",
        "op_pct",
        "op_gaps_pct",
        "frame_pct",
    }
)
SYNC = frozenset(
    {
        "sync_op",
        "sync_class",
        "copy_direction",
        "waits_count",
        "blocked_ms",
        "blocked_pct",
        "longest_wait_ms",
        "most_waits_count",
        "blocking_copy",
        "guessed_pct",
    }
)
# Of blocking copies, by direction; sizes where all of them are recorded.
TO_DEVICE = frozenset({"htod_waits_count", "htod_blocked_ms"})
TO_HOST = frozenset({"dtoh_waits_count", "dtoh_blocked_ms"})
PACE = frozenset(
    {"ops_per_ms", "python_pct", "python_module", "graph_candidate", "size_asserts_count", "size_asserts_pct"}
)
GRAPH = frozenset({"graph_idle_pct", "repeats_count", "launches_per_sequence", "sequences_count"})
# Of slow launches beside which there is one gap of host code.
LONE = frozenset({"lone_gap_ms", "lone_gap_pct", "lone_gap_before", "lone_gap_after"})
ANNOTATED = frozenset({"at_begin_count", "at_begin_pct"})
STALLS = frozenset(
    {
        "stalls_count",
        "stalls_ms",
        "stalls_pct",
        "longest_stall_ms",
        "longest_stall_op",
        "median_stall_ms",
        "stalled_ops_count",
        "call_count",
        "call_median_us",
        "call_max_ms",
    }
)
LATENCY = frozenset({"launch_latency_p10_us", "launch_latency_us", "launch_latency_p90_us"})
# Idle findings of devices with kernels, and with launches of their own; of runs with annotated steps.
IDLE_OPTIONAL = (
    GAPS
    | SYNC
    | PACE
    | GRAPH
    | LATENCY
    | ANNOTATED
    | STALLS
    | TO_DEVICE
    | TO_HOST
    | LONE
    | SCORED
    | {
        "aspect",
        "htod_bytes",
        "dtoh_bytes",
        "loader",
        "gaps_per_step",
        "mean_kernel_us",
        "empty_queue_pct",
        "host_bound",
        "queue_depth_median",
        "queue_depth_max",
        "launch_us",
        "stalled_pct",
        "sync_ops",
        "waits_per_step",
    }
)

# Findings of multi_kernel: what each aspect always carries.
ASKED = frozenset({"comm_op", "comm_calls", "comm_frame", "comm_phase", "gpu_vendor"})
COMMUNICATION = ASKED | {
    "aspect",
    "collective",
    "exposed_comm_ms",
    "exposed_comm_pct",
    "total_comm_ms",
    "hidden_comm_ms",
    "overlap_pct",
    "collectives",
    "top_collective",
    "comm_kernels_count",
    "hideable_ms",
    "hideable_pct",
    "uncovered_compute_ms",
    "remedy",
    "sparse_pipeline",
    "neighbours_ms",
    "top_neighbour",
    "top_neighbour_ms",
    "neighbours",
    "top_message_count",
    "top_message_min_us",
    "top_message_median_us",
    "top_message_max_us",
    "top_message_pct",
}
SMALL_COLLECTIVES = ASKED | {
    "aspect",
    "collective",
    "collectives",
    "time_ms",
    "exposed_comm_ms",
    "exposed_comm_pct",
    "comm_kernels_count",
    "batches_count",
    "mean_us",
    "min_us",
    "saving_ms",
    "top_collective",
    "remedy",
}
COPIES = frozenset(
    {
        "aspect",
        "direction",
        "memory",
        "exposed_copy_ms",
        "exposed_copy_pct",
        "total_copy_ms",
        "htod_ms",
        "dtoh_ms",
        "dtod_ms",
        "pageable_ms",
        "copies_count",
        "top_copy",
        "top_copy_op",
        "top_copy_frame",
        "blocking_count",
        "blocked_ms",
        "htod_blocked_ms",
        "dtoh_blocked_ms",
        "on_compute_stream_pct",
        "ddp_bucket_count",
        "ddp_bucket_ms",
        "ddp_bucket_pct",
        "ddp_buffer_count",
        "ddp_buffer_ms",
        "ddp_buffer_pct",
        "ddp_pct",
    }
)
REPEATED = frozenset(
    {
        "aspect",
        "direction",
        "time_ms",
        "exposed_copy_ms",
        "exposed_copy_pct",
        "copies_count",
        "classes_count",
        "top_repeat_count",
        "top_repeat_bytes",
        "top_repeat_us",
        "top_copy",
        "top_copy_op",
        "top_copy_frame",
    }
)
ASPECTS = {
    "exposed_communication": COMMUNICATION,
    "small_collectives": SMALL_COLLECTIVES,
    "exposed_copies": COPIES,
    "repeated_transfers": REPEATED,
}
# What comes together where the trace records it: sizes, the group, the platform's links.
MESSAGES = frozenset({"top_message_bytes", "top_message_dtype"})
GROUP = frozenset({"group_size", "group_name", "group_ranks"})
SIZED = frozenset({"moved_bytes", "sized_pct", "algorithm_gbps", "best_algorithm_gbps"})
BUS = frozenset({"bus_gbps", "best_bus_gbps"})
PEER_LINK = BUS | {"peer_link_gbps", "peer_link_pct", "link_saving_ms"}
WAITING = frozenset({"wait_estimate_ms", "wait_estimate_pct", "peers_saving_ms"})
COPIES_OPTIONAL = frozenset(
    {"copy_bytes", "achieved_gbps", "largest_bytes", "tiny_count", "tiny_ms", "tiny_pct", "tiny_saving_ms"}
)
COPY_LINK = frozenset({"large_gbps", "link_gbps", "link_pct"})
PINNED = frozenset({"pinned_saving_ms"})
# Of the run's large copies from pinned memory to the GPU; of findings with a known saving.
LARGE_PINNED = frozenset(
    {"pinned_gbps", "pinned_link_gbps", "pinned_link_pct", "pinned_exposed_ms", "pinned_exposed_pct"}
)
KNOWN_SAVING = frozenset({"gap_ms"})
MULTI_KERNEL_OPTIONAL = frozenset().union(
    MESSAGES, GROUP, SIZED, PEER_LINK, WAITING, COPIES_OPTIONAL, COPY_LINK, PINNED, LARGE_PINNED, KNOWN_SAVING
)
