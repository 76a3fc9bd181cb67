"""State-space layers: causal convolution along time, selective scan, Mamba-2's chunked scan.

Causal convolution works on vectors, a depthwise filter of width w: 2·B·D·L·w FLOPs, with silu 4 more an element.
"""

from __future__ import annotations

from .op import Op
from .parts import bf16, dtype_of, f32, fresh, require, size
from .registry import Cost, Example, categorise, op_model


@op_model(
    "DaoAILab::_causal_conv1d_fwd_cpp",
    "CausalConv1dFn",
    category="ssm",
    examples=(
        Example(
            args=(bf16(2, 3, 8), bf16(3, 4), bf16(3)),
            flops=384,
            bytes_read=126,
            bytes_written=96,
            why="2*2*3*8*4; reads 48*2 + 12*2 + 3*2; writes 48*2",
        ),
    ),
)
def causal_conv1d(op: Op) -> Cost:
    """(x ``[B, D, L]``, weight ``[D, w]``, bias, …): the activation is a scalar argument and not counted."""
    x, weight, bias = op.tensor(0), op.tensor(1), op.tensor_or_none(2)
    require(len(x.shape) == 3 and len(weight.shape) == 2 and weight.shape[0] == x.shape[1])
    return Cost(
        flops=2 * x.numel * weight.shape[1],
        bytes_read=size(x, weight, bias),
        bytes_written=fresh(x),
        precision=dtype_of(x),
    )


@op_model(
    "DaoAILab::_causal_conv1d_bwd_cpp",
    category="ssm",
    examples=(
        Example(
            args=(bf16(2, 3, 8), bf16(3, 4), bf16(3), bf16(2, 3, 8)),
            flops=768,
            bytes_read=222,
            bytes_written=126,
            why="dX and dW, 2*384; reads x, dY of 96, weight 24, bias 6; writes dX 96, dW 24, db 6",
        ),
    ),
)
def causal_conv1d_backward(op: Op) -> Cost:
    """(x, weight, bias, dY, …): both gradients, each the forward pass's work."""
    x, weight, bias, dy = op.tensor(0), op.tensor(1), op.tensor_or_none(2), op.tensor(3)
    require(len(weight.shape) == 2)
    return Cost(
        flops=4 * x.numel * weight.shape[1],
        bytes_read=size(x, weight, bias, dy),
        bytes_written=fresh(x) + fresh(weight) + (fresh(bias) if bias else 0),
        precision=dtype_of(x),
    )


@op_model(
    "SelectiveScanFn",
    "selective_scan_cuda::fwd",
    category="ssm",
    examples=(
        Example(
            args=(bf16(2, 3, 8), bf16(2, 3, 8), f32(3, 4), bf16(2, 4, 8), bf16(2, 4, 8)),
            flops=1776,
            bytes_read=496,
            bytes_written=96,
            why="9 on each of 2*3*8*4 states and 1 on 48 results: 1728 + 48; reads 2*96 + 48 + 2*128; writes 96",
        ),
    ),
)
def selective_scan(op: Op) -> Cost:
    """(u ``[B, D, L]``, delta, A ``[D, N]``, B, C, …).

    9 operations for each of B·D·L·N states (the published count of the reference implementation), 1 a result for the
    skip connection.
    """
    u, delta, a = op.tensor(0), op.tensor(1), op.tensor(2)
    require(len(u.shape) == 3 and len(a.shape) == 2 and a.shape[0] == u.shape[1])
    return Cost(
        flops=9 * u.numel * a.shape[1] + u.numel,
        bytes_read=size(u, delta, a, op.tensor_or_none(3), op.tensor_or_none(4)),
        bytes_written=fresh(u),
        precision=dtype_of(u),
    )


@op_model(
    "mamba_ssm::selective_state_update",
    category="ssm",
    examples=(
        Example(
            args=(f32(2, 3, 4), bf16(2, 3), bf16(2, 3), f32(3, 4), bf16(2, 4), bf16(2, 4)),
            flops=144,
            bytes_read=200,
            bytes_written=108,
            why="6 on each of 24 states; reads state 96, x and dt of 12, A 48, B and C of 16; writes state 96 and 12",
        ),
    ),
)
def state_update(op: Op) -> Cost:
    """(state, x, dt, A, B, C, …): one token; decay, input, sum and output on each state."""
    state, x = op.tensor(0), op.tensor(1)
    return Cost(
        flops=6 * state.numel,
        bytes_read=size(*(op.tensor_or_none(i) for i in range(6))),
        bytes_written=size(state) + fresh(x),
        precision=dtype_of(state),
    )


categorise(
    "ssm",
    "MambaSplitConv1dScanCombinedFn", "MambaSplitConv1dScanCombinedFnBackward", "MambaChunkScanCombinedFn",
    "vllm::mamba_mixer", "vllm::mamba_mixer2", "vllm::gdn_attention_core", "vllm::linear_attention",
    "aiter::linear_attention_with_output_base", "CausalConv1dFnBackward", "SelectiveScanFnBackward",
    patterns=(r"(?i)(mamba|selective_scan|causal_conv1d|ssd_chunk|gated_delta)",),
    module=__name__,
)  # fmt: skip
