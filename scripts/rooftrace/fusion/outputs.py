"""What a call reads and the tensors it makes, from the op's own rules: shapes and element types, nothing recorded.

`NoCostError` where an op is not known or its record does not tell; the reason is the message.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from rooftrace.fusion.tokens import base_word
from rooftrace.opmodels import NoCostError, Op, Tensor, category_of
from rooftrace.opmodels.dtypes import kind
from rooftrace.opmodels.op import MALFORMED, NO_SHAPES
from rooftrace.opmodels.parts import as_float, broadcast, result_dtype
from rooftrace.opmodels.pointwise import is_in_place

if TYPE_CHECKING:
    from collections.abc import Callable


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


Tensors = tuple[Tensor, ...]

_OF_NUMBERS: Final = frozenset({"float64", "int64", "bool", None})

_BOOLEAN: Final = _words("eq ne lt le gt ge logical_not logical_and logical_or logical_xor isnan isinf isfinite")
_FLOATING: Final = _words("div exp log sqrt rsqrt sin cos tanh erf reciprocal sigmoid log2 exp2 log1p")
OVERWRITES: Final = _words("copy fill bernoulli normal uniform random exponential")


def reads_of(op: Op) -> Tensors:
    """Tensors that the call reads."""
    word = base_word(op.name)
    if is_in_place(op.name) and word in OVERWRITES:
        return tuple(tensor for tensor in (op.tensor_or_none(1),) if tensor is not None)
    if word == "fill":
        return ()
    return tuple(tensor for tensor in op.tensors() if not _is_number(tensor))


def _is_number(tensor: Tensor) -> bool:
    """Whether it is a Python number: recorded as a tensor without dimensions, of doubles or long integers."""
    return not tensor.shape and tensor.dtype in _OF_NUMBERS


def outputs_of(op: Op) -> Tensors:
    """Tensors that the call makes, or writes where it works in place."""
    if not op.tensors():
        raise NoCostError(NO_SHAPES)
    if is_in_place(op.name):
        return (op.tensor(0),)
    rule = _RULES.get(base_word(op.name))
    if rule is None and category_of(op.name) == "elementwise":
        rule = _pointwise
    if rule is None:
        raise NoCostError(f"result of `{op.name}` not derived")
    try:
        return rule(op)
    except (ArithmeticError, LookupError, ValueError) as error:
        raise NoCostError(MALFORMED) from error


def _dense(shape: tuple[int, ...], dtype: str | None) -> Tensor:
    return Tensor(shape=shape, dtype=dtype)


def _pointwise(op: Op) -> Tensors:
    word = base_word(op.name)
    tensors = op.tensors()
    shape = broadcast(tensor.shape for tensor in tensors)
    if word in _BOOLEAN:
        return (_dense(shape, "bool"),)
    deciding = tensors[1:] if word == "where" and len(tensors) > 1 else tensors
    if any(tensor.dtype is None for tensor in deciding):
        return (_dense(shape, None),)
    decided = result_dtype(deciding)
    tensors = tuple(tensor for tensor in deciding if not _is_number(tensor))
    dtype = result_dtype(tensors) if tensors else decided
    if kind(decided) > kind(dtype):
        dtype = decided
    return (_dense(shape, as_float(dtype) if word in _FLOATING else dtype),)


def _like_first(op: Op) -> Tensors:
    return (replace(op.tensor(0), strides=None),)


def _copied(op: Op) -> Tensors:
    """A copy, in the element type that an argument names."""
    source, named = op.tensor(0), None
    if op.name.endswith(("::to", "::_to_copy")) and op.arg(1) not in (None, "") and op.tensor_or_none(1) is None:
        named = op.dtype(1)
    return (_dense(source.shape, named or source.dtype),)


def _dropped(op: Op) -> Tensors:
    x = op.tensor(0)
    return _dense(x.shape, x.dtype), _dense(x.shape, "bool")


# Position of the axes, and of `keepdim`, where they are not at 1 and 2.
_REDUCTION_ARGS: Final = {"norm": (2, 3), "var": (1, 3), "std": (1, 3)}
_WITH_DTYPE: Final = frozenset({"sum", "mean", "prod"})


def _reduced(op: Op) -> Tensors:
    x, word = op.tensor(0), base_word(op.name)
    at_axes, at_keep = _REDUCTION_ARGS.get(word, (1, 2))
    if word in {"amax", "amin"} and op.tensor_or_none(1) is not None:
        return _pointwise(op)
    axes: tuple[int, ...] = ()
    listed = op.arg(at_axes)
    if isinstance(listed, str) and listed not in {"True", "False"} and not (word in _WITH_DTYPE and len(op.args) == 2):
        axes = op.integers(at_axes)
    gone = {axis % max(len(x.shape), 1) for axis in axes} or set(range(len(x.shape)))
    keep = op.boolean(at_keep, default=False) if axes and op.arg(at_keep) is not None else False
    shape = tuple(1 if axis in gone else size for axis, size in enumerate(x.shape) if keep or axis not in gone)
    dtype = op.dtype(3) if word in _WITH_DTYPE and op.arg(3) not in (None, "") else x.dtype
    result = _dense(shape, {"any": "bool", "all": "bool", "argmax": "int64", "argmin": "int64"}.get(word, dtype))
    pair = word in {"amax", "amin"} and op.name.endswith(("::max", "::min")) and axes
    if pair:
        return result, _dense(shape, "int64")
    return (result, result) if op.name.endswith(("var_mean", "std_mean")) else (result,)


def _softmaxed(op: Op) -> Tensors:
    x = op.tensor(0)
    widened = op.name.startswith("aten::_") and op.arg(2) == "True"  # half_to_float
    named = op.dtype(2) if not op.name.startswith("aten::_") and op.arg(2) not in (None, "", "True", "False") else None
    return (_dense(x.shape, named or ("float32" if widened else x.dtype)),)


def _product(op: Op) -> Tensors:
    name = base_name(op.name)
    if name == "linear":
        x, w = op.tensor(0), op.tensor(1)
        return (_dense((*x.shape[:-1], w.shape[0]), x.dtype),)
    a, b = (
        (op.tensor(1), op.tensor(2))
        if name in {"addmm", "baddbmm", "_addmm_activation"}
        else (op.tensor(0), op.tensor(1))
    )
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise NoCostError(MALFORMED)
    batch = broadcast((a.shape[:-2], b.shape[:-2]))
    dtype = a.dtype if name not in {"_scaled_mm", "_int_mm"} else {"_int_mm": "int32"}.get(name, "bfloat16")
    return (_dense((*batch, a.shape[-2], b.shape[-1]), dtype),)


def base_name(name: str) -> str:
    """Name without its namespace and the mark of a call in place."""
    return name.rpartition("::")[2].removesuffix("_")


def _convolved(op: Op) -> Tensors:
    """Forward convolution with padding and stride as the record gives them (PyTorch: torch.nn.Conv2d)."""
    x, w = op.tensor(0), op.tensor(1)
    spatial = len(x.shape) - 2
    if spatial < 1 or len(w.shape) != len(x.shape):
        raise NoCostError(MALFORMED)
    cudnn = base_name(op.name) in {"cudnn_convolution", "miopen_convolution"}
    at = {"cudnn_convolution": (3, 2, 4), "miopen_convolution": (4, 3, 5)}.get(base_name(op.name), (3, 4, 5))
    if not cudnn and op.arg(6) == "True":
        raise NoCostError("result of a transposed convolution not derived")
    stride, padding, dilation = (_per_axis(op.integers(index), spatial) for index in at)
    sizes = tuple(
        (size + 2 * pad - dil * (kernel - 1) - 1) // step + 1
        for size, kernel, step, pad, dil in zip(x.shape[2:], w.shape[2:], stride, padding, dilation, strict=True)
    )
    return (_dense((x.shape[0], w.shape[0], *sizes), x.dtype),)


def _per_axis(values: tuple[int, ...], count: int) -> tuple[int, ...]:
    return values if len(values) == count else values * count


def _layer_normed(op: Op) -> Tensors:
    """The normalised tensor and the statistics of each row, which only a backward pass reads."""
    x = op.tensor(0)
    rows = x.shape[: len(x.shape) - len(op.integers(1))] if op.arg(1) not in (None, "") else x.shape[:-1]
    statistic = _dense((*rows, *(1,) * (len(x.shape) - len(rows))), "float32")
    return _dense(x.shape, x.dtype), statistic, statistic


def _joined(op: Op) -> Tensors:
    """Concatenation along the axis at 1; a stack has an axis more."""
    parts = op.tensor_list(0)
    if not parts:
        raise NoCostError(NO_SHAPES)
    shape = list(parts[0].shape)
    dtype = next((part.dtype for part in parts if part.dtype is not None), None)
    if base_name(op.name) == "stack":
        shape.insert(op.integer(1, 0) % (len(shape) + 1), len(parts))
        return (_dense(tuple(shape), dtype),)
    axis = op.integer(1, 0) % max(len(shape), 1)
    shape[axis] = sum(part.shape[axis] for part in parts if len(part.shape) == len(shape))
    return (_dense(tuple(shape), dtype),)


def _nll(op: Op) -> Tensors:
    x = op.tensor(0)
    scalar = _dense((), x.dtype)
    return (_dense(x.shape[:1], x.dtype) if op.arg(3) == "0" else scalar), scalar


_RULES: Final[dict[str, Callable[[Op], Tensors]]] = {
    **dict.fromkeys(
        sorted(_words("sum mean amax amin prod var std norm logsumexp any all argmax argmin")),
        _reduced,
    ),
    **dict.fromkeys(("softmax", "log_softmax"), _softmaxed),
    **dict.fromkeys(
        sorted(_words("softmax_backward log_softmax_backward cumsum batch_norm group_norm fill")),
        _like_first,
    ),
    **dict.fromkeys(sorted(_words("tril triu flip roll masked_fill rms_norm")), _like_first),
    **dict.fromkeys(("mm", "bmm"), _product),
    "conv": _convolved,
    "copy": _copied,
    "dropout": _dropped,
    "layer_norm": _layer_normed,
    "cat": _joined,
    "nll_loss": _nll,
}
