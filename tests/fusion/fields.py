"""The evidence that fusion findings carry, as the knowledge patterns may rely on it."""

from __future__ import annotations

# Always there.
FUSION = frozenset(
    {
        "gpu_name",
        "gpu_vendor",
        "pattern",
        "pattern_name",
        "instances_count",
        "before_window_count",
        "kernels_per_instance",
        "launches_removed_count",
        "time_ms",
        "time_share_pct",
        "modules",
        "op_chain",
        "kernel_chain",
        "shapes",
        "source",
        "phase",
        "kept_op",
        "epilogue",
        "optimizer",
        "one_move",
        "graph_replayed",
        "notes",
        "confidence",
        "replacement",
        "kinds_count",
        "shown_count",
    }
)
# With a time to claim (`kind` is `modelled`), and without (`upper_bound`).
FUSION_RATED = frozenset(
    {
        "fused_ms",
        "saving_ms",
        "floor_us",
        "bound",
        "external_bytes",
        "inner_bytes",
        "separate_bytes",
        "host_cut_ms",
        "dtype",
        "fused_us",
        "longest_us",
        "best_member_pct",
        "slow_fused_ms",
        "least_saving_ms",
    }
)
FUSION_UNRATED = frozenset({"unmodelled"})
