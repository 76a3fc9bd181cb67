"""Where the time of some gaps passed: how much of it each frame, annotation or call was open for."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import is_step_name
from rooftrace.causes import thread_looked_at, user_frames
from rooftrace.intervals import union
from rooftrace.sorted_unique import distinct_codes, grouped
from rooftrace.trace import HOST_KINDS, Kind
from rooftrace.units import NS_PER_MS, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue

# What is open for nearly the whole run encloses the loop, and is no place in it.
_ENCLOSING_PCT = 90.0
# An annotation that holds less than this of the gaps' time does not tell where they are.
_MIN_ANNOTATED_PCT = 10.0
_CALLS = (Kind.CPU_OP, Kind.RUNTIME, Kind.DRIVER)
_ON_HOST = [int(kind) for kind in (*HOST_KINDS, Kind.OVERHEAD)]
# The iterators of a PyTorch DataLoader, which annotate each batch.
_LOADERS = (
    ("worker_processes", "_MultiProcessingDataLoaderIter"),
    ("launching_thread", "_SingleProcessDataLoaderIter"),
)
# Code that a compiler wrote, and the ops that run it: its host time is the wrapper's, not a line of the user's.
_GENERATED = re.compile(
    r"torchinductor|inductor_cache|[/\\]c\w{50,}\.py\(|^Torch-Compiled Region|CompiledFxGraph|CompiledFunction"
)
_ASSERTS = re.compile(r"assert_size_stride|assert_alignment")


class Cover(Struct, frozen=True, kw_only=True):
    """Names open during gaps: the gaps' time for which each was, ns, and the usual length of one, ns."""

    code: NDArray[np.int64]
    inside: NDArray[np.int64]
    length: NDArray[np.int64]

    def of(self, code: int) -> int:
        """Time of the gaps in which a name was open, ns."""
        return int(self.inside[self.code == code].sum())


def is_generated(name: str) -> bool:
    """Whether a frame or op is code that a compiler wrote."""
    return _GENERATED.search(name) is not None


