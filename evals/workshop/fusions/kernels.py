"""Names of kernels as PyTorch, vendor libraries and generators give them."""

from __future__ import annotations

from evals.workshop.fusions.tensors import CPP, Tensor

NATIVE = "at::native::"
_BINARY = {
    "add": "at::native::CUDAFunctor_add<{t}>",
    "sub": "at::native::CUDAFunctor_add<{t}>",
    "mul": "at::native::BinaryFunctor<{t}, {t}, {t}, at::native::binary_internal::MulFunctor<float> >",
    "div": "at::native::BinaryFunctor<{t}, {t}, {t}, at::native::binary_internal::DivFunctor<float> >",
}
_SCALAR = {
    "add": "at::native::CUDAFunctorOnSelf_add<{t}>",
    "sub": "at::native::CUDAFunctorOnSelf_add<{t}>",
    "rsub": "at::native::CUDAFunctorOnSelf_add<{t}>",
    "mul": "at::native::AUnaryFunctor<{t}, {t}, {t}, at::native::binary_internal::MulFunctor<float> >",
    "div": "at::native::BUnaryFunctor<{t}, {t}, {t}, at::native::binary_internal::MulFunctor<float> >",
}
_LAMBDA = "(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() const::{lambda("
_SPECIAL = {
    "silu": "(anonymous namespace)::silu_kernel",
    "gelu": "GeluCUDAKernelImpl",
    "pow": "(anonymous namespace)::pow_tensor_scalar_kernel_impl<{t}, {t}>",
    "relu": "(anonymous namespace)::launch_clamp_scalar",
    "clamp": "(anonymous namespace)::launch_clamp_scalar",
    "masked_fill": "(anonymous namespace)::masked_fill_kernel",
    "where": "(anonymous namespace)::where_kernel_impl",
    "addcmul": "addcmul_cuda_kernel",
    "addcdiv": "addcdiv_cuda_kernel",
    "lerp": "(anonymous namespace)::lerp_scalar_kernel",
    "softplus": "(anonymous namespace)::softplus_kernel",
    "softmax_backward": "(anonymous namespace)::softmax_backward",
}
_REDUCTIONS = {
    "mean": "at::native::MeanOps<{t}, float, float, {t}>",
    "sum": "at::native::func_wrapper_t<{t}, at::native::sum_functor<{t}, float, {t}>::operator()"
    "(at::TensorIterator&)::{{lambda(float, float)#1}}>",
    "amax": "at::native::func_wrapper_t<{t}, at::native::MaxNanFunctor<{t}> >",
    "amin": "at::native::func_wrapper_t<{t}, at::native::MinNanFunctor<{t}> >",
    "var": "at::native::WelfordOps<{t}, float, int, thrust::pair<{t}, {t}> >",
    "std": "at::native::WelfordOps<{t}, float, int, thrust::pair<{t}, {t}> >",
    "norm": "at::native::NormTwoOps<{t}, float, {t}>",
}


def pointwise(word: str, out: Tensor, operands: int, *, scalar: bool = False, dense: bool = True) -> str:
    """An elementwise kernel: vectorised where everything is dense, else with strides."""
    t = CPP[out.dtype]
    named = (_SCALAR if scalar else _BINARY).get(word)
    if named is None:
        head = _SPECIAL.get(word, f"{word}_kernel_cuda")
        named = f"{NATIVE}{head}".replace("{t}", t) + f"{_LAMBDA}{t})#1}}"
    functor = named.replace("{t}", t)
    if dense:
        array = f"std::array<char*, {operands + 1}ul>"
        return f"void {NATIVE}vectorized_elementwise_kernel<4, {functor}, {array} >(int, {functor}, {array})"
    return (
        f"void {NATIVE}elementwise_kernel<128, 4, {NATIVE}gpu_kernel_impl_nocast<{functor} >(at::TensorIteratorBase&, "
        f"{functor} const&)::{{lambda(int)#1}}>(int, {NATIVE}gpu_kernel_impl_nocast<{functor} >)"
    )


