"""The kernels PyTorch launches, by name, work and geometry.

Names are those an H100 trace shows, for GEMM and attention
names also as an MI300X trace does. Bytes are compulsory traffic; a multiply-add is two FLOPs.
"""

from __future__ import annotations

from evals.workshop.hardware import Gpu
from evals.workshop.program import ITEM_SIZES, Kernel, Tensor

BF16 = "c10::BFloat16"
ANON = "at::native::(anonymous namespace)"
INTERNAL = "at::native::binary_internal"
POW = f"{ANON}::pow_tensor_scalar_kernel_impl<float, float>(at::TensorIteratorBase&, float)"
CAST_LAMBDA = "::{lambda()#3}::operator()() const"
COPY_TO_FLOAT = (
    f"at::native::direct_copy_kernel_cuda(at::TensorIteratorBase&){CAST_LAMBDA}"
    "::{lambda()#7}::operator()() const::{lambda(float)#1}"
)
FLASH = "pytorch_flash"
FLASH_FORWARD_TRAITS = (
    f"{FLASH}::Flash_fwd_kernel_traits<64, 128, 128, 4, false, false, cutlass::bfloat16_t, "
    f"{FLASH}::Flash_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >"
)
FLASH_BACKWARD_TRAITS = (
    f"{FLASH}::Flash_bwd_kernel_traits<64, 128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t, "
    f"{FLASH}::Flash_kernel_traits<64, 128, 128, 8, cutlass::bfloat16_t> >"
)
POINTER, CONST = f"{BF16}*", f"{BF16} const*"
STATISTICS = "float const*, float const*"
NORM_ARGUMENTS = f"(int, float, {CONST}, {CONST}, {CONST}, float*, float*, {POINTER})"
TENSOR_INFO = "at::cuda::detail::TensorInfo"
ROW_KERNELS = {
    "layer_norm": f"vectorized_layer_norm_kernel<{BF16}, float, false>{NORM_ARGUMENTS}",
    "rms_norm": f"vectorized_layer_norm_kernel<{BF16}, float, true>{NORM_ARGUMENTS}",
    "norm_grad_input": (
        f"layer_norm_grad_input_kernel_vectorized<{BF16}, float, false>"
        f"({CONST}, {CONST}, {STATISTICS}, {CONST}, {POINTER}, int)"
    ),
    "norm_grad_weight": (
        f"GammaBetaBackwardCUDAKernelTemplate<{BF16}, float, 32u, 16u, 256u, true, false, false>"
        f"(long, long, {CONST}, {CONST}, {STATISTICS}, {POINTER}, {POINTER})"
    ),
    "log_softmax": (
        f"cunn_SoftMaxForward<8, {BF16}, float, {BF16}, {ANON}::LogSoftMaxForwardEpilogue>({POINTER}, {CONST}, int)"
    ),
    "log_softmax_backward": (
        f"cunn_SoftMaxBackward<8, {BF16}, float, {BF16}, {ANON}::LogSoftMaxBackwardEpilogue>"
        f"({POINTER}, {CONST}, {CONST}, long)"
    ),
    "softmax": (
        f"cunn_SoftMaxForward<8, {BF16}, float, {BF16}, {ANON}::SoftMaxForwardEpilogue>({POINTER}, {CONST}, int)"
    ),
    "nll_loss": (
        f"nll_loss_forward_reduce_cuda_kernel_2d<{BF16}, float, long>"
        f"({POINTER}, {POINTER}, {CONST}, long const*, {CONST}, bool, long, long, long, long)"
    ),
    "nll_loss_backward": (
        f"nll_loss_backward_reduce_cuda_kernel_2d<{BF16}, long>"
        f"({POINTER}, {CONST}, long const*, {CONST}, {CONST}, bool, int, int, long, long)"
    ),
    "gather": (
        f"indexSelectLargeIndex<{BF16}, long, unsigned int, 2, 2, -2, true>"
        f"({TENSOR_INFO}<{BF16}, unsigned int>, {TENSOR_INFO}<{BF16} const, unsigned int>, "
        f"{TENSOR_INFO}<long const, unsigned int>, int, int, unsigned int, unsigned int, long)"
    ),
    "embedding_grad": (
        f"sum_and_scatter<{BF16}, long>"
        f"(long const*, {POINTER}, long, long const*, long, float const*, long const*, long, long)"
    ),
}
"""Kernels with one block a row, without their namespace."""
SLOW_EFFICIENCY = 0.28
"""Of the roofline: what a 64x64 Ampere tile reaches on this GPU (rule of thumb)."""
CHUNK_ELEMENTS, BLOCKS_A_LAUNCH = 65536, 320
"""multi_tensor_apply: elements a block handles and blocks a launch holds (PyTorch's constants)."""


