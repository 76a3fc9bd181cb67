"""Kernels of planted runs that `workshop.kernels` does not have."""

from __future__ import annotations

from dataclasses import replace

from evals.workshop import kernels
from evals.workshop.hardware import Gpu
from evals.workshop.program import ITEM_SIZES, Kernel, Tensor

BF16 = kernels.BF16
SLOW_EFFICIENCY, MISALIGNED_EFFICIENCY = 0.25, 0.40
"""Of the roofline: a small-tile kernel, and one that loads two bytes at a time (rules of thumb)."""


def rows(name: str, count: int, flops: float, bytes_moved: float) -> Kernel:
    """A kernel with one block a row."""
    return Kernel(name=name, flops=flops, bytes_moved=bytes_moved, grid=(count, 1, 1), block=(256, 1, 1), shared=64)


def added_norm(x: Tensor) -> Kernel:
    """Residual sum and RMS norm in one: reads and writes both tensors."""
    width = x.shape[-1]
    name = f"void vllm::fused_add_rms_norm_kernel<{BF16}, 8>({BF16}*, {BF16}*, {BF16} const*, float, int, int)"
    return rows(name, x.count // width, 5.0 * x.count, 4.0 * x.bytes)


def rotary(query: Tensor, key: Tensor, table: Tensor) -> Kernel:
    """Rotates queries and keys in place."""
    name = (
        f"void vllm::rotary_embedding_kernel<{BF16}, true>"
        f"(long const*, {BF16}*, {BF16}*, {BF16} const*, int, long, long, int, int, int)"
    )
    moved = 2.0 * (query.bytes + key.bytes) + table.bytes
    return rows(name, query.shape[0], 3.0 * (query.count + key.count), moved)


def gated(out: Tensor) -> Kernel:
    """``silu(gate) * up`` of a tensor twice as wide."""
    name = f"void vllm::act_and_mul_kernel<{BF16}, &(vllm::silu_kernel<{BF16}>), true>({BF16}*, {BF16} const*, int)"
    return rows(name, out.count // out.shape[-1], 6.0 * out.count, 3.0 * out.bytes)


def product(gpu: Gpu, sizes: tuple[int, int, int], *, batch: int = 1, dtype: str = BF16, how: str = "sound") -> Kernel:
    """A matrix product ``(m, n, k)``: ``sound``, ``slow`` or ``misaligned``; floats on the units that ``how`` says."""
    m, n, k = sizes
    best = replace(
        kernels.gemm(gpu, m, n, k, layout="TNT"),
        flops=2.0 * batch * m * n * k,
        bytes_moved=float(ITEM_SIZES[dtype]) * batch * (m * k + k * n + m * n),
    )
    if dtype == "float":
        return replace(best, name=_float_name(gpu, how), precision="tf32" if how == "tf32" else "fp32")
    if how == "slow":
        return replace(best, name=_small_tile(gpu), efficiency=SLOW_EFFICIENCY, call="launch")
    if how == "misaligned":
        return replace(best, name=_unaligned(gpu), efficiency=MISALIGNED_EFFICIENCY, call="launch")
    return best


def _small_tile(gpu: Gpu) -> str:
    if gpu.vendor == "amd":
        return "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT32x32x32_MI16x16x1_SN_LDSB1_WG16_16_1"
    tile = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"
    return f"void cutlass::Kernel2<{tile}>({tile}::Params)"


def _unaligned(gpu: Gpu) -> str:
    if gpu.vendor == "amd":
        return "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT64x64x32_MI16x16x1_SN_GRVWA1_GRVWB1_WG32_8_1"
    tile = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x64_64x3_tn_align1"
    return f"void cutlass::Kernel2<{tile}>({tile}::Params)"


def _float_name(gpu: Gpu, how: str) -> str:
    if gpu.vendor == "amd":
        kind = "SS_BH" if how == "sound" else "S_MX_B"
        return f"Cijk_Alik_Bljk_{kind}_Bias_HAS_SAV_UserArgs_MT128x128x16_MI16x16x1_SN_LDSB1_WG64_4_1"
    if how == "tf32":
        return "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(Params)"
    return "ampere_sgemm_128x128_tn"


def softmax(scores: Tensor) -> Kernel:
    """Over the last dimension."""
    width = scores.shape[-1]
    return kernels.row_kernel("softmax", scores.count // width, width, 2.0 * scores.bytes)


def convolution(gpu: Gpu, x: Tensor, weight: Tensor, out: Tensor) -> Kernel:
    """An implicit product on channels-last data."""
    if gpu.vendor == "amd":
        name = "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x256x32_wt32x32x8_ws1x1_wr4x4"
    else:
        name = (
            "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1"
            "_g1_execute_segment_k_off_kernel__5x_cudnn"
        )
    inner = weight.count // weight.shape[0]
    return Kernel(
        name=name,
        flops=2.0 * out.count * inner,
        bytes_moved=float(x.bytes + weight.bytes + out.bytes),
        precision="bf16",
        grid=(gpu.compute_units, 1, 1),
        block=(384, 1, 1),
        registers=168,
    )


def transposition(x: Tensor, way: str) -> Kernel:
    """A change of layout, ``nchwToNhwc`` or back."""
    name = f"void {way}Kernel<__nv_bfloat16, __nv_bfloat16, float, true, false, (cudnnKernelDataType_t)0>({way}Params)"
    return replace(rows(name, max(1, x.count // 4096), 0.0, 2.0 * x.bytes), is_extra=True)


def fused_adam(elements: int) -> Kernel:
    """One pass over weight, gradient and two moments: four reads, three writes of 16-bit elements."""
    anon = kernels.ANON
    functor = f"at::native::{anon.rsplit('::', 1)[1]}::FusedAdamMathFunctor<{BF16}, 4, (at::native::ADAM_MODE)1, false>"
    name = f"void {anon}::multi_tensor_apply_kernel<{anon}::FusedOptimizerTensorListMetadata<4>, {functor}>"
    return rows(name, max(1, elements // 65536), 14.0 * elements, 14.0 * elements)
