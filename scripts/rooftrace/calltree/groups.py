"""Op groups: instances of one op with equal name, inputs, phase and kernels, the row everything else is about."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace import opmodels
from rooftrace.calltree.activities import Link, Work
from rooftrace.calltree.passes import PHASES
from rooftrace.calltree.surroundings import record_op
from rooftrace.calltree.units import Call, choose_units, cost_with_kernels
from rooftrace.intervals import union
from rooftrace.opmodels.embedding_tables import index_count, is_table_lookup, without_index_count
from rooftrace.sorted_unique import distinct_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree.activities import Activities
    from rooftrace.calltree.passes import Context
    from rooftrace.calltree.tree import CallTree
    from rooftrace.calltree.units import Units
    from rooftrace.kernelnames import KernelInfo
    from rooftrace.opmodels import Cost, Op, Unmodelled
    from rooftrace.trace import Inputs, Trace

# Below so many values a plain sum takes less time than sorting columns.
_FEW = 32
_FLOAT = re.compile(r"^-?\d+\.\d*(?:e[-+]?\d+)?$|^-?\d+e[-+]?\d+$|^-?(?:inf|nan)$")


class OpGroup(Struct, frozen=True, kw_only=True):
    """Instances of one op. Arrays hold one entry an instance, or one an activity where the name says so."""

    name: str
    category: str
    phase: str
    inputs: Inputs | None  # as recorded
    cost: Cost | Unmodelled | None  # of one instance; None without an op or any input, recorded or inferred
    node: int  # an example node, the slowest instance's, of lookups the one of usual size; -1 without an op
    activities: NDArray[np.int64]  # indices of all activities, by instance
    firsts: NDArray[np.int64]  # place of each instance's first activity in `activities`
    instance_busy: NDArray[np.int64]  # union of each instance's activities, ns
    kernel_ns: int
    kernel_codes: tuple[int, ...]
    link: Link
    graph: bool
    module_ns: dict[int, int]  # module path id -> kernel time
    recompute_ns: int

    @property
    def count(self) -> int:
        """Number of instances."""
        return int(self.instance_busy.size)

    @property
    def busy_ns(self) -> int:
        """Union of each instance's kernels, summed, ns."""
        return int(self.instance_busy.sum())


def group_ops(trace: Trace, tree: CallTree, context: Context, activities: Activities) -> list[OpGroup]:
    """All compute kernels (not communication, not copies) in groups, most kernel time first."""
    members = np.flatnonzero(activities.work == int(Work.COMPUTE))
    units = choose_units(trace, tree, context, activities)
    unit = units.node[members]
    order = np.lexsort((activities.start[members], _instance_keys(unit, members)))
    members, unit = members[order], unit[order]
    if not members.size:
        return []
    keys = _instance_keys(unit, members)
    firsts = np.r_[0, np.flatnonzero(np.diff(keys)) + 1]
    busy = _instance_busy(activities, members, firsts)
    grouped = _group_instances(trace, tree, context, activities, (members, firsts, units))
    layout = (members, np.r_[firsts, members.size], unit[firsts], units.call[members[firsts]], busy)
    groups = [
        _make_group(key, instances, (trace, tree, context, activities, units), layout)
        for key, instances in grouped.items()
    ]
    return sorted(groups, key=lambda g: (-g.kernel_ns, g.name, g.phase, int(g.activities[0])))


