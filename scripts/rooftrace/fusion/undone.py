"""Casts that end where they began: their last result is their first input, so that nothing is left to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rooftrace.fusion.estimate import Estimate
from rooftrace.fusion.fused_time import FusedTime

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.fusion.meaning import Meaning
    from rooftrace.opmodels import Tensor

_MOVES: Final = frozenset({"copy", "cast"})
# Element types that hold every value of another one.
_HOLDS: Final = {
    "float16": frozenset({"float16", "float32", "float64"}),
    "bfloat16": frozenset({"bfloat16", "float32", "float64"}),
    "float32": frozenset({"float32", "float64"}),
}
# What makes a tensor of its own, which a caller can do without; a copy into a tensor that is there already cannot.
MAKES_NEW: Final = frozenset({"aten::to", "aten::_to_copy"})
_NOTE: Final = (
    "inferred: the last result equals the first input in shape and element type, and no step in between rounds"
)


def is_undone(calls: Sequence[Meaning]) -> bool:
    """Whether calls that data connects cast there and back, without rounding and in one layout."""
    if not all(call.word in _MOVES and call.reads and call.writes for call in calls):
        return False
    first, made = calls[0].reads[0], [call.writes[0] for call in calls]
    held = _HOLDS.get(first.dtype or "", frozenset())
    return (
        made[-1].dtype == first.dtype
        and all(tensor.dtype in held and tensor.shape == first.shape for tensor in made)
        and all(call.reads[0].shape == first.shape for call in calls)
        and _is_plain(first)
    )


def nothing_left(estimate: Estimate) -> Estimate:
    """The estimate where the calls just go."""
    nbytes = estimate.nbytes + estimate.inner_bytes
    return Estimate(
        time=FusedTime(ns=0, floor_ns=0, bound=estimate.time.bound),
        nbytes=0,
        inner_bytes=nbytes,
        dtype=estimate.dtype,
        notes=(*estimate.notes, _NOTE),
    )


def _is_plain(tensor: Tensor) -> bool:
    """Whether its elements lie row by row; strides that are not recorded are taken to say so."""
    step = 1
    for size, stride in zip(reversed(tensor.shape), reversed(tensor.strides or ()), strict=False):
        if size != 1 and stride != step:
            return False
        step *= size
    return True
