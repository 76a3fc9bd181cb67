"""The calls of a run in the order in which each stream executes them, and the views between them.

A call is a run of consecutive activities of one stream that one op launched: the op that claims them, or the ops below
it where it is itself a composition of several (attention by matrix products, a multi-tensor op on its slow path).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Activities, CallTree, Context
from rooftrace.calltree.surroundings import record_op
from rooftrace.fusion.meaning import Meaning, meaning_of_call, meaning_of_view, unknown_call
from rooftrace.fusion.views import is_view
from rooftrace.sorted_unique import distinct_rows, sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.platforms import Platform
    from rooftrace.trace import Trace

_COMPOSED = 3  # ops of their own below a claiming op that make it a composition
# Kernels of other threads that may come between two of a thread without ending its chain.
_A_TURN = 8
_TRANSPARENT = ("autograd::engine::evaluate_function", "torch::autograd::")


class FusionInputs(Struct, frozen=True, kw_only=True):
    """What candidates are found from."""

    trace: Trace
    tree: CallTree
    context: Context
    activities: Activities
    platform: Platform | None


class Calls(Struct, frozen=True, kw_only=True):
    """One entry a call, by (queue, start); ``step`` is its place among `step_node`, -1 without an op."""

    order: NDArray[np.int64]  # activities by (queue, start)
    bounds: NDArray[np.int64]  # of each call in `order`; one more than there are calls
    node: NDArray[np.int64]
    queue: NDArray[np.int64]  # number of a stream, or of a thread's stretch where threads take turns on it
    lane: NDArray[np.int64]
    meaning: NDArray[np.int64]  # index into `meanings`
    kernels: NDArray[np.int64]  # number of the call's sequence of kernel names
    scope: NDArray[np.int64]  # number of the module instance, parent op or top level that it was made in
    time_ns: NDArray[np.int64]
    step: NDArray[np.int64]
    step_node: NDArray[np.int64]  # calls and views in the order of the host
    step_meaning: NDArray[np.int64]
    meanings: list[Meaning]

    def activities_of(self, first: int, last: int) -> NDArray[np.int64]:
        """Activities of the calls from ``first`` to ``last``, both included."""
        return self.order[self.bounds[first] : self.bounds[last + 1]]


def collect_calls(run: FusionInputs) -> Calls:
    """Every call that launched something to a stream."""
    activities, tree = run.activities, run.tree
    order = np.lexsort((activities.start, activities.stream, activities.device))
    node = _node_of(run)[order]
    stream = distinct_rows(activities.device[order], activities.stream[order])[1]
    queue = _by_thread(stream, _of_nodes(tree.lane, node))
    grouped = np.argsort(queue, kind="stable")
    order, node, queue = order[grouped], node[grouped], queue[grouped]
    apart = (np.diff(queue) != 0) | (np.diff(node) != 0) | (node[1:] < 0) if order.size else np.zeros(0, dtype=bool)
    firsts = np.flatnonzero(np.r_[order.size > 0, apart])
    bounds = np.r_[firsts, order.size].astype(np.int64)
    kernels = _kernel_sequences(activities.name[order], bounds)
    called = node[firsts]
    known = called >= 0
    meaning, meanings = _meanings(run, (called, bounds, order), kernels)
    views = _views(run, called[known])
    step_node = sorted_unique(np.r_[views, called[known]])
    step_meaning = _step_meanings(run, step_node, (called, meaning, known), meanings)
    return Calls(
        order=order,
        bounds=bounds,
        node=called,
        queue=queue[firsts],
        lane=_of_nodes(tree.lane, called),
        meaning=meaning,
        kernels=kernels,
        scope=_scopes(run, called),
        time_ns=np.add.reduceat(activities.dur[order], firsts) if firsts.size else firsts,
        step=np.where(known, np.searchsorted(step_node, called), -1),
        step_node=step_node,
        step_meaning=step_meaning,
        meanings=meanings,
    )


def _by_thread(stream: NDArray[np.int64], lane: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of the stretch of one thread that each activity of a stream is part of, by the first of each.

    What has no thread counts for that of the activity before it.
    """
    if not stream.size or not (lane >= 0).any():
        return stream
    known = np.maximum.accumulate(np.where(lane >= 0, np.arange(lane.size), 0))
    key = distinct_rows(stream, np.maximum(lane[known], 0))[1]
    like = np.argsort(key, kind="stable")
    apart = (np.diff(key[like]) != 0) | (np.diff(like) > _A_TURN + 1)
    firsts = np.flatnonzero(np.r_[True, apart])
    stretch = np.zeros(stream.size, dtype=np.int64)
    stretch[like] = np.repeat(like[firsts], np.diff(np.r_[firsts, like.size]))
    return distinct_rows(stretch)[1]


def _node_of(run: FusionInputs) -> NDArray[np.int64]:
    """The op that each activity counts for; -1 where none is known, and for what a graph replays."""
    activities, context = run.activities, run.context
    node = np.full(activities.row.size, -1, dtype=np.int64)
    launched = np.flatnonzero(activities.linked & ~activities.graph)
    unit, inner = context.unit[activities.launch[launched]], context.op[activities.launch[launched]]
    pairs = distinct_rows(unit, inner)[0]
    pairs = pairs[(unit[pairs] >= 0) & (unit[pairs] != inner[pairs])]
    units, counts = np.unique(unit[pairs], return_counts=True)
    node[launched] = np.where(np.isin(unit, units[counts >= _COMPOSED]), inner, unit)
    return node


