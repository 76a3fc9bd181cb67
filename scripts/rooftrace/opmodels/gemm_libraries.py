"""Matrix products of libraries beside PyTorch: where each op holds operands, result, scales and bias.

A row says how to read the arguments; the formula is one: 2·M·N·K, all operands once. ``[n,k]`` weights are the rule
here (``nt``). Operands whose K differs are ``Unmodelled`` rather than guessed, except that weights may hold two 4-bit
values an element.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from .gemm import PACKED_PAIR, operand_precision
from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fp8, i8, itemsize, require, size, u8
from .registry import Cost, Example, op_model

if TYPE_CHECKING:
    from collections.abc import Callable


class Layout(NamedTuple):
    """Argument positions of a library GEMM."""

    a: int = 0
    b: int = 1
    nt: bool = True  # b is [n,k]; else [k,n]
    out: int | None = None  # position of the output tensor
    out_dtype: int | str | None = None  # position of a dtype argument, or a dtype; `None`: a's, or bf16 for 8-bit a
    ignore: tuple[int, ...] = ()  # workspaces and the like
    packed: bool = False  # both operands hold two 4-bit values an element
    computed_in: str | None = None  # dtype of the ceiling, where the op quantises its input


def gemm_by_layout(op: Op, layout: Layout) -> Cost:
    """Cost of a GEMM whose arguments stand as ``layout`` says."""
    a, b = op.tensor(layout.a), op.tensor(layout.b)
    require(len(a.shape) >= 2 and len(b.shape) >= 2)
    rows, k = math.prod(a.shape[:-1]), a.shape[-1]
    n, k_weight = b.shape[-2:] if layout.nt else (b.shape[-1], b.shape[-2])
    pack = _values_per_element(a, b, k, k_weight, layout)
    # A batched weight needs the batch of `a`, so that rows times n counts each batch's own product once.
    require(len(b.shape) == 2 or a.shape[:-2] == b.shape[:-2])
    roles = {layout.a, layout.b, layout.out, *layout.ignore}
    small = sum(size(arg) for i, arg in enumerate(op.args) if isinstance(arg, Tensor) and i not in roles)
    return Cost(
        flops=2 * rows * n * k * pack,
        bytes_read=size(a, b) + small,
        bytes_written=rows * n * itemsize(_output_dtype(op, layout, a)),
        unit="matrix",
        precision=layout.computed_in or (PACKED_PAIR if pack == 2 else _precision(a, b, k, k_weight)),
    )


def _values_per_element(a: Tensor, b: Tensor, k: int, k_weight: int, layout: Layout) -> int:
    """2 where both operands are packed pairs, which doubles K; stops when K does not agree."""
    both = layout.packed or (a.dtype == PACKED_PAIR and b.dtype == PACKED_PAIR)
    half_weight = not both and b.dtype in {"uint8", "int8", PACKED_PAIR} and k == 2 * k_weight
    require(k == k_weight or half_weight)
    return 2 if both else 1


def _precision(a: Tensor, b: Tensor, k: int, k_weight: int) -> str:
    return dtype_of(a) if k != k_weight else operand_precision(dtype_of(a), dtype_of(b))


def _output_dtype(op: Op, layout: Layout, a: Tensor) -> str:
    if layout.out is not None and op.has_tensor(layout.out):
        return dtype_of(op.tensor(layout.out))
    if isinstance(layout.out_dtype, str):
        return layout.out_dtype
    named = op.dtype(layout.out_dtype) if layout.out_dtype is not None else None
    return named or (dtype_of(a) if itemsize(dtype_of(a)) > 1 else "bfloat16")


_NT = Layout()
# Positions from the schemas that the libraries register (vLLM csrc/torch_bindings.cpp, SGLang sgl-kernel
# common_extension.cc, TensorRT-LLM cpp/tensorrt_llm/thop, AITER aiter/ops, FBGEMM gen_ai, bitsandbytes, Primus-Turbo).
LAYOUTS: dict[str, Layout] = {
    "vllm::rocm_unquantized_gemm": _NT,
    "vllm::gemm_with_dynamic_quant": Layout(computed_in=PACKED_PAIR),
    "vllm::rocm_aiter_gemm_w8a8": _NT,
    "vllm::rocm_aiter_gemm_w8a8_blockscale": _NT,
    "vllm::rocm_aiter_triton_gemm_a8w8_blockscale": _NT,
    "vllm::_rocm_aiter_preshuffled_per_token_w8a8_gemm": _NT,
    "vllm::w8a8_triton_block_scaled_mm_func": _NT,
    "vllm::w8a8_block_fp8_matmul_func": _NT,
    "vllm::padded_cutlass": _NT,
    "vllm::apply_w8a8_block_fp8_linear": Layout(computed_in="float8_e4m3fn"),
    "_C::cutlass_scaled_mm": Layout(a=1, b=2, nt=False, out=0),
    "_C::cutlass_scaled_mm_azp": Layout(a=1, b=2, nt=False, out=0),
    "_C::cutlass_scaled_fp4_mm": Layout(a=1, b=2, out=0, packed=True),
    "_rocm_C::LLMM1": Layout(a=1, b=0),
    "_rocm_C::wvSplitK": Layout(a=1, b=0),
    "_rocm_C::wvSplitKQ": Layout(a=1, b=0, out=2),
    "sgl_kernel::fp8_scaled_mm": Layout(nt=False, out_dtype=4),
    "sgl_kernel::int8_scaled_mm": Layout(nt=False, out_dtype=4),
    "sgl_kernel::fp8_blockwise_scaled_mm": Layout(nt=False, out_dtype=4),
    "sgl_kernel::bmm_fp8": Layout(nt=False, out=2, ignore=(5,)),
    "sgl_kernel::cutlass_scaled_fp4_mm": Layout(a=1, b=2, out=0, packed=True),
    "sgl_kernel::dsv3_fused_a_gemm": Layout(a=1, b=2, nt=False, out=0),
    "sgl_kernel::dsv3_router_gemm": Layout(a=1, b=2, out=0),
    "sglang::deep_gemm_fp8_fp8_bf16_nt": Layout(a=0, b=2, out=4),
    "sglang_profiler::fp8_utils_gemm_a8w8_blockscale": _NT,
    "sglang_profiler::gemm_a8w8_blockscale_gemm_a8w8_blockscale": _NT,
    "sglang_profiler::gemm_kernels_flydsl_hgemm": Layout(out_dtype=3),
    "trtllm::cublas_scaled_mm": Layout(nt=False, out_dtype=5),
    "trtllm::cublas_mm": Layout(nt=False, out_dtype=3),
    "trtllm::fp8_block_scaling_gemm": _NT,
    "trtllm::nvfp4_gemm": Layout(packed=True),
    "trtllm::fp4_gemm": Layout(packed=True),
    "trtllm::fp8_rowwise_gemm": _NT,
    "trtllm::dsv3_fused_a_gemm_op": Layout(nt=False),
    "trtllm::dsv3_router_gemm_op": Layout(nt=False),
    "aiter::gemm_a8w8_blockscale_ck": Layout(out=4),
    "aiter::gemm_a8w8_blockscale_cktile": Layout(out=4),
    "aiter::gemm_a8w8_blockscale_bpreshuffle_ck": Layout(out=4),
    "aiter::gemm_a8w8_blockscale_bpreshuffle_cktile": Layout(out=4),
    "aiter::gemm_a8w8_ck": Layout(out=4),
    "aiter::gemm_a8w8_bpreshuffle_ck": Layout(out=4),
    "aiter::gemm_a8w8_bpreshuffle": _NT,
    "aiter::flatmm_a8w8_blockscale_asm": Layout(out=4),
    "aiter::gfx950_a8w8_blockscale_asm": Layout(out=4),
    "aiter::_gemm_a8w8_blockscale_bpreshuffle_asm": Layout(out=2),
    "aiter::gemm_a16w16": _NT,
    "aiter::gemm_a16w16_atomic_": Layout(out=3),
    "aiter::_gemm_a16w16_asm": Layout(out=2),
    "aiter::gemm_afp4wfp4_": Layout(packed=True, out_dtype="bfloat16"),
    "aiter::batched_gemm_a16wfp4_": Layout(computed_in=PACKED_PAIR),
    "aiter::gemm_a4w4": Layout(packed=True, out_dtype="bfloat16"),
    "aiter::_gemm_a4w4_asm": Layout(packed=True, out=4, out_dtype="bfloat16"),
    "aiter::batched_gemm_a8w8": Layout(out=4),
    "fbgemm::f8f8bf16": Layout(out_dtype="bfloat16"),
    "fbgemm::f8f8bf16_rowwise": Layout(out_dtype="bfloat16"),
    "fbgemm::f8f8bf16_rowwise_batched": Layout(out_dtype="bfloat16"),
    "fbgemm::f8f8bf16_blockwise": Layout(out_dtype="bfloat16"),
    "fbgemm::f8f8bf16_tensorwise": Layout(out_dtype="bfloat16"),
    "fbgemm::f8i4bf16_rowwise": Layout(out_dtype="bfloat16"),
    "fbgemm::bf16i4bf16_rowwise": Layout(out_dtype="bfloat16"),
    "fbgemm::f4f4bf16": Layout(packed=True, out_dtype="bfloat16"),
    "fbgemm::i8i8bf16": Layout(out_dtype="bfloat16"),
    "bitsandbytes::int8_linear_matmul": Layout(out_dtype="int32"),
    "bitsandbytes::int8_scaled_mm": Layout(out_dtype=5),
    "deep_gemm::fp8_gemm_nt": Layout(a=0, b=2, out=4),
    "deep_gemm_cpp::fp8_gemm_nt": Layout(a=0, b=2, out=4),
    "cutlass::gemm": Layout(nt=False),
    "cutlass::scaled_mm": Layout(nt=False),
}


def _register(name: str, layout: Layout) -> None:
    @op_model(name, category="gemm", examples=(_example(layout),))
    def gemm(op: Op) -> Cost:
        """Cost of one library's GEMM."""
        return gemm_by_layout(op, layout)


