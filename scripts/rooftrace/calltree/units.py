"""The call that each activity counts for, and its cost.

The outermost op that claims what is launched below it is the unit, if its record gives a cost. Else, in this order:
the ops below it where they cost all of its activities; what the trace tells of its arguments otherwise; the ops below
it for those activities that have one. Decided once for each distinct (name, input signature) where the record
suffices, which is nearly always.
"""

from __future__ import annotations

from itertools import islice, pairwise
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.calltree.activities import Activities, Work
from rooftrace.calltree.surroundings import Surroundings, record_op
from rooftrace.opmodels import Cost, Op, Tensor, Unmodelled, claims_subtree, cost_of, dtype_in_kernel_name
from rooftrace.opmodels.hints import (
    from_enclosing,
    from_forward,
    has_spelled_scalar,
    lacks_dtype,
    spell_scalar,
    spelled_dtype,
    with_dtype,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree.passes import Context
    from rooftrace.calltree.tree import CallTree
    from rooftrace.kernelnames import KernelInfo
    from rooftrace.trace import Trace

INFERRED = "inferred: "
_ANY_DTYPE = "float32"  # to ask whether a cost fails for its dtype alone
_ENOUGH = 64  # calls of one name and module that are compared before they are taken to agree


class Call(Struct, frozen=True, kw_only=True):
    """A call as it is costed, and what of it is not its own record."""

    op: Op
    notes: tuple[str, ...] = ()


class Units(Struct, frozen=True, kw_only=True):
    """For each activity the node that it counts for and the call (-1: none, or the node's own record)."""

    node: NDArray[np.int64]
    call: NDArray[np.int64]
    calls: tuple[Call, ...]


def choose_units(trace: Trace, tree: CallTree, context: Context, activities: Activities) -> Units:
    """The unit of every activity.

    The op around a graph's launch says nothing of the kernels replayed: each stands for itself, under its own name.
    """
    linked = activities.linked & ~activities.graph
    node = np.full(activities.row.size, -1, dtype=np.int64)
    node[linked] = context.unit[activities.launch[linked]]
    chooser = _Chooser(trace, tree, context, activities)
    asked = np.flatnonzero((activities.work == int(Work.COMPUTE)) & (node >= 0))
    call = np.full(node.size, -1, dtype=np.int64)
    if asked.size:
        chooser.settle(asked, node, call)
    return Units(node=node, call=call, calls=tuple(chooser.calls))


def is_costed(op: Op) -> bool:
    """Whether a call has a cost, or lacks nothing for it but an element type."""
    if isinstance(cost_of(op), Cost):
        return True
    return lacks_dtype(op) and isinstance(cost_of(with_dtype(op, _ANY_DTYPE)), Cost)


class _Chooser:
    """Verdicts and inferred calls, each found once."""

    def __init__(self, trace: Trace, tree: CallTree, context: Context, activities: Activities) -> None:
        self.trace, self.tree, self.context, self.activities = trace, tree, context, activities
        self.calls: list[Call] = []
        self._number: dict[Call, int] = {}
        self._verdict: dict[tuple[int, int], bool] = {}
        self._around = Surroundings(trace, tree, context)
        self._kernels: dict[int, frozenset[int]] = {}
        self._launched: dict[int, frozenset[int]] = {}
        by_launch = np.argsort(activities.launch, kind="stable")
        self._launches = activities.launch[by_launch]
        self._launched_names = activities.name[by_launch]

    def settle(self, asked: NDArray[np.int64], node: NDArray[np.int64], call: NDArray[np.int64]) -> None:
        """Move the activities of calls without a cost to where there is one."""
        mine = node[asked]
        signature = self.trace.inputs[self.tree.row[mine]].astype(np.int64)
        key = self.tree.name[mine].astype(np.int64) * (len(self.trace.signatures) + 1) + signature + 1
        _, first, inverse = np.unique(key, return_index=True, return_inverse=True)
        costed = np.array([self._is_costed(at) for at in mine[first].tolist()], dtype=bool)[inverse.reshape(-1)]
        order = np.argsort(mine, kind="stable")
        self._kernels = {}
        unsettled = order[~costed[order]]
        if not unsettled.size:
            return
        bounds = np.r_[0, np.flatnonzero(np.diff(mine[unsettled])) + 1, unsettled.size]
        parts = [asked[unsettled[low:high]] for low, high in pairwise(bounds.tolist())]
        for part in parts:
            names = self.activities.name[part].tolist()
            self._kernels[int(node[part[0]])] = frozenset(names)
        for part in parts:
            self._settle_one(part, node, call)

    def _is_costed(self, node: int) -> bool:
        key = (int(self.tree.name[node]), int(self.trace.inputs[self.tree.row[node]]))
        if key not in self._verdict:
            self._verdict[key] = is_costed(record_op(self.trace, *key))
        return self._verdict[key]

    def _settle_one(self, part: NDArray[np.int64], node: NDArray[np.int64], call: NDArray[np.int64]) -> None:
        """Settle the activities of one call."""
        unit = int(node[part[0]])
        known: dict[int, tuple[int, int]] = {}
        ops = self.context.op[self.activities.launch[part]].tolist()
        below = [self._costed_below(op, unit, known) for op in ops]
        if all(inner >= 0 for inner in below):
            node[part] = below
            return
        found = self._infer(unit, part)
        if found >= 0:
            call[part] = found
            return
        for at, inner in zip(part.tolist(), below, strict=True):
            if inner >= 0:
                node[at] = inner

    def _costed_below(self, op: int, unit: int, known: dict[int, tuple[int, int]]) -> int:
        """The outermost claiming op with a cost from an op up to its unit, else the innermost op with one.

        `known`: both for each op of the unit that was passed before, so that no op is passed twice.
        """
        passed, at = [], op
        while at > unit and at not in known:
            passed.append(at)
            above = int(self.tree.parent[at])
            at = int(self.context.op[above]) if above >= 0 else -1
        claiming, chosen = known.get(at, (-1, -1))
        for inner in reversed(passed):
            if self._is_costed(inner):
                chosen = inner
                claims = claiming < 0 and claims_subtree(self._around.name(inner))
                claiming = inner if claims else claiming
            known[inner] = (claiming, chosen)
        return claiming if claiming >= 0 else chosen

    def _infer(self, node: int, part: NDArray[np.int64]) -> int:
        """Number of a call with a cost that the trace tells otherwise; -1 if it does not."""
        names = self._names_below(node, part)
        for op, notes in self._candidates(node):
            for refined, more in self._refined(node, op, names):
                if is_costed(refined):
                    return self._numbered(Call(op=refined, notes=(*notes, *more)))
        return -1

    def _numbered(self, call: Call) -> int:
        if call not in self._number:
            self._number[call] = len(self.calls)
            self.calls.append(call)
        return self._number[call]

    def _names_below(self, node: int, part: NDArray[np.int64]) -> Sequence[str]:
        """Names of the kernels of a call and, where they may tell, of the ops between."""
        names = [self.activities.infos[code].name for code in sorted(set(self.activities.name[part].tolist()))]
        if has_spelled_scalar(self._around.name(node)):
            inner: set[int] = set()
            for at in self.context.op[self.activities.launch[part]].tolist():
                above = at
                while above > node and above not in inner:
                    inner.add(above)
                    above = int(self.tree.parent[above])
            names += sorted({self._around.name(at) for at in inner})
        return names

    def _candidates(self, node: int) -> Iterator[tuple[Op, tuple[str, ...]]]:
        """Calls that this one may be, the closest evidence first."""
        name, record = self._around.name(node), self._around.recorded(node)
        if record.tensors() and not name.startswith("torch::autograd::CppNode<"):
            yield record, ()
            return
        enclosing = self._around.enclosing(node)
        if enclosing is not None:
            op = from_enclosing(name, enclosing[0], same_family=enclosing[1])
            if op is not None:
                yield op, (f"{INFERRED}shapes from the enclosing call `{enclosing[0].name}`",)
        forward = self._around.forward(node)
        if forward is not None:
            op = from_forward(name, *forward)
            if op is not None:
                yield op, (f"{INFERRED}shapes from the forward call `{forward[0].name}`",)
        generated = self._around.generated(node)
        if generated is not None:
            yield generated.op, (f"{INFERRED}shapes from {generated.source}",)
        agreed = self._agreed(node)
        if agreed is not None:
            yield agreed, (f"{INFERRED}shapes from other calls in the same module",)
        yield record, ()

    def _agreed(self, node: int) -> Op | None:
        """The record of the same op in the same module elsewhere, if all of them agree and launch the same kernels."""
        mine = self._kernels.get(node)
        others = list(islice(self._around.other_instances(node), _ENOUGH))
        signatures = {int(self.trace.inputs[self.tree.row[at]]) for at in others}
        if mine is None or len(signatures) != 1:
            return None
        same = any(self._launched_by(at) == mine for at in others)
        return self._around.recorded(others[0]) if same else None

    def _launched_by(self, node: int) -> frozenset[int]:
        """Name codes of the kernels launched inside a node."""
        if node not in self._launched:
            tree = self.tree
            lane_end = int(np.searchsorted(tree.lane, tree.lane[node], side="right"))
            last = node + 1 + int(np.searchsorted(tree.start[node + 1 : lane_end], tree.end[node]))
            low, high = np.searchsorted(self._launches, (node, last))
            self._launched[node] = frozenset(self._launched_names[low:high].tolist())
        return self._launched[node]

    def _refined(self, node: int, op: Op, names: Sequence[str]) -> Iterator[tuple[Op, tuple[str, ...]]]:
        """The call with more and more of what else is known of it."""
        yield op, ()
        notes: tuple[str, ...] = ()
        spelled = spell_scalar(op, names)
        if spelled is not None:
            op, what = spelled
            notes = (f"{INFERRED}{what} from the names of kernels and ops below the call",)
            yield op, notes
        result: tuple[Tensor, str] | None = self._around.result(node)
        if result is not None:
            yield replace(op, output=result[0]), (*notes, f"{INFERRED}result's shape from {result[1]}")


def cost_with_kernels(call: Call, infos: Sequence[KernelInfo]) -> Cost | Unmodelled:
    """Cost of a call; element types that are not recorded come from the names of its kernels."""
    cost = cost_of(call.op)
    notes = call.notes
    if isinstance(cost, Unmodelled) and lacks_dtype(call.op):
        dtype = _dtype_of_kernels(call.op, infos)
        if dtype is not None:
            cost = cost_of(with_dtype(call.op, dtype))
            notes = (*notes, f"{INFERRED}dtype {dtype} from the kernel's name")
    if isinstance(cost, Unmodelled) or not notes:
        return cost
    return replace(cost, notes=(*notes, *cost.notes))


def _dtype_of_kernels(op: Op, infos: Sequence[KernelInfo]) -> str | None:
    """The type that the kernels spell; of lists and results, which kernels move as they are, the first one spelled."""
    if any(isinstance(arg, Tensor) and arg.dtype is None for arg in op.args):
        return spelled_dtype((info.name for info in infos), (info.facts.precision for info in infos))
    return next((dtype for info in infos if (dtype := dtype_in_kernel_name(info.name))), None)