def _of_nodes(column: NDArray[Any], nodes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A column's entries; -1 where there is no node."""
    result = np.full(nodes.size, -1, dtype=np.int64)
    known = nodes >= 0
    result[known] = column[nodes[known]]
    return result


def _kernel_sequences(names: NDArray[np.int32], bounds: NDArray[np.int64]) -> NDArray[np.int64]:
    """Number of each call's sequence of kernel names."""
    sizes = np.diff(bounds)
    result = names[bounds[:-1]].astype(np.int64) if sizes.size else np.zeros(0, dtype=np.int64)
    numbers: dict[tuple[int, ...], int] = {}
    base = int(names.max()) + 1 if names.size else 0
    for at in np.flatnonzero(sizes > 1).tolist():
        key = tuple(names[bounds[at] : bounds[at + 1]].tolist())
        result[at] = base + numbers.setdefault(key, len(numbers))
    return result


def _meanings(
    run: FusionInputs,
    layout: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]],
    kernels: NDArray[np.int64],
) -> tuple[NDArray[np.int64], list[Meaning]]:
    """The meaning of every call, each distinct (name, inputs, kernels) looked at once."""
    called, bounds, order = layout
    trace, tree, activities = run.trace, run.tree, run.activities
    name = _of_nodes(tree.name, called)
    inputs = _of_nodes(trace.inputs, _of_nodes(tree.row, called))
    if not called.size:
        return called, []
    at, inverse = distinct_rows(name, inputs, kernels)
    meanings: list[Meaning] = []
    for example in at.tolist():
        codes = dict.fromkeys(activities.name[order[bounds[example] : bounds[example + 1]]].tolist())
        infos = [activities.infos[code] for code in codes]
        if name[example] < 0:
            meanings.append(unknown_call(infos))
        else:
            meanings.append(meaning_of_call(record_op(trace, int(name[example]), int(inputs[example])), infos))
    return inverse.reshape(-1).astype(np.int64), meanings


def _views(run: FusionInputs, called: NDArray[np.int64]) -> NDArray[np.int64]:
    """Calls that give views and launch nothing, outside the calls that launch."""
    tree, names = run.tree, run.trace.names
    verdict = np.zeros(len(names), dtype=bool)
    ops = np.flatnonzero(tree.kind == int(Kind.CPU_OP))
    for code in sorted_unique(tree.name[ops]).tolist():
        verdict[code] = is_view(names[code])
    views: NDArray[np.int64] = ops[verdict[tree.name[ops]]]
    launching = np.zeros(tree.row.size, dtype=bool)
    launching[called] = True
    within = tree.innermost(launching)
    return views[within[views] < 0]


def _step_meanings(
    run: FusionInputs,
    step_node: NDArray[np.int64],
    known: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.bool_]],
    meanings: list[Meaning],
) -> NDArray[np.int64]:
    """Meaning of every step; those of views are added to the list."""
    called, meaning, has_op = known
    result = np.full(step_node.size, -1, dtype=np.int64)
    result[np.searchsorted(step_node, called[has_op])] = meaning[has_op]
    views = np.flatnonzero(result < 0)
    if not views.size:
        return result
    nodes = step_node[views]
    name, inputs = (
        run.tree.name[nodes].astype(np.int64),
        run.trace.inputs[run.tree.row[nodes]].astype(np.int64),
    )
    at, inverse = distinct_rows(name, inputs)
    result[views] = len(meanings) + inverse.reshape(-1)
    meanings.extend(meaning_of_view(run.trace, int(name[first]), int(inputs[first])) for first in at.tolist())
    return result


def _scopes(run: FusionInputs, called: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where each call was made: a module instance, else the module of its forward call, else the op around it.

    A node's own number stands for a module instance or parent op, numbers past all nodes for modules of forward calls,
    -1 for the top level.
    """
    tree, context = run.tree, run.context
    if not called.size:
        return called
    known = np.flatnonzero(called >= 0)
    nodes = called[known]
    above = tree.parent[nodes]
    module = _above(tree.innermost(module_mask(run)), above)
    parent = _above(tree.innermost(_parent_mask(run, nodes)), above)
    path = context.module[nodes]
    inherited = np.where(path > 0, tree.row.size + path, parent)
    scope = np.full(called.size, -1, dtype=np.int64)
    scope[known] = np.where(module >= 0, module, inherited)
    return scope


def _above(nearest: NDArray[np.int32], above: NDArray[np.int32]) -> NDArray[np.int32]:
    return np.where(above >= 0, nearest[above], -1)


def module_mask(run: FusionInputs) -> NDArray[np.bool_]:
    """Nodes that are frames of module instances."""
    return _named(run, Kind.PYTHON, ("nn.Module: ",))


def _parent_mask(run: FusionInputs, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Annotations, and ops around so many calls that they are a composition; the engine's nodes are neither.

    An op around one or two calls (a cast, a product with the copy before it) only wraps what it calls.
    """
    tree = run.tree
    length = int(tree.end.max(initial=0)) + 1
    base = tree.lane.astype(np.int64) * length
    keys = np.sort((base + tree.start)[sorted_unique(nodes)])
    inside = np.searchsorted(keys, base + tree.end) - np.searchsorted(keys, base + tree.start)
    ops = (tree.kind == int(Kind.CPU_OP)) & (inside >= _COMPOSED)
    transparent = _named(run, Kind.CPU_OP, _TRANSPARENT)
    enclosing: NDArray[np.bool_] = (ops & ~transparent) | (tree.kind == int(Kind.ANNOTATION))
    return enclosing


def _named(run: FusionInputs, kind: Kind, starts: tuple[str, ...]) -> NDArray[np.bool_]:
    mask = run.tree.kind == int(kind)
    verdict = np.zeros(len(run.trace.names), dtype=bool)
    for code in sorted_unique(run.tree.name[mask]).tolist():
        verdict[code] = run.trace.names[code].startswith(starts)
    named: NDArray[np.bool_] = mask & verdict[run.tree.name]
    return named
