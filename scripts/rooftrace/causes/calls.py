"""Runtime calls that took much longer than others of their name, and whether they were the first of their kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.trace import Trace

# Calls that launch or ask take 1 to 20 us; one of this length does something else besides (rule of thumb).
SLOW_NS = 50_000
# A process that loads its kernels does so at many first launches; where hardly one is slow, that one has other causes.
_LOADING_SHARE = 0.05


class SlowCalls(Struct, frozen=True, kw_only=True):
    """One entry a row of the trace.

    A launch is the first of its kind if its kernel was not launched before, any other call if its name was not
    called before: then it loads code or sets something up. In a run that is warm no launch counts as first.
    """

    is_slow: NDArray[np.bool_]
    is_first: NDArray[np.bool_]
    is_launch: NDArray[np.bool_]


def find_slow_calls(trace: Trace, tree: CallTree, activities: Activities) -> SlowCalls:
    """What is unusual about each runtime or driver call."""
    rows = trace.of_kind(Kind.RUNTIME, Kind.DRIVER)
    rows = rows[np.argsort(trace.start[rows], kind="stable")]
    is_first, is_launch = np.zeros(trace.kind.size, dtype=bool), np.zeros(trace.kind.size, dtype=bool)
    is_first[rows[np.unique(trace.name[rows], return_index=True)[1]]] = True
    launched = np.flatnonzero(activities.launch >= 0)
    launched = launched[np.argsort(tree.start[activities.launch[launched]], kind="stable")]
    is_launch[tree.row[activities.launch[launched]]] = True
    is_first &= ~is_launch
    first = launched[np.unique(activities.name[launched], return_index=True)[1]]
    firsts, is_slow = tree.row[activities.launch[first]], _slow(trace, rows)
    if firsts.size and is_slow[firsts].mean() >= _LOADING_SHARE:
        is_first[firsts] = True
    return SlowCalls(is_slow=is_slow, is_first=is_first, is_launch=is_launch)


def _slow(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Calls of `SLOW_NS` and more that last over twice as long as others of their name mostly do."""
    slow = np.zeros(trace.kind.size, dtype=bool)
    long = rows[trace.dur[rows] >= SLOW_NS]
    for code in sorted_unique(trace.name[long]).tolist():
        mine, alike = long[trace.name[long] == code], rows[trace.name[rows] == code]
        usual = int(np.sort(trace.dur[alike])[(alike.size - 1) // 2])
        slow[mine] = (trace.dur[mine] > 2 * usual) | (alike.size == 1)
    return slow
