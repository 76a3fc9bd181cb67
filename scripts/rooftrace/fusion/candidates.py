"""Candidates: equal instances of a stretch of calls, with their data flow and the time of the kernel in their place."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from rooftrace.calltree import is_step_name, module_class
from rooftrace.fusion.estimate import Estimate, estimate_chain, estimate_epilogue, estimate_loop
from rooftrace.fusion.flow import components, trace_flow
from rooftrace.fusion.owners import optimizer_in
from rooftrace.fusion.pieces import pieces_of
from rooftrace.fusion.undone import MAKES_NEW, is_undone, nothing_left
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Hashable

    from numpy.typing import NDArray

    from rooftrace.fusion.compositions import Composition
    from rooftrace.fusion.fused_time import Machine
    from rooftrace.fusion.meaning import Meaning
    from rooftrace.fusion.spans import Places, Spans

BROKEN = "data flow broken: shapes and element types do not connect the calls"
EQUAL = "equal calls in a row: shapes cannot tell a chain from work on separate tensors"
_AHEAD = 24  # steps looked at after a stretch, to see what is read again
_BEHIND = 16  # and before it, to see what was made for it
# A saving below this share of the calls' time is less than what the estimate can be off by.
_LEAST_SHARE = 0.05
_FORWARD = 0


class Candidate(Struct, frozen=True, kw_only=True):
    """Equal instances; ``first`` is the first call of each, ``members`` are offsets of the calls that are replaced."""

    composition: Composition | None
    scope: str
    first: NDArray[np.int64]
    length: int
    members: tuple[int, ...]
    anchor: bool  # the first call stays: a matrix product that takes the others in
    calls: tuple[Meaning, ...]  # of the whole stretch
    estimate: Estimate | None
    reason: str | None
    time_ns: NDArray[np.int64]  # of the replaced calls, each instance
    notes: tuple[str, ...] = ()
    connected: bool = False  # by what shapes and element types tell; loops need no connection

    @property
    def example(self) -> int:
        """First call of the example: the first instance."""
        return int(self.first[0])

    @property
    def fused_ns(self) -> int:
        """Time of one fused kernel, or what an epilogue adds."""
        return self.estimate.time.ns if self.estimate else 0

    @property
    def is_undone(self) -> bool:
        """Whether nothing takes the place of the calls."""
        return not self.anchor and self.estimate is not None and self.estimate.time.ns == 0

    @property
    def kept_launches(self) -> int:
        """Launches of the replaced calls that the fused kernel needs."""
        return 0 if self.anchor or self.is_undone else 1

    @property
    def saving_ns(self) -> NDArray[np.int64]:
        """What each instance saves; nothing where that is not known."""
        if self.estimate is None:
            return np.zeros_like(self.time_ns)
        return np.maximum(0, self.time_ns - self.fused_ns)

    @property
    def weight(self) -> int:
        """Mean saving of an instance, none where it is too little to tell: equal ones are chosen or left together."""
        saving = int(self.saving_ns.sum())
        return saving // self.first.size if saving >= _LEAST_SHARE * int(self.time_ns.sum()) else 0

    @property
    def replaced(self) -> tuple[Meaning, ...]:
        """The calls that are replaced."""
        return tuple(self.calls[at] for at in self.members)

    def restricted(self, keep: NDArray[np.bool_]) -> Candidate:
        """Only some of the instances."""
        return replace(self, first=self.first[keep], time_ns=self.time_ns[keep])


class Rejected(Struct, frozen=True, kw_only=True):
    """What looked like a candidate and is none, with the reason."""

    what: str
    reason: str
    count: int
    time_ns: int


class _Same(Struct, kw_only=True):
    """Instances with equal calls, kernels, surroundings and class of scope."""

    first: list[int] = field(default_factory=list)
    behind: int = 0  # steps of the example: what lies before it from here, itself and what follows from `low`
    low: int = 0
    high: int = 0


class _Around(Struct, frozen=True, kw_only=True):
    """What the host called before a stretch, the stretch with what follows it, and where its calls are among those."""

    before: tuple[Meaning, ...]
    steps: tuple[Meaning, ...]
    at: tuple[int, ...]

    def of_part(self, first: int) -> _Around:
        """The same for a part that begins with another call: what lies ahead of it in the stretch stays with it."""
        return replace(self, at=self.at[first:])


class Builder:
    """Turns stretches into candidates; equal ones are looked at once."""

    def __init__(self, places: Places, machine: Machine | None) -> None:
        self.places, self.calls, self.machine = places, places.calls, machine
        tree = places.run.tree
        self._length = int(tree.end.max()) + 1 if tree.end.size else 1
        self._key = tree.lane.astype(np.int64) * self._length + tree.start

    def build(self, spans: Spans) -> list[Candidate]:
        """Candidates of stretches of one composition, or of runs without one."""
        found: dict[Hashable, list[Candidate]] = defaultdict(list)
        for (length, scope), same in self._grouped(spans).items():
            for group in same:
                for candidate in self._candidates(spans.composition, scope, length, group):
                    found[self._key_of(candidate)].append(candidate)
        return [_joined(equal) for equal in found.values()]

    def _key_of(self, candidate: Candidate) -> Hashable:
        """What instances of one candidate share; what follows them may differ."""
        low, high = candidate.example, candidate.example + candidate.length
        calls = self.calls.meaning[low:high].tobytes(), self.calls.kernels[low:high].tobytes()
        return (*calls, candidate.scope, candidate.members, candidate.estimate, candidate.reason)

    def _grouped(self, spans: Spans) -> dict[tuple[int, str], list[_Same]]:
        calls = self.calls
        low = calls.step[spans.first]
        behind = np.maximum(low - _BEHIND, self._lane_start(spans))
        high = np.minimum(calls.step[spans.last] + 1 + _AHEAD, self._scope_end(spans))
        groups: dict[tuple[bytes, bytes, bytes, bytes, str], _Same] = defaultdict(_Same)
        lengths: dict[tuple[bytes, bytes, bytes, bytes, str], int] = {}
        names = {int(scope): self.scope_name(int(scope)) for scope in sorted_unique(spans.scope).tolist()}
        rows = zip(
            spans.first.tolist(),
            spans.last.tolist(),
            np.stack([behind, low, high], axis=1).tolist(),
            spans.scope.tolist(),
            strict=True,
        )
        for first, last, (behind_it, begin, end), scope in rows:
            key = (
                calls.step_meaning[behind_it:begin].tobytes(),
                calls.step_meaning[begin:end].tobytes(),
                (calls.step[first : last + 1] - begin).tobytes(),
                calls.kernels[first : last + 1].tobytes(),
                names[scope],
            )
            same = groups[key]
            if not same.first:
                same.behind, same.low, same.high = behind_it, begin, end
                lengths[key] = last - first + 1
            same.first.append(first)
        result: dict[tuple[int, str], list[_Same]] = defaultdict(list)
        for key, same in groups.items():
            result[lengths[key], key[-1]].append(same)
        return result

    def _lane_start(self, spans: Spans) -> NDArray[np.int64]:
        """The first step of the thread of each stretch."""
        past = np.searchsorted(self._key, self.calls.lane[spans.first] * self._length)
        return np.searchsorted(self.calls.step_node, past)

    def _scope_end(self, spans: Spans) -> NDArray[np.int64]:
        """The first step past the scope of each stretch."""
        tree, calls = self.places.run.tree, self.calls
        lane = calls.lane[spans.first]
        real = (spans.scope >= 0) & (spans.scope < tree.row.size)
        scope = np.where(real, spans.scope, 0)
        until = np.where(real, lane * self._length + tree.end[scope], (lane + 1) * self._length)
        past = np.searchsorted(self._key, until)
        return np.searchsorted(calls.step_node, past)

    def scope_name(self, scope: int) -> str:
        """Class of a module, name of an op or annotation, or the top level."""
        run = self.places.run
        if scope < 0:
            return "top level"
        if scope >= run.tree.row.size:
            path = run.context.module_paths[scope - run.tree.row.size]
            return class_of(path[-1]) if path else "top level"
        name = run.trace.names[int(run.tree.name[scope])]
        if optimizer_in(name):
            return name  # the class tells what the calls are
        return class_of(name.removeprefix("nn.Module: "))

    def _candidates(self, composition: Composition | None, scope: str, length: int, group: _Same) -> list[Candidate]:
        calls = self.calls
        example = group.first[0]
        meanings = tuple(calls.meanings[code] for code in calls.meaning[example : example + length].tolist())
        whole = Candidate(
            composition=composition,
            scope=scope,
            first=np.array(group.first, dtype=np.int64),
            length=length,
            members=tuple(range(length)),
            anchor=False,
            calls=meanings,
            estimate=None,
            reason=None,
            time_ns=np.zeros(0, dtype=np.int64),
        )
        around = _Around(
            before=tuple(calls.meanings[code] for code in calls.step_meaning[group.behind : group.low].tolist()),
            steps=tuple(calls.meanings[code] for code in calls.step_meaning[group.low : group.high].tolist()),
            at=tuple((calls.step[example : example + length] - group.low).tolist()),
        )
        if composition is None:
            parts = [self._piece(whole, piece) for piece in pieces_of(meanings, around.steps, around.at)]
            return [self._estimated(part, around.of_part(part_at)) for part, part_at in parts]
        kept = set(composition.file.keeps)
        anchor = composition.file.kind == "epilogue"
        members = tuple(i for i, m in enumerate(meanings) if m.word not in kept and not (anchor and i == 0))
        return [self._estimated(replace(whole, members=members, anchor=anchor), around)]

    def _piece(self, whole: Candidate, piece: tuple[int, ...]) -> tuple[Candidate, int]:
        """Part of a run as a candidate of its own, and its offset."""
        low, high = piece[0], piece[-1]
        part = replace(
            whole,
            first=whole.first + low,
            length=high - low + 1,
            members=tuple(member - low for member in piece),
            calls=whole.calls[low : high + 1],
        )
        return part, low

    def _estimated(self, candidate: Candidate, around: _Around) -> Candidate:
        """The candidate with its times."""
        offsets = candidate.first[:, None] + np.array(candidate.members)[None, :]
        candidate = replace(candidate, time_ns=self.calls.time_ns[offsets].sum(axis=1))
        composition = candidate.composition
        if composition is not None and composition.file.kind == "loop":
            estimate = estimate_loop(candidate.replaced, composition, self.machine)
            return self._with(replace(candidate, connected=isinstance(estimate, Estimate)), estimate)
        refusal = _refusal(candidate)
        return replace(candidate, reason=refusal) if refusal else self._through_flow(candidate, around)

    def _through_flow(self, candidate: Candidate, around: _Around) -> Candidate:
        """The candidate with times from the data that enters and leaves it."""
        composition, training = candidate.composition, self._is_training(candidate)
        members = (0, *candidate.members) if candidate.anchor else candidate.members
        positions = [around.at[member] for member in members]
        written = frozenset(composition.file.written if composition else ())
        flow = trace_flow(
            around.steps,
            frozenset(positions),
            always_written=written,
            training=training,
            one_input=composition is not None and composition.file.one_input,
            before=around.before,
        )
        if flow.unknown is not None:
            return replace(candidate, reason=flow.unknown)
        edges = (*flow.edges, *flow.shared) if composition and composition.file.joined else flow.edges
        if len(components(positions, edges)) > 1:
            return replace(candidate, reason=BROKEN)
        candidate, calls = replace(candidate, connected=True), candidate.replaced
        if candidate.anchor:
            return self._with(candidate, estimate_epilogue(flow, calls, positions[0], self.machine, training=training))
        estimate = estimate_chain(flow, calls, self.machine)
        if isinstance(estimate, Estimate) and is_undone(calls) and self._makes_new(candidate):
            estimate = nothing_left(estimate)
        return self._with(candidate, estimate)

    def _makes_new(self, candidate: Candidate) -> bool:
        """Whether the last call makes a tensor of its own: it or the op around it says so."""
        tree, names = self.places.run.tree, self.places.run.trace.names
        node = int(self.calls.node[candidate.example + candidate.members[-1]])
        around = {names[int(tree.name[at])] for at in (node, int(tree.parent[node])) if at >= 0}
        return bool(around & MAKES_NEW)

    def _with(self, candidate: Candidate, estimate: Estimate | str) -> Candidate:
        if isinstance(estimate, str):
            return replace(candidate, reason=estimate)
        return replace(candidate, estimate=estimate, notes=estimate.notes)

    def _is_training(self, candidate: Candidate) -> bool:
        """Whether a backward pass of the run may read what the calls make."""
        context = self.places.run.context
        node = int(self.calls.node[candidate.first[0]])
        return context.has_backward and int(context.phase[node]) == _FORWARD


def _refusal(candidate: Candidate) -> str | None:
    """Why data cannot flow through the calls, or nothing of it can be told; None where neither is plain."""
    unknown = next((call.reason for call in candidate.calls if call.reason is not None), None)
    if unknown is not None:
        return unknown
    composition = candidate.composition
    if composition is not None and composition.file.permutes and not _permutes(candidate.replaced):
        return BROKEN
    distinct = {(call.name, call.reads) for call in candidate.replaced}
    return EQUAL if len(candidate.members) > 1 and len(distinct) == 1 else None


def _permutes(calls: tuple[Meaning, ...]) -> bool:
    """Whether the calls read the same sizes in another order."""
    shapes = {call.reads[0].shape for call in calls if call.reads}
    return len(shapes) > 1 and len({tuple(sorted(shape)) for shape in shapes}) == 1


def _joined(equal: list[Candidate]) -> Candidate:
    """The instances of equal candidates as one, in order."""
    if len(equal) == 1:
        return equal[0]
    first = np.concatenate([candidate.first for candidate in equal])
    time_ns = np.concatenate([candidate.time_ns for candidate in equal])
    order = np.argsort(first, kind="stable")
    return replace(equal[0], first=first[order], time_ns=time_ns[order])


def class_of(name: str) -> str:
    """A module's class, an op or an annotation, without the number of the instance or step."""
    if is_step_name(name):
        return "step"
    return module_class(name.partition("#")[0]) or name
