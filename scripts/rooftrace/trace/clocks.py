"""Events on another clock than the rest: strays, which are left out, and a host whose clock is not the GPU's.

CUPTI has been seen to count from boot while the host counts from 1970 (kineto#384), and single events to be stamped
days beside all others (ROCm/roc-optiq#482). Both stretch the span of a trace to hours or decades.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rooftrace.trace.events import GPU_KINDS, Kind, Trace
from rooftrace.units import NS_PER_S

if TYPE_CHECKING:
    from numpy.typing import NDArray

# A hundred days: no event lasts longer.
LONGEST_NS = 100 * 86_400 * NS_PER_S
# Nothing happens for this long in the middle of a recording. A stray is farther off than any pause of a run.
_PAUSE_NS = 3_600 * NS_PER_S
_STRAY_NS = 86_400 * NS_PER_S
# Of so many events at most one is a stray: more of them are part of the run, and a few events have no rest to be far
# from.
_EVENTS_PER_STRAY = 50
# Of the events of a side, this share lies on its clock; the others are strays that are too near to be told.
_NEARLY_ALL = 0.99
_STAMPED_BY_THE_GPU = (*GPU_KINDS, Kind.GPU_ANNOTATION, Kind.SYNC)
_STAMPED_BY_THE_HOST = (Kind.CPU_OP, Kind.PYTHON, Kind.ANNOTATION)
_CALLS = (Kind.RUNTIME, Kind.DRIVER)


def strays(trace: Trace) -> NDArray[np.bool_] | None:
    """Events a day or more from all others, if they are few; None if there are none."""
    group = _groups(trace, _STRAY_NS)
    if group is None:
        return None
    host, gpu = _main_groups(trace, group)
    stray = (group != host) & (group != gpu)
    few = 0 < int(stray.sum()) <= stray.size // _EVENTS_PER_STRAY
    return stray if few else None


def bring_together(trace: Trace) -> Trace:
    """The trace with its host's times moved beside its GPU's, where the two have clocks hours or more apart.

    They are moved by as much as lets no activity begin before its launch, if the launches are on the host's clock;
    else they stay where they are. Either way no distance between the two means anything (`Trace.clocks_apart_ns`).
    """
    group = _groups(trace, _PAUSE_NS)
    if group is None:
        return trace
    host, gpu = _main_groups(trace, group)
    on_gpu, on_host = (np.isin(trace.kind, kinds) for kinds in _sides(trace))
    if host == gpu or not (_lies_in(group, gpu, on_gpu) and _lies_in(group, host, on_host)):
        return trace
    apart = abs(int(trace.start[group == gpu].min()) - int(trace.start[group == host].min()))
    with_gpu = group == gpu
    if (np.isin(trace.kind, _CALLS) & (trace.correlation > 0) & with_gpu).any():
        return replace(trace, clocks_apart_ns=apart)
    moved = _distance(trace, with_gpu, group == host)
    low, high = int(trace.start[group == host].min()), int(trace.start[group == host].max())
    trace.start[~with_gpu] += moved
    times = trace.flows.ts
    times[(times >= low - _PAUSE_NS // 2) & (times <= high + _PAUSE_NS // 2)] += moved
    return replace(trace, clocks_apart_ns=apart, host_moved_ns=moved)


def _groups(trace: Trace, pause: int) -> NDArray[np.int64] | None:
    """The number of each event's group: groups are a pause apart. None if there is but one."""
    start = trace.start
    if not start.size or int(start.max()) - int(start.min()) < pause:
        return None
    order = np.argsort(start, kind="stable")
    lasts = np.where((trace.dur < 0) | (trace.dur > LONGEST_NS), 0, trace.dur)
    reach = np.maximum.accumulate((start + lasts)[order])
    group = np.zeros(start.size, dtype=np.int64)
    group[order[1:]] = np.cumsum(start[order[1:]] - reach[:-1] >= pause)
    return group if group.any() else None


def _sides(trace: Trace) -> tuple[tuple[Kind, ...], tuple[Kind, ...]]:
    """Kinds of events that the GPU stamps, and those that the host does: calls stand for it where it has no others."""
    has_host = np.isin(trace.kind, _STAMPED_BY_THE_HOST).any()
    return _STAMPED_BY_THE_GPU, _STAMPED_BY_THE_HOST if has_host else _CALLS


def _main_groups(trace: Trace, group: NDArray[np.int64]) -> tuple[int, int]:
    """The groups with most events of the host and of the GPU; of equal ones, the same for both."""
    counts = np.zeros((2, int(group.max()) + 1), dtype=np.int64)
    for row, kinds in zip(counts, reversed(_sides(trace)), strict=True):
        row += np.bincount(group[np.isin(trace.kind, kinds)], minlength=row.size)
    all_of_them = np.bincount(group)
    main = [int(np.lexsort((-all_of_them, -row))[0]) for row in counts]
    host, gpu = (at if row.any() else -1 for at, row in zip(main, counts, strict=True))
    if host < 0 and gpu < 0:
        host = int(all_of_them.argmax())
    return (gpu if host < 0 else host), (host if gpu < 0 else gpu)


def _lies_in(group: NDArray[np.int64], main: int, side: NDArray[np.bool_]) -> bool:
    return bool(side.any()) and float((group[side] == main).mean()) >= _NEARLY_ALL


def _distance(trace: Trace, with_gpu: NDArray[np.bool_], with_host: NDArray[np.bool_]) -> int:
    """What to add to the host's times: the least distance from a launch to its activity, else that of the starts."""
    linked = trace.correlation > 0
    calls = np.flatnonzero(np.isin(trace.kind, _CALLS) & linked & with_host)
    work = np.flatnonzero(np.isin(trace.kind, GPU_KINDS) & linked & with_gpu)
    calls = calls[np.argsort(trace.correlation[calls], kind="stable")]
    keys = trace.correlation[calls]
    if keys.size and work.size:
        at = np.minimum(np.searchsorted(keys, trace.correlation[work]), keys.size - 1)
        same = keys[at] == trace.correlation[work]
        if same.any():
            return int((trace.start[work[same]] - trace.start[calls[at[same]]]).min())
    return int(trace.start[with_gpu].min()) - int(trace.start[with_host].min())
