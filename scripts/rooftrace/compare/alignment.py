"""Aligns two trees of slots level by level: modules, then what they call, then what is left between two matches."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.compare.kernelwise import Meeting, meetings, unlike_owned
from rooftrace.compare.leaves import Leaf
from rooftrace.compare.nodes import LEAF_WEIGHTS, WEIGHTS, Labels, Node, similarity
from rooftrace.compare.sequence import align

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

# Modules of other classes are the same module by another name if this much of what they call is the same.
_LEAST_ALIKE = 0.5
_MOST_IN_BLOCK = 24  # calls a side that are matched as a whole before their like is
_STRAY_WEIGHTS = (4, 3, 1)  # op, shapes and kernels; op and shapes; op
_MOST_MODULES = 200  # that are paired by content between two matches
# Graphs run branches in any order, and eager code what is between them: as many turns of the order are followed.
_MOST_TURNS = 12
# What may stand in for each other where single calls do not align.
_PRODUCTS = frozenset(("gemm", "attention", "moe", "convolution", "ssm"))
# What is written out in other products: attention as two of matrices and a softmax, the others as one for each part.
_WRITTEN_OUT = (frozenset(("attention",)), frozenset(("moe",)), frozenset(("convolution",)))
_ANYTHING = frozenset(("triton", "generic"))


class Pair(Struct, frozen=True, kw_only=True):
    """Slots that stand for each other; one side is empty where there is no counterpart.

    ``scope`` is the path of the module that has no counterpart as a whole; empty where the parent has one.
    """

    path: tuple[str, ...]
    base: tuple[Leaf, ...]
    target: tuple[Leaf, ...]
    scope: tuple[str, ...] = ()

    @property
    def is_block(self) -> bool:
        """Whether several calls were matched as one, since they do not align one by one."""
        return bool(self.base and self.target) and len(self.base) + len(self.target) > 2


def align_trees(base: Node, target: Node, labels: Labels) -> list[Pair]:
    """All slots of both sides, in pairs, each in exactly one."""
    pairs: list[Pair] = []
    todo = [(base, target)]
    while todo:
        ours, theirs = todo.pop()
        flat = ours.leaves(), theirs.leaves()
        if unlike_owned(*flat):
            pairs += _kernelwise(theirs.path or ours.path, flat, labels)
            continue
        matched = align(labels.matrix(ours.children), labels.matrix(theirs.children), WEIGHTS)
        for box in _boxes(matched, len(ours.children), len(theirs.children)):
            left, right = ours.children[box[0] : box[1]], theirs.children[box[2] : box[3]]
            pairs += _between(theirs.path or ours.path, left, right, (labels, todo))
        for at, other in matched:
            one, two = ours.children[at], theirs.children[other]
            if isinstance(one, Leaf) and isinstance(two, Leaf):
                pairs.append(Pair(path=two.path, base=(one,), target=(two,)))
            elif isinstance(one, Node) and isinstance(two, Node):
                todo.append((one, two))
    return _with_strays(pairs, labels)


def _kernelwise(path: tuple[str, ...], flat: tuple[list[Leaf], list[Leaf]], labels: Labels) -> Iterator[Pair]:
    """All slots below, aligned by their kernels, where a side has no ops for them."""
    ours, theirs = flat
    low = other_low = 0
    end = Meeting(base=(len(ours), len(ours)), target=(len(theirs), len(theirs)))
    for meeting in [*meetings(ours, theirs, labels), end]:
        (start, stop), (other_start, other_stop) = meeting.base, meeting.target
        left, right = ours[low:start], theirs[other_low:other_start]
        owned = all(leaf.op is not None for leaf in [*left, *right])
        # Kernels without an op may have run in another order: they are looked at again with all that is left.
        yield from _calls(path, left, right, labels) if owned else _only(left, right)
        yield from _block(path, ours[start:stop], theirs[other_start:other_stop])
        low, other_low = stop, other_stop


def _with_strays(pairs: Sequence[Pair], labels: Labels) -> list[Pair]:
    """The pairs, with slots left over on both sides paired where they call the same in another module, in order."""
    result = [pair for pair in pairs if pair.base and pair.target]
    left = [pair for pair in pairs if not pair.target]
    right = [pair for pair in pairs if not pair.base]
    matched: list[tuple[int, int]] = []
    if left and right:
        rows = [np.array([labels.of_stray(leaf) for leaf in side], dtype=np.int64).T for side in _alone(left, right)]
        matched = align(rows[0], rows[1], _STRAY_WEIGHTS)
    for at, other in matched:
        result.append(Pair(path=right[other].path, base=left[at].base, target=right[other].target))
    found, others = {at for at, _ in matched}, {other for _, other in matched}
    left = [pair for at, pair in enumerate(left) if at not in found]
    right = [pair for at, pair in enumerate(right) if at not in others]
    return [*result, *_moved(left, right, labels)]


def _moved(left: Sequence[Pair], right: Sequence[Pair], labels: Labels) -> Iterator[Pair]:
    """What is left, paired by kernels where a side has no ops for them, however often the order turns."""
    for _ in range(_MOST_TURNS):
        flat = _alone(left, right)
        found = meetings(*flat, labels) if unlike_owned(*flat) else []
        if not found:
            break
        for meeting in found:
            (low, high), (other_low, other_high) = meeting.base, meeting.target
            yield from _block(right[other_low].path, flat[0][low:high], flat[1][other_low:other_high])
        left = _outside(left, [meeting.base for meeting in found])
        right = _outside(right, [meeting.target for meeting in found])
    yield from left
    yield from right


def _outside(pairs: Sequence[Pair], ranges: Sequence[tuple[int, int]]) -> list[Pair]:
    inside = {at for low, high in ranges for at in range(low, high)}
    return [pair for at, pair in enumerate(pairs) if at not in inside]


def _alone(left: Sequence[Pair], right: Sequence[Pair]) -> tuple[list[Leaf], list[Leaf]]:
    return [pair.base[0] for pair in left], [pair.target[0] for pair in right]


def _boxes(matched: Sequence[tuple[int, int]], ours: int, theirs: int) -> Iterator[tuple[int, int, int, int]]:
    """What lies between two matches and is not empty."""
    low = other_low = 0
    for high, other_high in [*matched, (ours, theirs)]:
        if low < high or other_low < other_high:
            yield low, high, other_low, other_high
        low, other_low = high + 1, other_high + 1


def _between(
    path: tuple[str, ...],
    left: Sequence[Node | Leaf],
    right: Sequence[Node | Leaf],
    state: tuple[Labels, list[tuple[Node, Node]]],
) -> Iterator[Pair]:
    """What matches by content, then by single calls, then as a whole, of what matched by no label."""
    labels, todo = state
    if not left or not right:
        yield from _only(left, right)
        return
    renamed = _renamed(left, right)
    todo += [(one, two) for one, two, _ in renamed if isinstance(one, Node) and isinstance(two, Node)]
    matched = [(at, other) for _, _, (at, other) in renamed]
    for low, high, other_low, other_high in _boxes(matched, len(left), len(right)):
        yield from _calls(path, left[low:high], right[other_low:other_high], labels)


def _renamed(
    left: Sequence[Node | Leaf], right: Sequence[Node | Leaf]
) -> list[tuple[Node | Leaf, Node | Leaf, tuple[int, int]]]:
    """Modules that call much the same, in order."""
    ours = [at for at, item in enumerate(left) if isinstance(item, Node)][:_MOST_MODULES]
    theirs = [at for at, item in enumerate(right) if isinstance(item, Node)][:_MOST_MODULES]
    found: list[tuple[Node | Leaf, Node | Leaf, tuple[int, int]]] = []
    place = 0
    for at in ours:
        for later in range(place, len(theirs)):
            one, two = left[at], right[theirs[later]]
            if isinstance(one, Node) and isinstance(two, Node) and similarity(one, two) >= _LEAST_ALIKE:
                found.append((one, two, (at, theirs[later])))
                place = later + 1
                break
    return found


def _calls(
    path: tuple[str, ...], left: Sequence[Node | Leaf], right: Sequence[Node | Leaf], labels: Labels
) -> Iterator[Pair]:
    """The slots below, aligned without their modules."""
    if not left or not right:
        yield from _only(left, right)
        return
    ours, theirs = _flat(left), _flat(right)
    rows = [np.array([labels.of_leaf(leaf) for leaf in side], dtype=np.int64).T for side in (ours, theirs)]
    matched = align(rows[0], rows[1], LEAF_WEIGHTS)
    sure = [pair for pair in matched if _is_sure(ours[pair[0]], theirs[pair[1]])]
    for box in _boxes(sure, len(ours), len(theirs)):
        inside = [pair for pair in matched if box[0] <= pair[0] < box[1] and box[2] <= pair[1] < box[3]]
        yield from _loosely(path, ours, theirs, (box, inside))
    for at, other in sure:
        yield Pair(path=theirs[other].path, base=(ours[at],), target=(theirs[other],))


def _is_sure(one: Leaf, two: Leaf) -> bool:
    """Whether two slots match by name, by kernels or, where an op is not known, by what the kernels do."""
    unknown = one.op is None or two.op is None
    return one.name == two.name or one.kernels == two.kernels or (unknown and one.kinds == two.kinds)


def _loosely(
    path: tuple[str, ...],
    ours: Sequence[Leaf],
    theirs: Sequence[Leaf],
    found: tuple[tuple[int, int, int, int], list[tuple[int, int]]],
) -> Iterator[Pair]:
    """What lies between two sure matches: pairs of the like if that leaves nothing over, else a few calls as one."""
    (low, high, other_low, other_high), matched = found
    complete = len(matched) == high - low == other_high - other_low
    if not complete and max(high - low, other_high - other_low) <= _MOST_IN_BLOCK:
        yield from _block(path, ours[low:high], theirs[other_low:other_high])
        return
    for at, other in matched:
        yield Pair(path=theirs[other].path, base=(ours[at],), target=(theirs[other],))
    shifted = [(at - low, other - other_low) for at, other in matched]
    for box in _boxes(shifted, high - low, other_high - other_low):
        left, right = ours[low + box[0] : low + box[1]], theirs[other_low + box[2] : other_low + box[3]]
        yield from _block(path, left, right)


def _block(path: tuple[str, ...], ours: Sequence[Leaf], theirs: Sequence[Leaf]) -> Iterator[Pair]:
    """Several calls as one where they may do the same work; communication and copies only with their like."""
    for part in ("compute", "communication", "copy"):
        left = [leaf for leaf in ours if leaf.part == part]
        right = [leaf for leaf in theirs if leaf.part == part]
        if left and right and _may_be_same(left, right):
            yield Pair(path=path, base=tuple(left), target=tuple(right))
        else:
            yield from _only(left, right)


def _may_be_same(left: Sequence[Leaf], right: Sequence[Leaf]) -> bool:
    ours, theirs = {leaf.category for leaf in left}, {leaf.category for leaf in right}
    if (ours | theirs) & _ANYTHING or left[0].part != "compute":
        return True
    if len(left) == len(right) == 1:
        return ours == theirs
    if (ours in _WRITTEN_OUT and "gemm" in theirs) or (theirs in _WRITTEN_OUT and "gemm" in ours):
        return True
    return bool(ours & theirs) or (not ours <= _PRODUCTS and not theirs <= _PRODUCTS)


def _only(left: Sequence[Node | Leaf], right: Sequence[Node | Leaf]) -> Iterator[Pair]:
    """One pair a slot that has no counterpart."""
    for items, is_base in ((left, True), (right, False)):
        for item in items:
            scope = () if isinstance(item, Leaf) else item.path
            for leaf in _flat([item]):
                alone = (leaf,)
                yield Pair(
                    path=leaf.path,
                    base=alone if is_base else (),
                    target=() if is_base else alone,
                    scope=scope,
                )


def _flat(items: Sequence[Node | Leaf]) -> list[Leaf]:
    return [leaf for item in items for leaf in ([item] if isinstance(item, Leaf) else item.leaves())]
