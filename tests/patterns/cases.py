"""For each pattern about kernels: evidence on which it fires, and the nearest on which it does not."""

from __future__ import annotations

from typing import Any

Evidence = dict[str, Any]

# A rated finding as the analyzers make it, on a GPU with TF32 and bf16; what cases name stands in for what is here.
RATED: Evidence = {
    "kind": "modelled",
    "category": "gemm",
    "time_ms": 10.0,
    "time_share_pct": 20.0,
    "instances_count": 20,
    "kernels_count": 20,
    "mean_kernel_us": 500.0,
    "top_kernel_us": 500.0,
    "top_kernel_pct": 95.0,
    "beside_pct": 5.0,
    "kernel_arch": "sm90",
    "old_arch_kernel": False,
    "align1": False,
    "training": False,
    "causal_lm": False,
    "engine": "",
    "kernels_per_instance": 1.0,
    "library": "cuBLAS/cuBLASLt",
    "top_op": "aten::mm",
    "top_share_pct": 80.0,
    "top_kernel": "nvjet_tst_128x256_64x4",
    "op_names": "aten::mm",
    "phase": "forward",
    "modules": "Linear",
    "attention_module": False,
    "source": "model.py(12): forward",
    "graph_replayed": False,
    "variation_pct": 2.0,
    "tf32": False,
    "fused": False,
    "bound": "memory",
    "precision": "bfloat16",
    "efficiency_pct": 40.0,
    "top_efficiency_pct": 40.0,
    "gpu_vendor": "nvidia",
    "gpu_tf32": True,
    "gpu_bf16": True,
    "m": 4096,
    "n": 4096,
    "k": 4096,
    "batched": False,
    "misaligned": False,
    "odd_dims": "",
}
UNRATED = {"kind": "upper_bound", "unmodelled": "no cost model", "unmodelled_share_pct": 50.0}
MATH = {"op_names": "aten::_scaled_dot_product_attention_math", "kernels_per_instance": 5.0}
FUSED = {"fused": True, "top_kernel": "flash_fwd_kernel", "bound": "compute"}
DECODE = {"fused": True, "top_kernel": "paged_attention_v1_kernel", "top_op": "vllm::unified_attention"}
MEMORY = {"category": "memory", "top_op": "aten::copy_", "op_names": "aten::copy_", "top_kernel": "direct_copy_kernel"}
ELEMENTWISE = {"category": "elementwise", "top_op": "aten::mul", "op_names": "aten::mul, aten::add"}
OPTIMIZER = {"category": "optimizer", "phase": "optimizer", "kernels_count": 400}
FOREACH = {"top_op": "aten::_foreach_mul_", "op_names": "aten::_foreach_mul_, aten::_foreach_add_"}
LOOKUP = {"category": "embedding", "top_op": "aten::embedding", "op_names": "aten::embedding"}
TABLES = {**LOOKUP, "tables_count": 26, "fits_cache": False, "indices_count": 4096, "stored_bytes": 1 << 30}
SOFTMAX = {"top_op": "aten::_softmax", "op_names": "aten::_softmax, aten::sum"}
# What a rating says; findings without one lack it.
RATING = ("bound", "precision", "efficiency_pct", "top_efficiency_pct")
TRITON: Evidence = {**UNRATED, "category": "triton", "library": "Inductor", "top_kernel": "triton_red_fused_mine_0"}
TINY = {"mean_kernel_us": 9.9, "top_kernel_us": 9.9, "kernels_count": 100}
AT_CEILING = {"efficiency_pct": 80.0, "top_efficiency_pct": 80.0}
AMD = ({"gpu_vendor": "amd"}, {"gpu_vendor": "nvidia"})
NORM = {"category": "normalization", "top_op": "aten::native_layer_norm", "op_names": "aten::native_layer_norm"}
EXPERTS = {"category": "moe", "top_op": "vllm::fused_experts", "top_kernel": "grouped_gemm_kernel"}
TRITON_EXPERTS = {**EXPERTS, "top_kernel": "fused_moe_kernel"}

