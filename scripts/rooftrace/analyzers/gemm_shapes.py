"""M, N, K of a matrix product from its recorded shapes, and whether they suit the matrix units."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace import opmodels

if TYPE_CHECKING:
    from rooftrace.calltree import OpGroup
    from rooftrace.contracts.base import EvidenceValue

# Position of the first factor; the second follows it. `linear` holds its weight transposed.
_FIRST_FACTOR = {
    "aten::mm": 0,
    "aten::bmm": 0,
    "aten::addmm": 1,
    "aten::baddbmm": 1,
    "aten::linear": 0,
    "aten::_scaled_mm": 0,
}
# Both factors are activations: neither is a weight.
_BATCHED = frozenset({"aten::bmm", "aten::baddbmm"})
# Matrix units are fed 16 bytes at a time along the dimension that is contiguous in memory: 8 elements at 16 bits, 4 at
# 32. At 8 bits it is 16, of which 8 is asked here.
_LOAD_BYTES = 16
_STEP = 8
_MATRIX_RANK = 2
_MAX_SIZE = 1 << 40  # above it, not a size but damage


def gemm_evidence(group: OpGroup) -> dict[str, EvidenceValue]:
    """``m``, ``n``, ``k``, ``misaligned``, ``odd_dims``, ``batched`` where the op's shapes give them, else nothing.

    M counts for the alignment only where the first factor is stored transposed; else no operand is contiguous along it.
    """
    at = _FIRST_FACTOR.get(group.name)
    dims = group.inputs.dims if group.inputs is not None else None
    if at is None or group.inputs is None or not isinstance(dims, list) or len(dims) < at + 2:
        return {}
    first, second = dims[at], dims[at + 1]
    if not (_is_shape(first) and _is_shape(second)):
        return {}
    rows = 1
    for size in first[:-1] if group.name == "aten::linear" else first[-2:-1]:
        rows *= size
    n = second[0] if group.name == "aten::linear" else second[-1]
    k = first[-1]
    step = _step_of(_entry(group.inputs.types, at))
    # One column is a vector: K is what is contiguous, and no padding of N helps.
    contiguous = {"N": n, "K": k} if n > 1 else {"K": k}
    if _is_transposed(_entry(group.inputs.strides, at)):
        contiguous = {"M": rows, **contiguous}
    odd = [name for name, size in contiguous.items() if size % step]
    return {
        "m": rows,
        "n": n,
        "k": k,
        "misaligned": bool(odd),
        "odd_dims": ", ".join(odd),
        "batched": is_batched(group),
    }


def is_batched(group: OpGroup) -> bool:
    """Whether the op multiplies batches of activations, none of them a weight."""
    return group.name in _BATCHED


def _entry(values: object, at: int) -> object:
    return values[at] if isinstance(values, list) and at < len(values) else None


def _is_transposed(strides: object) -> bool:
    return isinstance(strides, list) and len(strides) >= _MATRIX_RANK and strides[-2] == 1 != strides[-1]


def _step_of(type_name: object) -> int:
    dtype = opmodels.normalise_dtype(type_name) if isinstance(type_name, str) else None
    return min(_STEP, _LOAD_BYTES // opmodels.ITEMSIZE[dtype]) if dtype else _STEP


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= _MATRIX_RANK
        and all(type(size) is int and 0 < size <= _MAX_SIZE for size in value)
    )
