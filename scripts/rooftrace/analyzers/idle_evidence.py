"""What is told of the gaps of one cause, of a device's launches, and of how the host dispatched."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers.idle_places import (
    annotation_at,
    annotation_evidence,
    frame_evidence,
    is_generated,
    open_share,
)
from rooftrace.analyzers.idle_syncs import NO_OP, heaviest, name_of
from rooftrace.calltree import Link, Work, module_class
from rooftrace.causes import CAUSE_NAMES, HOST_CAUSES, Cause, warm_up
from rooftrace.causes.queues import launch_delays, queue_depths
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind
from rooftrace.units import NS_PER_MS, ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.idle_graphs import Sequences
    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.ledger import DeviceLedger

_SHORT_GAP_NS = 20_000
# Back-to-back kernels stand a rounding of the clock apart: no gap a reader would call one.
_ROUNDING_NS = 100
# Below this a busy device with a short queue is no sign of a slow host.
_HOST_BOUND_IDLE_PCT = 10.0
# Causes that certain calls are to blame for; of their gaps only what lies in those calls counts.
_ON_CALLS = tuple(cause for cause in HOST_CAUSES if cause not in (Cause.LAUNCH_BOUND, Cause.HOST_CODE))


def gap_evidence(workload: Workload, ledger: DeviceLedger, gaps: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """The gaps of one cause: how long, how many, what ran, where."""
    causes, activities, names = workload.causes, workload.activities, workload.trace.names
    dur = causes.dur[gaps]
    total, span = int(dur.sum()), ledger.span_ns
    idle = idle_of(workload, gaps)
    counted = dur[dur >= _ROUNDING_NS] if (dur >= _ROUNDING_NS).any() else dur
    step = workload.steps.of_activity
    inside = int(dur[step[causes.before[gaps]] == step[causes.after[gaps]]].sum())
    top = int(gaps[dur.argmax()])
    evidence: dict[str, EvidenceValue] = {
        "device": ledger.device,
        "cause": CAUSE_NAMES[int(causes.cause[top])],
        "idle_ms": ns_to_ms(idle),
        "idle_pct": pct(idle, span),
        "gaps_ms": ns_to_ms(total),
        "all_idle_ms": ns_to_ms(ledger.idle_ns),
        "all_idle_pct": pct(ledger.idle_ns, span),
        "cause_share_pct": pct(total, ledger.idle_ns),
        "busy_pct": pct(span - ledger.idle_ns, span),
        "gaps_count": int(counted.size),
        "median_gap_us": ns_to_us(float(np.median(counted))),
        "max_gap_ms": ns_to_ms(int(dur.max())),
        "gaps_over_1ms_count": int((dur >= NS_PER_MS).sum()),
        "gaps_over_1ms_pct": pct(int(dur[dur >= NS_PER_MS].sum()), total),
        "short_gaps_pct": pct(int(dur[dur < _SHORT_GAP_NS].sum()), total),
        "in_step_pct": pct(inside, total),
        "warmup_pct": pct(_in_warm_up(workload, gaps), total),
        "top_gap_before": activities.infos[int(activities.name[causes.before[top]])].short,
        "top_gap_after": activities.infos[int(activities.name[causes.after[top]])].short,
        "top_gap_op": _op_name(workload, top) or NO_OP,
        "top_gap_frame": names[workload.trace.name[causes.frame[top]]] if causes.frame[top] >= 0 else "",
        "top_gap_annotation": annotation_at(workload, top),
    }
    return evidence | _responsible(workload, gaps) | annotation_evidence(workload, gaps)


def idle_of(workload: Workload, gaps: NDArray[np.int64]) -> int:
    """Idle time of gaps of one cause, ns: what lies in the calls that are to blame, or all of it where none are."""
    causes = workload.causes
    if gaps.size and Cause(int(causes.cause[gaps[0]])) in _ON_CALLS:
        return int(_blamed(workload, gaps)[1].sum())
    return int(causes.dur[gaps].sum())


def _blamed(workload: Workload, gaps: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the events that gaps are blamed on, and the time each takes of its gap, no instant counted twice."""
    causes, pieces = workload.causes, workload.causes.pieces
    mine = np.flatnonzero(np.isin(pieces.gap, gaps))
    gap = pieces.gap[mine]
    start, end = np.maximum(pieces.start[mine], causes.start[gap]), np.minimum(pieces.end[mine], causes.end[gap])
    order = np.lexsort((-end, start))
    start, end, row = start[order], end[order], pieces.row[mine[order]]
    reach = np.maximum.accumulate(np.r_[0, end])[:-1]  # gaps of a device are disjoint, so earlier ones end before
    return row, np.maximum(end - np.maximum(start, reach), 0)