# (analyzer, pattern): what is so where it fires, and what then makes it not fire.
CASES: dict[tuple[str, str], tuple[Evidence, Evidence]] = {
    ("gemm", "batched_attention"): ({"batched": True, "attention_module": True}, {"attention_module": False}),
    ("gemm", "batched_attention_unaligned"): (
        {"align1": True, "batched": True, "attention_module": True},
        {"align1": False},
    ),
    ("gemm", "batched_products"): ({"batched": True}, {"attention_module": True}),
    ("gemm", "fp32_on_bf16_units"): (
        {"precision": "float32", "bound": "compute", "gpu_tf32": False},
        {"gpu_tf32": True},
    ),
    ("gemm", "fp32_on_fp16_units"): (
        {"precision": "float32", "bound": "compute", "gpu_tf32": False, "gpu_bf16": False},
        {"gpu_vendor": "amd"},
    ),
    ("gemm", "fp32_without_tf32"): ({"precision": "float32", "bound": "compute"}, {"tf32": True}),
    ("gemm", "small_and_slow"): ({"bound": "latency"}, {"batched": True}),
    ("gemm", "older_kernels"): ({"old_arch_kernel": True}, {"align1": True}),
    ("gemm", "on_amd"): AMD,
    ("gemm", "latency_bound"): ({"bound": "latency"}, {"bound": "memory"}),
    ("gemm", "looped_products"): ({"part": "loop", "calls_per_loop": 8}, {"calls_per_loop": 1}),
    ("gemm", "low_compute_efficiency"): ({"bound": "compute", "efficiency_pct": 49.9}, {"efficiency_pct": 50.0}),
    ("gemm", "memory_bound"): ({}, {"batched": True}),
    ("gemm", "misaligned"): ({"misaligned": True, "odd_dims": "N, K"}, {"odd_dims": "M"}),
    ("gemm", "misaligned_rows"): ({"misaligned": True, "odd_dims": "M"}, {"odd_dims": "M, N"}),
    ("gemm", "near_ceiling"): ({"bound": "compute", **AT_CEILING}, {"efficiency_pct": 79.9}),
    ("gemm", "skinny_memory_bound"): ({"m": 16}, {"m": 17}),
    ("attention", "decode_memory_bound"): (DECODE, {"top_kernel": "flash_fwd_kernel"}),
    ("attention", "few_tiles"): ({**FUSED, "tiles_per_unit": 1.9}, {"tiles_per_unit": 2.0}),
    ("attention", "fp32_attention"): ({"precision": "float32"}, {"precision": "bfloat16"}),
    ("attention", "fp32_on_fp16_units"): ({"precision": "float32", "gpu_bf16": False}, {"gpu_vendor": "amd"}),
    ("attention", "fused_backward"): ({**FUSED, "phase": "backward"}, {"phase": "forward"}),
    ("attention", "fused_on_amd"): ({**FUSED, "gpu_vendor": "amd"}, {"efficiency_pct": 50.0}),
    ("attention", "fused_on_nvidia"): (FUSED, {"bound": "latency"}),
    ("attention", "layout_copies"): ({"part": "layout", "calls_ms": 2.0}, {"part": "recomputation"}),
    ("attention", "memory_bound"): (FUSED | {"bound": "memory"}, {"bound": "compute"}),
    ("attention", "memory_efficient_backend"): (
        {"op_names": "aten::_scaled_dot_product_efficient_attention"},
        {"gpu_bf16": False},
    ),
    ("attention", "near_ceiling"): ({**FUSED, **AT_CEILING}, {"top_efficiency_pct": 79.9}),
    ("attention", "unfused_math"): (MATH, {"fused": True}),
    ("moe", "compute_bound_experts"): (EXPERTS | {"bound": "compute"}, {"efficiency_pct": 60.0}),
    ("moe", "memory_bound_experts"): (EXPERTS, {"bound": "latency"}),
    ("moe", "latency_bound_experts"): (EXPERTS | {"bound": "latency"}, {"bound": "memory"}),
    ("moe", "triton_experts_nvidia"): (TRITON_EXPERTS, {"bound": "latency"}),
    ("moe", "triton_experts_amd"): (TRITON_EXPERTS | {"gpu_vendor": "amd"}, {"efficiency_pct": 60.0}),
    ("moe", "routing_kernels"): (EXPERTS | {"top_kernel": "topkGatingSoftmax<8, 128>"}, {"top_kernel": "ck_moe"}),
    ("moe", "uneven_calls"): (EXPERTS | {"variation_pct": 30.0}, {"instances_count": 9}),
    ("moe", "replayed_experts"): (EXPERTS | UNRATED | {"graph_replayed": True}, {"graph_replayed": False}),
    ("moe", "unfused_experts"): (EXPERTS | {"kernels_per_instance": 16.0}, {"kernels_per_instance": 15.9}),
    ("elementwise", "cache_growth"): (
        MEMORY | {"top_op": "aten::cat", "source": "cache_utils.py(120): update"},
        {"source": "model.py(3): forward"},
    ),
    ("elementwise", "casts_and_copies"): (MEMORY, {"top_op": "aten::fill_"}),
    ("elementwise", "concatenation"): (MEMORY | {"top_op": "aten::cat"}, {"top_share_pct": 49.9}),
    ("elementwise", "ddp_bucket_copies"): (
        MEMORY | {"op_names": "torch::distributed::reducer::mul_out"},
        {"op_names": "torch::distributed::reducer::search"},
    ),
    ("elementwise", "fills"): (MEMORY | {"top_op": "aten::zero_"}, {"top_op": "aten::copy_"}),
    ("elementwise", "generated_kernels"): (ELEMENTWISE | {"library": "Inductor"}, {"category": "memory"}),
    ("elementwise", "low_bandwidth"): (ELEMENTWISE | {"efficiency_pct": 39.9}, {"mean_kernel_us": 19.9}),
    ("elementwise", "many_tiny_kernels"): (ELEMENTWISE | TINY, {"top_kernel_us": 10.0}),
    ("elementwise", "fp32_tensors"): (ELEMENTWISE | {"precision": "float32"}, {"gpu_bf16": False}),
    ("elementwise", "near_bandwidth"): (ELEMENTWISE | AT_CEILING, {"top_efficiency_pct": 79.9}),
    ("elementwise", "optimizer_foreach"): (OPTIMIZER | FOREACH, {"top_op": "aten::_foreach_copy_"}),
    ("elementwise", "optimizer_fused"): (
        OPTIMIZER | {"top_op": "aten::_fused_adamw_", "op_names": "aten::_fused_adamw_"},
        {"top_op": "aten::_foreach_copy_"},
    ),
    ("elementwise", "optimizer_loop"): (OPTIMIZER | {"top_op": "aten::addcdiv_"}, {"kernels_count": 49}),
    ("elementwise", "quantization"): ({"category": "quantization"}, {"category": "elementwise"}),
    ("reduction", "column_sums"): ({"top_op": "aten::sum", "phase": "backward"}, {"phase": "forward"}),
    ("reduction", "generated_reductions"): (
        {"top_kernel": "triton_per_fused_sum_0"},
        {"top_kernel": "triton_poi_fused_add_0"},
    ),
    ("reduction", "losses"): ({"top_op": "aten::mse_loss", "mean_kernel_us": 8.0}, {"mean_kernel_us": 50.0}),
    ("reduction", "low_bandwidth"): ({}, {"attention_module": True}),
    ("reduction", "norm_in_pieces"): (
        {"top_op": "aten::mean", "modules": "Qwen2RMSNorm"},
        {"modules": "Qwen2Attention"},
    ),
    ("reduction", "pooling"): ({"top_op": "aten::max_pool2d_with_indices"}, {"top_op": "aten::max"}),
    ("reduction", "scans"): ({"top_op": "fbgemm::asynchronous_complete_cumsum"}, {"top_op": "aten::sum"}),
    ("reduction", "selection"): ({"top_op": "aten::argmax"}, {"top_op": "aten::amax"}),
    ("reduction", "softmax"): (SOFTMAX, {"attention_module": True}),
    ("reduction", "softmax_among_others"): (SOFTMAX | {"top_share_pct": 69.9}, {"top_share_pct": 70.0}),
    ("reduction", "softmax_in_attention"): (SOFTMAX | {"attention_module": True}, {"top_share_pct": 49.9}),
    ("reduction", "tiny_reductions_in_training"): (TINY | {"training": True}, {"training": False}),
    ("reduction", "tiny_reductions"): (TINY, {"training": True}),
    ("normalization", "batch_norm"): (NORM | {"op_names": "aten::cudnn_batch_norm"}, {"op_names": "aten::group_norm"}),
    ("normalization", "fused_add_norm"): (
        NORM | {"op_names": "_C::fused_add_rms_norm"},
        {"op_names": "triton_red_fused_add_rms_norm_0", "library": "Inductor"},
    ),
    ("normalization", "generated_norms"): (NORM | {"library": "Inductor"}, {"library": "Triton"}),
    ("normalization", "group_norm"): (
        NORM | {"op_names": "aten::native_group_norm"},
        {"op_names": "aten::native_layer_norm"},
    ),
    ("normalization", "layer_or_rms_norm"): (NORM, {"op_names": "_C::fused_add_rms_norm"}),
    ("normalization", "many_small_norms"): (NORM | TINY, {"mean_kernel_us": 10.0}),
    ("normalization", "liger_norms"): (NORM | {"causal_lm": True, "library": "PyTorch native"}, {"engine": "vLLM"}),
    ("normalization", "small_norms_in_vllm"): (
        NORM | TINY | {"engine": "vLLM", "op_names": "aten::rms_norm"},
        {"engine": ""},
    ),
    ("normalization", "near_bandwidth"): (NORM | AT_CEILING, {"bound": "latency"}),
    ("normalization", "norm_backward"): (
        NORM | {"top_op": "aten::native_layer_norm_backward", "phase": "mixed"},
        {"top_op": "aten::native_layer_norm"},
    ),
    ("normalization", "norm_in_fp32"): (NORM | {"precision": "float32"}, {"bound": "latency"}),
    ("normalization", "sync_batch_norm"): (
        NORM | {"op_names": "aten::batch_norm_stats, aten::batch_norm_elemt"},
        {"op_names": "aten::native_batch_norm"},
    ),
    ("convolution", "depthwise"): ({"top_kernel": "conv_depthwise2d_forward_kernel"}, {"top_kernel": "conv2d_forward"}),
    ("convolution", "fp32_on_bf16_units"): (
        {"precision": "float32", "bound": "compute", "gpu_tf32": False},
        {"gpu_bf16": False},
    ),
    ("convolution", "fp32_on_fp16_units"): (
        {"precision": "float32", "bound": "compute", "gpu_bf16": False},
        {"bound": "memory"},
    ),
    ("convolution", "fp32_without_tf32"): ({"precision": "float32", "bound": "compute"}, {"gpu_tf32": False}),
    ("convolution", "latency_bound"): ({"bound": "latency", "top_kernel_us": 9.9}, {"top_kernel_us": 10.0}),
    ("convolution", "slow_kernel"): ({"bound": "latency"}, {"top_kernel_us": 9.9}),
    ("convolution", "patch_embedding"): (
        {"patches": True, "in_channels": 3, "efficiency_pct": 29.9},
        {"in_channels": 5},
    ),
    ("convolution", "on_amd"): AMD,
    ("convolution", "layout_changes"): ({"part": "layout", "calls_ms": 2.0}, {"part": "recomputation"}),
    ("convolution", "low_efficiency"): ({"bound": "compute", "efficiency_pct": 49.9}, {"efficiency_pct": 50.0}),
    ("convolution", "memory_bound"): ({}, {"bound": "latency"}),
    ("convolution", "near_ceiling"): ({"bound": "compute", **AT_CEILING}, {"bound": "memory"}),
    ("triton", "handwritten"): (
        TRITON | {"library": "Triton", "top_kernel": "triton_mine"},
        {"top_kernel": "triton__0d1d2d"},
    ),
    ("triton", "many_small"): (
        TRITON | {"mean_kernel_us": 9.9, "kernels_count": 100},
        {"graph_replayed": True},
    ),
    ("triton", "nameless"): (TRITON | {"top_kernel": "triton_"}, {"top_kernel": "triton_unk_fused_sort_0"}),
    ("triton", "replayed"): (TRITON | {"graph_replayed": True}, {"kind": "modelled"}),
    ("triton", "on_amd"): (TRITON | AMD[0], AMD[1]),
    ("triton", "template"): (TRITON | {"top_kernel": "triton_tem_fused_mine_0"}, {"top_kernel": "triton_red_fused_0"}),
    ("triton", "undecoded"): (TRITON, {"top_kernel": "triton_tem_fused_mine_0"}),
    ("triton", "uneven_calls"): (TRITON | {"variation_pct": 30.0}, {"variation_pct": 29.9}),
    ("generic", "advanced_indexing"): (LOOKUP | {"top_op": "aten::index"}, {"top_op": "aten::index_select"}),
    ("generic", "embedding"): (LOOKUP, {"top_op": "aten::index"}),
    ("generic", "recomputation"): ({"part": "recomputation", "ratable_pct": 20.0}, {"part": "layout"}),
    ("generic", "scatter_backward"): (
        LOOKUP | {"op_names": "aten::embedding_dense_backward"},
        {"op_names": "aten::embedding"},
    ),
    ("generic", "sorting"): ({"category": "sort"}, {"category": "generic"}),
    ("generic", "sparse_features"): (
        LOOKUP | {"top_op": "fbgemm::permute_sparse_features"},
        {"top_op": "fbgemm::split_embedding_codegen_lookup"},
    ),
    ("generic", "state_space"): ({"category": "ssm"}, {"category": "generic"}),
    ("generic", "table_batched"): (TABLES, {"tables_count": 1}),
    ("generic", "table_batched_in_cache"): (TABLES | {"fits_cache": True}, {"fits_cache": False}),
}
