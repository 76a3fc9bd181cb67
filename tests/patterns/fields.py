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
        "datasheet_efficiency_pct",
        "ceilings_kind",
        "achieved_tflops",
        "achieved_gbps",
    }
)
# Compute findings, where the shapes are those of a matrix product; or without a rating.
PRODUCT = frozenset({"m", "n", "k", "misaligned", "odd_dims", "batched"})
SPELLED = frozenset({"precision"})
UNRATED = frozenset({"unmodelled"})

IDLE = frozenset(
    {
        "device",
        "idle_ms",
        "idle_pct",
        "busy_pct",
        "gaps_count",
        "median_gap_us",
        "max_gap_ms",
        "top_gap_before",
        "top_gap_after",
        "top_gap_op",
        "top_gap_annotation",
        "top_gap_frame",
        "data_loading",
        "queued_pct",
        "gaps_over_1ms_count",
        "gaps_over_1ms_pct",
        "short_gaps_pct",
        "in_step_pct",
        "kernels_count",
        "launches_per_ms",
    }
)
# Idle findings of devices with kernels, and with launches.
IDLE_OPTIONAL = frozenset({"mean_kernel_us", "empty_queue_pct", "host_bound"})

COMMUNICATION = frozenset(
    {
        "exposed_comm_ms",
        "exposed_comm_pct",
        "total_comm_ms",
        "overlap_pct",
        "collectives",
        "top_collective",
        "comm_kernels_count",
    }
)
COPIES = frozenset(
    {
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
    }
)
COPIES_OPTIONAL = frozenset({"copy_bytes", "achieved_gbps"})