def _instance_keys(unit: NDArray[np.int64], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Activities of one op share a key; those without an op are instances of their own."""
    return np.where(unit >= 0, unit, -2 - members)


def _instance_busy(activities: Activities, members: NDArray[np.int64], firsts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Union of the activities of each instance; members are sorted by (instance, start)."""
    busy = np.add.reduceat(activities.dur[members], firsts)
    sizes = np.diff(np.r_[firsts, members.size])
    for at in np.flatnonzero(sizes > 1).tolist():
        part = members[firsts[at] : firsts[at] + sizes[at]]
        start, end = activities.start[part], activities.end[part]
        if (start[1:] < np.maximum.accumulate(end)[:-1]).any():
            busy[at] = union(start, end).length
    return busy


def _group_instances(
    trace: Trace,
    tree: CallTree,
    context: Context,
    activities: Activities,
    layout: tuple[NDArray[np.int64], NDArray[np.int64], Units],
) -> dict[tuple[Any, ...], NDArray[np.int64]]:
    """Instance numbers by group key."""
    members, firsts, chosen = layout
    example = members[firsts]
    node, call = chosen.node[example], chosen.call[example]
    known = node >= 0
    name, phase = _at(tree.name, node, -1), _at(context.phase, node, 0)
    shapes = _shape_classes(trace)[_at(trace.inputs, _at(tree.row, node, -1), -1)]
    kernels = _kernel_sets(activities.name[members], firsts, len(trace.names))
    link = activities.link[example].astype(np.int64)
    link = np.where(known, 0, np.where(link >= int(Link.CARRY_IN), link, int(Link.CORRELATION)))
    call = np.where(known, call, -1)
    pooled = np.flatnonzero(np.isin(name, [code for code, text in enumerate(trace.names) if is_table_lookup(text)]))
    shapes[pooled] = _without_index_counts(trace, tree, chosen, (node[pooled], call[pooled]))
    call[pooled] = -1
    columns = (name, shapes, phase, kernels, link, activities.graph[example], call)
    first, number = distinct_rows(*columns)
    order = np.argsort(number, kind="stable")
    instances = np.split(order, np.flatnonzero(np.diff(number[order])) + 1)
    keys = zip(*(column[first].tolist() for column in columns), strict=True)
    return dict(zip(keys, instances, strict=True))


def _at(column: NDArray[Any], places: NDArray[np.int64], default: int) -> NDArray[np.int64]:
    """Entries of a column; `default` where there is no place."""
    result = np.full(places.size, default, dtype=np.int64)
    known = places >= 0
    result[known] = column[places[known]]
    return result


def _shape_classes(trace: Trace) -> NDArray[np.int64]:
    """Number of each signature among those that make different work; the last entry serves -1."""
    numbers: dict[tuple[Any, ...], int] = {}
    classes = [numbers.setdefault(_input_class(inputs), len(numbers)) for inputs in trace.signatures]
    return np.array([*classes, -1], dtype=np.int64)


def _kernel_sets(codes: NDArray[np.int32], firsts: NDArray[np.int64], names: int) -> NDArray[np.int64]:
    """Number of the set of kernel names of each instance: the name's own for a single one."""
    result = codes[firsts].astype(np.int64)
    sizes = np.diff(np.r_[firsts, codes.size])
    numbers: dict[frozenset[int], int] = {}
    for at in np.flatnonzero(sizes > 1).tolist():
        kernels = frozenset(codes[firsts[at] : firsts[at] + sizes[at]].tolist())
        if len(kernels) > 1:
            result[at] = names + numbers.setdefault(kernels, len(numbers))
    return result


def _without_index_counts(
    trace: Trace, tree: CallTree, chosen: Units, calls: tuple[NDArray[np.int64], NDArray[np.int64]]
) -> list[int]:
    """Number of the shapes of each table lookup, past those of all signatures: how many rows it reads is data."""
    numbers: dict[Op, int] = {}
    ops = (_op_of(trace, tree, node, chosen, call) for node, call in zip(*(c.tolist() for c in calls), strict=True))
    past = len(trace.signatures)
    return [past + numbers.setdefault(without_index_count(op), len(numbers)) for op in ops]


def _input_class(inputs: Inputs) -> tuple[Any, ...]:
    """What makes two recorded inputs the same work: shapes, dtypes, stride order, and arguments that are no floats."""
    concrete = inputs.concrete if isinstance(inputs.concrete, list) else []
    return (
        repr(inputs.dims),
        repr(inputs.types),
        _stride_class(inputs.dims, inputs.strides),
        tuple("" if not isinstance(value, str) or _FLOAT.match(value) else value for value in concrete),
    )


def _stride_class(dims: Any, strides: Any) -> tuple[str, ...]:
    if not isinstance(dims, list) or not isinstance(strides, list):
        return ()
    return tuple(_layout_of(shape, stride) for shape, stride in zip(dims, strides, strict=False))


def _layout_of(shape: Any, stride: Any) -> str:
    """Order of the dimensions in memory, such as `0123` for contiguous; `b` marks a broadcast one.

    Dimensions of size one are left out: their strides mean nothing.
    """
    if not isinstance(stride, list) or not stride or not all(isinstance(step, int) for step in stride):
        return ""
    sizes = shape if isinstance(shape, list) and len(shape) == len(stride) else [0] * len(stride)
    axes = [axis for axis, size in enumerate(sizes) if size != 1]
    order = sorted(axes, key=lambda axis: (-stride[axis], axis))
    return "".join(str(axis) if stride[axis] else f"{axis}b" for axis in order)


def _make_group(
    key: tuple[Any, ...],
    chosen: NDArray[np.int64],
    source: tuple[Trace, CallTree, Context, Activities, Units],
    layout: tuple[NDArray[np.int64], ...],
) -> OpGroup:
    trace, tree, context, activities, units = source
    members, bounds, nodes, calls, busy = layout
    rows, sizes = members[_ranges(bounds[chosen], bounds[chosen + 1])], bounds[chosen + 1] - bounds[chosen]
    example = int(chosen[int(np.argmax(busy[chosen]))])
    if key[0] >= 0 and is_table_lookup(trace.names[key[0]]):
        example = _usual_lookup(trace, tree, units, (chosen, nodes, calls))
    node, number = int(nodes[example]), int(calls[example])
    dur = activities.dur[rows]
    kernels = _by_time(activities.name[rows], dur)
    infos = [activities.infos[code] for code in kernels]
    name, category = _name_and_category(trace, tree, node, infos)
    signature = int(trace.inputs[tree.row[node]]) if node >= 0 else -1
    module_ns, recompute_ns = _context_time(context, activities, rows, dur)
    call = units.calls[number] if node >= 0 and number >= 0 else None
    return OpGroup(
        name=name,
        category=category,
        phase=PHASES[key[2]],
        inputs=trace.signatures[signature] if signature >= 0 else None,
        cost=_cost_of(trace, tree, node, call, infos),
        node=node,
        activities=rows,
        firsts=np.cumsum(sizes) - sizes,
        instance_busy=busy[chosen],
        kernel_ns=int(dur.sum()),
        kernel_codes=kernels,
        link=Link(key[4]),
        graph=bool(key[5]),
        module_ns=module_ns,
        recompute_ns=recompute_ns,
    )


def _ranges(low: NDArray[np.int64], high: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers from each low up to its high."""
    if low.size == 1:
        return np.arange(int(low[0]), int(high[0]))
    sizes = high - low
    return np.repeat(low - (np.cumsum(sizes) - sizes), sizes) + np.arange(int(sizes.sum()))


def _usual_lookup(
    trace: Trace, tree: CallTree, units: Units, layout: tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]
) -> int:
    """Of lookups that differ in their number of indices, the instance in the middle; its cost stands for all."""
    chosen, node, call = layout
    sizes = {at: index_count(_op_of(trace, tree, int(node[at]), units, int(call[at]))) for at in chosen.tolist()}
    ordered = sorted(sizes, key=lambda at: (sizes[at], at))
    middle: int = ordered[len(ordered) // 2]
    return middle


def _op_of(trace: Trace, tree: CallTree, node: int, units: Units, call: int) -> Op:
    """The inferred call of an instance if there is one, else its record."""
    if call >= 0:
        return units.calls[call].op
    return record_op(trace, int(tree.name[node]), int(trace.inputs[tree.row[node]]))


def _cost_of(
    trace: Trace, tree: CallTree, node: int, call: Call | None, infos: Sequence[KernelInfo]
) -> Cost | Unmodelled | None:
    """Cost of an instance, from the inferred call if there is one, else from the record of an example."""
    if node < 0:
        return None
    signature = int(trace.inputs[tree.row[node]])
    if call is None and signature < 0:
        return None
    return cost_with_kernels(call or Call(op=record_op(trace, int(tree.name[node]), signature)), infos)


def _name_and_category(trace: Trace, tree: CallTree, node: int, infos: Sequence[KernelInfo]) -> tuple[str, str]:
    """Op name and category: of the op where it tells, else of its kernels, the heaviest first."""
    if node < 0:
        return infos[0].short, infos[0].category
    name = trace.names[tree.name[node]]
    category = opmodels.category_of(name)
    if category is not None:
        return name, category
    categories = [info.category for info in infos]
    return name, next((c for c in categories if c not in ("memory", "generic")), categories[0])


def part_of(group: OpGroup, activities: Activities, context: Context, keep: NDArray[np.bool_]) -> OpGroup:
    """The same group with some of its activities; instances that keep none are gone. Its cost stays the whole one's."""
    sizes = np.diff(np.r_[group.firsts, group.activities.size])
    instance = np.repeat(np.arange(group.count), sizes)[keep]
    rows = group.activities[keep]
    firsts = np.flatnonzero(np.diff(instance, prepend=-1))
    dur = activities.dur[rows]
    module_ns, recompute_ns = _context_time(context, activities, rows, dur)
    return replace(
        group,
        activities=rows,
        firsts=firsts,
        instance_busy=_instance_busy(activities, rows, firsts),
        kernel_ns=int(dur.sum()),
        kernel_codes=_by_time(activities.name[rows], dur),
        module_ns=module_ns,
        recompute_ns=recompute_ns,
    )


def _context_time(
    context: Context, activities: Activities, rows: NDArray[np.int64], dur: NDArray[np.int64]
) -> tuple[dict[int, int], int]:
    launch = activities.launch[rows]
    known = launch >= 0
    launch, dur = launch[known], dur[known]
    return _sums(context.module[launch], dur), int(dur[context.recompute[launch]].sum())


def _by_time(codes: NDArray[np.int32], dur: NDArray[np.int64]) -> tuple[int, ...]:
    totals = _sums(codes, dur)
    return tuple(sorted(totals, key=lambda code: (-totals[code], code)))


def _sums(keys: NDArray[Any], values: NDArray[np.int64]) -> dict[int, int]:
    """Sum of the values of each distinct key, in the order of the keys."""
    if keys.size <= _FEW:  # most groups of a run with many shapes
        few: dict[int, int] = {}
        for key, value in zip(keys.tolist(), values.tolist(), strict=True):
            few[key] = few.get(key, 0) + value
        return dict(sorted(few.items()))
    distinct, at = np.unique(keys, return_inverse=True)
    totals = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(totals, at, values)
    return dict(zip(distinct.tolist(), totals.tolist(), strict=True))


def kernel_totals(codes: NDArray[np.int32], dur: NDArray[np.int64]) -> Sequence[tuple[int, int, int]]:
    """(name code, launches, summed ns) of each distinct kernel, most time first."""
    counts = _sums(codes, np.ones(codes.size, dtype=np.int64))
    rows = [(code, counts[code], total) for code, total in _sums(codes, dur).items()]
    return sorted(rows, key=lambda row: (-row[2], row[0]))
