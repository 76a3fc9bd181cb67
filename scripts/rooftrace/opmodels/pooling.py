"""Pooling and resampling: FLOPs are comparisons or adds of each window, bytes are input and output once."""

from __future__ import annotations

import math

from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, i64, itemsize, require, size
from .registry import Cost, Example, categorise, op_model

_NO_WINDOW = "lower bound: window not recorded, one comparison a result"


def _pooled(op: Op, axes: int, *, dilation_at: int | None, ceil_at: int) -> tuple[tuple[int, ...], int]:
    """Shape of the result and elements in a window."""
    x = op.tensor(0)
    kernel = _per_axis(op.integers(1), axes)
    stride = _per_axis(op.integers(2, ()) or op.integers(1), axes)
    padding = _per_axis(op.integers(3, (0,)) or (0,), axes)
    dilation = _per_axis(op.integers(dilation_at, (1,)) or (1,), axes) if dilation_at is not None else (1,) * axes
    up = op.boolean(ceil_at, default=False)
    require(len(x.shape) >= axes and all(n > 0 for n in (*stride, *dilation)))
    out = tuple(
        _pooled_size((n, k, s, p, d), up=up)
        for n, k, s, p, d in zip(x.shape[-axes:], kernel, stride, padding, dilation, strict=True)
    )
    require(all(n > 0 for n in out))
    return x.shape[:-axes] + out, math.prod(kernel)