def cover(workload: Workload, gaps: NDArray[np.int64], rows: NDArray[np.int64], *, threads: bool = True) -> Cover:
    """How much of the gaps' time the events of each name were open for, on the gaps' threads or on any."""
    trace, causes = workload.trace, workload.causes
    on = (
        thread_looked_at(trace, causes.row[gaps], causes.lane[gaps]) if threads else np.zeros(gaps.size, dtype=np.int64)
    )
    lane = trace.lane[rows].astype(np.int64) if threads else np.zeros(rows.size, dtype=np.int64)
    names, codes = np.unique(trace.name[rows], return_inverse=True)
    codes = codes.reshape(-1)
    inside, length = np.zeros((2, names.size), dtype=np.int64)
    count = np.zeros(names.size, dtype=np.int64)
    gaps_on = dict(grouped(on))
    for number, mine in grouped(lane):
        if number not in gaps_on:
            continue
        time = union(causes.start[gaps[gaps_on[number]]], causes.end[gaps[gaps_on[number]]])
        shared = time.covered_before(trace.end_of(rows[mine])) - time.covered_before(trace.start[rows[mine]])
        mine, shared = mine[shared > 0], shared[shared > 0]  # whatever encloses one of these is one of these
        outer = _outermost_of_name(codes[mine], trace.start[rows[mine]], trace.end_of(rows[mine]))
        mine, shared = mine[outer], shared[outer]
        row = rows[mine]
        np.add.at(inside, codes[mine], shared)
        np.add.at(length, codes[mine], trace.dur[row])
        np.add.at(count, codes[mine], 1)
    open_ = count > 0
    return Cover(code=names[open_].astype(np.int64), inside=inside[open_], length=length[open_] // count[open_])


def _outermost_of_name(code: NDArray[np.int64], start: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """Indices of the intervals that do not lie in another one of their name."""
    order = np.lexsort((-end, start, code))
    far = int(end.max()) + 1 if end.size else 1
    reach = np.maximum.accumulate(code[order] * far + end[order])
    inner = np.zeros(order.size, dtype=bool)
    inner[1:] = (code[order[1:]] == code[order[:-1]]) & (reach[1:] == reach[:-1])
    return order[~inner]


def deepest(workload: Workload, gaps: NDArray[np.int64], found: Cover, *, in_loop: bool) -> int:
    """Code of the deepest name that was open for at least half of the gaps' time; -1 for none.

    ``in_loop`` leaves out what was open for nearly the whole span, too.
    """
    enough = 2 * found.inside >= int(workload.causes.dur[gaps].sum())
    if in_loop:
        enough &= ~_encloses(workload, found)
    at = np.flatnonzero(enough)
    return int(found.code[at[np.lexsort((found.length[at], found.inside[at]))[0]]]) if at.size else -1


def _encloses(workload: Workload, found: Cover) -> NDArray[np.bool_]:
    longest = max((ledger.span_ns for ledger in workload.ledgers), default=0)
    encloses: NDArray[np.bool_] = found.length * 100 >= longest * _ENCLOSING_PCT
    return encloses


def frame_evidence(workload: Workload, gaps: NDArray[np.int64], *, in_loop: bool) -> dict[str, EvidenceValue]:
    """The deepest user frame that is open for half of the gaps' time, and the share for which it is."""
    found = cover(workload, gaps, user_frames(workload.trace))
    top = deepest(workload, gaps, found, in_loop=in_loop)
    total = int(workload.causes.dur[gaps].sum())
    return {"frame": _name(workload, top), "frame_pct": pct(found.of(top), total) if top >= 0 else 0.0}


def open_share(workload: Workload, gaps: NDArray[np.int64], code: int) -> float:
    """Share of the gaps' time in which an op, call or frame of a name was open on the threads looked at, %."""
    trace = workload.trace
    rows = np.flatnonzero(trace.name == code)
    rows = rows[np.isin(trace.kind[rows], _ON_HOST)]
    threads = not (trace.kind[rows] == int(Kind.OVERHEAD)).any()  # the profiler's and the driver's have no thread
    found = cover(workload, gaps, rows, threads=threads)
    return min(100.0, pct(found.of(code), int(workload.causes.dur[gaps].sum())))


def loader_of(workload: Workload, gaps: NDArray[np.int64]) -> str:
    """Who loads the data that gaps wait for, by the iterators that are open in them: the thread itself, or workers."""
    trace = workload.trace
    for loader, words in _LOADERS:
        codes = [code for code, name in enumerate(trace.names) if words in name]
        rows = np.flatnonzero(np.isin(trace.name, codes)) if codes else gaps[:0]
        if cover(workload, gaps, rows, threads=False).inside.any():
            return loader
    return "unknown"


def annotation_evidence(workload: Workload, gaps: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """The annotation, other than a step's, in which the gaps lie, how much of them, and how many begin as it does."""
    causes, trace = workload.causes, workload.trace
    rows = _annotations(workload)
    found = cover(workload, gaps, rows, threads=False)
    code = deepest(workload, gaps, found, in_loop=True)
    total = int(causes.dur[gaps].sum())
    left = np.flatnonzero(~_encloses(workload, found) & (found.inside * 100 >= total * _MIN_ANNOTATED_PCT))
    if code < 0 and left.size:
        code = int(found.code[left[np.lexsort((found.length[left], -found.inside[left]))[0]]])
    evidence: dict[str, EvidenceValue] = {
        "annotation": _name(workload, code),
        "annotation_pct": min(100.0, pct(found.of(code), total)) if code >= 0 else 0.0,
    }
    if code >= 0:
        begins = np.sort(trace.start[rows[trace.name[rows] == code]])
        at = np.searchsorted(begins, causes.start[gaps] + NS_PER_MS, side="right")
        near = (at > 0) & (causes.start[gaps] - begins[np.maximum(at - 1, 0)] <= NS_PER_MS)
        evidence["at_begin_count"] = int(near.sum())
        evidence["at_begin_pct"] = pct(int(causes.dur[gaps[near]].sum()), total)
    if workload.steps.annotated and workload.steps.names:
        evidence["gaps_per_step"] = round(gaps.size / len(workload.steps.names), 2)
    return evidence


def annotation_at(workload: Workload, gap: int) -> str:
    """The annotation, other than a step's, open in the middle of a gap: the last to have begun, its thread first."""
    causes, trace = workload.causes, workload.trace
    rows = _annotations(workload)
    middle = (causes.start[gap] + causes.end[gap]) // 2
    rows = rows[(trace.start[rows] <= middle) & (trace.end_of(rows) > middle)]
    if not rows.size:
        return ""
    best = np.lexsort((-trace.start[rows], trace.lane[rows] != causes.lane[gap]))[0]
    return trace.names[int(trace.name[rows[best]])]


def wrapper_evidence(workload: Workload, gaps: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Size checks of compiled code: how many begin in the gaps, and the share of gaps that are hardly anything else."""
    trace, causes = workload.trace, workload.causes
    rows = trace.of_kind(Kind.PYTHON)
    codes = [code for code in distinct_codes(trace.name[rows]) if _ASSERTS.search(trace.names[code])]
    checks = rows[np.isin(trace.name[rows], codes)]
    if not checks.size:
        return {"size_asserts_count": 0, "size_asserts_pct": 0.0}
    inside = _begun(workload, gaps, checks)
    most = 2 * inside >= np.maximum(_begun(workload, gaps, trace.of_kind(Kind.PYTHON, *_CALLS)), 1)
    total = int(causes.dur[gaps].sum())
    return {
        "size_asserts_count": int(inside.sum()),
        "size_asserts_pct": pct(int(causes.dur[gaps[most]].sum()), total),
    }


def _begun(workload: Workload, gaps: NDArray[np.int64], rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many of some events begin in each gap on its thread."""
    trace, causes = workload.trace, workload.causes
    count = np.zeros(gaps.size, dtype=np.int64)
    lane = trace.lane[rows]
    places = dict(grouped(lane))
    for number, mine in grouped(causes.lane[gaps]):
        starts = np.sort(trace.start[rows[places.get(number, mine[:0])]])
        count[mine] = np.searchsorted(starts, causes.end[gaps[mine]]) - np.searchsorted(
            starts, causes.start[gaps[mine]]
        )
    return count


def _annotations(workload: Workload) -> NDArray[np.int64]:
    """Rows of all annotations that are no steps."""
    trace = workload.trace
    rows = trace.of_kind(Kind.ANNOTATION)
    plain = [code for code in distinct_codes(trace.name[rows]) if not is_step_name(trace.names[code])]
    chosen: NDArray[np.int64] = rows[np.isin(trace.name[rows], plain)]
    return chosen


def _name(workload: Workload, code: int) -> str:
    return workload.trace.names[code] if code >= 0 else ""
