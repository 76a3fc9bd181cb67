"""Facts in template arguments and in the names of PyTorch, FlashAttention, NCCL and Triton kernels."""

from __future__ import annotations

import re

from rooftrace.kernelnames.lazy import LazyPattern
from rooftrace.kernelnames.model import KernelFacts

# C++ spellings of the types that PyTorch's kernels are instantiated for.
_CPP_TYPES = {
    "float": "float32",
    "double": "float64",
    "c10::BFloat16": "bfloat16",
    "c10::Half": "float16",
    "__nv_bfloat16": "bfloat16",
    "__half": "float16",
    "__hip_bfloat16": "bfloat16",
    "cutlass::bfloat16_t": "bfloat16",
    "cutlass::half_t": "float16",
    "cutlass::float_e4m3_t": "float8_e4m3fn",
    "c10::Float8_e4m3fn": "float8_e4m3fn",
    "c10::Float8_e5m2": "float8_e5m2",
    "c10::Float8_e4m3fnuz": "float8_e4m3fnuz",
    "c10::complex<float>": "complex64",
    "c10::complex<double>": "complex128",
    "long": "int64",
    "int": "int32",
    "short": "int16",
    "signed char": "int8",
    "unsigned char": "uint8",
    "bool": "bool",
}
_CPP_TYPE = "|".join(re.escape(name) for name in sorted(_CPP_TYPES, key=lambda name: (-len(name), name)))
# First type argument of a kernel or functor, or first parameter of a lambda; a leading bool is a mask.
_FUNCTOR_TYPE = LazyPattern(
    r"(?:(?<!ArrayRef)(?<!optional)<|\{lambda\()(?:(?:\d+|true|false|at::native::Var), )*(?:bool, )?"
    rf"({_CPP_TYPE})[,>)]"
)
_VECTOR_WIDTH = LazyPattern(r"\bvectorized_(?:templated_)?elementwise_kernel<(\d+), ")
_WITHOUT_TYPE = (
    "OpaqueType<",
    "elementwise_kernel_with_index<",
    "gather_kernel<",
    "index_elementwise_kernel<",
)

_FLASH2 = LazyPattern(rf"kernel_traits<(\d+), (\d+), (\d+), \d+,.{{0,40}}?({_CPP_TYPE})")
_FLASH3 = LazyPattern(
    r"FlashAttn\w{3}Sm(?P<sm>\d+)<.{0,200}?cute::C<(?P<m>\d+)>, cute::C<(?P<n>\d+)>, "
    rf"cute::C<(?P<k>\d+)>\s?>, \d+, (?P<type>{_CPP_TYPE})"
)
_GEMV_TENSOR = LazyPattern(r"cublasGemvTensor(?:Strided)?Batched<(__nv_bfloat16|__half|float|double) const>")
_GEMM_SN = LazyPattern(r"\bgemmSN_([NT]{2})_kernel")
_MATMUL_OGS = LazyPattern(r"_matmul_ogs_[NT]+_\w+?_(\d+)x(\d+)x(\d+)x(\d+)(?:_|$)")

_NCCL_PARTS = LazyPattern(r"nccl(?:Symk?)?(?:Dev)?Kernel_([A-Za-z]+)(\w*)")
_COLLECTIVES = {
    "AllReduce": "all_reduce",
    "AllGather": "all_gather",
    "ReduceScatter": "reduce_scatter",
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "SendRecv": "send_recv",
    "AllToAll": "all_to_all",
}
_NCCL_TYPES = {
    "f32": "float32",
    "f16": "float16",
    "bf16": "bfloat16",
    "f64": "float64",
    "float": "float32",
    "half": "float16",
    "double": "float64",
    "bfloat16": "bfloat16",
    "u8": "uint8",
    "i8": "int8",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
}


def torch_native(plain: str) -> KernelFacts | None:
    """``at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, …``."""
    if not plain.startswith(("at::native::", "(anonymous namespace)::")):
        return None
    width = _VECTOR_WIDTH.search(plain)
    dtype = None
    if not any(marker in plain for marker in _WITHOUT_TYPE):
        dtype = _FUNCTOR_TYPE.search(plain)
    if width is None and dtype is None:
        return None
    return KernelFacts(vector_width=int(width[1]) if width else None, precision=_CPP_TYPES[dtype[1]] if dtype else None)


def flash_attention_2(plain: str) -> KernelFacts | None:
    """``…_kernel_traits<64, 128, 128, 4, …, cutlass::bfloat16_t``: head, rows of Q, rows of K, warps."""
    match = _FLASH2.search(plain)
    if match is None:
        return None
    head, rows_q, rows_k = (int(match[group]) for group in (1, 2, 3))
    return KernelFacts(tile=(rows_q, rows_k, head), precision=_CPP_TYPES[match[4]])


def flash_attention_3(plain: str) -> KernelFacts | None:
    """``FlashAttnFwdSm90<…cute::C<128>, cute::C<176>, cute::C<128>>, 128, cutlass::bfloat16_t, …``."""
    match = _FLASH3.search(plain)
    if match is None:
        return None
    return KernelFacts(
        tile=(int(match["m"]), int(match["n"]), int(match["k"])),
        precision=_CPP_TYPES[match["type"]],
        architecture=f"sm{match['sm']}",
    )


def cublas_tensor(plain: str) -> KernelFacts | None:
    """Kernels of cuBLAS for vectors and small matrices: the type of the first constant operand."""
    match = _GEMV_TENSOR.search(plain)
    if match is None:
        return None
    layout = _GEMM_SN.search(plain)
    return KernelFacts(precision=_CPP_TYPES[match[1]], layout=layout[1] if layout else None)


def cublas_split_k(plain: str) -> KernelFacts:
    """``splitKreduce_kernel<…>(cublasSplitKParams<…>)`` adds the parts of a split GEMM; no factor spelled."""
    del plain
    return KernelFacts(splits_k=True)


def matmul_ogs(plain: str) -> KernelFacts | None:
    """``_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1``: m x n x k x split-K of a grouped matmul.

    NB: operands of two precisions are multiplied in one that the name leaves open.
    """
    match = _MATMUL_OGS.search(plain)
    if match is None:
        return None
    m, n, k, factor = (int(match[group]) for group in (1, 2, 3, 4))
    return KernelFacts(tile=(m, n, k), split_k=factor, splits_k=factor > 1)


def nccl(plain: str) -> KernelFacts | None:
    """``ncclDevKernel_AllReduce_Sum_bf16_RING_LL``; ``Generic`` says nothing.

    Only a reduction has a type: for the others NCCL names the bytes it moves (``SendRecv … Sum_int8_t``).
    """
    match = _NCCL_PARTS.search(plain)
    if match is None or match[1] not in _COLLECTIVES:
        return None
    types = [_NCCL_TYPES[part] for part in match[2].split("_") if part in _NCCL_TYPES]
    reduces = "Reduce" in match[1]
    return KernelFacts(collective=_COLLECTIVES[match[1]], precision=types[0] if reduces and types else None)
