"""Slots of a run: calls that recur step after step at the same place, under the name that both sides may share."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from rooftrace.compare.calls import HEADS, find_calls
from rooftrace.compare.names import same_kernel, same_op

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.compare.calls import Calls
    from rooftrace.compare.side import Side

PARTS = ("compute", "communication", "copy")
# What changes no value: categories of calls, and what their kernels do.
_MOVES, MOVING_KINDS = ("memory", "copy"), frozenset(("memory", "move"))
# Below these shares of kernel time a side has no modules, or no ops, to be aligned by.
_LEAST_WITH_MODULES = 0.5
_LEAST_WITH_OPS = 0.5
# Where graphs replay this much more of one side's kernel time, phases and modules of the two sides do not compare.
_MOST_UNLIKE = 0.05


class Level(Struct, frozen=True, kw_only=True):
    """The finest structure that both sides have: ``modules``, ``ops`` or ``kernels``, with phases or without."""

    name: str
    phases: bool


class Leaf(Struct, kw_only=True, eq=False):
    """A slot: what is called at one place, with the numbers of its calls over all steps."""

    path: tuple[str, ...]  # phase and modules
    op: str | None  # as recorded; None for kernels outside any op
    name: str  # the word that both sides may share
    shapes: str
    dtypes: str
    strides: str
    kernels: tuple[str, ...]  # short names, in order of launch
    kinds: tuple[str, ...]  # what each of them does
    category: str
    part: str
    fused: bool  # a kernel's name says that it does the work of several ops
    calls: list[int] = field(default_factory=list)

    @property
    def moves(self) -> bool:
        """Whether it moves data and does nothing else."""
        return self.category in _MOVES or MOVING_KINDS.issuperset(self.kinds)


class Slots(Struct, frozen=True, kw_only=True):
    """The slots of a side in order of first appearance."""

    side: Side
    calls: Calls
    leaves: list[Leaf]


def choose_level(base: Side, target: Side) -> Level:
    """The level at which two sides are aligned."""
    with_op = [_share_with_op(side) for side in (base, target)]
    if max(with_op) < _LEAST_WITH_OPS:
        return Level(name="kernels", phases=False)
    # Ops of one side serve as well: the other side's kernels are aligned with what they launched.
    if min(with_op) < _LEAST_WITH_OPS:
        return Level(name="ops", phases=False)
    if abs(with_op[0] - with_op[1]) > _MOST_UNLIKE and _is_replayed(base) != _is_replayed(target):
        return Level(name="ops", phases=False)
    both = min(_share_in_modules(side) for side in (base, target))
    alike = base.context.has_backward == target.context.has_backward
    return Level(name="modules" if both >= _LEAST_WITH_MODULES else "ops", phases=alike)


def _share_with_op(side: Side) -> float:
    calls = find_calls(side, single=False)
    dur = side.activities.dur
    return float(dur[calls.node[calls.of_activity] >= 0].sum()) / max(1, int(dur.sum()))


def _is_replayed(side: Side) -> bool:
    graph, dur = side.activities.graph, side.activities.dur
    return float(dur[graph].sum()) > _MOST_UNLIKE * int(dur.sum())


def _share_in_modules(side: Side) -> float:
    launch, dur = side.activities.launch, side.activities.dur
    known = launch >= 0
    inside = side.context.module[launch[known]] > 0
    return float(dur[known][inside].sum()) / max(1, int(dur.sum()))


def find_slots(side: Side, level: Level, first: Sequence[int] = ()) -> Slots:
    """Slots of a side. Their order is that of the steps in ``first``, then of the others."""
    calls = find_calls(side, single=level.name == "kernels")
    describe = _Describer(side, calls, level)
    is_first = np.isin(calls.step, np.asarray(first, dtype=np.int64))
    order = np.argsort(~is_first, kind="stable") if len(first) else np.arange(len(calls.members))
    seen: Counter[tuple[Any, ...]] = Counter()
    slots: dict[tuple[Any, ...], Leaf] = {}
    steps = calls.step.tolist()
    for number in order.tolist():
        place = describe.place(number)
        seen[steps[number], place] += 1
        key = (seen[steps[number], place], place)
        if key not in slots:
            slots[key] = describe.leaf(number)
        slots[key].calls.append(number)
    return Slots(side=side, calls=calls, leaves=list(slots.values()))


class _Describer:
    """Names of calls, each distinct one made once."""

    def __init__(self, side: Side, calls: Calls, level: Level) -> None:
        self.side, self.calls, self.level, self.phases = side, calls, level.name, level.phases
        self._nodes, self._groups = calls.node.tolist(), calls.group.tolist()
        self._modules, self._heads = calls.module.tolist(), calls.head.tolist()
        self._codes = side.activities.name.tolist()
        self._work = side.activities.work.tolist()
        self._paths: dict[tuple[int, int], tuple[str, ...]] = {}
        self._inputs: dict[int, tuple[str, str, str]] = {}

    def place(self, number: int) -> tuple[Any, ...]:
        """What recurs: the path, the op or kernel, and the kind of work."""
        first = int(self.calls.members[number][0])
        return self._path(number), self._name(number), self._work[first]

    def leaf(self, number: int) -> Leaf:
        """A slot as its first call shows it."""
        members = self.calls.members[number].tolist()
        op = self._op(number)
        codes = [self._codes[at] for at in members]
        infos = [self.side.activities.infos[code] for code in codes]
        group = self._groups[number]
        longest = max(range(len(members)), key=lambda at: int(self.side.activities.dur[members[at]]))
        part = PARTS[self._work[members[0]]]
        category = self.side.groups[group].category if group >= 0 else infos[longest].category
        shapes, dtypes, strides = self._inputs_of(group, number)
        return Leaf(
            path=self._path(number),
            op=op,
            name=self._name(number),
            shapes=shapes,
            dtypes=dtypes,
            strides=strides,
            kernels=tuple(info.short for info in infos),
            kinds=tuple("fill" if info.kind == "fill" else same_kernel(info.short, info.category) for info in infos),
            category=category if part == "compute" else part,
            part=part,
            fused=any(info.fused for info in infos),
        )

    def _op(self, number: int) -> str | None:
        node = self._nodes[number]
        if node < 0 or self.level == "kernels":
            return None
        group = self._groups[number]
        if group >= 0 and self.side.groups[group].node >= 0:
            name: str = self.side.groups[group].name
            return name
        return self.side.trace.names[int(self.side.tree.name[node])]

    def _name(self, number: int) -> str:
        """The word for a call: of a collective what its kernel does, else of the op, else the kernel's name."""
        first = int(self.calls.members[number][0])
        info = self.side.activities.infos[self._codes[first]]
        op = self._op(number)
        if PARTS[self._work[first]] == "communication":
            kind = same_kernel(info.short, info.category)
            if kind != info.category:
                return kind
        return same_op(op) if op is not None else info.short

    def _path(self, number: int) -> tuple[str, ...]:
        if self.level == "kernels":
            return ()
        key = (self._heads[number], self._modules[number] if self.level == "modules" else 0)
        if key not in self._paths:
            head = (HEADS[key[0]],) if self.phases else ()
            self._paths[key] = (*head, *self.side.context.module_paths[key[1]])
        return self._paths[key]

    def _inputs_of(self, group: int, number: int) -> tuple[str, str, str]:
        """Shapes, element types and strides as text; empty where they were not recorded."""
        node = self._nodes[number]
        row = int(self.side.trace.inputs[self.side.tree.row[node]]) if node >= 0 else -1
        key = group if group >= 0 else -2 - row
        if key not in self._inputs:
            recorded = self.side.trace.signatures[row] if row >= 0 else None
            inputs = self.side.groups[group].inputs if group >= 0 else recorded
            texts = ("", "", "") if inputs is None else (str(inputs.dims), str(inputs.types), str(inputs.strides))
            self._inputs[key] = texts
        return self._inputs[key]
