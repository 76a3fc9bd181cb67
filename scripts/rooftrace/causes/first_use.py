"""Calls that set something up because it is used for the first time: they do not come back in a steady loop."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from rooftrace.intervals import Union, union
from rooftrace.sorted_unique import distinct_codes
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import CallTree
    from rooftrace.causes.calls import SlowCalls
    from rooftrace.trace import Trace

# Ops whose first call opens a library: handles, workspaces, searches for an algorithm.
_LIBRARY = re.compile(
    r"cudnn|miopen|cublas|hipblas|rocblas|cusolver|cufft|^aten::(?:addmm|mm|bmm|baddbmm|_addmm_activation|_scaled_mm)$"
)
# Allocations take up to some ms; what is this long also creates a context or loads code (rule of thumb).
_LONG_NS = 100_000_000
_SETTING_UP = re.compile(
    r"Launch|^(?:cuda|cu|hip)(?:StreamCreate|EventCreate|Get\w*Properties|FuncGetAttributes|Occupancy)"
)
_WARM_UP = re.compile(r"warm[-_ ]?up", re.IGNORECASE)


def warm_up(trace: Trace) -> Union:
    """The time under annotations that say warm-up, on any thread."""
    rows = trace.of_kind(Kind.ANNOTATION)
    rows = rows[np.isin(trace.name[rows], _matching(trace, rows, _WARM_UP))]
    return union(trace.start[rows], trace.end_of(rows))


def first_use(trace: Trace, tree: CallTree, memory: NDArray[np.signedinteger[Any]]) -> NDArray[np.bool_]:
    """One entry a row: the allocator calls (given as rows) that belong to a first use.

    They lie under an annotation that says warm-up, in the first call of an op that opens a library, or last 100 ms and
    more in the first call of any op.
    """
    found = np.zeros(trace.kind.size, dtype=bool)
    warm = warm_up(trace)
    found[memory] = warm.covered_before(trace.end_of(memory)) > warm.covered_before(trace.start[memory])
    nodes = np.flatnonzero(np.isin(tree.row, memory))
    firsts = _first_calls(tree)
    libraries = firsts & np.isin(tree.name, _matching(trace, tree.row[firsts], _LIBRARY))
    in_library = tree.innermost(libraries)[nodes] >= 0
    op = tree.innermost(tree.kind == int(Kind.CPU_OP))[nodes]
    in_first = (op >= 0) & firsts[op]
    long = tree.dur[nodes] >= _LONG_NS
    found[tree.row[nodes]] |= in_library | (in_first & long)
    return found


def first_calls_that_set_up(trace: Trace, calls: SlowCalls) -> NDArray[np.int64]:
    """Rows of unusually long launches and creating calls that were the first of their kind."""
    rows = np.flatnonzero(calls.is_slow & calls.is_first)
    return rows[np.isin(trace.name[rows], _matching(trace, rows, _SETTING_UP))]


def _first_calls(tree: CallTree) -> NDArray[np.bool_]:
    """Whether each node is the first call of the op of its name."""
    nodes = np.flatnonzero(tree.kind == int(Kind.CPU_OP))
    nodes = nodes[np.argsort(tree.start[nodes], kind="stable")]
    first = np.zeros(tree.row.size, dtype=bool)
    first[nodes[np.unique(tree.name[nodes], return_index=True)[1]]] = True
    return first


def _matching(trace: Trace, rows: NDArray[np.signedinteger[Any]], pattern: re.Pattern[str]) -> list[int]:
    return [code for code in distinct_codes(trace.name[rows]) if pattern.search(trace.names[code])]
