"""Multi-tensor ops: ``_foreach_*`` and fused optimizer steps over lists of tensors.

Profilers record the shapes of lists but not their element types; where a caller knows them (from the kernel's name),
``hints.with_dtype`` puts them in, else the op is ``Unmodelled``.
"""

from __future__ import annotations

from .dtypes import kind
from .op import NO_LIST_DTYPE, NO_SHAPES, NoCostError, Op, Tensor
from .parts import f32, list_size, require, size
from .registry import Cost, Example, categorise, op_model

# Operations an element.
_UNARY = {
    1: "abs neg sqrt rsqrt reciprocal exp expm1 log log10 log1p log2 sin cos tan sinh cosh tanh asin acos atan erf "
    "erfc ceil floor round trunc frac sign lgamma",
    4: "sigmoid",
}
_BINARY = {1: "add sub mul div pow clamp_min clamp_max maximum minimum"}
_TERNARY = {3: "addcmul addcdiv lerp"}


def _lists(op: Op, count: int) -> list[tuple[Tensor, ...]]:
    """The first ``count`` arguments as lists; a scalar or a single tensor among them is an empty list."""
    require(isinstance(op.arg(0), tuple) and bool(op.arg(0)), NO_SHAPES)
    return [arg if isinstance(arg, tuple) else () for arg in (op.arg(i) for i in range(count))]


def _foreach(op: Op, flops: int, inputs: int) -> Cost:
    lists = _lists(op, inputs)
    elements = sum(tensor.numel for tensor in lists[0])
    return Cost(
        flops=flops * elements,
        bytes_read=sum(list_size(tensors) for tensors in lists),
        bytes_written=list_size(lists[0]),
        precision=lists[0][0].dtype,
    )


def _register(name: str, flops: int, inputs: int) -> None:
    pair = (f32(2, 3), f32(4))
    example = Example(
        args=(pair,) * inputs,
        flops=flops * 10,
        bytes_read=40 * inputs,
        bytes_written=40,
        why=f"{flops} on each of 6 + 4 elements; reads {inputs} lists of 10*4; writes one",
    )

    @op_model(f"aten::_foreach_{name}", f"aten::_foreach_{name}_", category="optimizer", examples=(example,))
    def foreach(op: Op) -> Cost:
        """The same elementwise op on each tensor of a list."""
        return _foreach(op, flops, inputs)


for _inputs, _table in ((1, _UNARY), (2, _BINARY), (3, _TERNARY)):
    for _flops, _names in _table.items():
        for _name in _names.split():
            _register(_name, _flops, _inputs)


@op_model(
    "aten::_foreach_copy_",
    category="optimizer",
    examples=(
        Example(args=((f32(4),), (f32(4),), "False"), bytes_read=16, bytes_written=16, why="reads and writes 4*4"),
    ),
)
def foreach_copy(op: Op) -> Cost:
    """(destinations, sources)."""
    destinations, sources = _lists(op, 2)
    return Cost(
        flops=0,
        bytes_read=list_size(sources),
        bytes_written=list_size(destinations),
        precision=destinations[0].dtype,
    )


@op_model(
    "aten::_foreach_zero_",
    category="optimizer",
    examples=(Example(args=((f32(4),),), bytes_written=16, why="writes 4*4"),),
)
def foreach_zero(op: Op) -> Cost:
    """Zeros in each tensor."""
    (tensors,) = _lists(op, 1)
    return Cost(flops=0, bytes_read=0, bytes_written=list_size(tensors), precision=tensors[0].dtype)


@op_model(
    "aten::_foreach_norm",
    "aten::_foreach_max",
    category="optimizer",
    examples=(
        Example(
            args=((f32(2, 3), f32(4)), "2"),
            flops=20,
            bytes_read=40,
            bytes_written=8,
            why="square and add on 10; reads 10*4; writes one float32 a tensor",
        ),
    ),
)
def foreach_norm(op: Op) -> Cost:
    """One number a tensor; of integers as wide as they are."""
    (tensors,) = _lists(op, 1)
    if tensors[0].dtype is None:
        raise NoCostError(NO_LIST_DTYPE)
    width = size(Tensor(shape=(), dtype=tensors[0].dtype)) if kind(tensors[0].dtype) >= 2 else 8
    return Cost(
        flops=2 * sum(tensor.numel for tensor in tensors),
        bytes_read=list_size(tensors),
        bytes_written=width * len(tensors),
        precision=tensors[0].dtype,
    )


@op_model(
    "aten::_amp_foreach_non_finite_check_and_unscale_",
    category="optimizer",
    examples=(
        Example(
            args=((f32(4),), f32(), f32()),
            flops=8,
            bytes_read=24,
            bytes_written=20,
            why="test and product on 4; reads 4*4, flag and scale of 4; writes 4*4 and the flag",
        ),
    ),
)
def unscale(op: Op) -> Cost:
    """Gradients scaled in place, with a flag for values that are not finite."""
    (grads,) = _lists(op, 1)
    flag, scale = op.tensor(1), op.tensor(2)
    return Cost(
        flops=2 * sum(tensor.numel for tensor in grads),
        bytes_read=list_size(grads) + size(flag, scale),
        bytes_written=list_size(grads) + size(flag),
        precision=grads[0].dtype,
    )


# Steps: lists read, of which all but the gradients (list 1) are written; operations an element. Adam: first moment 3,
# second moment 4, denominator 3, update 3, weight decay 2 (AdamW 1); Adagrad: square and add 2, root, sum, quotient,
# product, difference 5; SGD: momentum 3, update 2, weight decay 2.
_STEPS = {
    "adam": (5, 15),
    "adamw": (5, 14),
    "adagrad": (3, 9),
    "sgd": (3, 7),
}


def _register_step(name: str, lists: int, flops: int) -> None:
    present = lists - 1 if lists == 5 else lists  # without the amsgrad maxima
    one = (f32(4),)
    example = Example(
        args=(one,) * present,
        flops=4 * flops,
        bytes_read=16 * present,
        bytes_written=16 * (present - 1),
        why=f"{flops} on each of 4; reads {present} lists of 4*4; writes all but the gradients",
    )

    @op_model(f"aten::_fused_{name}_", f"aten::_fused_{name}", category="optimizer", examples=(example,))
    def step(op: Op) -> Cost:
        """An optimizer step: (parameters, gradients, state …); missing state lists are empty."""
        given = _lists(op, lists)
        read = sum(list_size(tensors) for tensors in given)
        return Cost(
            flops=flops * sum(tensor.numel for tensor in given[0]),
            bytes_read=read,
            bytes_written=read - list_size(given[1]),
            precision=given[0][0].dtype,
        )


for _name, (_lists_read, _flops) in _STEPS.items():
    _register_step(_name, _lists_read, _flops)


categorise(
    "optimizer",
    "aten::_amp_update_scale_", "aten::_foreach_powsum",
    patterns=(r"^aten::_foreach_", r"^aten::_fused_\w*(adam|sgd|lamb)", r"multi_tensor"),
    module=__name__,
)  # fmt: skip
