"""What a trace tells of a call besides its own record: the calls around it, before it and after it.

Everything is looked up for a call whose own record does not give a cost, so it is built when first asked for. A shape
comes from another call only where that call is the one (its forward call, the call around it) or where all that could
be it agree.
"""

from __future__ import annotations

import re
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.opmodels import Op, Tensor, category_of, op_from_record
from rooftrace.opmodels.embedding_tables import lookup_shape
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.calltree.passes import Context
    from rooftrace.calltree.tree import CallTree
    from rooftrace.trace import Trace

_BACKWARD_NODE = re.compile(r"Backward\d*$|^torch::autograd::CppNode<")
_UPDATE = re.compile(r"SplitLookupFunction_(\w+)_Op")
_LOOKUP = re.compile(r"^fbgemm::(?:split|(dense))_embedding_codegen_lookup_(?:(\w+)_)?function$")
_NUMBER = re.compile(r"_\d+$")
_GENERATED = "triton_poi_fused_"
_ALLOCATIONS = ("aten::empty", "aten::empty_strided")
_SHARED_STEM = 6  # letters that two names of one family begin with
# Forward call: its backward call, the operands they share (forward to backward position), the position of the gradient.
_CONVOLUTION_TWINS = (
    ("aten::cudnn_convolution_backward", ((0, 0), (1, 2)), 1),
    ("aten::convolution_backward", ((0, 1), (1, 2)), 0),
)
_POOL_TWINS = (("aten::max_pool2d_with_indices_backward", ((0, 1),), 0),)
_TWINS = {
    "aten::convolution": _CONVOLUTION_TWINS,
    "aten::_convolution": _CONVOLUTION_TWINS,
    "aten::cudnn_convolution": _CONVOLUTION_TWINS,
    "aten::max_pool2d_with_indices": _POOL_TWINS,
}


class Found(Struct, frozen=True, kw_only=True):
    """A call with arguments that are not its own record, and where they are from."""

    op: Op
    source: str


# Calls in one another that carry one sequence number: an op and what it is made of, three or four in practice.
_MOST_WITH_NUMBER = 64
# Shapes of gradients by the shapes of operands.
_Gradients = dict[tuple[tuple[int, ...], ...], set[tuple[int, ...]]]


