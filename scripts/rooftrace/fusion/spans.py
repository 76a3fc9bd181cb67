"""Stretches of consecutive calls that may be one kernel: those that fit a composition, and runs without one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import PHASES
from rooftrace.fusion.calls import Calls, FusionInputs, module_mask
from rooftrace.fusion.compositions import Alphabet, Composition, find_all, find_longest
from rooftrace.fusion.owners import ddp_copies, optimizers
from rooftrace.fusion.tokens import BARRIER, OPAQUE, SETS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

_SHORTEST_LOOP = 4  # calls below which no composition of the loop kind fits
_LOOP = 8  # equal calls from which on they are a loop
_LONGEST = 48  # calls of a run without a composition

# What damage may make of a size.
_MOST = 1 << 62


class Spans(Struct, frozen=True, kw_only=True):
    """Stretches of one composition (none: a run without one), by first and last call; ``scope`` is what they lie in."""

    composition: Composition | None
    first: NDArray[np.int64]
    last: NDArray[np.int64]
    scope: NDArray[np.int64]


class Places:
    """Where calls are made: threads, scopes, and the module instance around several; by which optimizer, or by DDP."""

    def __init__(self, run: FusionInputs, calls: Calls) -> None:
        self.run, self.calls, tree = run, calls, run.tree
        self._lanes = _changes(calls.lane)
        self._scopes = _changes(calls.scope)
        modules = module_mask(run)
        self._module = tree.innermost(modules)
        above = np.where(tree.parent >= 0, tree.parent, 0)
        self._outer = np.where(tree.parent >= 0, self._module[above], -1) if tree.row.size else self._module
        numel = np.array([min(m.writes[0].numel, _MOST) if m.writes else -1 for m in calls.meanings], dtype=np.int64)
        self.sizes = _changes(numel[calls.meaning]) if calls.meaning.size else calls.meaning
        self.by_ddp = ddp_copies(run, calls)
        self._optimizer, self._classes = optimizers(run, calls)

    def may_be_of(self, composition: Composition) -> NDArray[np.bool_]:
        """Calls that no optimizer makes of which the composition is not."""
        wanted = composition.file.optimizers
        fitting = [not wanted or not name or name.lower() in wanted for name in self._classes]
        return np.array(fitting, dtype=bool)[self._optimizer]

    def common(self, first: NDArray[np.int64], last: NDArray[np.int64]) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Whether calls from ``first`` to ``last`` belong together, and the scope that they share."""
        calls, tree = self.calls, self.run.tree
        whole = (self._lanes[first] == self._lanes[last]) & (calls.queue[first] == calls.queue[last])
        whole &= calls.node[first] >= 0
        same = self._scopes[first] == self._scopes[last]
        scope = np.where(same, calls.scope[first], -1)
        wide = np.flatnonzero(whole & ~same)
        module = self._module[calls.node[first[wide]]]
        until = tree.end[calls.node[last[wide]]]
        while True:
            short = (module >= 0) & (tree.end[np.maximum(module, 0)] < until)
            if not short.any():
                break
            module[short] = self._outer[module[short]]
        scope[wide] = module
        together = whole.copy()
        together[wide] = module >= 0
        return together, scope


def _only_moves(composition: Composition) -> bool:
    """Whether a composition is of copies and casts alone."""
    words = {part for parts in composition.words for part in parts if part[0].isalpha()}
    return words <= {"move", *SETS["move"]}


