"""Mixture-of-experts layers: M tokens, K hidden, N intermediate, E experts, k of them a token.

FLOPs 2·M·k·K·(gate and up widths) + 2·M·k·N·K. Weights of an expert are read if a token reaches it; with uniform
routing E·(1 - (1 - k/E)^M) experts are expected to be. Which experts tokens chose is data, so a note says that this
expectation was used.
"""

from __future__ import annotations

import math

from .op import NoCostError, Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, i32, itemsize, require, size, u8
from .registry import Cost, Example, categorise, op_model

EXPECTED_EXPERTS = "estimate: experts reached by uniform routing, E*(1 - (1 - k/E)^M)"


def active_experts(experts: int, top_k: int, tokens: int) -> float:
    """Experts expected to be reached by ``tokens`` that choose ``top_k`` each, uniformly."""
    require(experts > 0 and 0 <= top_k <= experts)
    return experts * (1.0 - (1.0 - top_k / experts) ** tokens)


def _values_per_byte_row(hidden: int, stored: int) -> int:
    """How many values one stored element of a weight row holds."""
    require(stored > 0 and hidden % stored == 0 and hidden // stored in {1, 2, 8})
    return hidden // stored


def fused_experts(x: Tensor, w1: Tensor, w2: Tensor, top_k: int) -> Cost:
    """Both products of a layer with ``w1 [E, N or 2N, K]`` and ``w2 [E, K, N]``, packed along the last axis or not."""
    tokens, hidden = math.prod(x.shape[:-1]), x.shape[-1]
    experts, first_width, stored = w1.shape
    pack = _values_per_byte_row(hidden, stored)
    require(len(w2.shape) == 3 and w2.shape[0] == experts and w2.shape[1] == hidden)
    inner = w2.shape[2] * pack
    require(first_width in {inner, 2 * inner})
    share = active_experts(experts, top_k, tokens) / experts
    return Cost(
        flops=2 * tokens * top_k * hidden * first_width + 2 * tokens * top_k * inner * hidden,
        bytes_read=size(x) + round(share * size(w1, w2)),
        bytes_written=fresh(x),
        unit="matrix",
        precision=dtype_of(w1) if itemsize(dtype_of(w1)) == 1 and pack == 1 else dtype_of(x),
        notes=(EXPECTED_EXPERTS,),
    )


_X, _W1, _W2 = bf16(4, 8), bf16(2, 12, 8), bf16(2, 8, 6)
_FUSED_WHY = (
    "4 tokens, top 1 of 2: 2*4*8*12 + 2*4*6*8; reads 32*2 and (192 + 96)*2 * (1 - (1/2)^4) = 540 of the weights, and "
    "writes 32*2"
)


@op_model(
    "vllm::fused_experts", "vllm::inplace_fused_experts", "vllm::outplace_fused_experts",
    "sglang::inplace_fused_experts", "sglang::outplace_fused_experts", "vllm::rocm_aiter_fused_moe",
    "aiter::fused_moe_",
    category="moe",
    examples=(
        Example(
            args=(_X, _W1, _W2, f32(4, 1), i32(4, 1)),
            flops=1152,
            bytes_read=636,
            bytes_written=64,
            why=_FUSED_WHY + "; router weights and ids 16 + 16",
        ),
    ),
)  # fmt: skip
def experts_with_ids(op: Op) -> Cost:
    """(x, w1, w2, router weights, expert ids ``[M, k]``, …)."""
    weights, ids = op.tensor(3), op.tensor(4)
    require(len(ids.shape) == 2)
    cost = fused_experts(op.tensor(0), op.tensor(1), op.tensor(2), ids.shape[1])
    return Cost(
        flops=cost.flops,
        bytes_read=cost.bytes_read + size(weights, ids),
        bytes_written=cost.bytes_written,
        unit="matrix",
        precision=cost.precision,
        notes=cost.notes,
    )


@op_model(
    "aiter::fmoe_g1u1", "aiter::fmoe_fp8_blockscale_g1u1", "aiter::fmoe",
    category="moe",
    examples=(
        Example(
            args=(_X, _X, _W1, _W2, i32(8), f32(8), i32(2), i32(1), "1"),
            flops=1152,
            bytes_read=604,
            bytes_written=64,
            why=_FUSED_WHY,
        ),
    ),
)  # fmt: skip
def aiter_fmoe(op: Op) -> Cost:
    """(out, x, w1, w2, sorted ids, sorted weights, sorted experts, count, top k, …)."""
    return fused_experts(op.tensor(1), op.tensor(2), op.tensor(3), op.integer(8))


@op_model(
    "aiter::ck_moe_stage1", "aiter::ck_moe_stage2", "aiter::moe_cktile2stages_gemm1_ck",
    "aiter::moe_cktile2stages_gemm2_ck",
    "vllm::moe_forward", "vllm::moe_forward_shared", "vllm::fused_moe", "trtllm::fused_moe",
    "trtllm::fp8_block_scale_moe_runner", "trtllm::fp4_block_scale_moe_runner", "sglang::moe_forward",
    "flashinfer::trtllm_fp8_block_scale_moe", "flashinfer::cutlass_fused_moe",
    category="moe",
    examples=(
        Example(
            args=(bf16(4, 8), bf16(4, 2), "model.layers.0.mlp.experts"),
            unmodelled="expert weights not among the arguments",
            why="the op names its layer; the weights' shapes are not recorded",
        ),
    ),
)  # fmt: skip
def hidden_weights(_op: Op) -> Cost:
    """None: the weights, or how many experts a token has, are not among the arguments."""
    raise NoCostError("expert weights not among the arguments")


@op_model(
    "sglang_profiler::fused_moe_triton_kernels_invoke_fused_moe_kernel",
    category="moe",
    examples=(
        Example(
            args=(bf16(4, 8), bf16(2, 12, 8), None, bf16(4, 1, 12)),
            flops=768,
            bytes_read=424,
            bytes_written=96,
            why="4 rows, top 1 of 2: 2*4*12*8; reads 32*2 and 192*2 * (1 - (1/2)^4) = 360; writes 48*2",
        ),
    ),
)
def one_stage(op: Op) -> Cost:
    """(x ``[rows, K]``, weights ``[E, N, K]``, …, output ``[M, k, N]`` among the rest)."""
    x, w = op.tensor(0), op.tensor(1)
    experts, width, stored = w.shape
    outputs = [t for t in op.tensors()[2:] if len(t.shape) == 3 and t.shape[2] == width]
    require(bool(outputs))
    tokens, top_k, _ = outputs[0].shape
    hidden = x.shape[-1]
    _values_per_byte_row(hidden, stored)
    share = active_experts(experts, top_k, tokens) / experts
    return Cost(
        flops=2 * tokens * top_k * width * hidden,
        bytes_read=size(x) + round(share * size(w)),
        bytes_written=fresh(outputs[0]),
        unit="matrix",
        precision=dtype_of(w) if dtype_of(w) != "uint8" else dtype_of(x),
        notes=(EXPECTED_EXPERTS,),
    )


@op_model(
    "_moe_C::topk_softmax", "sgl_kernel::topk_softmax", "aiter::topk_softmax", "vllm::topk_softmax",
    category="moe",
    examples=(
        Example(
            args=(f32(4, 2), i32(4, 2), i32(4, 2), bf16(4, 8)),
            flops=160,
            bytes_read=64,
            bytes_written=64,
            why="softmax, 5 on each of 4*8; reads 32*2; writes weights and ids, 8*4 each",
        ),
    ),
)  # fmt: skip
def topk_softmax(op: Op) -> Cost:
    """(weights out, ids out, …, router logits last of the first four): softmax and selection."""
    weights, ids = op.tensor(0), op.tensor(1)
    logits = max((t for t in op.tensors()[2:4]), key=lambda t: t.numel)
    return Cost(
        flops=5 * logits.numel,
        bytes_read=size(logits),
        bytes_written=size(weights, ids),
        precision=dtype_of(logits),
    )


@op_model(
    "_moe_C::moe_sum",
    "aiter::moe_sum",
    "sgl_kernel::moe_sum_reduce",
    category="moe",
    examples=(
        Example(
            args=(bf16(4, 2, 8), bf16(4, 8)),
            flops=64,
            bytes_read=128,
            bytes_written=64,
            why="one add on each of 64; reads 64*2; writes 32*2",
        ),
    ),
)
def moe_sum(op: Op) -> Cost:
    """(x ``[M, k, K]``, output ``[M, K]``)."""
    x, out = op.tensor(0), op.tensor(1)
    return Cost(flops=x.numel, bytes_read=size(x), bytes_written=size(out), precision=dtype_of(x))


@op_model(
    "MoEDispatch",
    "MoECombine",
    "_PermuteMaskMap",
    "TokenPermuteMaskMap",
    category="moe",
    examples=(
        Example(
            args=(bf16(4, 8), u8(4, 2)),
            bytes_read=64,
            bytes_written=64,
            why="each token's 8*2 bytes moved once: a lower bound, since copies per expert are data",
        ),
    ),
)
def permute(op: Op) -> Cost:
    """Tokens in the order of their experts: at least each once."""
    x = op.tensor(0)
    return Cost(
        flops=0,
        bytes_read=size(x),
        bytes_written=fresh(x),
        precision=dtype_of(x),
        notes=("lower bound: how many experts a token goes to is data",),
    )


categorise(
    "moe",
    "_moe_C::moe_align_block_size", "aiter::moe_align_block_size", "sgl_kernel::moe_align_block_size",
    "aiter::biased_grouped_topk_hip", "aiter::grouped_topk", "aiter::moe_fused_gate", "aiter::topk_sigmoid",
    "aiter::topk_softplus", "aiter::moe_sorting_fwd", "aiter::moe_sorting_opus_fwd", "aiter::mxfp4_moe_sort_hip",
    patterns=(r"(?i)(^|[:_])f?moe[_A-Z]", r"(?i)expert", r"(?i)grouped_topk"),
    module=__name__,
)  # fmt: skip
