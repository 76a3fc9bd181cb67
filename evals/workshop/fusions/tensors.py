"""Tensors with an identity: a storage that views share, and a version that counts how often it was written."""

from __future__ import annotations

import math
from dataclasses import dataclass

WIDTH = {"f32": 4, "bf16": 2, "f16": 2, "i64": 8, "i32": 4, "bool": 1, "i8": 1, "u8": 1, "f8": 1, "c64": 8}
KINETO = {
    "f32": "float", "bf16": "c10::BFloat16", "f16": "c10::Half", "i64": "long int", "i32": "int", "bool": "bool",
    "i8": "signed char", "u8": "unsigned char", "f8": "c10::Float8_e4m3fn", "c64": "c10::complex<float>",
}  # fmt: skip
CPP = {**KINETO, "i64": "long"}


@dataclass(eq=False)
class Storage:
    """Memory that tensors look at; ``version`` is 0 for what was there before the trace."""

    nbytes: int
    version: int = 0


@dataclass(frozen=True, eq=False)
class Tensor:
    """Sizes, element type and strides of a look at a storage."""

    shape: tuple[int, ...]
    dtype: str
    strides: tuple[int, ...]
    storage: Storage

    @property
    def numel(self) -> int:
        """Elements as an op sees them."""
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of the distinct elements: an expanded axis counts once."""
        pairs = zip(self.shape, self.strides, strict=True)
        return math.prod(size for size, stride in pairs if stride) * WIDTH[self.dtype]

    @property
    def is_dense(self) -> bool:
        """Whether the elements lie in order without holes."""
        return self.strides == dense(self.shape)

    def viewed(self, shape: tuple[int, ...]) -> Tensor:
        """Other sizes of a dense tensor."""
        return Tensor(shape, self.dtype, dense(shape), self.storage)

    def permuted(self, *axes: int) -> Tensor:
        """The axes in another order."""
        shape = tuple(self.shape[axis] for axis in axes)
        return Tensor(shape, self.dtype, tuple(self.strides[axis] for axis in axes), self.storage)

    def narrowed(self, axis: int, size: int) -> Tensor:
        """A part along an axis."""
        axis %= len(self.shape)
        shape = (*self.shape[:axis], size, *self.shape[axis + 1 :])
        return Tensor(shape, self.dtype, self.strides, self.storage)

    def expanded(self, shape: tuple[int, ...]) -> Tensor:
        """Axes of one element repeated without a copy."""
        missing = len(shape) - len(self.shape)
        padded = tuple(zip((1,) * missing + self.shape, (0,) * missing + self.strides, strict=True))
        strides = tuple(
            0 if size == 1 and new > 1 else stride for (size, stride), new in zip(padded, shape, strict=True)
        )
        return Tensor(shape, self.dtype, strides, self.storage)


def dense(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Row-major strides."""
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))


def tensor(shape: tuple[int, ...], dtype: str) -> Tensor:
    """A new dense tensor."""
    return Tensor(shape, dtype, dense(shape), Storage(math.prod(shape) * WIDTH[dtype]))
