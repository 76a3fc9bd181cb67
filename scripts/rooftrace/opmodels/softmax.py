"""Softmax, losses and their gradients.

Softmax: max, difference, exp, sum, divide: 5 operations an element; log-softmax likewise with a subtraction last.
Backward: product, sum, difference, product: 4.
"""

from __future__ import annotations

from .op import Op
from .parts import bf16, dtype_of, f32, fresh, i64, itemsize, require, size
from .pointwise import pointwise
from .registry import Cost, Example, categorise, op_model


@op_model(
    "aten::_softmax",
    "aten::_log_softmax",
    category="reduction",
    examples=(
        Example(
            args=(bf16(4, 5), "-1", "False"),
            flops=100,
            bytes_read=40,
            bytes_written=40,
            why="5 on each of 20; reads and writes 20*2",
        ),
        Example(
            args=(bf16(4, 5), "-1", "True"),
            flops=100,
            bytes_read=40,
            bytes_written=80,
            why="half_to_float: writes 20*4",
        ),
    ),
)
def softmax(op: Op) -> Cost:
    """Softmax along one axis."""
    x = op.tensor(0)
    widens = dtype_of(x) != "float32" and op.boolean(2, default=False)
    dtype = "float32" if widens else dtype_of(x)
    return Cost(flops=5 * x.numel, bytes_read=size(x), bytes_written=x.numel * itemsize(dtype), precision=dtype_of(x))


@op_model(
    "aten::softmax",
    "aten::log_softmax",
    category="reduction",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(4, 5), "-1", None),
            flops=100,
            bytes_read=40,
            bytes_written=40,
            why="5 on each of 20; reads and writes 20*2",
        ),
    ),
)
def softmax_wrapper(op: Op) -> Cost:
    """Softmax whose third argument is the dtype of the result."""
    x = op.tensor(0)
    dtype = op.dtype(2) or dtype_of(x)
    return Cost(flops=5 * x.numel, bytes_read=size(x), bytes_written=x.numel * itemsize(dtype), precision=dtype_of(x))


@op_model(
    "aten::_softmax_backward_data",
    "aten::_log_softmax_backward_data",
    category="reduction",
    examples=(
        Example(
            args=(f32(4, 5), f32(4, 5), "-1", "15"),
            flops=80,
            bytes_read=160,
            bytes_written=40,
            why="4 on each of 20; reads gradient and output, 2*20*4; writes bf16 (15), 20*2",
        ),
    ),
)
def softmax_backward(op: Op) -> Cost:
    """Gradient from the gradient and the output; the input's dtype is an argument."""
    grad, y = op.tensor(0), op.tensor(1)
    arg = op.arg(3)
    dtype = op.dtype(3) if arg else None
    return Cost(
        flops=4 * grad.numel,
        bytes_read=size(grad, y),
        bytes_written=grad.numel * itemsize(dtype or dtype_of(y)),
        precision=dtype_of(y),
    )


@op_model(
    "aten::_masked_softmax",
    "aten::_safe_softmax",
    category="reduction",
    examples=(
        Example(
            args=(f32(4, 5),),
            flops=100,
            bytes_read=80,
            bytes_written=80,
            why="5 on each of 20; 20*4 each way",
        ),
    ),
)
def masked_softmax(op: Op) -> Cost:
    """Softmax with a mask, where one is given."""
    x = op.tensor(0)
    mask = op.tensor_or_none(1)
    return Cost(flops=5 * x.numel, bytes_read=size(x, mask), bytes_written=fresh(x), precision=dtype_of(x))


@op_model(
    "aten::nll_loss_forward",
    "aten::nll_loss2d_forward",
    category="reduction",
    examples=(
        Example(
            args=(f32(4, 1000), i64(4), None, "1", "-100"),
            flops=4,
            bytes_read=48,
            bytes_written=8,
            why="one probability a row: reads 4*4 and 4 targets of 8; writes the loss and the total weight",
        ),
    ),
)
def nll_loss(op: Op) -> Cost:
    """Picks one value of each row; ``reduction`` 0 keeps them."""
    x, target = op.tensor(0), op.tensor(1)
    width = itemsize(dtype_of(x))
    kept = target.numel if op.arg(3) == "0" else 1
    return Cost(
        flops=target.numel,
        bytes_read=target.numel * width + size(target, op.tensor_or_none(2)),
        bytes_written=(kept + 1) * width,
        precision=dtype_of(x),
    )