class Surroundings:
    """Calls of a trace by what connects them."""

    def __init__(self, trace: Trace, tree: CallTree, context: Context) -> None:
        self.trace, self.tree, self.context = trace, tree, context
        self._ops: dict[tuple[int, int], Op] = {}
        self._enclosing: dict[int, int] = {}  # the node found round each that was passed; -1: none
        self._known_gradients: dict[tuple[str, tuple[int, ...], int], _Gradients] = {}

    def name(self, node: int) -> str:
        """Name of a node."""
        return self.trace.names[int(self.tree.name[node])]

    def recorded(self, node: int) -> Op:
        """The call as its own record gives it."""
        key = (int(self.tree.name[node]), int(self.trace.inputs[self.tree.row[node]]))
        if key not in self._ops:
            self._ops[key] = record_op(self.trace, *key)
        return self._ops[key]

    def enclosing(self, node: int) -> tuple[Op, bool] | None:
        """The nearest call or annotation around this one that records tensors, and whether it is of one family."""
        passed, above = [node], int(self.tree.parent[node])
        while above >= 0 and passed[-1] not in self._enclosing and not self._has_tensors(above):
            passed.append(above)
            above = int(self.tree.parent[above])
        found = self._enclosing.get(passed[-1], above)
        self._enclosing.update(dict.fromkeys(passed, found))  # no node is passed twice
        if found < 0:
            return None
        outer = self.recorded(found)
        return outer, _same_family(self.name(node), outer.name)

    def _has_tensors(self, node: int) -> bool:
        """Whether this is a call or annotation that records tensors."""
        called = self.tree.kind[node] in (int(Kind.CPU_OP), int(Kind.ANNOTATION))
        return called and bool(self.recorded(node).tensors())

    def forward(self, node: int) -> tuple[Op, Tensor | None] | None:
        """The forward call of the backward call around this one, and the gradient that the latter is handed."""
        update = _UPDATE.search(self.name(node))
        if update:
            return self._looked_up(node, update.group(1))
        forward = int(self.context.forward[node])
        if forward < 0 or self._is_ambiguous(forward):
            return None
        op = next((op for at in self._with_number(forward) if (op := self.recorded(at)).tensors()), None)
        enclosing = self.enclosing(node)
        handed = enclosing[0].tensors() if enclosing and _BACKWARD_NODE.search(enclosing[0].name) else ()
        return None if op is None else (op, handed[0] if handed else None)

    def result(self, node: int) -> tuple[Tensor, str] | None:
        """The result of a forward call, as its backward call shows it, and how."""
        for at in self._number_of.get(node, ()):
            op = self.recorded(at)
            if op.tensors() and _same_function(self.name(node), op.name):
                return replace(op.tensors()[0], strides=None), "the gradient that its backward call is handed"
        return self._result_of_lookup(node) or self._result_of_twin(node)

    def other_instances(self, node: int) -> Iterator[int]:
        """Calls of the same op in the same module of another step or layer."""
        path = self._module_class(node)
        if path:
            yield from (at for at in self._by_module.get((int(self.tree.name[node]), path), ()) if at != node)

    def generated(self, node: int) -> Found | None:
        """A generated elementwise kernel from the buffer allocated for it and the call it was compiled from.

        Inductor allocates a kernel's result right before it launches the kernel.
        """
        name = self.name(node)
        buffer = self._allocated_before(node) if name.startswith(_GENERATED) else None
        if buffer is None:
            return None
        enclosing = self.enclosing(node)
        if enclosing is not None:
            tensors = enclosing[0].tensors()
            if not all(_fits(tensor, buffer) for tensor in tensors):
                return None
            source = f"the buffer allocated for its result and the enclosing call `{enclosing[0].name}`"
            return Found(op=Op(name=name, args=(*tensors, buffer)), source=source)
        source = "the buffer allocated for its result; lower bound: one input of that size"
        return Found(op=Op(name=name, args=(buffer, buffer)), source=source)

    def _allocated_before(self, node: int) -> Tensor | None:
        """The one buffer that the siblings since the last generated kernel allocate."""
        parent, found = int(self.tree.parent[node]), []
        for sibling in range(node - 1, parent, -1):
            if self.tree.parent[sibling] != parent:
                continue
            if self.name(sibling) not in _ALLOCATIONS:
                break
            found.append(self.recorded(sibling))
        if parent < 0 or len(found) != 1:
            return None
        return _buffer(found[0])

    def _with_number(self, node: int) -> Iterator[int]:
        """The node and the calls around it that carry its sequence number."""
        number = self.trace.sequence[self.tree.row[node]]
        for _ in range(_MOST_WITH_NUMBER):
            if node < 0 or self.trace.sequence[self.tree.row[node]] != number:
                return
            yield node
            node = int(self.tree.parent[node])

    def _is_ambiguous(self, forward: int) -> bool:
        """Whether forward calls on other threads carry the number too: numbers are counted thread by thread."""
        return len(self._lanes_of.get(int(self.trace.sequence[self.tree.row[forward]]), ())) > 1

    @cached_property
    def _lanes_of(self) -> dict[int, set[int]]:
        """Threads with forward calls of each sequence number."""
        numbers = self.trace.sequence[self.tree.row]
        lanes: dict[int, set[int]] = {}
        for node in np.flatnonzero((numbers >= 0) & (self.context.phase != 1)).tolist():
            lanes.setdefault(int(numbers[node]), set()).add(int(self.tree.lane[node]))
        return lanes

    @cached_property
    def _number_of(self) -> dict[int, list[int]]:
        """Backward calls with recorded inputs by the forward calls that carry their number."""
        numbers = self.trace.sequence[self.tree.row]
        found: dict[int, list[int]] = {}
        numbered = (numbers >= 0) & (self.context.forward >= 0) & (self.trace.inputs[self.tree.row] >= 0)
        for node in np.flatnonzero(numbered).tolist():
            forward = int(self.context.forward[node])
            if _BACKWARD_NODE.search(self.name(node)) and not self._is_ambiguous(forward):
                for at in self._with_number(forward):
                    found.setdefault(at, []).append(node)
        return found

    def _result_of_twin(self, node: int) -> tuple[Tensor, str] | None:
        """From the backward calls with the same operands, where they agree on the gradient's shape."""
        op = self.recorded(node)
        for name, pairs, at in _TWINS.get(op.name, ()):
            shapes = tuple(tensor.shape for i, _ in pairs if (tensor := op.tensor_or_none(i)) is not None)
            grads = self._gradients(name, tuple(j for _, j in pairs), at).get(shapes, set())
            if len(grads) == 1:
                (shape,) = grads
                return Tensor(shape=shape, dtype=op.tensor(0).dtype), f"the calls of `{name}` on the same operands"
        return None

    def _gradients(self, name: str, operands: tuple[int, ...], at: int) -> _Gradients:
        """Shapes of the gradient in calls of a backward op, by the shapes of its operands."""
        key = (name, operands, at)
        if key not in self._known_gradients:
            self._known_gradients[key] = self._find_gradients(name, operands, at)
        return self._known_gradients[key]

    def _find_gradients(self, name: str, operands: tuple[int, ...], at: int) -> _Gradients:
        found: _Gradients = {}
        for op in self._distinct.get(name, ()):
            shapes = tuple(tensor.shape for i in operands if (tensor := op.tensor_or_none(i)) is not None)
            grad = op.tensor_or_none(at)
            if grad is not None:
                found.setdefault(shapes, set()).add(grad.shape)
        return found

    @cached_property
    def _distinct(self) -> dict[str, list[Op]]:
        """Distinct calls of the backward ops that tell results, by name."""
        wanted = {twin[0] for twins in _TWINS.values() for twin in twins}
        codes = [code for code, name in enumerate(self.trace.names) if name in wanted]
        nodes = np.flatnonzero(np.isin(self.tree.name, codes) & (self.trace.inputs[self.tree.row] >= 0))
        pairs = {(int(self.tree.name[n]), int(self.trace.inputs[self.tree.row[n]])) for n in nodes.tolist()}
        found: dict[str, list[Op]] = {}
        for pair in sorted(pairs):
            found.setdefault(self.trace.names[pair[0]], []).append(record_op(self.trace, *pair))
        return found

    @cached_property
    def _lookups(self) -> list[tuple[str, Op]]:
        """Optimizer and record of each distinct forward lookup in several tables."""
        found: dict[tuple[int, int], tuple[str, Op]] = {}
        codes = [code for code, name in enumerate(self.trace.names) if _LOOKUP.match(name)]
        for node in np.flatnonzero(np.isin(self.tree.name, codes)).tolist():
            match = _LOOKUP.match(self.name(node))
            key = (int(self.tree.name[node]), int(self.trace.inputs[self.tree.row[node]]))
            if match and key[1] >= 0:
                found.setdefault(key, (match.group(2) or "Dense", self.recorded(node)))
        return [found[key] for key in sorted(found)]

    @cached_property
    def _updates(self) -> list[tuple[str, Tensor, frozenset[int]]]:
        """Optimizer, gradient and lengths of the vectors below each backward pass of a lookup."""
        found: list[tuple[str, Tensor, frozenset[int]]] = []
        codes = [code for code, name in enumerate(self.trace.names) if _UPDATE.search(name)]
        for node in np.flatnonzero(np.isin(self.tree.name, codes)).tolist():
            match, grad = _UPDATE.search(self.name(node)), self.recorded(node).tensors()
            if match and grad:
                found.append((match.group(1), grad[0], self._vectors_below(node)))
        return found

    def _vectors_below(self, node: int) -> frozenset[int]:
        """Lengths of the vectors handed to calls below this one: the sorted indices are among them."""
        lengths: set[int] = set()
        end = self.tree.end[node]
        at = node + 1
        while at < self.tree.row.size and self.tree.lane[at] == self.tree.lane[node] and self.tree.start[at] < end:
            if self.trace.inputs[self.tree.row[at]] >= 0:
                lengths |= {tensor.shape[0] for tensor in self.recorded(at).tensors() if len(tensor.shape) == 1}
            at += 1
        return frozenset(lengths)

    def _looked_up(self, node: int, optimizer: str) -> tuple[Op, Tensor | None] | None:
        """The forward lookup of an update: of as many samples and tables, and of as many indices as it sorts."""
        grad = self.recorded(node).tensors()
        if not grad:
            return None
        lengths = self._vectors_below(node)
        fitting = [op for name, op in self._lookups if name == optimizer and _is_lookup_of(op, grad[0], lengths)]
        return (fitting[0], grad[0]) if len(fitting) == 1 else None

    def _result_of_lookup(self, node: int) -> tuple[Tensor, str] | None:
        match = _LOOKUP.match(self.name(node))
        if not match:
            return None
        op, optimizer = self.recorded(node), match.group(2) or "Dense"
        fitting = [g for name, g, sizes in self._updates if name == optimizer and _is_lookup_of(op, g, sizes)]
        grads = {grad.shape: grad for grad in fitting}
        if len(grads) != 1:
            return None
        (grad,) = grads.values()
        return replace(grad, strides=None), "the gradient of its backward call, which sorts as many indices"

    @cached_property
    def _by_module(self) -> dict[tuple[int, tuple[str, ...]], list[int]]:
        """Calls with recorded inputs by name and class of module path."""
        found: dict[tuple[int, tuple[str, ...]], list[int]] = {}
        shaped = (self.trace.inputs[self.tree.row] >= 0) & (self.context.module > 0)
        for node in np.flatnonzero(shaped & (self.tree.kind == int(Kind.CPU_OP))).tolist():
            found.setdefault((int(self.tree.name[node]), self._module_class(node)), []).append(node)
        return found

    def _module_class(self, node: int) -> tuple[str, ...]:
        """The module path without the numbers of instances."""
        return tuple(_NUMBER.sub("", name) for name in self.context.module_paths[int(self.context.module[node])])


