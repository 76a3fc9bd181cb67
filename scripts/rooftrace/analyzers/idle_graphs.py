"""Launch sequences that repeat with equal kernels and inputs and without a blocking call inside: graph candidates.

A sequence is what one thread launches in a step between two calls that block or waits for another thread. It repeats
if the same launches occur in such a stretch again, or if the stretch itself consists of equal parts (layers).
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Link
from rooftrace.schedule import WaitKind
from rooftrace.sorted_unique import distinct_rows, sorted_unique

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import RatedRun, Workload

# Fewer launches are not worth a graph of their own (rule of thumb: one graph launch costs like two or three launches).
MIN_LAUNCHES = 8
_MAX_DISTANCES = 20
_CLEARLY_MORE = 1.05
_FACTOR = np.uint64(0x9E3779B97F4A7C15)  # 2^64 over the golden ratio: spreads the codes of a rolling hash


class Sequences(Struct, frozen=True, kw_only=True):
    """Instances of repeating sequences, by (lane, start): the host time of each and what it launches."""

    lane: NDArray[np.int64]
    start: NDArray[np.int64]  # begin of the first launch call, ns
    end: NDArray[np.int64]  # return of the last one, ns
    launches: NDArray[np.int64]
    repeats: NDArray[np.int64]  # instances of the same sequence
    activities: NDArray[np.int64]  # everything that they launch
    call_ns: int  # usual duration of a launch call


class _Launches(Struct, frozen=True, kw_only=True):
    """Launches of a device by (lane, call): nodes, activities, keys, and where a new stretch begins."""

    node: NDArray[np.int64]
    activity: NDArray[np.int64]
    key: NDArray[np.int64]
    opens: NDArray[np.bool_]


def find_sequences(workload: Workload, device: int) -> Sequences:
    """The repeating sequences of a device."""
    launches = _launches(workload, device)
    bounds = np.r_[np.flatnonzero(launches.opens), launches.node.size]
    stretches: dict[bytes, list[tuple[int, int]]] = defaultdict(list)
    for low, high in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if high - low >= MIN_LAUNCHES:
            stretches[launches.key[low:high].tobytes()].append((low, high))
    found: list[tuple[int, int, int]] = []
    for equal in stretches.values():
        if len(equal) > 1:
            found += [(low, high, len(equal)) for low, high in equal]
        else:
            low, high = equal[0]
            found += [(low + a, low + b, times) for a, b, times in _parts(launches.key[low:high])]
    return _sequences(workload, launches, sorted(found))


def _launches(workload: Workload, device: int) -> _Launches:
    activities, tree, trace = workload.activities, workload.tree, workload.trace
    own = (activities.device == device) & (activities.link == int(Link.CORRELATION)) & ~activities.graph
    members = np.flatnonzero(own)
    members = members[np.argsort(activities.launch[members], kind="stable")]
    node = activities.launch[members]
    op = workload.context.op[node]
    inputs = np.where(op >= 0, trace.inputs[tree.row[op]], -1)
    _, key = distinct_rows(activities.name[members], inputs)
    passed = interruptions_before(workload, node)
    opens = np.ones(node.size, dtype=bool)
    same = (tree.lane[node[1:]] == tree.lane[node[:-1]]) & (passed[1:] == passed[:-1])
    step = workload.steps.of_activity[members]
    opens[1:] = ~(same & (step[1:] == step[:-1]))
    return _Launches(node=node, activity=members, key=key, opens=opens)


def interruptions_before(workload: RatedRun, node: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each launch: how many blocking calls, and waits for another thread, its thread had behind it."""
    waits, handovers, tree = workload.schedule.waits, workload.schedule.handovers, workload.tree
    blocking = np.sort(waits.node[waits.kind != int(WaitKind.QUEUE)])
    passed = np.searchsorted(blocking, node, side="right")
    for lane in sorted_unique(handovers.lane).tolist():
        mine = tree.lane[node] == lane
        times = np.sort(handovers.start[handovers.lane == lane])
        passed[mine] += np.searchsorted(times, tree.start[node[mine]], side="right")
    return passed


def _parts(key: NDArray[np.int64]) -> list[tuple[int, int, int]]:
    """(first, end, times) of equal consecutive parts of a stretch, with the distance of recurrence that covers most.

    A longer distance is taken only if it covers clearly more: two layers recur as surely as one.
    """
    best: list[tuple[int, int, int]] = []
    covered = 0.0
    for period in _distances(key):
        found = _runs(key, period)
        length = sum(high - low for low, high, _ in found)
        if length > _CLEARLY_MORE * covered:
            best, covered = found, length
    return best


def _distances(key: NDArray[np.int64]) -> list[int]:
    """The most frequent distances at which the same launches recur, ascending."""
    if key.size < 2 * MIN_LAUNCHES:
        return []
    grams = _grams(key)
    order = np.lexsort((np.arange(grams.size), grams))
    again = grams[order[1:]] == grams[order[:-1]]
    distances = (order[1:] - order[:-1])[again]
    values, counts = np.unique(distances[distances >= MIN_LAUNCHES], return_counts=True)
    frequent: list[int] = np.sort(values[np.argsort(-counts, kind="stable")[:_MAX_DISTANCES]]).tolist()
    return frequent


def _runs(key: NDArray[np.int64], period: int) -> list[tuple[int, int, int]]:
    """Parts of one length that follow each other and are equal."""
    equal = np.r_[False, key[:-period] == key[period:], False]
    edges = np.flatnonzero(equal[1:] != equal[:-1])
    found = []
    for low, high in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
        times = (high - low) // period + 1
        if times > 1:
            found += [(low + n * period, low + (n + 1) * period, times) for n in range(times)]
    return found


def _grams(key: NDArray[np.int64]) -> NDArray[np.uint64]:
    """A hash of each `MIN_LAUNCHES` consecutive keys."""
    codes = key.astype(np.uint64) + np.uint64(1)
    count = key.size - MIN_LAUNCHES + 1
    grams = np.zeros(count, dtype=np.uint64)
    for offset in range(MIN_LAUNCHES):
        grams = grams * _FACTOR + codes[offset : offset + count]
    return grams


def _sequences(workload: Workload, launches: _Launches, found: list[tuple[int, int, int]]) -> Sequences:
    tree = workload.tree
    low, high, times = np.array(found, dtype=np.int64).reshape(-1, 3).T
    inside = [launches.activity[a:b] for a, b, _ in found]
    return Sequences(
        lane=tree.lane[launches.node[low]].astype(np.int64),
        start=tree.start[launches.node[low]],
        end=tree.end[launches.node[high - 1]],
        launches=high - low,
        repeats=times,
        activities=np.concatenate(inside) if inside else np.empty(0, dtype=np.int64),
        call_ns=int(np.median(tree.dur[launches.node])) if launches.node.size else 0,
    )
