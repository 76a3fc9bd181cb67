"""Batch, layer, group and RMS normalisation of PyTorch, forward and backward.

Operations an element, forward: statistics 4 (sum; difference, square, sum; RMS 2: square, sum), normalise 2
(difference, product; RMS 1), weight 1, bias 1. Backward, input gradient: normalised input 2, two sums 3, combination 4
(RMS 1, 2, 3), weight 1; weight gradient 2; bias gradient 1. Statistics are one value a row (layer, RMS), a group or a
channel.
Compulsory traffic reads the input once, though a kernel may take two passes.
"""

from __future__ import annotations

import math

from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, itemsize, require, size
from .registry import Cost, Example, categorise, op_model


def norm_cost(flops_per_element: int, x: Tensor, read: int, written: int) -> Cost:
    """Cost of a normalisation of ``x``."""
    return Cost(flops=flops_per_element * x.numel, bytes_read=read, bytes_written=written, precision=dtype_of(x))


def normalised_rows(x: Tensor, normalised: tuple[int, ...]) -> int:
    """Rows that have statistics of their own: elements over those of the normalised shape."""
    width = math.prod(normalised)
    require(bool(normalised) and width > 0 and x.shape[len(x.shape) - len(normalised) :] == normalised)
    return x.numel // width


def _statistics_width(x: Tensor) -> int:
    """Bytes of a mean: 16-bit inputs accumulate in float32."""
    return max(itemsize(dtype_of(x)), 4)


_BN = (bf16(2, 3, 4), f32(3), f32(3), f32(3), f32(3))


@op_model(
    "aten::native_batch_norm", "aten::cudnn_batch_norm", "aten::miopen_batch_norm", "aten::_native_batch_norm_legit",
    category="normalization",
    examples=(
        Example(
            args=(*_BN, "True", "0.1", "1e-05"),
            flops=192,
            bytes_read=96,
            bytes_written=96,
            why="(4 + 2 + 2)*24; reads 24*2 and four of 3*4; writes 24*2, two running and two saved of 3*4",
        ),
        Example(
            args=(*_BN, "False", "0.1", "1e-05"),
            flops=96,
            bytes_read=96,
            bytes_written=48,
            why="evaluation has no statistics: (2 + 2)*24; writes the result alone",
        ),
        Example(
            args=(bf16(2, 3, 4), None, None, None, None, "True", "0.1", "1e-05"),
            flops=144,
            bytes_read=48,
            bytes_written=72,
            why="no affine, no running statistics: (4 + 2)*24; writes 48 and two saved of 3*4",
        ),
    ),
)  # fmt: skip
def batch_norm(op: Op) -> Cost:
    """(x, weight, bias, running mean, running variance, training, …); statistics are one a channel."""
    return _batch_norm(op)


def _batch_norm(op: Op) -> Cost:
    x = op.tensor(0)
    weight, bias, running = (
        op.tensor_or_none(1),
        op.tensor_or_none(2),
        (op.tensor_or_none(3), op.tensor_or_none(4)),
    )
    training = op.boolean(5)
    affine = (weight is not None) + (bias is not None)
    saved = 2 * x.shape[1] * _statistics_width(x) if training else 0
    updated = size(*running) if training else 0
    read = size(x, weight, bias, *running)
    return norm_cost((6 if training else 2) + affine, x, read, fresh(x) + saved + updated)


@op_model(
    "aten::batch_norm", "aten::_batch_norm_impl_index", "aten::instance_norm",
    category="normalization",
    claims_subtree=False,
    examples=(
        Example(
            args=(*_BN, "False", "0.1", "1e-05", "True"),
            flops=96,
            bytes_read=96,
            bytes_written=48,
            why="as native_batch_norm in evaluation; in instance_norm the flag says that input statistics are not used",
        ),
    ),
)  # fmt: skip
def batch_norm_wrapper(op: Op) -> Cost:
    """As the op below it."""
    return _batch_norm(op)


@op_model(
    "aten::_native_batch_norm_legit_no_training",
    category="normalization",
    examples=(
        Example(
            args=(*_BN, "0.1", "1e-05"),
            flops=96,
            bytes_read=96,
            bytes_written=48,
            why="(2 + 2)*24; reads 48 + 4*12; writes 48",
        ),
    ),
)
def batch_norm_evaluation(op: Op) -> Cost:
    """Batch norm with stored statistics."""
    x = op.tensor(0)
    affine = op.has_tensor(1) + op.has_tensor(2)
    return norm_cost(2 + affine, x, size(x, *(op.tensor_or_none(i) for i in range(1, 5))), fresh(x))