def _example(layout: Layout) -> Example:
    """M=4, N=6, K=32 in the layout: stated sizes are literals, only the positions come from the row."""
    width = 16 if layout.packed else 32
    make: Callable[..., Tensor] = u8 if layout.packed else fp8
    args: list[Tensor | str | None] = [None] * 7
    args[layout.a] = make(4, width)
    args[layout.b] = make(6, width) if layout.nt else make(width, 6)
    out_bytes = 96 if layout.out_dtype == "int32" else 48
    if layout.out is not None:
        args[layout.out] = bf16(4, 6)
    elif isinstance(layout.out_dtype, int):
        args[layout.out_dtype] = "15"
    return Example(
        args=tuple(args),
        flops=1536,
        bytes_read=160 if layout.packed else 320,
        bytes_written=out_bytes,
        why="2*4*6*32; reads (4 + 6)*32 values of 1 byte, or half a byte each when packed; writes 24 of 2 (int32: 4)",
    )


for _name, _layout in LAYOUTS.items():
    _register(_name, _layout)


@op_model(
    "primus_turbo::hipblaslt_gemm_fp8",
    "primus_turbo_cpp_extension::hipblaslt_gemm_fp8",
    "primus_turbo::hipblaslt_gemm_fp4",
    "primus_turbo_cpp_extension::hipblaslt_gemm_fp4",
    category="gemm",
    examples=(
        *(
            Example(
                only=f"{library}::hipblaslt_gemm_fp8",
                args=(fp8(4, 32), f32(), fp8(6, 32), f32(), "15", "False", "True", "False"),
                flops=1536,
                bytes_read=328,
                bytes_written=48,
                why="2*4*6*32; reads 128 + 192 + two scales of 4; writes 24*2",
            )
            for library in ("primus_turbo", "primus_turbo_cpp_extension")
        ),
        *(
            Example(
                only=f"{library}::hipblaslt_gemm_fp4",
                args=(u8(4, 16), u8(4, 1), u8(6, 16), u8(6, 1), "15", "False", "True", "False"),
                flops=1536,
                bytes_read=170,
                bytes_written=48,
                why="packed K of 16 is 32: 2*4*6*32; reads 64 + 96 + scales 4 + 6; writes 24*2",
            )
            for library in ("primus_turbo", "primus_turbo_cpp_extension")
        ),
    ),
)
def hipblaslt_gemm(op: Op) -> Cost:
    """``op(a) @ op(b)`` with transpose flags at 5 and 6; a transposed result has the same cost."""
    a, b = op.tensor(0), op.tensor(2)
    require(len(a.shape) == 2 and len(b.shape) == 2)
    m, k = reversed(a.shape) if op.boolean(5) else a.shape
    n, k2 = b.shape if op.boolean(6) else reversed(b.shape)
    require(k == k2)
    pack = 2 if op.name.endswith("fp4") else 1
    return Cost(
        flops=2 * m * n * k * pack,
        bytes_read=size(a, op.tensor_or_none(1), b, op.tensor_or_none(3)),
        bytes_written=m * n * itemsize(op.dtype(4) or "bfloat16"),
        unit="matrix",
        precision=PACKED_PAIR if pack == 2 else operand_precision(dtype_of(a), dtype_of(b)),
    )


