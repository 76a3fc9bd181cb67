"""M, N, K of a matrix product from its recorded shapes, and whether they suit the matrix units."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
# Tensor-core and matrix-core instructions take K and N in steps of 8 elements at 16 bits, 16 at 8 bits.
_STEP = 8
_MATRIX_RANK = 2


def gemm_evidence(group: OpGroup) -> dict[str, EvidenceValue]:
    """``m``, ``n``, ``k``, ``misaligned`` where the op's shapes give them, else nothing."""
    at = _FIRST_FACTOR.get(group.name)
    dims = group.inputs.dims if group.inputs is not None else None
    if at is None or not isinstance(dims, list) or len(dims) < at + 2:
        return {}
    first, second = dims[at], dims[at + 1]
    if not (_is_shape(first) and _is_shape(second)):
        return {}
    rows = 1
    for size in first[:-1] if group.name == "aten::linear" else first[-2:-1]:
        rows *= size
    n = second[0] if group.name == "aten::linear" else second[-1]
    k = first[-1]
    return {"m": rows, "n": n, "k": k, "misaligned": any(size % _STEP for size in (rows, n, k))}


def _is_shape(value: object) -> bool:
    return (
        isinstance(value, list)
        and len(value) >= _MATRIX_RANK
        and all(isinstance(size, int) and size > 0 for size in value)
    )
