"""Who reads what whom makes, inferred for a stretch of calls from shapes and element types.

A trace records no identity of tensors. A call is taken to read the latest tensor of that shape and type that nothing
has read yet, else the latest that there is; a second operand of one shape is a tensor of its own unless an unread one
fits. Views carry a tensor's identity to its new shape. What is inferred so is a claim about shapes, and is called one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace.opmodels import ITEMSIZE

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooftrace.fusion.meaning import Meaning
    from rooftrace.opmodels import Tensor

    _Kind = tuple[tuple[int, ...], str | None]

NO_DTYPE = "element types not recorded"
# The transposition that a linear layer takes of its weight: not of a result that was read already, whatever its shape.
_OF_WEIGHTS = "aten::t"
# What activations multiply their own argument by; a product with a whole activation is a gate.
_OF_ACTIVATIONS = frozenset({"sigmoid", "tanh", "hardsigmoid"})
# Both of one angle: what reads the same shape as the other before it reads the same tensor.
_COUNTERPART = {"sin": "cos", "cos": "sin"}
_SEVERAL = 2


class Value(Struct, eq=False):
    """A tensor in the stretch; ``maker`` is the position of the call that makes it, -1 if it comes from outside."""

    tensor: Tensor
    maker: int
    dtype: str | None
    side: bool = False
    word: str = ""  # of the call that makes it
    readers: list[int] = field(default_factory=list)
    read_bytes: int = 0
    read_outside: bool = False
    read_before: bool = False  # by a call that is no member; of a tensor that none makes
    overwritten: bool = False

    @property
    def nbytes(self) -> int:
        """Bytes of the whole tensor; 0 where the element type is unknown, which `Flow.unknown` then says."""
        return self.tensor.stored * ITEMSIZE[self.dtype] if self.dtype else 0


class Flow(Struct, frozen=True, kw_only=True):
    """Data flow among some calls of a stretch, the members."""

    external: tuple[Value, ...]  # read by members, made by none
    written: tuple[Value, ...]  # made by members and needed by something else, or by nothing in sight
    inner: tuple[Value, ...]  # made and read by members only: what fusing keeps out of memory
    edges: tuple[tuple[int, int], ...]  # (maker, reader), both members
    shared: tuple[tuple[int, int], ...]  # members that read one external tensor
    forced: tuple[str, ...]  # why tensors that members read are written all the same
    unknown: str | None

    @property
    def read_bytes(self) -> int:
        """Bytes that a fused kernel has to read."""
        return sum(min(value.nbytes, value.read_bytes) for value in self.external)

    @property
    def written_bytes(self) -> int:
        """Bytes that a fused kernel has to write."""
        return sum(value.nbytes for value in self.written)


def trace_flow(
    steps: Sequence[Meaning],
    members: frozenset[int],
    *,
    always_written: frozenset[str] = frozenset(),
    training: bool = False,
    one_input: bool = False,
    before: Sequence[Meaning] = (),
) -> Flow:
    """Data flow among ``members``, positions in ``steps``; what follows the last of them tells what is read again.

    ``before`` are steps ahead of the first: they tell whether one tensor or several wait to be read.
    """
    table = _Table(members, one_input=one_input, waiting=_waiting(before))
    unknown: str | None = None
    for at, step in enumerate(steps):
        if step.word == "view":
            table.view(step)
            continue
        is_member = at in members
        if step.reason is not None:
            unknown = unknown or (step.reason if is_member else None)
            continue
        table.call(at, step)
    return _summed(table.values, steps, members, (always_written, training, unknown))


class _Table:
    """The tensors alive, by shape, the latest last."""

    def __init__(
        self, members: frozenset[int], *, one_input: bool = False, waiting: Mapping[_Kind, int] | None = None
    ) -> None:
        self.values: list[Value] = []
        self._members, self._waiting = members, waiting or {}
        self._one_input, self._word = one_input, ""
        self._by_shape: dict[tuple[int, ...], list[Value]] = {}
        self._angle: tuple[str, Value] | None = None  # what took the latest sine or cosine, and of which tensor

    def view(self, step: Meaning) -> None:
        """Let a tensor be found under its new shapes too."""
        if not step.reads:
            return
        source = self._find(step.reads[0], [], frozenset())
        if source is None or (step.name == _OF_WEIGHTS and source.readers):
            source = self._add(step.reads[0], -1)
        for tensor in step.writes:
            if tensor.shape != step.reads[0].shape:
                self._by_shape.setdefault(tensor.shape, []).append(source)

    def call(self, at: int, step: Meaning) -> None:
        """Let a call read and make its tensors."""
        taken: list[Value] = []
        is_member, self._word = at in self._members, step.word
        for number, tensor in enumerate(step.reads):
            value = self._find(tensor, taken, frozenset(other.shape for other in step.reads[:number]))
            if value is None:
                value = self._add(tensor, -1)
            taken.append(value)
            if value.dtype is None:
                others = (other.dtype for other in taken if other.dtype)
                value.dtype = tensor.dtype or next(others, step.likely_dtype)
            if is_member:
                value.readers.append(at)
                value.read_bytes += _bytes_of(tensor, value.dtype)
            elif value.maker in self._members:
                value.read_outside = True
            else:
                value.read_before = True
        if step.word in _COUNTERPART and taken:
            self._angle = (step.word, taken[0])
        if step.in_place and taken:
            taken[0].overwritten = True
        for number, tensor in enumerate(step.writes):
            made = self._add(tensor, at)
            made.word = step.word
            made.side = number >= len(step.writes) - step.side_writes
            if made.dtype is None:
                made.dtype = next((value.dtype for value in taken if value.dtype), step.likely_dtype)

    def aliases(self) -> list[tuple[Value, list[tuple[int, ...]]]]:
        """Every tensor with the shapes that it is known under."""
        shapes: dict[int, list[tuple[int, ...]]] = {}
        for shape, values in self._by_shape.items():
            for value in dict.fromkeys(values):
                shapes.setdefault(id(value), []).append(shape)
        return [(value, shapes[id(value)]) for value in self.values]

    def _add(self, tensor: Tensor, maker: int) -> Value:
        value = Value(tensor, maker, tensor.dtype)
        self.values.append(value)
        self._by_shape.setdefault(tensor.shape, []).append(value)
        return value

    def _find(self, tensor: Tensor, taken: list[Value], shapes_taken: frozenset[tuple[int, ...]]) -> Value | None:
        fitting = [
            value
            for value in reversed(self._by_shape.get(tensor.shape, ()))
            if (value.dtype is None or tensor.dtype is None or value.dtype == tensor.dtype) and value not in taken
        ]
        if self._angle is not None and self._angle[0] == _COUNTERPART.get(self._word) and self._angle[1] in fitting:
            return self._angle[1]
        unread = next((value for value in fitting if not value.readers and not value.side), None)
        if unread is not None:
            return unread
        if tensor.shape in shapes_taken:  # a second operand: another part of a tensor seen through views, or a new one
            again = self._one_input or (self._word == "mul" and taken[-1].word in _OF_ACTIVATIONS)
            return next((v for v in fitting if v.tensor.numel != tensor.numel or (again and self._is_input(v))), None)
        made = next((value for value in fitting if value.maker >= 0 and not value.overwritten), None)
        return made or next(iter(fitting), None)

    def _is_input(self, value: Value) -> bool:
        """Whether a second operand is taken to be the tensor that the calls began with.

        A gate is the product of two tensors, ``x * sigmoid(x)`` of one: of one where a single tensor of its kind was
        made and not read before. A sum adds a residual, whose making lies further back.
        """
        kind = value.tensor.shape, value.dtype
        return value.maker < 0 and (self._one_input or self._waiting.get(kind) == 1)


def _waiting(steps: Sequence[Meaning]) -> dict[_Kind, int]:
    """How many tensors of each shape and type some steps make and do not read; a tensor's parts are several.

    Nothing where one of the steps makes what is not known.
    """
    if any(step.reason is not None and step.word != "view" for step in steps):
        return {}
    table = _Table(frozenset())
    for at, step in enumerate(steps):
        if step.word == "view":
            table.view(step)
        else:
            table.call(at, step)
    waiting: dict[_Kind, int] = {}
    for value, shapes in table.aliases():
        if value.maker >= 0 and not value.read_before:
            for shape in shapes:
                count = 1 if math.prod(shape) == value.tensor.numel else _SEVERAL
                waiting[shape, value.dtype] = waiting.get((shape, value.dtype), 0) + count
    return waiting


def _bytes_of(tensor: Tensor, dtype: str | None) -> int:
    return tensor.stored * ITEMSIZE[dtype] if dtype else 0


def _summed(
    values: Sequence[Value],
    steps: Sequence[Meaning],
    members: frozenset[int],
    rules: tuple[frozenset[str], bool, str | None],
) -> Flow:
    always_written, training, unknown = rules
    external: list[Value] = []
    written: list[Value] = []
    inner: list[Value] = []
    forced: list[str] = []
    for value in values:
        if value.maker not in members:
            if value.readers:
                external.append(value)
            continue
        if not value.readers:
            if not value.side or training:
                written.append(value)
        elif value.read_outside or steps[value.maker].word in always_written:
            written.append(value)
            why = "read outside" if value.read_outside else "needed after"
            forced.append(f"{steps[value.maker].name}'s result is {why}, so written")
        else:
            inner.append(value)
    forced += [f"{list(value.tensor.shape)} is updated in place" for value in external if value.overwritten]
    if unknown is None and any(value.dtype is None for value in (*external, *written)):
        unknown = NO_DTYPE
    return Flow(
        external=tuple(external),
        written=tuple(written),
        inner=tuple(inner),
        edges=tuple(sorted({(v.maker, r) for v in values if v.maker in members for r in v.readers})),
        shared=tuple(sorted({(v.readers[0], r) for v in external for r in v.readers[1:]})),
        forced=tuple(forced),
        unknown=unknown,
    )


def components(members: Sequence[int], edges: Sequence[tuple[int, int]]) -> list[tuple[int, ...]]:
    """Members that data connects, each set in order, by its first member."""
    parent = {member: member for member in members}

    def root(member: int) -> int:
        while parent[member] != member:
            parent[member] = parent[parent[member]]
            member = parent[member]
        return member

    for a, b in edges:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    found: dict[int, list[int]] = {}
    for member in members:
        found.setdefault(root(member), []).append(member)
    return [tuple(found[key]) for key in sorted(found)]