@op_model(
    "aten::nll_loss_backward",
    "aten::nll_loss2d_backward",
    category="reduction",
    examples=(
        Example(
            args=(f32(), f32(4, 10), i64(4), None, "1", "-100", f32()),
            flops=4,
            bytes_read=40,
            bytes_written=160,
            why="zeros with one value a row: reads the gradient 4, targets 32, weight 4; writes 40*4",
        ),
    ),
)
def nll_loss_backward(op: Op) -> Cost:
    """Gradient of the size of the input; the input itself is not read."""
    grad, x, target = op.tensor(0), op.tensor(1), op.tensor(2)
    read = size(grad, target, op.tensor_or_none(3), op.tensor_or_none(6))
    return Cost(flops=target.numel, bytes_read=read, bytes_written=fresh(x), precision=dtype_of(x))


# Operations an element: difference and square and sum; with a test; with logarithms.
_LOSSES = {
    "mse_loss": 3,
    "l1_loss": 3,
    "smooth_l1_loss": 5,
    "huber_loss": 5,
    "binary_cross_entropy": 7,
    "soft_margin_loss": 5,
}


def _register_loss(name: str, flops: int) -> None:
    reduction = 3 if name == "binary_cross_entropy" else 2
    between: tuple[None, ...] = (None,) * (reduction - 2)
    reduced = Example(
        args=(f32(4, 5), f32(4, 5), *between, "1"),
        flops=20 * flops,
        bytes_read=160,
        bytes_written=4,
        why=f"{flops} on each of 20; reads 2*20*4; writes the mean",
    )
    kept = Example(
        args=(f32(4, 5), f32(4, 5), *between, "0"),
        flops=20 * flops,
        bytes_read=160,
        bytes_written=80,
        why="reduction 0 keeps all 20",
    )

    @op_model(f"aten::{name}", category="reduction", examples=(reduced, kept))
    def loss(op: Op) -> Cost:
        """A loss of two tensors, averaged (1), summed (2) or kept (0)."""
        cost = pointwise(op, inputs=2, flops=flops)
        kept_all = op.integer(reduction, 1) == 0
        written = cost.bytes_written if kept_all else itemsize(dtype_of(op.tensor(0)))
        return Cost(flops=cost.flops, bytes_read=cost.bytes_read, bytes_written=written, precision=cost.precision)

    backward = Example(
        args=(f32(), f32(4, 5), f32(4, 5), "1"),
        flops=20 * flops,
        bytes_read=164,
        bytes_written=80,
        why=f"{flops} on each of 20; reads the gradient 4 and 2*20*4; writes 20*4",
    )

    @op_model(f"aten::{name}_backward", category="reduction", examples=(backward,))
    def loss_backward(op: Op) -> Cost:
        """Gradient of a loss: (grad, input, target)."""
        return pointwise(op, inputs=3, flops=flops)


for _name, _flops in _LOSSES.items():
    _register_loss(_name, _flops)


@op_model(
    "CrossEntropyFunction",
    "LigerCrossEntropyFunction",
    "_VocabParallelCrossEntropy",
    category="reduction",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(2, 4, 10), i64(2, 4)),
            flops=400,
            bytes_read=224,
            bytes_written=32,
            why="rows 2*4 of 10: 5 on each of 80; reads 80*2 and 8 targets of 8; writes 8 losses of 4",
        ),
    ),
)
def cross_entropy(op: Op) -> Cost:
    """Fused softmax and negative log-likelihood of ``[..., V]`` logits; one float32 a row."""
    x, target = op.tensor(0), op.tensor(1)
    require(bool(x.shape) and x.shape[-1] > 0)
    rows = x.numel // x.shape[-1]
    return Cost(flops=5 * x.numel, bytes_read=size(x, target), bytes_written=4 * rows, precision=dtype_of(x))


categorise(
    "reduction",
    "aten::cross_entropy_loss", "aten::nll_loss", "aten::nll_loss_nd", "aten::binary_cross_entropy_with_logits",
    "aten::kl_div", "aten::cosine_embedding_loss",
    module=__name__,
)  # fmt: skip
