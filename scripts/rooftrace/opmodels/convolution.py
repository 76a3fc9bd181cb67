"""Convolutions: 2·prod(out)·(Cin/groups)·prod(kernel) FLOPs, transposed 2·prod(in)·(Cout/groups)·prod(kernel).

The input gradient and the weight gradient each cost as much as the forward pass; which of them are computed stands in
``output_mask``. Layout copies that a library makes count in time, not here.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .gemm import operand_precision
from .op import NO_SCALARS, Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, itemsize, require, size
from .registry import Cost, Example, op_model


class Form(NamedTuple):
    """Argument positions of a forward convolution; ``None`` where the op has no such argument."""

    stride: int
    padding: int
    dilation: int | None
    bias: int | None = None
    transposed: int | bool = False  # position of the flag, or what the op is by definition
    output_padding: int | None = None
    groups: int | None = None
    added: int | None = None  # a tensor added to the result


_PLAIN = Form(bias=2, stride=3, padding=4, dilation=5, transposed=6, output_padding=7, groups=8)
_CUDNN = Form(padding=2, stride=3, dilation=4, groups=5)
_MIOPEN = Form(bias=2, padding=3, stride=4, dilation=5, groups=6)
_RELU = Form(bias=2, stride=3, padding=4, dilation=5, groups=6)
_ADD_RELU = Form(added=2, bias=4, stride=5, padding=6, dilation=7, groups=8)
FORMS: dict[str, Form] = {
    "aten::convolution": _PLAIN,
    "aten::_convolution": _PLAIN,
    "aten::convolution_overrideable": _PLAIN,
    "aten::cudnn_convolution": _CUDNN,
    "aten::miopen_convolution": _MIOPEN,
    "aten::miopen_depthwise_convolution": _MIOPEN,
    "aten::mkldnn_convolution": _MIOPEN,
    "aten::cudnn_convolution_relu": _RELU,
    "aten::miopen_convolution_relu": _RELU,
    "aten::cudnn_convolution_add_relu": _ADD_RELU,
    "aten::miopen_convolution_add_relu": _ADD_RELU,
    "aten::cudnn_convolution_transpose": Form(
        padding=2, output_padding=3, stride=4, dilation=5, groups=6, transposed=True
    ),
    "aten::miopen_convolution_transpose": Form(
        bias=2, padding=3, output_padding=4, stride=5, dilation=6, groups=7, transposed=True
    ),
    "aten::_conv_depthwise2d": Form(bias=3, stride=4, padding=5, dilation=6),
    "aten::conv_depthwise3d": Form(bias=3, stride=4, padding=5, dilation=6),
    "aten::_slow_conv2d_forward": Form(bias=3, stride=4, padding=5, dilation=None),
    "aten::slow_conv3d_forward": Form(bias=3, stride=4, padding=5, dilation=None),
    "aten::slow_conv_dilated2d": Form(bias=3, stride=4, padding=5, dilation=6),
}
_WRAPPERS: dict[str, Form] = {
    **{f"aten::conv{n}d": _RELU for n in (1, 2, 3)},
    **{
        f"aten::conv_transpose{n}d": Form(
            bias=2, stride=3, padding=4, output_padding=5, groups=6, dilation=7, transposed=True
        )
        for n in (1, 2, 3)
    },
}


class Geometry(NamedTuple):
    """Shape of the result and multiply-adds of one pass."""

    out: tuple[int, ...]
    multiply_adds: int


def geometry(op: Op, form: Form, x: Tensor, w: Tensor) -> Geometry:
    """Output shape and multiply-adds of a forward pass."""
    spatial = len(x.shape) - 2
    require(spatial >= 1 and len(w.shape) == len(x.shape))
    kernel = w.shape[2:]
    flag = form.transposed
    transposed = flag if isinstance(flag, bool) else op.boolean(flag)
    stride = _per_axis(op, form.stride, spatial, 1)
    dilation = _per_axis(op, form.dilation, spatial, 1)
    reach = tuple(d * (k - 1) + 1 for d, k in zip(dilation, kernel, strict=True))
    padding = _padding(op, form.padding, reach)
    if transposed:
        extra = _per_axis(op, form.output_padding, spatial, 0)
        groups = op.integer(form.groups, 1) if form.groups is not None else 1
        axes = zip(x.shape[2:], stride, padding, reach, extra, strict=True)
        out = tuple((n - 1) * s - p + r + e for n, s, p, r, e in axes)
        channels = w.shape[1] * groups
        require(w.shape[0] == x.shape[1])
        multiply_adds = x.numel * math.prod(w.shape[1:])
    else:
        out = tuple((n + p - r) // s + 1 for n, p, r, s in zip(x.shape[2:], padding, reach, stride, strict=True))
        channels = w.shape[0]
        require(w.shape[1] > 0 and x.shape[1] % w.shape[1] == 0)
        multiply_adds = x.shape[0] * channels * math.prod(out) * math.prod(w.shape[1:])
    require(all(n > 0 for n in out))
    return Geometry(out=(x.shape[0], channels, *out), multiply_adds=multiply_adds)


def _given(x: Tensor, w: Tensor, out: Tensor) -> Geometry:
    """Multiply-adds of a pass that is not transposed, from the shape of its result: strides and padding lie in it."""
    require(len(out.shape) == len(x.shape) == len(w.shape) >= 3)
    require(out.shape[0] == x.shape[0] and out.shape[1] == w.shape[0] and w.shape[1] > 0)
    require(x.shape[1] % w.shape[1] == 0)
    return Geometry(out=out.shape, multiply_adds=out.numel * math.prod(w.shape[1:]))


def _per_axis(op: Op, index: int | None, axes: int, default: int) -> tuple[int, ...]:
    values = (default,) if index is None else op.integers(index, (default,))
    values = values or (default,)
    return values * axes if len(values) == 1 else values


def _padding(op: Op, index: int, reach: tuple[int, ...]) -> tuple[int, ...]:
    """Total padding of both sides on each axis; ``same`` keeps the size at stride 1."""
    text = op.text(index)
    require(text is not None, NO_SCALARS)  # the texts `same` and `valid` are not recorded
    if text == "same":
        return tuple(r - 1 for r in reach)
    if text == "valid":
        return (0,) * len(reach)
    return tuple(2 * n for n in _per_axis(op, index, len(reach), 0))


def forward(op: Op, form: Form) -> Cost:
    """Cost of a forward pass."""
    x, w = op.tensor(0), op.tensor(1)
    shape = geometry(op, form, x, w) if op.output is None else _given(x, w, op.output)
    bias = op.tensor_or_none(form.bias) if form.bias is not None else None
    added = op.tensor_or_none(form.added) if form.added is not None else None
    additions = math.prod(shape.out) if bias is not None else 0
    return Cost(
        flops=2 * shape.multiply_adds + additions,
        bytes_read=size(x, w, bias, added),
        bytes_written=math.prod(shape.out) * itemsize(dtype_of(x)),
        unit="matrix",
        precision=operand_precision(dtype_of(x), dtype_of(w)),
    )


def _example(form: Form) -> Example:
    """One image of 3x6x6 through four 3x3 kernels, padding 1."""
    args: list[Tensor | str | None] = [None] * 10
    args[0], args[1] = f32(1, 3, 6, 6), f32(3, 4, 3, 3) if form.transposed is True else f32(4, 3, 3, 3)
    args[form.stride], args[form.padding] = "[1, 1]", "[1, 1]"
    if form.dilation is not None:
        args[form.dilation] = "[1, 1]"
    if form.groups is not None:
        args[form.groups] = "1"
    if type(form.transposed) is int:
        args[form.transposed] = "False"
    return Example(
        args=tuple(args),
        flops=7776,
        bytes_read=864,
        bytes_written=576,
        why="4*6*6 outputs of 27 multiply-adds (transposed: 3*6*6 inputs of 36): 2*144*27; "
        "reads (108 + 108)*4; writes 144*4",
    )


def _register(name: str, form: Form, *, claims: bool) -> None:
    @op_model(name, category="convolution", claims_subtree=claims, examples=(_example(form),))
    def convolution(op: Op) -> Cost:
        """Cost of a forward convolution."""
        return forward(op, form)


for _name, _form in FORMS.items():
    _register(_name, _form, claims=True)
for _name, _form in _WRAPPERS.items():
    _register(_name, _form, claims=False)


def _gradients(dy: Tensor, x: Tensor, w: Tensor, multiply_adds: int, mask: tuple[bool, bool, bool]) -> Cost:
    """Cost of the gradients that ``mask`` (input, weight, bias) asks for; dY is read once for all of them."""
    to_input, to_weight, to_bias = mask
    channels = dy.shape[1]
    return Cost(
        flops=2 * multiply_adds * (to_input + to_weight),
        bytes_read=size(dy) + to_input * size(w) + to_weight * size(x),
        bytes_written=to_input * fresh(x) + to_weight * fresh(w) + to_bias * channels * itemsize(dtype_of(w)),
        unit="matrix",
        precision=operand_precision(dtype_of(dy), dtype_of(w)),
    )


def _backward_multiply_adds(dy: Tensor, x: Tensor, w: Tensor, *, transposed: bool) -> int:
    require(len(dy.shape) == len(x.shape) == len(w.shape) and len(w.shape) >= 3)
    return (x if transposed else dy).numel * math.prod(w.shape[1:])


@op_model(
    "aten::convolution_backward",
    category="convolution",
    examples=(
        Example(
            args=(
                bf16(1, 4, 6, 6), bf16(1, 3, 6, 6), bf16(4, 3, 3, 3), "[4]", "[1, 1]", "[1, 1]", "[1, 1]",
                "False", "[0, 0]", "1", "[True, True, True]",
            ),
            flops=15552,
            bytes_read=720,
            bytes_written=440,
            why="two passes of 2*144*27; reads dY 288, w 216, x 216; writes dX 216, dW 216, db 4*2",
        ),
        Example(
            args=(
                bf16(1, 4, 6, 6), bf16(1, 3, 6, 6), bf16(4, 3, 3, 3), "[0]", "[1, 1]", "[1, 1]", "[1, 1]",
                "False", "[0, 0]", "1", "[False, True, False]",
            ),
            flops=7776,
            bytes_read=504,
            bytes_written=216,
            why="a first layer needs dW only: 2*144*27; reads dY 288 and x 216; writes dW 216",
        ),
    ),
)  # fmt: skip
def convolution_backward(op: Op) -> Cost:
    """Gradients of a convolution; the shapes of dY, x and w are arguments, so strides are not needed."""
    dy, x, w = op.tensor(0), op.tensor(1), op.tensor(2)
    to_input, to_weight, to_bias = op.booleans(10, 3)
    multiply_adds = _backward_multiply_adds(dy, x, w, transposed=op.boolean(7))
    return _gradients(dy, x, w, multiply_adds, (to_input, to_weight, to_bias))


@op_model(
    "aten::convolution_backward_overrideable",
    category="convolution",
    examples=(
        Example(
            args=(
                bf16(1, 4, 6, 6), bf16(1, 3, 6, 6), bf16(4, 3, 3, 3), "[1, 1]", "[1, 1]", "[1, 1]",
                "False", "[0, 0]", "1", "[True, False, False]",
            ),
            flops=7776,
            bytes_read=504,
            bytes_written=216,
            why="dX alone: 2*144*27; reads dY 288 and w 216; writes dX 216",
        ),
    ),
)  # fmt: skip
def convolution_backward_overrideable(op: Op) -> Cost:
    """As ``convolution_backward`` without bias sizes."""
    dy, x, w = op.tensor(0), op.tensor(1), op.tensor(2)
    to_input, to_weight, to_bias = op.booleans(9, 3)
    multiply_adds = _backward_multiply_adds(dy, x, w, transposed=op.boolean(6))
    return _gradients(dy, x, w, multiply_adds, (to_input, to_weight, to_bias))


@op_model(
    "aten::cudnn_convolution_backward",
    "aten::miopen_convolution_backward",
    category="convolution",
    examples=(
        *(
            Example(
                only=f"aten::{library}_convolution_backward",
                args=(bf16(1, 3, 6, 6), bf16(1, 4, 6, 6), bf16(4, 3, 3, 3), *[None] * blanks, mask),
                flops=15552,
                bytes_read=720,
                bytes_written=432,
                why="dX and dW: 2 * 2*144*27; reads dY 288, w 216, x 216; writes 216 + 216",
            )
            for library, blanks, mask in (("cudnn", 7, "[True, True]"), ("miopen", 6, "[True, True, False]"))
        ),
    ),
)
def library_backward(op: Op) -> Cost:
    """Gradients as older PyTorch calls the libraries: (x, dY, w, …, mask)."""
    x, dy, w = op.tensor(0), op.tensor(1), op.tensor(2)
    cudnn = op.name == "aten::cudnn_convolution_backward"
    mask = op.booleans(10, 2) if cudnn else op.booleans(9, 3)
    multiply_adds = _backward_multiply_adds(dy, x, w, transposed=False)
    return _gradients(dy, x, w, multiply_adds, (mask[0], mask[1], any(mask[2:])))


@op_model(
    "aten::cudnn_convolution_backward_input",
    "aten::miopen_convolution_backward_input",
    "aten::cudnn_convolution_backward_weight",
    "aten::miopen_convolution_backward_weight",
    category="convolution",
    examples=(
        *(
            Example(
                only=f"aten::{library}_convolution_backward_input",
                args=("[1, 3, 6, 6]", bf16(1, 4, 6, 6), bf16(4, 3, 3, 3)),
                flops=7776,
                bytes_read=504,
                bytes_written=216,
                why="2*144*27; reads dY 288 and w 216; writes dX 108*2",
            )
            for library in ("cudnn", "miopen")
        ),
        *(
            Example(
                only=f"aten::{library}_convolution_backward_weight",
                args=("[4, 3, 3, 3]", bf16(1, 4, 6, 6), bf16(1, 3, 6, 6)),
                flops=7776,
                bytes_read=504,
                bytes_written=216,
                why="2*144*27; reads dY 288 and x 216; writes dW 108*2",
            )
            for library in ("cudnn", "miopen")
        ),
    ),
)
def one_gradient(op: Op) -> Cost:
    """One gradient: the size of what is computed, dY, and the other operand."""
    dy, other = op.tensor(1), op.tensor(2)
    computed = Tensor(shape=op.integers(0), dtype=dtype_of(other))
    to_input = op.name.endswith("_input")
    x, w = (computed, other) if to_input else (other, computed)
    multiply_adds = _backward_multiply_adds(dy, x, w, transposed=False)
    return _gradients(dy, x, w, multiply_adds, (to_input, not to_input, False))
