"""The kinds of bottlenecks that are planted, and what a report that found one says.

``causes``: ids of knowledge patterns, one of which must head the finding. ``places``: texts, one of which must stand in
what the finding tells about where (op, module, frame, annotation).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One kind; ``is_host``: the cost is idle time, so that its findings are told by what they say, not by kernels."""

    name: str
    analyzers: tuple[str, ...]
    causes: tuple[str, ...]
    places: tuple[str, ...]
    is_host: bool = False


SYNCS = ("sync_scalar_read", "sync_every_step", "sync_frame")
KINDS: dict[str, Kind] = {
    kind.name: kind
    for kind in (
        Kind(
            name="slow_gemm",
            analyzers=("gemm",),
            causes=("low_compute_efficiency",),
            places=("Linear", "aten::mm", "aten::addmm"),
        ),
        Kind(
            name="fp32_gemm",
            analyzers=("gemm",),
            causes=("fp32_without_tf32", "fp32_on_bf16_units"),
            places=("aten::mm",),
        ),
        Kind(name="misaligned", analyzers=("gemm",), causes=("misaligned",), places=("aten::mm",)),
        Kind(
            name="unfused_attention",
            analyzers=("fusion", "gemm", "reduction", "elementwise"),
            causes=("attention_core",),
            places=("SelfAttention", "aten::bmm"),
        ),
        Kind(
            name="unfused_norm",
            analyzers=("fusion",),
            causes=("rms_norm", "add_norm"),
            places=("RMSNorm", "aten::rsqrt"),
        ),
        Kind(name="unfused_rotary", analyzers=("fusion",), causes=("rope",), places=("rotary", "aten::neg")),
        Kind(
            name="unfused_activation",
            analyzers=("fusion",),
            causes=("swiglu", "silu", "gelu", "gemm_epilogue", "add_act"),
            places=("SwiGLU", "aten::silu", "GELU", "aten::tanh"),
        ),
        Kind(
            name="unfused_optimizer",
            analyzers=("fusion", "elementwise"),
            causes=("adam_loop", "optimizer_loop"),
            places=("aten::addcdiv_", "Optimizer.step", "adam"),
        ),
        Kind(
            name="redundant_casts",
            analyzers=("fusion", "elementwise"),
            causes=("casts_undone", "repeated_casts", "casts_and_copies"),
            places=("MLP", "aten::copy_", "aten::to", "aten::_to_copy"),
        ),
        Kind(
            name="tiny_gemms",
            analyzers=("gemm", "fusion", "idle"),
            causes=("looped_products", "same_op_loop", "launch_bound_repeating", "launch_bound_eager", "tiny_kernels"),
            places=("aten::mm", "Adapters", "adapters.py", "Experts", "experts.py"),
        ),
        Kind(
            name="layout_copies",
            analyzers=("convolution",),
            causes=("layout_changes",),
            places=("aten::cudnn_convolution", "aten::miopen_convolution", "Conv2d"),
        ),
        Kind(
            name="item_per_step",
            analyzers=("idle",),
            causes=SYNCS,
            places=("aten::item", "aten::_local_scalar_dense", "log_loss"),
            is_host=True,
        ),
        Kind(
            name="item_in_loop",
            analyzers=("idle",),
            causes=SYNCS,
            places=("aten::item", "aten::_local_scalar_dense", "update_scale"),
            is_host=True,
        ),
        Kind(
            name="loader_stall",
            analyzers=("idle",),
            causes=("data_loading", "data_loading_frame"),
            places=("DataLoader", "dataloader.py", "__next__"),
            is_host=True,
        ),
        Kind(
            name="launch_bound",
            analyzers=("idle", "fusion", "elementwise"),
            causes=(
                "launch_bound_eager",
                "launch_bound_module",
                "launch_bound_python",
                "launch_bound_repeating",
                "tiny_kernels",
            ),
            places=("PositionBias", "model.py(1"),
            is_host=True,
        ),
        Kind(
            name="gc_pause",
            analyzers=("idle",),
            causes=("garbage_collection",),
            places=("collect", "housekeeping"),
            is_host=True,
        ),
        Kind(
            name="recompilation",
            analyzers=("idle",),
            causes=("compilation_of_code",),
            places=("convert_frame", "compile", "_dynamo", "serve.py", "train.py"),
            is_host=True,
        ),
        Kind(
            name="tokenisation",
            analyzers=("idle",),
            causes=("host_code_frame", "host_code_repeating", "host_code_stall"),
            places=("tokenizer.py", "next_batch"),
            is_host=True,
        ),
        Kind(
            name="allocator_churn",
            analyzers=("idle",),
            causes=("allocator_frees", "allocator_grows", "pinned_allocation"),
            places=("cudaFree", "cudaMalloc", "hipFree", "hipMalloc", "aten::empty"),
            is_host=True,
        ),
        Kind(
            name="pageable_copies",
            analyzers=("multi_kernel", "idle"),
            causes=("pageable_htod", "blocking_copies", "exposed_copies", "sync_copy_to_device", "slow_link_nvidia"),
            places=("data.py", "to_device", "Pageable", "aten::to", "aten::copy_", "hipMemcpyWithStream"),
        ),
        Kind(
            name="exposed_all_reduce",
            analyzers=("multi_kernel", "idle"),
            causes=(
                "ddp_all_reduce",
                "exposed_communication",
                "no_overlap",
                "tensor_parallel",
                "serving_all_reduce",
                "expert_exchange",
                "embedding_exchange",
                "wide_gradients",
            ),
            places=("all_reduce", "allreduce", "all_to_all", "alltoall", "AllReduce", "SendRecv"),
        ),
        Kind(
            name="small_buckets",
            analyzers=("multi_kernel",),
            causes=("small_buckets", "small_collectives"),
            places=("all_reduce", "allreduce", "AllReduce"),
        ),
        Kind(
            name="straggler",
            analyzers=("multi_kernel",),
            causes=("waiting_for_peers",),
            places=("all_reduce", "allreduce", "AllReduce"),
        ),
    )
}