def _in_warm_up(workload: Workload, gaps: NDArray[np.int64]) -> int:
    """Time of gaps under annotations that say warm-up, ns."""
    warm, causes = warm_up(workload.trace), workload.causes
    return int((warm.covered_before(causes.end[gaps]) - warm.covered_before(causes.start[gaps])).sum())


def _op_name(workload: Workload, gap: int) -> str:
    op = int(workload.causes.op[gap])
    return workload.trace.names[workload.tree.name[op]] if op >= 0 else ""


def _responsible(workload: Workload, gaps: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Call, op and user frame that most of the gaps' time is told by, and how much of that time passed inside them.

    A launch that comes late ends a gap and is hardly open in it: so the whole gaps told by a call or op count apart.
    """
    causes, trace = workload.causes, workload.trace
    dur = causes.dur[gaps]
    cause = Cause(int(causes.cause[gaps[0]]))
    found: dict[str, EvidenceValue] = {"generated": False}
    for what, column, names in (
        ("call", causes.row, trace.name),
        ("op", causes.op, workload.tree.name),
        ("frame", causes.frame, trace.name),
    ):
        index, spent = column[gaps], dur
        if what == "call" and cause in _ON_CALLS:
            index, spent = _blamed(workload, gaps)
        code = _named(names, index)
        known = code >= 0
        top = heaviest(code[known], spent[known]) if known.any() else -1
        found[what] = name_of(workload, top) or (NO_OP if what == "op" else "")
        found[f"{what}_pct"] = open_share(workload, gaps, top) if top >= 0 else 0.0
        if what != "frame":
            whole = int(dur[_named(names, column[gaps]) == top].sum())
            found[f"{what}_gaps_pct"] = pct(whole, int(dur.sum())) if top >= 0 else 0.0
    if cause in HOST_CAUSES:
        found |= frame_evidence(workload, gaps, in_loop=cause is not Cause.LAUNCH_BOUND)
        found["generated"] = is_generated(f"{found['frame']}") or is_generated(f"{found['call']}")
    return found


def shares_of(workload: Workload, gaps: NDArray[np.int64], call: str, frame: str) -> dict[str, EvidenceValue]:
    """How much of the gaps' time passed inside a call and a frame that are given by name, and the call's whole gaps."""
    causes, trace = workload.causes, workload.trace
    dur = causes.dur[gaps]
    code, place = (trace.names.index(name) if name else -1 for name in (call, frame))
    whole = int(dur[_named(trace.name, causes.row[gaps]) == code].sum()) if code >= 0 else 0
    return {
        "call_pct": open_share(workload, gaps, code) if code >= 0 else 0.0,
        "call_gaps_pct": pct(whole, int(dur.sum())),
        "frame_pct": open_share(workload, gaps, place) if place >= 0 else 0.0,
    }


def _named(names: NDArray[np.int32], index: NDArray[np.int64]) -> NDArray[np.int64]:
    """Name codes of some rows or nodes; -1 where there is none."""
    return np.where(index >= 0, names[index] if names.size else -1, -1).astype(np.int64)


def glue_evidence(workload: Workload, ledger: DeviceLedger, gap: int) -> dict[str, EvidenceValue]:
    """One short stretch of host code among slow launches, for which there is no finding of its own."""
    causes, activities = workload.causes, workload.activities
    dur = int(causes.dur[gap])
    return {
        "lone_gap_ms": ns_to_ms(dur),
        "lone_gap_pct": pct(dur, ledger.span_ns),
        "lone_gap_before": activities.infos[int(activities.name[causes.before[gap]])].short,
        "lone_gap_after": activities.infos[int(activities.name[causes.after[gap]])].short,
    }


def device_evidence(workload: Workload, ledger: DeviceLedger) -> dict[str, EvidenceValue]:
    """What is the same for all causes of a device: its kernels, launches and queue, and what the profiler recorded."""
    activities, trace = workload.activities, workload.trace
    members = np.flatnonzero(activities.device == ledger.device)
    kernels = members[activities.work[members] == int(Work.COMPUTE)]
    evidence: dict[str, EvidenceValue] = {
        "kernels_count": int(kernels.size),
        "launches_per_ms": round(members.size / (ledger.span_ns / NS_PER_MS), 2) if ledger.span_ns else 0.0,
        "stacks_recorded": bool(trace.of_kind(Kind.PYTHON).size),
        "shapes_recorded": bool((trace.inputs >= 0).any()),
    }
    if kernels.size:
        evidence["mean_kernel_us"] = ns_to_us(float(activities.dur[kernels].mean()))
    own = kernels[(activities.link[kernels] == int(Link.CORRELATION)) & ~activities.graph[kernels]]
    if not own.size:
        return evidence
    share = 100 * float(workload.schedule.found_empty[own].mean())
    depths = queue_depths(activities, workload.schedule, members)
    evidence |= {
        "empty_queue_pct": round(share, 1),
        "host_bound": share > 50 and pct(ledger.idle_ns, ledger.span_ns) >= _HOST_BOUND_IDLE_PCT,
        "queue_depth_median": float(np.median(depths)),
        "queue_depth_max": int(depths.max()),
    }
    delays = launch_delays(activities, workload.schedule, own)
    if delays.size:
        low, mid, high = np.percentile(delays, (10, 50, 90)).tolist()
        evidence |= {
            "launch_latency_p10_us": ns_to_us(low),
            "launch_latency_us": ns_to_us(mid),
            "launch_latency_p90_us": ns_to_us(high),
        }
    return evidence


def dispatch_evidence(workload: Workload, gaps: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """How the host dispatched in gaps: time a launch, ops a millisecond, and the share that was no op."""
    causes, trace, tree = workload.causes, workload.trace, workload.tree
    launch = workload.activities.launch[causes.after[gaps]]
    host = np.minimum(causes.end[gaps], tree.end[launch]) - causes.start[gaps]
    host_ns, covered = int(host.sum()), int(np.minimum(causes.covered_ns[gaps], host).sum())
    started = trace.start[trace.of_kind(Kind.CPU_OP)]
    started.sort()
    ops = np.searchsorted(started, causes.start[gaps] + host) - np.searchsorted(started, causes.start[gaps])
    evidence: dict[str, EvidenceValue] = {
        "ops_per_ms": round(float(ops.sum()) / (host_ns / NS_PER_MS), 1) if host_ns else 0.0,
        "python_pct": pct(host_ns - covered, host_ns),
        "python_module": _python_module(workload, launch, host - np.minimum(causes.covered_ns[gaps], host)),
    }
    distance = _launch_distances(workload, launch)
    if distance.size:
        evidence["launch_us"] = ns_to_us(float(np.median(distance)))
    return evidence


def _python_module(workload: Workload, launch: NDArray[np.int64], uncovered: NDArray[np.int64]) -> str:
    """Class of the module whose launches had most time without an op before them; empty without modules."""
    module = workload.context.module[launch]
    if not (module > 0).any():
        return ""
    path = workload.context.module_paths[heaviest(module[module > 0], uncovered[module > 0])]
    return module_class(path[-1])


def _launch_distances(workload: Workload, launch: NDArray[np.int64]) -> NDArray[np.int64]:
    """Time from the launch before on the same thread to each of the given launches, ns."""
    nodes = sorted_unique(workload.activities.launch[workload.activities.launch >= 0])
    place = np.searchsorted(nodes, launch)
    place = place[place > 0]
    tree = workload.tree
    same = tree.lane[nodes[place]] == tree.lane[nodes[place - 1]]
    distances: NDArray[np.int64] = (tree.start[nodes[place]] - tree.start[nodes[place - 1]])[same]
    return distances


def graph_evidence(workload: Workload, gaps: NDArray[np.int64], graphs: Sequences | None) -> dict[str, EvidenceValue]:
    """Whether the launches after the gaps repeat, so that a graph could replay them."""
    if graphs is None:
        return {"graph_candidate": False}
    dur = workload.causes.dur[gaps]
    inside = np.isin(workload.causes.after[gaps], graphs.activities)
    work = graphs.launches * graphs.repeats
    top = int(work.argmax())
    return {
        "graph_candidate": True,
        "graph_idle_pct": pct(int(dur[inside].sum()), int(dur.sum())),
        "repeats_count": int(graphs.repeats[top]),
        "launches_per_sequence": int(graphs.launches[top]),
        "sequences_count": int(graphs.start.size),
    }