def copy(source: Tensor, out: Tensor) -> str:
    """A copy, dense or not, of one type or between two."""
    if out.dtype in ("bf16", "f16") and source.dtype == "f32" and source.is_dense:
        name = {"bf16": "bfloat16_copy_kernel_cuda", "f16": "float16_copy_kernel_cuda"}[out.dtype]
        functor = f"{NATIVE}{name}(at::TensorIteratorBase&)::{{lambda(float)#1}}"
    else:
        functor = f"{NATIVE}direct_copy_kernel_cuda{_LAMBDA}{CPP[out.dtype]})#1}}"
    if source.dtype != out.dtype:
        return (
            f"void {NATIVE}unrolled_elementwise_kernel<{functor}, std::array<char*, 2ul>, TrivialOffsetCalculator<1, "
            f"unsigned int>, {NATIVE}memory::LoadWithCast<1>, {NATIVE}memory::StoreWithCast<1> >(int, {functor})"
        )
    return (
        f"void {NATIVE}elementwise_kernel<128, 4, {NATIVE}gpu_kernel_impl_nocast<{functor}>(at::TensorIteratorBase&)>"
    )


def reduction(word: str, x: Tensor) -> str:
    """A reduction."""
    ops = _REDUCTIONS[word].replace("{t}", CPP[x.dtype]).replace("{{", "{").replace("}}", "}")
    op = f"{NATIVE}ReduceOp<{CPP[x.dtype]}, {ops}, unsigned int, {CPP[x.dtype]}, 4, 4>"
    return f"void {NATIVE}reduce_kernel<512, 1, {op} >({op})"


def cat(out: Tensor) -> str:
    """A concatenation."""
    width = {"f32": 4, "bf16": 2, "f16": 2}.get(out.dtype, 8)
    opaque = f"{NATIVE}(anonymous namespace)::OpaqueType<{width}u>"
    return f"void {NATIVE}(anonymous namespace)::CatArrayBatchedCopy<{opaque}, unsigned int, 4, 64, 64>({opaque}*)"


def product(vendor: str, dtype: str) -> str:
    """A matrix product of the vendor's library."""
    if vendor == "amd":
        kind = {"bf16": "BBS_BH", "f16": "HHS_BH", "f32": "S_B"}[dtype]
        return (
            f"Cijk_Alik_Bljk_{kind}_Bias_HA_S_SAV_UserArgs_MT256x128x64_MI16x16x1_SN_LDSB1_AFC1_AFEM1_AFEM1_ASEM1_CLR1"
            "_CADS0_DTVA0_DTVB0_EPS0_FDSI0_GRPM1_GRVWA8_GRVWB8_GSUAMB_GLS0_ISA942"
        )
    if dtype == "f32":
        return (
            "void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x256_16x3_tn_align4>(cutlass_80_tensorop_s1688gemm)"
        )
    letter = {"bf16": "bf16bf16_bf16f32", "f16": "f16f16_f16f32"}[dtype]
    tile = "tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas"
    return f"sm90_xmma_gemm_{letter}_f32_tn_n_{tile}"


def softmax(x: Tensor, out: Tensor) -> str:
    """A softmax over rows that a warp holds, or longer ones."""
    source, made = CPP[x.dtype], CPP[out.dtype]
    if x.shape[-1] <= 1024:
        return f"void (anonymous namespace)::softmax_warp_forward<{source}, {made}, float, 10, false, false>({made}*)"
    epilogue = f"{NATIVE}(anonymous namespace)::SoftMaxForwardEpilogue"
    return f"void {NATIVE}(anonymous namespace)::cunn_SoftMaxForward<8, {source}, float, {made}, {epilogue}>({made}*)"


def layer_norm(x: Tensor) -> str:
    """PyTorch's own LayerNorm."""
    t = CPP[x.dtype]
    return f"void {NATIVE}(anonymous namespace)::vectorized_layer_norm_kernel<{t}, float>(int, float, {t} const*)"


def dropout(x: Tensor) -> str:
    """PyTorch's dropout with its mask."""
    t = CPP[x.dtype]
    return f"void {NATIVE}(anonymous namespace)::fused_dropout_kernel_vec<{t}, float, unsigned int, 1, 4, bool>({t})"


def multi_tensor(functor: str) -> str:
    """A multi-tensor launch of an optimizer or a ``_foreach`` op."""
    return (
        f"void {NATIVE}(anonymous namespace)::multi_tensor_apply_kernel<{NATIVE}(anonymous namespace)::"
        f"TensorListMetadata<2>, {NATIVE}(anonymous namespace)::{functor}>"
    )


COLLECTIVE = {
    "nvidia": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
    "amd": "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
}
