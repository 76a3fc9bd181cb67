"""Element types: one name for every spelling, sizes, and PyTorch's promotion rules.

The names are PyTorch's (``bfloat16``, ``float8_e4m3fn`` …). Nothing here guesses: an unknown spelling gives ``None``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

# Bytes of one element as PyTorch stores it. One `float4_e2m1fn_x2` element is a pair of 4-bit values in a byte.
ITEMSIZE: Final = {
    "bool": 1, "uint8": 1, "int8": 1, "uint16": 2, "int16": 2, "uint32": 4, "int32": 4, "uint64": 8, "int64": 8,
    "float4_e2m1fn_x2": 1, "float8_e4m3fn": 1, "float8_e4m3fnuz": 1, "float8_e5m2": 1, "float8_e5m2fnuz": 1,
    "float8_e8m0fnu": 1, "float16": 2, "bfloat16": 2, "float32": 4, "float64": 8,
    "complex32": 4, "complex64": 8, "complex128": 16,
}  # fmt: skip

# Spellings of profilers (C++ type names, with and without `c10::`) and of PyTorch's short forms.
_SPELLINGS: Final = {
    "float": "float32", "double": "float64", "half": "float16",
    "int": "int32", "long": "int64", "long int": "int64", "long long": "int64", "short": "int16",
    "short int": "int16", "signed char": "int8", "char": "int8", "byte": "uint8", "unsigned char": "uint8",
    "unsigned short": "uint16", "unsigned int": "uint32", "unsigned long": "uint64", "unsigned long int": "uint64",
    "complex<float>": "complex64", "complex<double>": "complex128", "complex<half>": "complex32",
    "complex<c10::half>": "complex32", "float4_e2m1fn": "float4_e2m1fn_x2",
}  # fmt: skip

# Numbers of `c10::ScalarType`, as concrete inputs give a dtype argument (c10/core/ScalarType.h).
_SCALAR_TYPES: Final = {
    0: "uint8", 1: "int8", 2: "int16", 3: "int32", 4: "int64", 5: "float16", 6: "float32", 7: "float64",
    8: "complex32", 9: "complex64", 10: "complex128", 11: "bool", 15: "bfloat16", 23: "float8_e5m2",
    24: "float8_e4m3fn", 25: "float8_e5m2fnuz", 26: "float8_e4m3fnuz", 27: "uint16", 28: "uint32", 29: "uint64",
    44: "float8_e8m0fnu", 45: "float4_e2m1fn_x2",
}  # fmt: skip

_FLOATS: Final = (
    "float8_e8m0fnu",
    "float8_e5m2",
    "float8_e4m3fn",
    "float16",
    "bfloat16",
    "float32",
    "float64",
)
_INTS: Final = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")


def normalise_dtype(text: str) -> str | None:
    """PyTorch's name of an element type spelled ``text``; ``None`` for an unknown spelling."""
    name = text.strip().lower()
    for prefix in ("c10::", "at::", "torch."):
        name = name.removeprefix(prefix)
    name = _SPELLINGS.get(name, name)
    return name if name in ITEMSIZE else None


def dtype_of_scalar_type(number: int) -> str | None:
    """Name of the element type that ``c10::ScalarType`` gives this number."""
    return _SCALAR_TYPES.get(number)


def kind(dtype: str) -> int:
    """Rank of the promotion category: 0 bool, 1 integer, 2 floating point, 3 complex."""
    if dtype == "bool":
        return 0
    if dtype in _INTS:
        return 1
    return 3 if dtype.startswith("complex") else 2


def promote(dtypes: Iterable[str]) -> str | None:
    """Element type that PyTorch computes in for operands of one priority; ``None`` for no operand."""
    result: str | None = None
    for dtype in dtypes:
        result = dtype if result is None else _promote_pair(result, dtype)
    return result


def _promote_pair(a: str, b: str) -> str:
    if a == b:
        return a
    if kind(a) != kind(b):
        return a if kind(a) > kind(b) else b
    if {a, b} == {"float16", "bfloat16"}:
        return "float32"
    if {a, b} & {"uint8"} and {a, b} & {"int8"}:
        return "int16"
    order = _FLOATS if kind(a) == 2 else _INTS
    if a in order and b in order:
        return max(a, b, key=order.index)
    return a if ITEMSIZE[a] >= ITEMSIZE[b] else b


# In a kernel's name: the C++ spelling of an element type as a template argument, the widest clue last.
_IN_KERNEL_NAME: Final = (
    (r"(?:c10::|__(?:nv|hip)_|hip_)B?[Ff]loat16\b|bfloat16_t|\bbf16\b", "bfloat16"),
    (r"c10::Half|\b__half\b|\bhalf_t\b", "float16"),
    (r"(?<![\w:])double(?!\w)", "float64"),
    (r"(?<![\w:])float(?!\w)", "float32"),
    (r"(?<![\w:])long(?!\w)", "int64"),
    (r"(?<![\w:])int(?=[,>])", "int32"),
)
_OPAQUE: Final = r"OpaqueType<(\d+)u?>"
_BY_WIDTH: Final = {1: "uint8", 2: "bfloat16", 4: "float32", 8: "float64", 16: "complex128"}


def dtype_in_kernel_name(name: str) -> str | None:
    """Element type that a kernel's name spells, for tensor lists, whose types profilers do not record.

    ``OpaqueType<n>`` (copies, which know only the width) gives a type of that width; so use it for bytes only.
    """
    opaque = re.search(_OPAQUE, name)
    if opaque:
        return _BY_WIDTH.get(int(opaque.group(1)))
    for pattern, dtype in _IN_KERNEL_NAME:
        if re.search(pattern, name):
            return dtype
    return None


def dtypes_in_kernel_name(name: str) -> frozenset[str]:
    """Every floating-point type that a kernel's name spells; none where it shows widths alone."""
    if re.search(_OPAQUE, name):
        return frozenset()
    return frozenset(dtype for pattern, dtype in _IN_KERNEL_NAME if kind(dtype) == 2 and re.search(pattern, name))