def _changes(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of changes before each entry."""
    return np.r_[0, np.cumsum(np.diff(values) != 0)] if values.size else values


def find_spans(places: Places, compositions: Sequence[Composition]) -> list[Spans]:
    """All stretches that fit a composition, overlapping ones included."""
    calls = places.calls
    if not calls.meaning.size:
        return []
    alphabet = Alphabet()
    words = [None if m.word in (BARRIER, OPAQUE) else m.word for m in calls.meanings]
    numbers = np.where(places.by_ddp, len(words), calls.meaning)
    text = alphabet.encode([*words, None], numbers.tolist())
    found = []
    parts = _parts(calls)
    for composition in compositions:
        if composition.is_of_one_word:
            first, last = _loops(places)
        else:
            is_loop = composition.file.kind == "loop"
            fitting = (
                find_longest(composition, text, alphabet, parts) if is_loop else find_all(composition, text, alphabet)
            )
            pairs = np.array(list(fitting), dtype=np.int64).reshape(-1, 2)
            first, last = pairs[:, 0], pairs[:, 1]
        if _only_moves(composition):
            like = places.sizes[first] == places.sizes[last]  # what moves other numbers of elements is no chain
            first, last = first[like], last[like]
        found.append(_kept(places, composition, first, last))
    return [spans for spans in found if spans.first.size]


def find_runs(places: Places, taken: NDArray[np.bool_]) -> Spans:
    """Longest stretches of calls that a generated kernel can take in, without those that are taken."""
    calls = places.calls
    able = _fusable(places) & ~taken
    apart = (np.diff(calls.queue) != 0) | (np.diff(calls.scope) != 0) | (np.diff(calls.lane) != 0)
    return _kept(places, None, *_stretches(able, apart, at_least=2, at_most=_LONGEST))


def _kept(places: Places, composition: Composition | None, first: NDArray[np.int64], last: NDArray[np.int64]) -> Spans:
    together, scope = places.common(first, last)
    if composition is not None:
        together &= places.may_be_of(composition)[first]
    if composition is not None and composition.file.phases:
        wanted = [PHASES.index(phase) for phase in composition.file.phases]
        nodes = places.calls.node[first]
        together &= (nodes >= 0) & np.isin(places.run.context.phase[np.maximum(nodes, 0)], wanted)
    return Spans(composition=composition, first=first[together], last=last[together], scope=scope[together])


def _fusable(places: Places) -> NDArray[np.bool_]:
    calls = places.calls
    able = np.array([meaning.fusable and meaning.reason is None for meaning in calls.meanings], dtype=bool)
    result: NDArray[np.bool_] = able[calls.meaning] & ~places.by_ddp
    return result


def _loops(places: Places) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Stretches of equal words within one scope."""
    calls = places.calls
    _, word = np.unique([meaning.word for meaning in calls.meanings], return_inverse=True)
    number = word.reshape(-1)[calls.meaning]
    apart = (np.diff(number) != 0) | (np.diff(calls.queue) != 0) | (np.diff(calls.scope) != 0)
    return _stretches(_fusable(places), apart, at_least=_LOOP, at_most=calls.queue.size)


def _parts(calls: Calls) -> list[tuple[int, int]]:
    """Stretches of calls within one scope, thread and queue that are long enough for a loop: first call and end."""
    everything = np.ones(calls.queue.size, dtype=bool)
    apart = (np.diff(calls.queue) != 0) | (np.diff(calls.scope) != 0) | (np.diff(calls.lane) != 0)
    first, last = _stretches(everything, apart, at_least=_SHORTEST_LOOP, at_most=calls.queue.size)
    return list(zip(first.tolist(), (last + 1).tolist(), strict=True))


def _stretches(
    able: NDArray[np.bool_], apart: NDArray[np.bool_], *, at_least: int, at_most: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """First and last of the longest stretches of able entries without a cut; overlong ones are cut in parts."""
    starts = np.flatnonzero(able & np.r_[True, apart | ~able[:-1]])
    ends = np.flatnonzero(able & np.r_[apart | ~able[1:], True])
    long = ends - starts + 1 >= at_least
    starts, ends = starts[long], ends[long]
    if (ends - starts + 1 > at_most).any():
        pieces = [
            (low, min(low + at_most - 1, end))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
            for low in range(start, end + 1, at_most)
        ]
        pairs = np.array([pair for pair in pieces if pair[1] > pair[0]], dtype=np.int64).reshape(-1, 2)
        return pairs[:, 0], pairs[:, 1]
    return starts.astype(np.int64), ends.astype(np.int64)