@op_model(
    "aten::native_batch_norm_backward",
    category="normalization",
    examples=(
        Example(
            args=(
                bf16(2, 3, 4), bf16(2, 3, 4), f32(3), f32(3), f32(3), f32(3), f32(3), "True", "1e-05",
                "[True, True, True]",
            ),
            flops=312,
            bytes_read=132,
            bytes_written=72,
            why="(9 + 1 + 2 + 1)*24; reads dY and x of 48, weight and saved statistics of 12; writes dX 48, dW, db 12",
        ),
        Example(
            args=(
                bf16(2, 3, 4), bf16(2, 3, 4), f32(3), f32(3), f32(3), None, None, "False", "1e-05",
                "[True, False, False]",
            ),
            flops=48,
            bytes_read=84,
            bytes_written=48,
            why="evaluation: dX = dY * weight * invstd, 2*24; reads dY 48, weight, mean and variance of 12, not x",
        ),
    ),
)  # fmt: skip
def batch_norm_backward(op: Op) -> Cost:
    """(dY, x, weight, running mean, running variance, saved mean, saved invstd, train, eps, mask)."""
    dy, x, weight = op.tensor(0), op.tensor(1), op.tensor_or_none(2)
    training = op.boolean(7)
    to_input, to_weight, to_bias = op.booleans(9, 3)
    statistics = (5, 6) if training else (3, 4)
    affine = 1 if weight is not None else 0
    per_element = to_input * ((9 if training else 1) + affine) + to_weight * (2 if training else 4) + to_bias
    needs_x = (training and to_input) or to_weight
    read = size(dy, x if needs_x else None, weight, *(op.tensor_or_none(i) for i in statistics))
    channels = x.shape[1] * _statistics_width(x)
    return norm_cost(per_element, x, read, to_input * fresh(x) + (to_weight + to_bias) * channels)


@op_model(
    "aten::cudnn_batch_norm_backward",
    "aten::miopen_batch_norm_backward",
    category="normalization",
    examples=(
        Example(
            args=(bf16(2, 3, 4), bf16(2, 3, 4), f32(3), None, None, f32(3), f32(3), "1e-05"),
            flops=312,
            bytes_read=132,
            bytes_written=72,
            why="(9 + 1 + 2 + 1)*24; reads x, dY of 48, weight and saved statistics of 12; writes dX 48, dW, db 12",
        ),
    ),
)
def library_batch_norm_backward(op: Op) -> Cost:
    """(x, dY, weight, running …, saved mean, saved variance, …): training, all three gradients."""
    x, dy, weight = op.tensor(0), op.tensor(1), op.tensor(2)
    read = size(x, dy, weight, op.tensor_or_none(5), op.tensor_or_none(6))
    return norm_cost(13, x, read, fresh(x) + 2 * x.shape[1] * _statistics_width(x))


def _normalised(op: Op, index: int, weight: Tensor | None) -> tuple[int, ...]:
    """The normalised shape at ``index``; where its text is not recorded, the weight has that shape."""
    return weight.shape if op.arg(index) == "" and weight is not None else op.integers(index)


def _layer_norm(op: Op) -> Cost:
    x, weight, bias = op.tensor(0), op.tensor_or_none(2), op.tensor_or_none(3)
    rows = normalised_rows(x, _normalised(op, 1, weight))
    affine = (weight is not None) + (bias is not None)
    statistics = 2 * rows * _statistics_width(x)
    return norm_cost(6 + affine, x, size(x, weight, bias), fresh(x) + statistics)


_LN = Example(
    args=(bf16(4, 5), "[5]", bf16(5), bf16(5), "1e-05"),
    flops=160,
    bytes_read=60,
    bytes_written=72,
    why="(6 + 2)*20; reads 20*2 and two of 5*2; writes 20*2 and mean and rstd of 4 rows in float32",
)


@op_model("aten::native_layer_norm", category="normalization", examples=(_LN,))
def layer_norm(op: Op) -> Cost:
    """(x, normalised shape, weight, bias, eps)."""
    return _layer_norm(op)


@op_model("aten::layer_norm", category="normalization", claims_subtree=False, examples=(_LN,))
def layer_norm_wrapper(op: Op) -> Cost:
    """As the op below it."""
    return _layer_norm(op)


@op_model(
    "aten::native_layer_norm_backward",
    category="normalization",
    examples=(
        Example(
            args=(
                bf16(4, 5),
                bf16(4, 5),
                "[5]",
                f32(4, 1),
                f32(4, 1),
                bf16(5),
                bf16(5),
                "[True, True, True]",
            ),
            flops=260,
            bytes_read=122,
            bytes_written=60,
            why="(9 + 1 + 2 + 1)*20; reads dY, x of 40, mean, rstd of 16, weight 10; writes dX 40, dW, db of 10",
        ),
    ),
)
def layer_norm_backward(op: Op) -> Cost:
    """(dY, x, normalised shape, mean, rstd, weight, bias, mask)."""
    dy, x, weight = op.tensor(0), op.tensor(1), op.tensor_or_none(5)
    normalised = _normalised(op, 2, weight)
    normalised_rows(x, normalised)
    to_input, to_weight, to_bias = op.booleans(7, 3)
    per_element = to_input * (9 + (weight is not None)) + to_weight * 2 + to_bias
    width = math.prod(normalised) * itemsize(dtype_of(weight or x))
    read = size(dy, x, op.tensor_or_none(3), op.tensor_or_none(4), weight)
    return norm_cost(per_element, x, read, to_input * fresh(x) + (to_weight + to_bias) * width)


