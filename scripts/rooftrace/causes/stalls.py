"""Stretches in which a thread that launches stood still inside a call that usually takes no time.

Whatever the GPU did meanwhile: where it waits for other ranks in a collective, such a stall leaves no gap behind.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.causes.classes import COLLECTIVE_OP, special_time
from rooftrace.causes.quiet import longest_quiet
from rooftrace.causes.spans import Windows
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.causes.model import IdleCauses
    from rooftrace.schedule import Schedule
    from rooftrace.trace import Trace

# A call that only dispatches takes 2 to 100 us; one that takes this long, and this many times what its name mostly
# takes, was held up (rules of thumb).
_LEAST_NS = 1_000_000
_TIMES_USUAL = 20
_COPY = re.compile(r"memcpy", re.IGNORECASE)
_FEWEST = 5  # calls of a name from which "mostly" means something


class Stalls(Struct, frozen=True, kw_only=True):
    """One entry a stall, by (thread, start): the call, and the stretch without any event in it, less what is usual."""

    node: NDArray[np.int64]
    lane: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    usual_ns: NDArray[np.int64]  # median self time of calls of the same name

    @property
    def dur(self) -> NDArray[np.int64]:
        """Length of each, ns."""
        return self.end - self.start

    def select(self, keep: NDArray[np.bool_]) -> Stalls:
        """Some of the stalls."""
        return Stalls(
            node=self.node[keep],
            lane=self.lane[keep],
            start=self.start[keep],
            end=self.end[keep],
            usual_ns=self.usual_ns[keep],
        )


def find_stalls(trace: Trace, tree: CallTree, activities: Activities, schedule: Schedule, idle: IdleCauses) -> Stalls:
    """The stalls of all threads that launch.

    Calls that may block, that load code, allocate, copy or communicate have other reasons to take long, and so has the
    first call of a name.
    """
    lanes = sorted_unique(tree.lane[activities.launch[activities.launch >= 0]])
    is_call = np.isin(tree.kind, [int(kind) for kind in (Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)])
    calls = np.flatnonzero(is_call & np.isin(tree.lane, lanes))
    own = tree.self_time()
    nodes = calls[own[calls] > _LEAST_NS]
    usual = _usual(tree, own, calls, nodes)
    slow = (usual >= 0) & (own[nodes] > _TIMES_USUAL * usual)
    slow &= ~np.isin(nodes, schedule.waits.node) & ~_is_first(tree, nodes) & ~_waits_or_copies(trace, tree.name[nodes])
    nodes, usual = nodes[slow], usual[slow]
    windows = Windows(lane=tree.lane[nodes].astype(np.int64), start=tree.start[nodes], end=tree.end[nodes])
    quiet = longest_quiet(trace, windows, np.ones(nodes.size, dtype=bool))
    begin = np.minimum(quiet.start + usual, quiet.end)
    still = (quiet.end - begin >= np.maximum(_LEAST_NS, own[nodes] // 2)) & _inside_itself(tree, nodes, quiet)
    told = special_time(idle, quiet)
    still &= 2 * told < quiet.end - quiet.start
    return Stalls(
        node=nodes[still],
        lane=windows.lane[still],
        start=begin[still],
        end=quiet.end[still],
        usual_ns=usual[still],
    )


def _usual(
    tree: CallTree, own: NDArray[np.int64], calls: NDArray[np.int64], nodes: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Median self time of the calls of each node's name, ns; -1 where there are too few. The nodes are among them."""
    names = sorted_unique(tree.name[nodes])
    alike = calls[np.isin(tree.name[calls], names)]
    order = alike[np.lexsort((own[alike], tree.name[alike]))]
    first = np.searchsorted(tree.name[order], names)
    count = np.diff(np.r_[first, order.size])
    middle = own[order[first + (count - 1) // 2]]
    usual: NDArray[np.int64] = np.where(count >= _FEWEST, middle, -1)[np.searchsorted(names, tree.name[nodes])]
    return usual


def _is_first(tree: CallTree, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether each node is the first of its name."""
    names = sorted_unique(tree.name[nodes])
    alike = np.flatnonzero(np.isin(tree.name, names))
    order = alike[np.lexsort((tree.start[alike], tree.name[alike]))]
    first = order[np.searchsorted(tree.name[order], names)]
    return np.isin(nodes, first)


def _waits_or_copies(trace: Trace, names: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether each name hands a collective over, which waits for other ranks, or copies, which depends on the size."""
    told = {code: trace.names[code] for code in sorted_unique(names).tolist()}
    return np.isin(names, [code for code, name in told.items() if COLLECTIVE_OP.search(name) or _COPY.search(name)])


def _inside_itself(tree: CallTree, nodes: NDArray[np.int64], quiet: Windows) -> NDArray[np.bool_]:
    """Whether no child of each node is open in its quiet stretch."""
    child = np.flatnonzero(np.isin(tree.parent, nodes))
    place = np.searchsorted(nodes, tree.parent[child])
    over = np.minimum(tree.end[child], quiet.end[place]) > np.maximum(tree.start[child], quiet.start[place])
    free = np.ones(nodes.size, dtype=bool)
    free[place[over]] = False
    return free