def _lambda(name: str, dtype_place: int, arguments: str, signature: str = "at::TensorIteratorBase&") -> str:
    inner = f"::{{lambda()#2}}::operator()() const::{{lambda()#{dtype_place}}}::operator()() const"
    return f"at::native::{name}({signature}){inner}::{{lambda({arguments})#1}}"


FUNCTORS = {
    "add": f"at::native::CUDAFunctor_add<{BF16}>",
    "add float": "at::native::CUDAFunctor_add<float>",
    "add scalar": "at::native::CUDAFunctorOnSelf_add<float>",
    "mul": f"at::native::BinaryFunctor<{BF16}, {BF16}, {BF16}, {INTERNAL}::MulFunctor<float> >",
    "mul float": f"at::native::BinaryFunctor<float, float, float, {INTERNAL}::MulFunctor<float> >",
    "mul scalar": f"at::native::AUnaryFunctor<float, float, float, {INTERNAL}::MulFunctor<float> >",
    "div scalar": f"at::native::BUnaryFunctor<float, float, float, {INTERNAL}::MulFunctor<float> >",
    "square": f"{POW}::{{lambda(float)#1}}",
    "cube": f"{POW}::{{lambda(float)#2}}",
    "rsqrt": _lambda("rsqrt_kernel_cuda", 2, "float"),
    "gelu": _lambda("GeluCUDAKernelImpl", 4, BF16, "at::TensorIteratorBase&, at::native::GeluType"),
    "gelu backward": _lambda(
        "GeluBackwardCUDAKernelImpl", 4, f"{BF16}, {BF16}", "at::TensorIteratorBase&, at::native::GeluType"
    ),
    "fill": f"at::native::FillFunctor<{BF16}>",
    "mul number": f"at::native::AUnaryFunctor<{BF16}, {BF16}, {BF16}, {INTERNAL}::MulFunctor<float> >",
    "add number": f"at::native::CUDAFunctorOnSelf_add<{BF16}>",
    "neg": _lambda("neg_kernel_cuda", 4, BF16),
    "silu": _lambda("(anonymous namespace)::silu_kernel", 4, BF16),
    "tanh": _lambda("tanh_kernel_cuda", 4, BF16),
    "relu": _lambda("(anonymous namespace)::launch_clamp_scalar", 4, BF16),
    "pow number": f"{ANON}::pow_tensor_scalar_kernel_impl<{BF16}, {BF16}>::{{lambda({BF16})#1}}",
    "lerp": _lambda("(anonymous namespace)::lerp_scalar_kernel", 4, f"{BF16}, {BF16}"),
    "addcmul": _lambda("addcmul_cuda_kernel", 4, f"{BF16}, {BF16}, {BF16}"),
    "addcdiv": _lambda("addcdiv_cuda_kernel", 4, f"{BF16}, {BF16}, {BF16}"),
    "sqrt": _lambda("sqrt_kernel_cuda", 4, BF16),
    "to bf16": "at::native::bfloat16_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda(float)#1}",
}
FLOPS_AN_ELEMENT = {"silu": 7, "tanh": 8, "gelu": 8, "gelu backward": 20, "rsqrt": 2, "fill": 0, "to bf16": 0}


