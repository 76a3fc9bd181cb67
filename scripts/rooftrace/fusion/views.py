"""Calls that launch nothing and give another view of a tensor: the shapes that they hand on."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from rooftrace.opmodels import NoCostError, Op, Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

_SAME: Final = (
    "detach alias lift_fresh contiguous to _to_copy dropout requires_grad_ type_as view_as_real_copy data clone "
    "dropout_ expand_dims positive resolve_conj resolve_neg"
)


def view_outputs(op: Op) -> tuple[Tensor, ...]:
    """Views that the call returns; `NoCostError` where its record does not tell."""
    rule = _RULES.get(op.name.removeprefix("aten::"))
    if rule is None:
        raise NoCostError("no view")
    try:
        return tuple(_viewed(op.tensor(0), shape) for shape in rule(op))
    except (ArithmeticError, LookupError, ValueError) as error:
        raise NoCostError("arguments not as the op defines them") from error


def is_view(name: str) -> bool:
    """Whether calls of this name give views when they launch nothing."""
    return name.removeprefix("aten::") in _RULES


def _viewed(source: Tensor, shape: tuple[int, ...]) -> Tensor:
    return source if shape == source.shape else replace(source, shape=shape, strides=None)


def _sized(op: Op) -> list[tuple[int, ...]]:
    sizes, numel = list(op.integers(1)), op.tensor(0).numel
    if sizes.count(-1) == 1:
        known = math.prod(size for size in sizes if size != -1)
        sizes[sizes.index(-1)] = numel // known if known else 0
    return [tuple(sizes)]


def _strided(op: Op) -> list[tuple[int, ...]]:
    return [op.integers(1)]


def _same(op: Op) -> list[tuple[int, ...]]:
    return [op.tensor(0).shape]


def _axis(op: Op, index: int, rank: int, default: int = 0) -> int:
    return op.integer(index, default) % max(rank, 1)


def _transposed(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    if len(op.args) < 3:
        return [tuple(reversed(shape))]
    a, b = _axis(op, 1, len(shape)), _axis(op, 2, len(shape))
    shape[a], shape[b] = shape[b], shape[a]
    return [tuple(shape)]


def _permuted(op: Op) -> list[tuple[int, ...]]:
    shape = op.tensor(0).shape
    return [tuple(shape[axis] for axis in op.integers(1))]


def _expanded(op: Op) -> list[tuple[int, ...]]:
    shape, sizes = op.tensor(0).shape, op.integers(1)
    padded = (1,) * (len(sizes) - len(shape)) + shape
    return [tuple(old if size == -1 else size for old, size in zip(padded, sizes, strict=True))]


def _unsqueezed(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    shape.insert(op.integer(1) % (len(shape) + 1), 1)
    return [tuple(shape)]


def _squeezed(op: Op) -> list[tuple[int, ...]]:
    shape = op.tensor(0).shape
    if op.arg(1) is None:
        return [tuple(size for size in shape if size != 1)]
    gone = {axis % max(len(shape), 1) for axis in op.integers(1)}
    return [tuple(size for axis, size in enumerate(shape) if axis not in gone or size != 1)]


def _sliced(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    axis, size = _axis(op, 1, len(shape)), shape[_axis(op, 1, len(shape))]
    start = op.integer(2, 0) if op.arg(2) is not None else 0
    end = op.integer(3, size) if op.arg(3) is not None else size
    begin, stop, _ = slice(start, end).indices(size)
    step = op.integer(4, 1) if op.arg(4) is not None else 1
    shape[axis] = max(0, -(-(stop - begin) // step))
    return [tuple(shape)]


def _selected(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    del shape[_axis(op, 1, len(shape))]
    return [tuple(shape)]


def _narrowed(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    shape[_axis(op, 1, len(shape))] = op.integer(3)
    return [tuple(shape)]


def _parts(op: Op, sizes: list[int], axis_at: int) -> list[tuple[int, ...]]:
    shape = op.tensor(0).shape
    axis = _axis(op, axis_at, len(shape))
    return [(*shape[:axis], size, *shape[axis + 1 :]) for size in sizes]


def _split(op: Op) -> list[tuple[int, ...]]:
    sizes = list(op.integers(1))
    if op.name.endswith("split") and len(sizes) == 1:
        shape = op.tensor(0).shape
        total, each = shape[_axis(op, 2, len(shape))], max(1, sizes[0])
        sizes = [min(each, total - at) for at in range(0, total, each)]
    return _parts(op, sizes, 2)


def _chunked(op: Op) -> list[tuple[int, ...]]:
    shape = op.tensor(0).shape
    total, count = shape[_axis(op, 2, len(shape))], max(1, op.integer(1))
    each = max(1, -(-total // count))
    return _parts(op, [min(each, total - at) for at in range(0, total, each)], 2)


def _unbound(op: Op) -> list[tuple[int, ...]]:
    shape = list(op.tensor(0).shape)
    count = shape.pop(_axis(op, 1, len(shape)))
    return [tuple(shape)] * count


def _flattened(op: Op) -> list[tuple[int, ...]]:
    shape = op.tensor(0).shape
    first, last = _axis(op, 1, len(shape)), _axis(op, 2, len(shape), -1)
    return [(*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :])]


_RULES: Final[dict[str, Callable[[Op], list[tuple[int, ...]]]]] = {
    **dict.fromkeys(_SAME.split(), _same),
    **dict.fromkeys(("view", "reshape", "_unsafe_view"), _sized),
    **dict.fromkeys(("as_strided", "_reshape_alias"), _strided),
    **dict.fromkeys(("transpose", "swapaxes", "t", "numpy_T"), _transposed),
    "permute": _permuted,
    **dict.fromkeys(("expand", "broadcast_to"), _expanded),
    "unsqueeze": _unsqueezed,
    "squeeze": _squeezed,
    "slice": _sliced,
    "select": _selected,
    "narrow": _narrowed,
    **dict.fromkeys(("split", "split_with_sizes"), _split),
    "chunk": _chunked,
    "unbind": _unbound,
    "flatten": _flattened,
}
