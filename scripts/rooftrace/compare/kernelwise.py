"""Aligns calls kernel by kernel, where a side does not say which op launched what (a graph was replayed).

An op stands for the kernels it launched; without ops every kernel is a call of its own. Kernels are aligned by order,
and calls whose kernels meet belong together, however many there are on either side.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.compare.sequence import align

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.compare.leaves import Leaf
    from rooftrace.compare.nodes import Labels

# Op and shapes; op; kernel; what it does, where the base or the target has no op.
_WEIGHTS = (12, 8, 6, 4, 4)
# Kernels that come with others: they clear what is summed into, or finish a product.
_CLEARS, _FINISHES = ("fill",), ("split-K reduction",)
_BESIDE = frozenset((*_CLEARS, *_FINISHES))
_CLEARED = frozenset(("gemm", "reduction", "layer norm backward", "convolution"))
# A kernel more or less without an op changes nothing: from this share on, of a side's more than of the other's.
_LEAST_UNOWNED = 0.02


class Meeting(Struct, frozen=True, kw_only=True):
    """Calls that belong together, as ranges of positions."""

    base: tuple[int, int]
    target: tuple[int, int]


def unlike_owned(ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> bool:
    """Whether many more kernels of one side than of the other belong to no op."""
    return abs(_unowned(ours) - _unowned(theirs)) > _LEAST_UNOWNED


def _unowned(leaves: Sequence[Leaf]) -> float:
    sizes = [(len(leaf.kernels), leaf.op is None) for leaf in leaves if leaf.part == "compute"]
    return sum(size for size, alone in sizes if alone) / max(1, sum(size for size, _ in sizes))


def meetings(ours: Sequence[Leaf], theirs: Sequence[Leaf], labels: Labels) -> list[Meeting]:
    """Calls whose kernels align, in order; no call is in two of them."""
    units, other_units = _units(ours), _units(theirs)
    base, base_owner = _kernels(ours, units, labels, is_base=True)
    target, target_owner = _kernels(theirs, other_units, labels, is_base=False)
    found: list[Meeting] = []
    for at, other in align(base, target, _WEIGHTS):
        one, two = units[base_owner[at]], other_units[target_owner[other]]
        if found and (one[0] < found[-1].base[1] or two[0] < found[-1].target[1]):
            last = found.pop()
            one = (last.base[0], max(last.base[1], one[1]))
            two = (last.target[0], max(last.target[1], two[1]))
        found.append(Meeting(base=one, target=two))
    return found


def _units(leaves: Sequence[Leaf]) -> list[tuple[int, int]]:
    """Ranges of calls that are one: an op, or a kernel without one, what clears its output and what finishes it."""
    found: list[tuple[int, int]] = []
    for at, leaf in enumerate(leaves):
        joins = bool(found) and leaf.op is None and leaves[at - 1].op is None
        if joins and (leaf.kinds == _FINISHES or (leaves[at - 1].kinds == _CLEARS and leaf.kinds[0] in _CLEARED)):
            found[-1] = (found[-1][0], at + 1)
        else:
            found.append((at, at + 1))
    return found


def _kernels(
    leaves: Sequence[Leaf], units: Sequence[tuple[int, int]], labels: Labels, *, is_base: bool
) -> tuple[NDArray[np.int64], list[int]]:
    """Labels of the kernels that tell what a unit does, one row a level, and the unit of each."""
    columns: list[tuple[int, ...]] = []
    owner: list[int] = []
    for number, (low, high) in enumerate(units):
        kernels = [
            (leaf, short, kind)
            for leaf in leaves[low:high]
            for short, kind in zip(leaf.kernels, leaf.kinds, strict=True)
        ]
        telling = [entry for entry in kernels if entry[2] not in _BESIDE]
        for leaf, short, kind in telling or kernels:
            columns.append(_labels_of(leaf, short, kind, (labels, is_base)))
            owner.append(number)
    return np.array(columns, dtype=np.int64).reshape(len(columns), len(_WEIGHTS)).T, owner


def _labels_of(leaf: Leaf, short: str, kind: str, state: tuple[Labels, bool]) -> tuple[int, ...]:
    labels, is_base = state
    does, alone = labels.of("does", kind, leaf.part), leaf.op is None
    return (
        -1 if alone else labels.of("shaped kernel", leaf.name, leaf.shapes, kind),
        -1 if alone else labels.of("kernel of", leaf.name, kind),
        labels.of("kernel", short, leaf.part),
        does if is_base or alone else -1,
        does if alone or not is_base else -1,
    )