def elementwise(functor: str, output: Tensor, *inputs: Tensor) -> Kernel:
    """A vectorised elementwise kernel; the strided one where an operand broadcasts."""
    name = FUNCTORS[functor]
    if all(tensor.count == output.count for tensor in inputs):
        array = f"std::array<char*, {len(inputs) + 1}ul>"
        full = f"void at::native::vectorized_elementwise_kernel<4, {name}, {array} >(int, {name}, {array})"
    else:
        inner = f"at::native::gpu_kernel_impl_nocast<{name} >(at::TensorIteratorBase&, {name} const&)"
        inner += "::{lambda(int)#1}"
        full = f"void at::native::elementwise_kernel<128, 4, {inner}>(int, {inner})"
    return Kernel(
        name=full,
        flops=float(output.count * FLOPS_AN_ELEMENT.get(functor, 1)),
        bytes_moved=float(output.bytes + sum(tensor.bytes for tensor in inputs)),
        grid=(-(-output.count // 512), 1, 1),
        block=(128, 1, 1),
        registers=24,
    )


def cast_to_float(source: Tensor) -> Kernel:
    """bf16 -> float, the unrolled copy with casts."""
    tail = (
        "std::array<char*, 2ul>, 4, TrivialOffsetCalculator<1, unsigned int>, "
        "TrivialOffsetCalculator<1, unsigned int>, at::native::memory::LoadWithCast<1>, "
        "at::native::memory::StoreWithCast<1>"
    )
    return Kernel(
        name=f"void at::native::unrolled_elementwise_kernel<{COPY_TO_FLOAT}, {tail} >(int, {COPY_TO_FLOAT}, "
        f"{tail.replace(', 4,', ',')})",
        flops=0.0,
        bytes_moved=float(source.count * (ITEM_SIZES[source.dtype] + 4)),
        grid=(-(-source.count // 512), 1, 1),
        block=(128, 1, 1),
    )


def reduction(kind: str, source: Tensor, output: Tensor) -> Kernel:
    """``mean`` over the last dimension (float), or ``sum`` to ``output``."""
    if kind == "mean":
        op = "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4"
        name = f"at::native::ReduceOp<float, {op}>"
    else:
        dtype = source.dtype
        wrapper = (
            f"at::native::func_wrapper_t<{dtype}, at::native::sum_functor<{dtype}, float, {dtype}>"
            "::operator()(at::TensorIterator&)::{lambda(float, float)#1}>"
        )
        name = f"at::native::ReduceOp<{dtype}, {wrapper}, unsigned int, {dtype}, 4>"
    lanes = "512, 1" if kind == "mean" else "128, 4"
    return Kernel(
        name=f"void at::native::reduce_kernel<{lanes}, {name} >({name})",
        flops=float(source.count),
        bytes_moved=float(source.bytes + output.bytes),
        grid=(max(1, output.count // 4), 1, 1),
        block=(32, 16, 1),
        shared=16,
    )


def gemm(gpu: Gpu, m: int, n: int, k: int, *, layout: str = "TNN", is_slow: bool = False) -> Kernel:
    """A bf16 product ``[m, k] @ [k, n]``; the slow one is a small-tile kernel at 28 % of its roofline."""
    flops, bytes_moved = 2.0 * m * n * k, 2.0 * (m * k + k * n + m * n)
    if is_slow:
        tile = "cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8"
        return Kernel(
            name=f"void cutlass::Kernel2<{tile}>({tile}::Params)",
            flops=flops,
            bytes_moved=bytes_moved,
            precision="bf16",
            grid=(-(-n // 64), -(-m // 64), 1),
            block=(128, 1, 1),
            registers=100,
            shared=98304,
            efficiency=SLOW_EFFICIENCY,
        )
    return Kernel(
        name=_gemm_name(gpu, n >= 2048, layout),
        flops=flops,
        bytes_moved=bytes_moved,
        precision="bf16",
        grid=(gpu.compute_units, 1, 1),
        block=(384, 1, 1) if gpu.vendor == "nvidia" else (256, 1, 1),
        registers=168,
        shared=213248 if gpu.slug.startswith("h100") else 65536,
        call="launch_ex",
    )


def _gemm_name(gpu: Gpu, is_wide: bool, layout: str) -> str:  # noqa: FBT001 - private, one caller
    if gpu.vendor == "amd":
        tile = "MT256x256x64" if is_wide else "MT256x128x64"
        return f"Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_{tile}_MI16x16x1_SN_LDSB1_WG64_4_1"
    if gpu.slug.startswith("a100"):
        tile = "256x128" if is_wide else "128x128"
        return f"ampere_bf16_s16816gemm_bf16_{tile}_ldg8_f2f_stages_64x3_{layout[:2].lower()}"
    tile = "128x256_64x4_1x2_h_bz_coopA" if is_wide else "192x192_64x4_2x1_v_bz_coopB"
    return f"nvjet_tst_{tile}{'_bias' if layout == 'TNN' else ''}_{layout}"


def attention(gpu: Gpu, shape: tuple[int, ...], *, products: int, part: str) -> Kernel:
    """Causal attention over ``[batch, heads, length, width]``: so many products of half a square each."""
    batch, heads, length, width = shape
    tensor_bytes = 2.0 * batch * heads * length * width
    if gpu.vendor == "amd":
        name = {"forward": "attn_fwd", "backward": "bwd_kernel_dk_dv"}[part]
    elif part == "forward":
        flags = "false, true, false, false, true, true, false, false"
        name = f"void {FLASH}::flash_fwd_kernel<{FLASH_FORWARD_TRAITS}, {flags}>({FLASH}::Flash_fwd_params)"
    else:
        flags = "false, true, false, false, true, true, false"
        loop = f"{FLASH}::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel"
        name = f"void {loop}<{FLASH_BACKWARD_TRAITS}, {flags}>({FLASH}::Flash_bwd_params)"
    return Kernel(
        name=name,
        flops=products * 2.0 * batch * heads * length * (length + 1) / 2 * width,
        bytes_moved=(4 if part == "forward" else 8) * tensor_bytes,
        precision="bf16",
        grid=(-(-length // 128), batch, heads),
        block=(128 if part == "forward" else 256, 1, 1),
        registers=255,
        shared=49152 if part == "forward" else 147456,
    )


def concatenation(output: Tensor) -> Kernel:
    """``aten::cat`` along the last dimension of aligned bf16 tensors."""
    opaque, internal = f"{ANON}::OpaqueType<2u>", f"{ANON}::"
    metadata = f"{internal}CatArrInputTensorMetadata<{opaque}, unsigned int, 128, 1>"
    name = f"{internal}CatArrayBatchedCopy_aligned16_contig<{opaque}, unsigned int, 3, 128, 1>"
    sizes = f"{internal}TensorSizeStride<unsigned int, 4u>"
    return Kernel(
        name=f"void {name}({opaque}*, {metadata}, {sizes}, int, unsigned int)",
        flops=0.0,
        bytes_moved=2.0 * output.bytes,
        grid=(264, 3, 1),
        block=(512, 1, 1),
    )


def flash_helper(part: str, output: Tensor) -> Kernel:
    """The two small kernels round the backward loop: ``dot_do_o`` before it, ``convert_dq`` after."""
    flag = "true, " if part == "dot_do_o" else ""
    name = f"void {FLASH}::flash_bwd_{part}_kernel<{flag}{FLASH_BACKWARD_TRAITS} >({FLASH}::Flash_bwd_params)"
    return Kernel(
        name=name,
        flops=2.0 * output.count,
        bytes_moved=2.0 * output.bytes,
        grid=(max(1, output.count // 8192), 1, 1),
        block=(256, 1, 1),
        registers=64,
        is_extra=True,
    )


def row_kernel(kind: str, rows: int, width: int, bytes_moved: float) -> Kernel:
    """A kernel with one block a row: normalisation, softmax, cross entropy, their gradients, gathers."""
    return Kernel(
        name=f"void {ANON}::{ROW_KERNELS[kind]}",
        flops=float(rows * width * 8),
        bytes_moved=bytes_moved,
        grid=(rows if kind != "nll_loss" else 1, 1, 1),
        block=(32, 4, 1),
        registers=34,
        shared=24,
        is_extra=kind == "norm_grad_weight",
    )


def sort_pass(part: str, keys: int) -> Kernel:
    """One pass of the radix sort behind an embedding's gradient."""
    policy = "at_cuda_detail::cub::DeviceRadixSortPolicy<long, long, unsigned long long>::Policy900"
    tail = "long, unsigned long long" if part == "Histogram" else "long, long, unsigned long long, int, int"
    name = f"void at_cuda_detail::cub::DeviceRadixSort{part}Kernel<{policy}, false, {tail}>"
    return Kernel(name=name, flops=0.0, bytes_moved=32.0 * keys, grid=(max(1, keys // 4096), 1, 1), block=(256, 1, 1))


FOREACH_FUNCTORS = {
    "_foreach_mul_": (1, f"BinaryOpScalarFunctor<{BF16}, 1, 1, 0>", "std::multiplies<float>, float"),
    "_foreach_add_": (1, f"BinaryOpScalarFunctor<{BF16}, 1, 1, 0>", "std::plus<float>, float"),
    "_foreach_lerp_": (
        2,
        f"TernaryOpScalarFunctor<{BF16}, 2, 2, 0>",
        "at::native::LerpFunctor<float>, float",
    ),
    "_foreach_addcmul_": (3, f"PointwiseOpScalarFunctor<{BF16}, 3, 3, 0>", "std::multiplies<float>, float"),
    "_foreach_sqrt": (2, f"UnaryOpFunctor<{BF16}, 2, 1, 1>", "at::native::Sqrt<float>"),
    "_foreach_div_": (1, f"BinaryOpScalarListFunctor<{BF16}, 1, 1, 0>", "std::divides<float>"),
    "_foreach_addcdiv_": (3, f"PointwiseOpScalarListFunctor<{BF16}, 3, 3, 0>", "std::divides<float>"),
}
"""foreach operator -> tensor lists it walks, functor, and the functor's arguments."""


def foreach(op: str, elements: int) -> list[Kernel]:
    """The launches of one foreach operator over ``elements`` bf16 elements in all."""
    lists, functor, arguments = FOREACH_FUNCTORS[op]
    metadata = f"{ANON}::TensorListMetadata<{lists}>"
    if "ScalarListFunctor" in functor:
        metadata = f"{ANON}::TensorListScalarListMetadata<float, {lists}>"
    body = f"{metadata}, {ANON}::{functor}, {arguments}"
    kernels = []
    blocks = -(-elements // CHUNK_ELEMENTS)
    for first in range(0, blocks, BLOCKS_A_LAUNCH):
        count = min(BLOCKS_A_LAUNCH, blocks - first)
        here = min(CHUNK_ELEMENTS * count, elements - first * CHUNK_ELEMENTS)
        kernels.append(
            Kernel(
                name=f"void {ANON}::multi_tensor_apply_kernel<{body}>({body})",
                flops=2.0 * here,
                bytes_moved=2.0 * here * (lists + (0 if op == "_foreach_sqrt" else 1)),
                grid=(count, 1, 1),
                block=(512, 1, 1),
                registers=40,
            )
        )
    return kernels
