"""An operator call as a profiler recorded it: name, tensors, and the text of scalar arguments.

Everything is checked when it is read: ``op_from_record`` turns what a trace file holds, whatever that is, into
records of known form, and the accessors of ``Op`` raise ``NoCostError`` with a reason, never anything else.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final, TypeVar

from msgspec import Struct

from .dtypes import ITEMSIZE, dtype_of_scalar_type, normalise_dtype

if TYPE_CHECKING:
    from collections.abc import Sequence

_T = TypeVar("_T")

NO_SHAPES: Final = "shapes not recorded"
NO_DTYPE: Final = "dtype not recorded"
NO_LIST_DTYPE: Final = "dtype of the tensor list not recorded"
NO_SCALARS: Final = "scalar arguments not recorded"
MALFORMED: Final = "arguments not as the op defines them"
NO_LENGTHS: Final = "needs sequence lengths"


class NoCostError(Exception):
    """The cost of an op cannot be derived; ``str()`` is the reason, one of few so that reports can add up by it."""


class Tensor(Struct, frozen=True, kw_only=True):
    """Shape, element type (PyTorch's name, ``None`` if not recorded) and strides in elements, if recorded."""

    shape: tuple[int, ...]
    dtype: str | None
    strides: tuple[int, ...] | None = None

    @property
    def numel(self) -> int:
        """Number of elements of the view."""
        return math.prod(self.shape)

    @property
    def stored(self) -> int:
        """Number of distinct elements in memory that the view touches: expanded and overlapping ones count once."""
        if self.strides is None or not self.numel:
            return self.numel
        distinct = math.prod(n for n, stride in zip(self.shape, self.strides, strict=True) if stride)
        span = 1 + sum((n - 1) * abs(stride) for n, stride in zip(self.shape, self.strides, strict=True))
        return min(distinct, span)

    @property
    def nbytes(self) -> int | None:
        """Bytes of memory that the view touches; ``None`` when the dtype is not recorded."""
        return None if self.dtype is None else self.stored * ITEMSIZE[self.dtype]


# A tensor, a list of tensors, the text of a scalar ("" when the trace holds no text for it), or nothing.
Arg = Tensor | tuple[Tensor, ...] | str | None


class Op(Struct, frozen=True, kw_only=True):
    """One operator call."""

    name: str
    args: tuple[Arg, ...]
    output: Tensor | None = None  # the result, where a neighbouring call tells it; read only if scalars are missing

    def arg(self, index: int) -> Arg:
        """The argument at ``index``, ``None`` past the end."""
        return self.args[index] if index < len(self.args) else None

    def has_tensor(self, index: int) -> bool:
        """Whether the argument at ``index`` is a tensor."""
        return isinstance(self.arg(index), Tensor)

    def tensor(self, index: int) -> Tensor:
        """The tensor at ``index``."""
        arg = self.arg(index)
        if not isinstance(arg, Tensor):
            raise NoCostError(MALFORMED if self.tensors() else NO_SHAPES)
        return arg

    def tensor_or_none(self, index: int) -> Tensor | None:
        """The tensor at ``index``, or ``None`` where there is none."""
        arg = self.arg(index)
        return arg if isinstance(arg, Tensor) else None

    def tensor_list(self, index: int) -> tuple[Tensor, ...]:
        """The tensor list at ``index``; an absent one is empty."""
        arg = self.arg(index)
        if arg is None or isinstance(arg, tuple):
            return arg or ()
        raise NoCostError(MALFORMED)

    def tensors(self) -> tuple[Tensor, ...]:
        """Every tensor among the arguments, those in lists included, in order."""
        found: list[Tensor] = []
        for arg in self.args:
            if isinstance(arg, Tensor):
                found.append(arg)
            elif isinstance(arg, tuple):
                found.extend(arg)
        return tuple(found)

    def text(self, index: int) -> str | None:
        """The text of the scalar at ``index``; ``None`` where there is nothing."""
        arg = self.arg(index)
        if arg == "":
            raise NoCostError(NO_SCALARS)
        return arg if isinstance(arg, str) else None

    def integer(self, index: int, default: int | None = None) -> int:
        """The integer at ``index``."""
        text = self.text(index)
        if text is None:
            return _defaulted(default)
        value = _number(text)
        if value is None or not value.is_integer():
            raise NoCostError(MALFORMED)
        return int(text) if text.lstrip("+-").isdigit() else int(value)

    def number(self, index: int, default: float | None = None) -> float:
        """The number at ``index``."""
        text = self.text(index)
        if text is None:
            return _defaulted(default)
        value = _number(text)
        if value is None:
            raise NoCostError(MALFORMED)
        return value

    def boolean(self, index: int, *, default: bool | None = None) -> bool:
        """The boolean at ``index``: the text ``False`` is false."""
        text = self.text(index)
        if text is None:
            return _defaulted(default)
        if text not in _BOOLEANS:
            raise NoCostError(MALFORMED)
        return _BOOLEANS[text]

    def integers(self, index: int, default: tuple[int, ...] | None = None) -> tuple[int, ...]:
        """The integer list at ``index``; a single integer is a list of one."""
        text = self.text(index)
        if text is None:
            return _defaulted(default)
        inner = text.strip().removeprefix("[").removesuffix("]").strip()
        parts = [part.strip() for part in inner.split(",")] if inner else []
        if not all(part.lstrip("+-").isdigit() and part.isascii() and len(part) < 20 for part in parts):
            raise NoCostError(MALFORMED)
        return tuple(int(part) for part in parts)

    def numbers(self, index: int) -> tuple[float, ...]:
        """The list of numbers at ``index``."""
        text = self.text(index)
        if text is None:
            raise NoCostError(NO_SCALARS)
        values = tuple(_number(part) for part in text.strip("[] ").split(",") if part.strip())
        known = tuple(value for value in values if value is not None)
        if len(known) != len(values):
            raise NoCostError(MALFORMED)
        return known

    def booleans(self, index: int, count: int) -> tuple[bool, ...]:
        """The list of ``count`` booleans at ``index``."""
        text = self.text(index)
        parts = [] if text is None else [part.strip() for part in text.strip("[] ").split(",")]
        if len(parts) != count or not all(part in _BOOLEANS for part in parts):
            raise NoCostError(NO_SCALARS if text is None else MALFORMED)
        return tuple(_BOOLEANS[part] for part in parts)

    def dtype(self, index: int) -> str | None:
        """The element type that a dtype argument names; ``None`` where there is none."""
        text = self.text(index)
        if text is None:
            return None
        return dtype_of_scalar_type(int(text)) if text.isascii() and text.isdigit() else normalise_dtype(text)


_BOOLEANS: Final = {"True": True, "False": False, "true": True, "false": False, "1": True, "0": False}


def _defaulted(default: _T | None) -> _T:
    if default is None:
        raise NoCostError(NO_SCALARS)
    return default


def _number(text: str) -> float | None:
    """The finite value of a numeric text; ``None`` for any other text."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_SCALAR_KINDS: Final = frozenset({"Scalar", "ScalarList", "Int", "Double", "Bool", "IntList", "BoolList", "String"})


def op_from_record(
    name: str,
    dims: Sequence[object] | None,
    types: Sequence[object] | None,
    strides: Sequence[object] | None,
    concrete: Sequence[object] | None,
) -> Op:
    """The op of a decoded trace event: ``Input Dims``, ``Input type``, ``Input Strides``, ``Concrete Inputs``.

    Any of the lists may be missing or short. A scalar whose text is not recorded becomes ``""``, an absent optional
    ``None``; entries of a form no profiler writes become ``None``. Where no concrete inputs are recorded at all, an
    entry without a type may be a list of numbers as well as an absent optional: it is not recorded.
    """
    count = max(len(dims or ()), len(types or ()))
    args = tuple(_arg(_entry(dims, i), _entry(types, i), _entry(strides, i), _entry(concrete, i)) for i in range(count))
    if not isinstance(concrete, list):
        args = tuple("" if arg is None else arg for arg in args)
    return Op(name=name, args=args)


def _entry(values: Sequence[object] | None, index: int) -> object:
    return values[index] if isinstance(values, list) and index < len(values) else None


def _arg(dims: object, type_name: object, strides: object, concrete: object) -> Arg:
    type_text = type_name if isinstance(type_name, str) else ""
    text = concrete if isinstance(concrete, str) and concrete else None
    if type_text in _SCALAR_KINDS:
        return text or ""
    if type_text == "TensorList" or (isinstance(dims, list) and dims and isinstance(dims[0], list)):
        return _tensor_list(dims, strides)
    dtype = normalise_dtype(type_text) if type_text else None
    shape = _sizes(dims)
    if shape is None or (not shape and dtype is None):
        return text
    return Tensor(shape=shape, dtype=dtype, strides=_strides(strides, shape))


def _tensor_list(dims: object, strides: object) -> tuple[Tensor, ...]:
    shapes = [_sizes(entry) for entry in dims] if isinstance(dims, list) else []
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return ()
    per_tensor = strides if isinstance(strides, list) else []
    return tuple(
        Tensor(shape=shape, dtype=None, strides=_strides(_entry(per_tensor, i), shape)) for i, shape in enumerate(known)
    )


def _sizes(value: object) -> tuple[int, ...] | None:
    if not isinstance(value, list) or not all(type(n) is int and n >= 0 for n in value):
        return None
    return tuple(value)


def _strides(value: object, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) != len(shape) or not all(type(n) is int for n in value):
        return None
    return tuple(value)
