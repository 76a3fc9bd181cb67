"""Which call's result each operand of an example is taken to be: one definite answer, so that the calls can be run.

A trace records no identity of tensors. An operand is a result of its shape, element type and strides that nothing has
read yet, in order of making where a call reads several; else a view of a tensor from outside; else what has been read
already, or a new tensor from outside if it is smaller than what it is combined with. Where shapes alone would go wrong,
what a known composition means decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace.fusion.outputs import OVERWRITES
from rooftrace.fusion.tokens import base_word
from rooftrace.opmodels import Tensor
from rooftrace.opmodels.pointwise import is_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.opmodels import Op

OUTSIDE = -1  # in place of a call: the second number then says which tensor from outside
# Compositions in which an operand that no call makes is the input itself.
_ONE_INPUT = frozenset({"gelu", "quick_gelu", "silu"})
_SQUARES = frozenset({"pow", "square"})
_REDUCED_BY = frozenset({"mean", "sum"})

Source = tuple[int, int]  # call and number of its result


class Wired(Struct, frozen=True, kw_only=True):
    """A call as far as wiring needs it: ``results`` as they are derived, none where they are not."""

    op: Op
    word: str
    is_view: bool
    results: tuple[Tensor, ...]


class _Value(Struct, eq=False):
    tensor: Tensor
    source: Source
    is_made: bool  # by a call, or a view of what a call made
    root: _Value | None = None
    word: str = ""
    readers: list[str] = field(default_factory=list)
    is_gone: bool = False  # overwritten in place

    def read(self, word: str) -> None:
        """Note a reader, of what this is a view of as well."""
        self.readers.append(word)
        if self.root is not None:
            self.root.read(word)


def wire(calls: Sequence[Wired], pattern: str = "", *, is_joined: bool = False) -> list[dict[tuple[int, int], Source]]:
    """For each call the source of every operand, by (argument, place in a list of tensors)."""
    table = _Table(pattern, [call.word for call in calls if not call.is_view], is_joined=is_joined)
    return [table.call(at, call) for at, call in enumerate(calls)]


class _Table:
    """The tensors alive, the latest last."""

    def __init__(self, pattern: str, words: list[str], *, is_joined: bool) -> None:
        self._pattern, self._words, self._is_joined = pattern, words, is_joined
        self._values: list[_Value] = []
        self._made = self._outside = 0
        self._reserved: _Value | None = None

    def call(self, at: int, call: Wired) -> dict[tuple[int, int], Source]:
        """Let a call read and make its tensors."""
        places = _operands(call.op)
        found = self._read(call, places)
        for (_, _, tensor), value in zip(places, found, strict=True):
            if value not in self._values:
                self._values.append(value)
            if not call.is_view:
                value.read(call.word)
            if value.tensor.dtype is None and tensor.dtype is not None:
                value.tensor = tensor
        self._make(at, call, found)
        return {(argument, place): value.source for (argument, place, _), value in zip(places, found, strict=True)}

    def _read(self, call: Wired, places: list[tuple[int, int, Tensor]]) -> list[_Value]:
        """The value of every operand; what is only overwritten is a buffer of its own."""
        is_buffer = is_in_place(call.op.name) and base_word(call.op.name) in OVERWRITES
        found: list[_Value] = []
        unread = self._unread(call, places, is_buffer=is_buffer)
        for number, (argument, _, tensor) in enumerate(places):
            is_new = is_buffer and argument == 0
            value = None if is_new else unread.get(number) or self._known(call, tensor, found)
            found.append(value or self._from_outside(tensor))
        return found

    def _from_outside(self, tensor: Tensor) -> _Value:
        self._outside += 1
        return _Value(tensor, (OUTSIDE, self._outside - 1), is_made=False)

    def _unread(self, call: Wired, places: list[tuple[int, int, Tensor]], *, is_buffer: bool) -> dict[int, _Value]:
        """Results that nothing has read, for the operands they fit: the latest ones, in the order of making."""
        if call.is_view and self._is_joined:
            return {}
        chosen: dict[int, _Value] = {}
        for number, (argument, _, tensor) in enumerate(places):
            if number in chosen or (is_buffer and argument == 0):
                continue
            alike = [
                other
                for other, (at, _, one) in enumerate(places)
                if other not in chosen and not (is_buffer and at == 0) and _same_kind(one, tensor)
            ]
            fresh = [
                value
                for value in self._fitting(tensor)
                if value.is_made and not value.readers and value not in chosen.values()
            ]
            chosen |= dict(zip(alike, reversed(fresh[: len(alike)]), strict=False))
        return chosen

    def _known(self, call: Wired, tensor: Tensor, taken: list[_Value]) -> _Value | None:
        """What has been read already, or comes from outside."""
        fitting = [value for value in self._fitting(tensor) if value not in taken]
        views = [value for value in fitting if not value.is_made and value.root is not None and not value.readers]
        if views:
            return views[0]
        outside = [value for value in fitting if not value.is_made and not _is_parameter(call, tensor)]
        if any(value.tensor.shape == tensor.shape for value in taken):
            return outside[0] if outside and self._takes_input_again() else None
        if call.is_view and self._is_joined and outside:
            return outside[0]
        made = [value for value in fitting if value.is_made and not _is_summed_square(value)]
        return next(iter(made or outside), None)

    def _fitting(self, tensor: Tensor) -> list[_Value]:
        reserved = self._reserved if self._made < len(self._words) - 1 else None
        return [
            value
            for value in reversed(self._values)
            if value is not reserved and not value.is_gone and _fits(value.tensor, tensor)
        ]

    def _takes_input_again(self) -> bool:
        if self._pattern in _ONE_INPUT:
            return True
        return self._pattern == "swiglu" and self._words[0] == "sigmoid" and self._made == 1

    def _make(self, at: int, call: Wired, found: list[_Value]) -> None:
        first = found[0] if found else None
        is_updated = is_in_place(call.op.name) and not call.is_view
        if is_updated and first is not None:
            first.is_gone = True
        for number, tensor in enumerate(call.results):
            value = _Value(tensor, (at, number), is_made=True, word=call.word)
            if call.is_view and first is not None:
                value.root, value.is_made = first, first.is_made
            self._values.append(value)
            if not call.is_view and self._made == 0 and number == 0 and self._waits_for_last():
                self._reserved = value
        self._made += not call.is_view

    def _waits_for_last(self) -> bool:
        """Whether the first result, half the input of a GELU, is for the last product (PyTorch: torch.nn.GELU)."""
        begins = self._words[:1] == ["muls"] and self._words[1:2] in (["pow"], ["divs"], ["muls"])
        return self._pattern == "gelu" and begins and self._words[-1] == "mul"


def _operands(op: Op) -> list[tuple[int, int, Tensor]]:
    """(argument, place in its list, tensor) of every tensor."""
    found: list[tuple[int, int, Tensor]] = []
    for number, arg in enumerate(op.args):
        if isinstance(arg, Tensor):
            found.append((number, 0, arg))
        elif isinstance(arg, tuple):
            found += [(number, place, tensor) for place, tensor in enumerate(arg)]
    return found


def _is_parameter(call: Wired, tensor: Tensor) -> bool:
    """Whether an operand from outside is spread over a larger one: each call has a factor, bias or table of its own."""
    return not call.is_view and tensor.numel < max(other.numel for other in call.op.tensors())


def _is_summed_square(value: _Value) -> bool:
    """Whether it is made to be reduced, as for a variance: nothing else reads it."""
    return value.word in _SQUARES and bool(_REDUCED_BY & set(value.readers))


def _same_kind(a: Tensor, b: Tensor) -> bool:
    return a.shape == b.shape and (a.dtype is None or b.dtype is None or a.dtype == b.dtype)


def _fits(value: Tensor, tensor: Tensor) -> bool:
    """Whether one may be the other; strides count where both are recorded and a dimension has more than one element."""
    if not _same_kind(value, tensor):
        return False
    if value.strides is None or tensor.strides is None:
        return True
    pairs = zip(value.shape, value.strides, tensor.strides, strict=True)
    return all(size < 2 or mine == other for size, mine, other in pairs)
