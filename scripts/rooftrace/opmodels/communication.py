"""Collectives: a category alone. What they move over links depends on the group and is measured elsewhere."""

from __future__ import annotations

from .registry import categorise

categorise(
    "communication",
    "record_param_comms", "_ReduceFromModelParallelRegion", "_GatherFromModelParallelRegion",
    "_CopyToModelParallelRegion", "_ScatterToModelParallelRegion", "All2All_Pooled_Req", "All2All_Pooled_Wait",
    "All2All_Pooled_ReqBackward", "All2All_Pooled_WaitBackward", "vllm::all_reduce", "vllm::all_gather",
    "vllm::reduce_scatter", "sglang::reg_all_gather_into_tensor", "sglang::inplace_all_reduce",
    "sglang::outplace_all_reduce", "aiter::reduce_scatter", "aiter::all_gather_reg", "aiter::fused_allreduce_rmsnorm",
    "aiter::fused_allreduce_rmsnorm_", "sgl_kernel::all_reduce_reg", "sgl_kernel::qr_all_reduce",
    patterns=(
        r"^(nccl|rccl|gloo|mpi|c10d|c10d_functional|_c10d_functional|_dtensor|symm_mem|deep_ep|nvshmem):",
        r"^_C_custom_ar::",
        r"^trtllm::(allreduce|allgather|reducescatter)", r"(?i)all_?reduce|all_?to_?all|all_?gather",
        r"(?i)reduce_?scatter",
    ),
    module=__name__,
)  # fmt: skip

categorise(
    "generic",
    "aten::_cudnn_rnn", "aten::_cudnn_rnn_backward", "aten::_thnn_fused_lstm_cell", "aten::_thnn_fused_gru_cell",
    "aten::_fft_r2c", "aten::_fft_c2r", "aten::_fft_c2c", "aten::linalg_inv_ex", "aten::linalg_cholesky_ex",
    "aten::_linalg_svd", "aten::linalg_qr", "aten::lstm", "aten::gru", "CompiledFunction", "CompiledFunctionBackward",
    patterns=(r"^Torch-Compiled Region",),
    module=__name__,
)  # fmt: skip
categorise("convolution", "ConvBias_", "ConvBiasReLU_", "ConvBias_Backward", "ConvBiasReLU_Backward", module=__name__)
