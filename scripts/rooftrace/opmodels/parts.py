"""Parts that models are made of: byte counts, broadcasting, promotion, and short names for example tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dtypes import ITEMSIZE, kind, promote
from .op import MALFORMED, NO_DTYPE, NO_LIST_DTYPE, NoCostError, Op, Tensor
from .registry import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable


def f32(*shape: int) -> Tensor:
    """A contiguous float32 tensor."""
    return Tensor(shape=shape, dtype="float32")


def bf16(*shape: int) -> Tensor:
    """A contiguous bfloat16 tensor."""
    return Tensor(shape=shape, dtype="bfloat16")


def fp8(*shape: int) -> Tensor:
    """A contiguous float8_e4m3fn tensor."""
    return Tensor(shape=shape, dtype="float8_e4m3fn")


def u8(*shape: int) -> Tensor:
    """A contiguous uint8 tensor."""
    return Tensor(shape=shape, dtype="uint8")


def i8(*shape: int) -> Tensor:
    """A contiguous int8 tensor."""
    return Tensor(shape=shape, dtype="int8")


def i32(*shape: int) -> Tensor:
    """A contiguous int32 tensor."""
    return Tensor(shape=shape, dtype="int32")


def i64(*shape: int) -> Tensor:
    """A contiguous int64 tensor."""
    return Tensor(shape=shape, dtype="int64")


def b8(*shape: int) -> Tensor:
    """A contiguous bool tensor."""
    return Tensor(shape=shape, dtype="bool")


def dtype_of(tensor: Tensor) -> str:
    """The element type, which must be recorded."""
    if tensor.dtype is None:
        raise NoCostError(NO_DTYPE)
    return tensor.dtype


def itemsize(dtype: str) -> int:
    """Bytes of one element."""
    return ITEMSIZE[dtype]


def size(*tensors: Tensor | None) -> int:
    """Bytes in memory of the tensors there are."""
    return sum(tensor.stored * ITEMSIZE[dtype_of(tensor)] for tensor in tensors if tensor is not None)


def fresh(tensor: Tensor) -> int:
    """Bytes of a new, dense tensor of this shape and dtype."""
    return tensor.numel * ITEMSIZE[dtype_of(tensor)]


def list_size(tensors: Iterable[Tensor]) -> int:
    """Bytes in memory of a tensor list, whose element types are often not recorded."""
    total = 0
    for tensor in tensors:
        if tensor.dtype is None:
            raise NoCostError(NO_LIST_DTYPE)
        total += tensor.stored * ITEMSIZE[tensor.dtype]
    return total


def require(condition: object, reason: str = MALFORMED) -> None:
    """Stop with ``reason`` unless the condition holds."""
    if not condition:
        raise NoCostError(reason)


def broadcast(shapes: Iterable[tuple[int, ...]]) -> tuple[int, ...]:
    """The shape that shapes broadcast to."""
    result: tuple[int, ...] = ()
    for shape in shapes:
        rank = max(len(result), len(shape))
        a = (1,) * (rank - len(result)) + result
        b = (1,) * (rank - len(shape)) + shape
        require(all(x == y or 1 in {x, y} for x, y in zip(a, b, strict=True)))
        result = tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))
    return result


def result_dtype(tensors: Iterable[Tensor], scalars: Iterable[str] = ()) -> str:
    """Element type of an elementwise result: tensors with dimensions decide, then 0-dim ones, then numbers.

    A lower tier matters only if its category (bool, integer, float, complex) is higher; PyTorch's rule
    (``torch.result_type``), with float32 as the default type.
    """
    known = list(tensors)
    tiers = (
        [dtype_of(tensor) for tensor in known if tensor.shape],
        [dtype_of(tensor) for tensor in known if not tensor.shape],
        [_dtype_of_number(text) for text in scalars],
    )
    result: str | None = None
    for tier in tiers:
        candidate = promote(tier)
        if candidate is not None and (result is None or kind(candidate) > kind(result)):
            result = candidate
    if result is None:
        raise NoCostError(MALFORMED)
    return result


def _dtype_of_number(text: str) -> str:
    if text in {"True", "False"}:
        return "bool"
    return "int64" if text.lstrip("+-").isdigit() else "float32"


def as_float(dtype: str) -> str:
    """``dtype`` if it is a floating-point type, else the default one: the result of exp or true division."""
    return dtype if kind(dtype) >= 2 else "float32"


def by_roles(op: Op, roles: str, *, main: int, flops_per_element: float) -> Cost:
    """Cost of an op that writes into its arguments: a letter an argument.

    ``o`` written, ``i`` read, ``x`` both, ``-`` neither. Arguments past the end of ``roles`` are neither. ``main`` is
    the argument whose elements are counted.
    """
    read = written = 0
    for index, role in enumerate(roles):
        tensor = op.tensor_or_none(index)
        if tensor is not None and role in "ix":
            read += size(tensor)
        if tensor is not None and role in "ox":
            written += size(tensor)
    counted = op.tensor(main)
    return Cost(
        flops=round(flops_per_element * counted.numel),
        bytes_read=read,
        bytes_written=written,
        precision=dtype_of(counted),
    )