@op_model(
    "tex_ts::te_gemm_ts",
    category="gemm",
    examples=(
        Example(
            args=(
                fp8(6, 32), f32(1), None, None, "True", fp8(4, 32), f32(1), None, None, "False", bf16(4, 6),
            ),
            flops=1536,
            bytes_read=328,
            bytes_written=48,
            why="column-major a is the weight [6,32]: 2*4*6*32; reads 192 + 128 + two scales of 4; writes 24*2",
        ),
    ),
)  # fmt: skip
def te_gemm(op: Op) -> Cost:
    """Transformer Engine's ``b @ a`` in column-major words: transpose flags at 4 (a) and 9 (b), result at 10."""
    a, b, out = op.tensor(0), op.tensor(5), op.tensor(10)
    require(len(a.shape) == 2 and len(b.shape) == 2)
    n, k = a.shape if op.boolean(4) else reversed(a.shape)
    m, k2 = reversed(b.shape) if op.boolean(9) else b.shape
    require(k == k2)
    bias = op.tensor_or_none(14)
    return Cost(
        flops=2 * m * n * k,
        bytes_read=size(a, op.tensor_or_none(1), b, op.tensor_or_none(6)) + (size(bias) if bias and bias.numel else 0),
        bytes_written=size(out),
        unit="matrix",
        precision=operand_precision(dtype_of(a), dtype_of(b)),
    )