def record_op(trace: Trace, name: int, signature: int) -> Op:
    """The call of a name code and an input signature; without arguments where none are recorded."""
    if signature < 0:
        return Op(name=trace.names[name], args=())
    known: Op | None = trace.parsed.get(signature)
    if known is None:
        inputs = trace.signatures[signature]
        recorded = (inputs.dims, inputs.types, inputs.strides, inputs.concrete)
        parts = [part if isinstance(part, list) else None for part in recorded]
        trace.parsed[signature] = known = op_from_record(trace.names[name], *parts)
    return Op(name=trace.names[name], args=known.args)


def _is_lookup_of(op: Op, grad: Tensor, lengths: frozenset[int]) -> bool:
    shape = lookup_shape(op)
    if shape is None or len(grad.shape) != 2:
        return False
    samples, tables, indices = shape
    return grad.shape[0] == samples and grad.shape[1] >= tables and indices in lengths


def _buffer(allocation: Op) -> Tensor | None:
    """The tensor that an allocation makes."""
    at = 1 if allocation.name == "aten::empty" else 2
    shape, dtype = allocation.arg(0), allocation.arg(at)
    if not isinstance(shape, str) or not isinstance(dtype, str) or not shape or not dtype:
        return None
    sizes = [part.strip() for part in shape.strip("[] ").split(",")]
    named = allocation.dtype(at)
    if named is None or not all(size.isdigit() for size in sizes):
        return None
    return Tensor(shape=tuple(int(size) for size in sizes), dtype=named)


def _fits(tensor: Tensor, result: Tensor) -> bool:
    """Whether an operand broadcasts to a result."""
    pairs = zip(reversed(tensor.shape), reversed(result.shape), strict=False)
    return len(tensor.shape) <= len(result.shape) and all(a in (1, b) for a, b in pairs)


def _stem(name: str) -> str:
    return re.sub(r"Backward\d*$", "", name.rpartition("::")[2]).replace("_", "").lower()


def _same_function(forward: str, backward: str) -> bool:
    """Whether an autograd node is named after a forward op: ``IndexBackward0`` after ``aten::index``."""
    one, other = _stem(forward), _stem(backward)
    return bool(one and other) and (one in other or other in one)


def _same_family(inner: str, outer: str) -> bool:
    """Whether a call wraps another: one category, and names that contain each other or begin alike."""
    if category_of(inner) is None or category_of(inner) != category_of(outer):
        return False
    one, other = _stem(inner), _stem(outer)
    return one in other or other in one or one[:_SHARED_STEM] == other[:_SHARED_STEM]