@op_model(
    "aten::native_group_norm",
    category="normalization",
    examples=(
        Example(
            args=(f32(2, 6, 4), f32(6), f32(6), "2", "6", "4", "3", "1e-05"),
            flops=384,
            bytes_read=240,
            bytes_written=240,
            why="(6 + 2)*48; reads 48*4 and two of 6*4; writes 48*4 and mean and rstd of 2*3 groups, 4 each",
        ),
    ),
)
def group_norm(op: Op) -> Cost:
    """(x, weight, bias, N, C, HxW, groups, eps); statistics are one a group, in the input's dtype."""
    x, weight, bias = op.tensor(0), op.tensor_or_none(1), op.tensor_or_none(2)
    affine = (weight is not None) + (bias is not None)
    statistics = 2 * op.integer(3) * op.integer(6) * itemsize(dtype_of(x))
    return norm_cost(6 + affine, x, size(x, weight, bias), fresh(x) + statistics)


@op_model(
    "aten::native_group_norm_backward",
    category="normalization",
    examples=(
        Example(
            args=(
                f32(2, 6, 4), f32(2, 6, 4), f32(2, 3), f32(2, 3), f32(6), "2", "6", "4", "3", "[True, True, True]",
            ),
            flops=624,
            bytes_read=456,
            bytes_written=240,
            why="(9 + 1 + 2 + 1)*48; reads 2*192 + 2*24 + 24; writes dX 192, dW, db of 24",
        ),
    ),
)  # fmt: skip
def group_norm_backward(op: Op) -> Cost:
    """(dY, x, mean, rstd, weight, N, C, HxW, groups, mask)."""
    dy, x, weight = op.tensor(0), op.tensor(1), op.tensor_or_none(4)
    to_input, to_weight, to_bias = op.booleans(9, 3)
    per_element = to_input * (9 + (weight is not None)) + to_weight * 2 + to_bias
    read = size(dy, x, op.tensor_or_none(2), op.tensor_or_none(3), weight)
    channels = op.integer(6) * itemsize(dtype_of(weight or x))
    return norm_cost(per_element, x, read, to_input * fresh(x) + (to_weight + to_bias) * channels)


def _rms_norm(op: Op) -> Cost:
    x, weight = op.tensor(0), op.tensor_or_none(2)
    rows = normalised_rows(x, op.integers(1))
    statistics = rows * _statistics_width(x)
    return norm_cost(3 + (weight is not None), x, size(x, weight), fresh(x) + statistics)


@op_model(
    "aten::_fused_rms_norm",
    category="normalization",
    examples=(
        Example(
            args=(bf16(4, 5), "[5]", bf16(5), None),
            flops=80,
            bytes_read=50,
            bytes_written=56,
            why="(3 + 1)*20; reads 20*2 + 5*2; writes 20*2 and rstd of 4 rows in float32",
        ),
    ),
)
def rms_norm(op: Op) -> Cost:
    """(x, normalised shape, weight, eps), which keeps the reciprocal root a row."""
    return _rms_norm(op)


@op_model(
    "aten::rms_norm",
    category="normalization",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(4, 5), "[5]", bf16(5), None),
            flops=80,
            bytes_read=50,
            bytes_written=56,
            why="as _fused_rms_norm",
        ),
    ),
)
def rms_norm_wrapper(op: Op) -> Cost:
    """As the op below it."""
    return _rms_norm(op)


@op_model(
    "aten::_fused_rms_norm_backward",
    category="normalization",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(4, 5), "[5]", f32(4, 1), bf16(5), "[True, True]"),
            flops=180,
            bytes_read=106,
            bytes_written=50,
            why="(6 + 1 + 2)*20; reads dY, x of 40, rstd 16, weight 10; writes dX 40, dW 10",
        ),
    ),
)
def rms_norm_backward(op: Op) -> Cost:
    """(dY, x, normalised shape, rstd, weight, mask)."""
    dy, x, weight = op.tensor(0), op.tensor(1), op.tensor_or_none(4)
    normalised = op.integers(2)
    to_input, to_weight = op.booleans(5, 2)
    per_element = to_input * (6 + (weight is not None)) + to_weight * 2
    written = to_input * fresh(x) + to_weight * math.prod(normalised) * itemsize(dtype_of(weight or x))
    return norm_cost(per_element, x, size(dy, x, op.tensor_or_none(3), weight), written)


categorise("normalization", "aten::group_norm", "aten::_weight_norm", "aten::renorm", module=__name__)