def _pooled_size(axis: tuple[int, int, int, int, int], *, up: bool) -> int:
    n, kernel, stride, padding, dilation = axis
    span = n + 2 * padding - dilation * (kernel - 1) - 1
    steps = -(-span // stride) if up else span // stride
    if up and steps * stride >= n + padding:  # the last window must start inside the input or its left padding
        steps -= 1
    return steps + 1


def _per_axis(values: tuple[int, ...], axes: int) -> tuple[int, ...]:
    require(len(values) in {1, axes})
    return values * axes if len(values) == 1 else values


def _register_max(axes: int) -> None:
    x = f32(1, 3, *(4,) * axes)
    n_in, n_out, window = 3 * 4**axes, 3 * 2**axes, 2**axes
    example = Example(
        args=(x, "[2]", "[2]", "[0]", "[1]", "False"),
        flops=n_out * window,
        bytes_read=4 * n_in,
        bytes_written=12 * n_out,
        why=f"{n_out} windows of {window} comparisons; reads {n_in}*4; writes values of 4 and positions of 8",
    )

    @op_model(f"aten::max_pool{axes}d_with_indices", category="reduction", examples=(example,))
    def max_pool(op: Op) -> Cost:
        """(x, kernel, stride, padding, dilation, ceil mode): values and int64 positions."""
        x = op.tensor(0)
        if op.output is None:
            shape, elements = _pooled(op, axes, dilation_at=4, ceil_at=5)
        else:
            shape, elements = op.output.shape, 1
        n = math.prod(shape)
        return Cost(
            flops=n * elements,
            bytes_read=size(x),
            bytes_written=n * (itemsize(dtype_of(x)) + 8),
            precision=dtype_of(x),
            notes=() if op.output is None else (_NO_WINDOW,),
        )


def _register_average(axes: int) -> None:
    x = f32(1, 3, *(4,) * axes)
    n_in, n_out, window = 3 * 4**axes, 3 * 2**axes, 2**axes
    example = Example(
        args=(x, "[2]", "[2]", "[0]", "False", "True", None),
        flops=n_out * window,
        bytes_read=4 * n_in,
        bytes_written=4 * n_out,
        why=f"{n_out} windows of {window} adds; reads {n_in}*4; writes {n_out}*4",
    )

    @op_model(f"aten::avg_pool{axes}d", category="reduction", examples=(example,))
    def average_pool(op: Op) -> Cost:
        """(x, kernel, stride, padding, ceil mode, …)."""
        shape, elements = _pooled(op, axes, dilation_at=None, ceil_at=4)
        n = math.prod(shape)
        x = op.tensor(0)
        return Cost(
            flops=n * elements,
            bytes_read=size(x),
            bytes_written=n * itemsize(dtype_of(x)),
            precision=dtype_of(x),
        )


for _axes in (2, 3):
    _register_max(_axes)
    _register_average(_axes)


@op_model(
    "aten::_adaptive_avg_pool2d", "aten::_adaptive_avg_pool3d", "aten::adaptive_avg_pool1d",
    category="reduction",
    examples=(
        Example(
            only="aten::_adaptive_avg_pool2d",
            args=(bf16(1, 3, 4, 4), "[2, 2]"),
            flops=48,
            bytes_read=96,
            bytes_written=24,
            why="one add an input element; reads 48*2; writes 12*2",
        ),
        Example(
            only="aten::_adaptive_avg_pool3d",
            args=(bf16(1, 3, 4, 4, 4), "[1, 1, 1]"),
            flops=192,
            bytes_read=384,
            bytes_written=6,
            why="192 adds; reads 192*2; writes 3*2",
        ),
        Example(
            only="aten::adaptive_avg_pool1d",
            args=(bf16(1, 3, 4), "[2]"),
            flops=12,
            bytes_read=24,
            bytes_written=12,
            why="12 adds; reads 12*2; writes 6*2",
        ),
    ),
)  # fmt: skip
def adaptive_average_pool(op: Op) -> Cost:
    """(x, output size)."""
    x, out = op.tensor(0), op.integers(1)
    require(0 < len(out) < len(x.shape))
    written = math.prod(x.shape[: -len(out)]) * math.prod(out) * itemsize(dtype_of(x))
    return Cost(flops=x.numel, bytes_read=size(x), bytes_written=written, precision=dtype_of(x))


@op_model(
    "aten::max_pool2d_with_indices_backward",
    "aten::max_pool3d_with_indices_backward",
    category="reduction",
    examples=(
        Example(
            args=(
                bf16(1, 3, 2, 2),
                bf16(1, 3, 4, 4),
                "[2, 2]",
                "[2, 2]",
                "[0]",
                "[1]",
                "False",
                i64(1, 3, 2, 2),
            ),
            flops=12,
            bytes_read=120,
            bytes_written=96,
            why="12 adds; reads gradients 12*2 and positions 12*8; writes 48*2",
        ),
    ),
)
def max_pool_backward(op: Op) -> Cost:
    """(dY, x, …, positions at 7): x is not read."""
    dy, x, positions = op.tensor(0), op.tensor(1), op.tensor(7)
    return Cost(flops=dy.numel, bytes_read=size(dy, positions), bytes_written=fresh(x), precision=dtype_of(dy))


@op_model(
    "aten::avg_pool2d_backward", "aten::avg_pool3d_backward", "aten::_adaptive_avg_pool2d_backward",
    "aten::_adaptive_avg_pool3d_backward",
    category="reduction",
    examples=(
        Example(
            args=(bf16(1, 3, 2, 2), bf16(1, 3, 4, 4)),
            flops=48,
            bytes_read=24,
            bytes_written=96,
            why="one operation an element of dX; reads 12*2; writes 48*2",
        ),
    ),
)  # fmt: skip
def average_pool_backward(op: Op) -> Cost:
    """(dY, x): x gives the shape alone."""
    dy, x = op.tensor(0), op.tensor(1)
    return Cost(flops=x.numel, bytes_read=size(dy), bytes_written=fresh(x), precision=dtype_of(dy))


def _scaled_sizes(op: Op, sizes: tuple[int, ...]) -> tuple[int, ...]:
    factors = op.numbers(len(op.args) - 1)
    require(len(factors) == len(sizes))
    return tuple(math.floor(n * factor) for n, factor in zip(sizes, factors, strict=True))


# Operations an output element: nearest none; (bi|tri)linear and bicubic one multiply-add a neighbour.
_UPSAMPLE = {
    "nearest1d": (1, 0), "nearest2d": (2, 0), "nearest3d": (3, 0), "_nearest_exact2d": (2, 0),
    "linear1d": (1, 4), "bilinear2d": (2, 8), "trilinear3d": (3, 16), "bicubic2d": (2, 32),
}  # fmt: skip


def _register_upsample(name: str, axes: int, flops: int) -> None:
    base = f"aten::upsample_{name}" if not name.startswith("_") else f"aten::_upsample{name}"
    out = 3 * 8**axes
    example = Example(
        args=(f32(1, 3, *(4,) * axes), "[" + ", ".join(["8"] * axes) + "]", "False"),
        flops=flops * out,
        bytes_read=12 * 4**axes,
        bytes_written=4 * out,
        why=f"{flops} operations on {out} results; reads the input of 4**{axes}*3; writes {out}*4",
    )
    back = Example(
        args=(
            f32(1, 3, *(8,) * axes),
            "[" + ", ".join(["8"] * axes) + "]",
            "[1, 3, " + ", ".join(["4"] * axes) + "]",
        ),
        flops=max(flops, 1) * out,
        bytes_read=4 * out,
        bytes_written=12 * 4**axes,
        why="the gradient of every result is added into the input's",
    )

    @op_model(base, category="elementwise", examples=(example,))
    def upsample(op: Op) -> Cost:
        """(x, output size, …), or a list of scale factors as the last argument instead of the size."""
        x = op.tensor(0)
        sizes = op.integers(1) if op.text(1) is not None else _scaled_sizes(op, x.shape[2:])
        require(len(sizes) == axes and len(x.shape) == axes + 2)
        n = math.prod(x.shape[:2]) * math.prod(sizes)
        return Cost(
            flops=flops * n,
            bytes_read=size(x),
            bytes_written=n * itemsize(dtype_of(x)),
            precision=dtype_of(x),
        )

    @op_model(f"{base}_backward", category="elementwise", examples=(back,))
    def upsample_backward(op: Op) -> Cost:
        """(dY, output size, input size, …)."""
        dy = op.tensor(0)
        dx = Tensor(shape=op.integers(2), dtype=dy.dtype)
        return Cost(
            flops=max(flops, 1) * dy.numel,
            bytes_read=size(dy),
            bytes_written=fresh(dx),
            precision=dtype_of(dy),
        )


for _name, (_axes, _flops) in _UPSAMPLE.items():
    _register_upsample(_name, _axes, _flops)


@op_model(
    "aten::grid_sampler_2d",
    category="elementwise",
    examples=(
        Example(
            args=(f32(1, 3, 4, 4), f32(1, 5, 5, 2), "0", "0", "False"),
            flops=600,
            bytes_read=392,
            bytes_written=300,
            why="4 multiply-adds on 3*25 results; reads 48*4 + 50*4; writes 75*4",
        ),
    ),
)
def grid_sampler(op: Op) -> Cost:
    """(x, grid, …): bilinear."""
    x, grid = op.tensor(0), op.tensor(1)
    n = x.shape[1] * grid.numel // 2
    return Cost(flops=8 * n, bytes_read=size(x, grid), bytes_written=n * itemsize(dtype_of(x)), precision=dtype_of(x))


categorise(
    "reduction",
    "aten::max_pool1d", "aten::max_pool2d", "aten::max_pool3d", "aten::avg_pool1d", "aten::adaptive_avg_pool2d",
    "aten::adaptive_max_pool2d", "aten::mkldnn_max_pool2d",
    module=__name__,
)  # fmt: skip
categorise("elementwise", "aten::grid_sampler_2d_backward", "aten::grid_sampler_3d", module=__name__)