@op_model(
    "primus_turbo::grouped_gemm",
    "primus_turbo::grouped_gemm_impl",
    "primus_turbo_cpp_extension::grouped_gemm",
    "primus_turbo_cpp_extension::ck_grouped_gemm",
    category="gemm",
    examples=(
        Example(
            args=(bf16(8, 5), bf16(2, 5, 6)),
            flops=480,
            bytes_read=200,
            bytes_written=96,
            why="2*8*6*5; reads (40 + 60)*2; writes 48*2",
        ),
        Example(
            args=(fp8(8, 5), fp8(2, 6, 5)),
            flops=480,
            bytes_read=100,
            bytes_written=96,
            why="[n,k] weights of 8 bits give a bf16 result: 48*2",
        ),
    ),
)
def grouped_gemm(op: Op) -> Cost:
    """Rows ``[m,k]`` through ``[g,k,n]`` or ``[g,n,k]``, told apart by k; 8-bit operands give bf16."""
    x, w = op.tensor(0), op.tensor(1)
    m, k = x.shape
    groups, first, second = w.shape
    require(k in {first, second})
    n = second if first == k else first
    return Cost(
        flops=2 * m * n * k,
        bytes_read=size(x) + size(w) * min(groups, m) // max(groups, 1),
        bytes_written=m * n * (itemsize(dtype_of(x)) if itemsize(dtype_of(x)) > 1 else 2),
        unit="matrix",
        precision=operand_precision(dtype_of(x), dtype_of(w)),
    )


@op_model(
    *(f"_C::{name}" for name in ("gptq_marlin_gemm", "marlin_gemm", "awq_marlin_gemm", "fp8_marlin_gemm")),
    "_C::gptq_marlin_24_gemm",
    "_C::machete_mm",
    "vllm::gptq_marlin_gemm",
    "sgl_kernel::gptq_marlin_gemm",
    category="gemm",
    examples=(
        Example(
            args=(bf16(4, 32), None, i8(2, 48), bf16(1, 6), "4", "6", "32", "True"),
            flops=1536,
            bytes_read=364,
            bytes_written=48,
            why="sizes 4, 6, 32 are arguments: 2*4*6*32; reads 128*2 + 96 packed + 6*2 scales; writes 24*2",
        ),
    ),
)
def marlin_gemm(op: Op) -> Cost:
    """Weight-only quantised GEMM: m, n, k stand in the scalars, the packed weight's bytes in its tensor."""
    x = op.tensor(0)
    m, k = math.prod(x.shape[:-1]), x.shape[-1]
    texts = [arg if isinstance(arg, str) else "" for arg in op.args]
    found = [
        int(n) for first, n, last in zip(texts, texts[1:], texts[2:], strict=False)
        if first == str(m) and last == str(k) and n.isdigit()
    ]  # fmt: skip
    require(bool(found), "scalar arguments not recorded")
    read = sum(size(arg) for arg in op.args if isinstance(arg, Tensor))
    return Cost(
        flops=2 * m * found[0] * k,
        bytes_read=read,
        bytes_written=m * found[0] * itemsize(dtype_of(x)),
        unit="matrix",
        precision=dtype_of(x),
        notes=("a workspace among the arguments counts as read",),
    )
