"""Host calls of the launch and synchronisation interface, by what they do; one vocabulary for CUDA, HIP and kin."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.schedule.model import WaitKind
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree
    from rooftrace.trace import Trace

_VENDOR = re.compile(r"^(?:cuda|hip|cu|musa|mu)(?=[A-Z])")
_VERSION = re.compile(r"(?:_v\d+|_ptsz|_ptds|_spt)+$")
_WAITS = {
    "streamsynchronize": WaitKind.STREAM,
    "devicesynchronize": WaitKind.DEVICE,
    "ctxsynchronize": WaitKind.DEVICE,
    "threadsynchronize": WaitKind.DEVICE,
    "eventsynchronize": WaitKind.EVENT,
}
# These wait for the whole device where they have to; whether they did is told by the times.
_DRAINING = (
    *("free", "freehost", "hostfree", "freearray", "memfree", "memfreehost", "malloc", "hostalloc", "mallochost"),
    *("hostmalloc", "moduleunload", "memunmap", "memrelease", "streamdestroy", "graphexecdestroy"),
)
# `cudaFree` and `hipFree` synchronise with the device (CUDA and HIP runtime API, memory management).
_FREEING = ("free", "memfree")


class Calls(Struct, frozen=True, kw_only=True):
    """Calls of the run by purpose, each a list of tree nodes in (thread, start) order."""

    waits: dict[WaitKind, NDArray[np.int64]]
    draining: NDArray[np.int64]
    freeing: NDArray[np.int64]  # of these, the ones that free device memory: they wait for everything before them
    record: NDArray[np.int64]  # records an event on a stream
    stream_wait: NDArray[np.int64]  # lets a stream wait for an event


def base_name(name: str) -> str:
    """``streamsynchronize`` for ``cudaStreamSynchronize``, ``hipStreamSynchronize_spt`` and so on."""
    return _VERSION.sub("", _VENDOR.sub("", name)).lower()


def find_calls(trace: Trace, tree: CallTree) -> Calls:
    """The calls that matter for waiting."""
    called = (tree.kind == int(Kind.RUNTIME)) | (tree.kind == int(Kind.DRIVER))
    nodes = np.flatnonzero(called)
    bases = {code: base_name(trace.names[code]) for code in sorted_unique(tree.name[nodes]).tolist()}

    def named(*wanted: str) -> NDArray[np.int64]:
        codes = [code for code, base in bases.items() if base in wanted]
        return nodes[np.isin(tree.name[nodes], codes)]

    waits: dict[WaitKind, NDArray[np.int64]] = {}
    for kind in (WaitKind.STREAM, WaitKind.DEVICE, WaitKind.EVENT):
        waits[kind] = named(*[base for base, meant in _WAITS.items() if meant is kind])
    return Calls(
        waits=waits,
        draining=named(*_DRAINING),
        freeing=named(*_FREEING),
        record=named("eventrecord", "eventrecordwithflags"),
        stream_wait=named("streamwaitevent"),
    )


class Launches(Struct, frozen=True, kw_only=True):
    """Launching calls by (thread, start), with the first activity each put on a queue."""

    lane: NDArray[np.int64]
    start: NDArray[np.int64]
    node: NDArray[np.int64]
    activity: NDArray[np.int64]

    def around(self, lane: int, time: int, *, after: bool) -> int:
        """An activity launched by a thread next after, or last before, a time; -1 where there is none."""
        low = int(np.searchsorted(self.lane, lane, side="left"))
        high = int(np.searchsorted(self.lane, lane, side="right"))
        at = low + int(np.searchsorted(self.start[low:high], time, side="left")) - (0 if after else 1)
        return int(self.activity[at]) if low <= at < high else -1


def find_launches(tree: CallTree, activities: Activities) -> Launches:
    """Every launching call once."""
    linked = np.flatnonzero(activities.launch >= 0)
    nodes, first = np.unique(activities.launch[linked], return_index=True)
    order = np.lexsort((tree.start[nodes], tree.lane[nodes]))
    nodes, activity = nodes[order], linked[first][order]
    return Launches(lane=tree.lane[nodes].astype(np.int64), start=tree.start[nodes], node=nodes, activity=activity)


def sync_rows(trace: Trace) -> dict[int, int]:
    """Rows of recorded synchronisations, by the correlation id of the call they belong to."""
    rows = trace.of_kind(Kind.SYNC)
    keys = trace.correlation[rows]
    return {key: row for key, row in zip(keys.tolist(), rows.tolist(), strict=True) if key > 0}


def nodes_by_correlation(trace: Trace, tree: CallTree, nodes: NDArray[np.int64]) -> dict[int, int]:
    """Some calls by their correlation id."""
    keys = trace.correlation[tree.row[nodes]].tolist()
    return {key: node for key, node in zip(keys, nodes.tolist(), strict=True) if key > 0}
