"""Idle devices, by cause.

What it finds: the time without any GPU activity, divided among its causes; blocking calls and who makes them; launch
sequences that a graph could replay.

Why it matters: while nothing runs, no kernel can be made faster; the host, a wait or the data decides.

How it is computed: every gap has one cause (`causes`). A finding holds a cause of a device if that takes 3 % of the
span, or 1 % where the device is idle for 10 %. Its edit removes the cause: blocking calls that no longer block, host
time that is gone.

What it cannot see: what other processes did; what a host thread did that recorded no event.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rooftrace.analyzers.draft import Draft
from rooftrace.analyzers.idle_edits import edit_of
from rooftrace.analyzers.idle_evidence import (
    device_evidence,
    dispatch_evidence,
    gap_evidence,
    glue_evidence,
    graph_evidence,
    idle_of,
    shares_of,
)
from rooftrace.analyzers.idle_graphs import MIN_LAUNCHES, find_sequences
from rooftrace.analyzers.idle_places import loader_of, wrapper_evidence
from rooftrace.analyzers.idle_stalls import stall_edit, stall_evidence, stalls_worth_telling
from rooftrace.analyzers.idle_syncs import asked_by, drained_gaps, find_syncs, sync_edit, sync_evidence, sync_summary
from rooftrace.analyzers.workload import Workload, bound_score, gap_score
from rooftrace.causes import HOST_CAUSES, REASON_NAMES, Cause
from rooftrace.causes.quiet import longest_quiet
from rooftrace.causes.spans import Windows
from rooftrace.contracts.evidence import FindingEvidence
from rooftrace.patterns import matching_patterns
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import NS_PER_MS, ns_to_ms, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.idle_graphs import Sequences
    from rooftrace.analyzers.idle_syncs import SyncKind
    from rooftrace.contracts.base import EvidenceValue, FindingKind
    from rooftrace.contracts.ledger import DeviceLedger

# A cause of three per cent, or a tenth of the span in all (METHODS: system analyzers); then every cause of one.
_MIN_CAUSE_PCT = 3.0
_MIN_IDLE_PCT = 10.0
_MIN_CAUSE_OF_MUCH_PCT = 1.0
_MIN_BLOCKED_PCT = 0.5
# A single stretch of host code below this is Python glue (rule of thumb).
_MIN_LONE_NS = 500_000
_MAX_MEMBERS = 20
# A graph is the remedy where it takes at least this share of the idle time.
_MIN_GRAPH_PCT = 50.0
_NEVER_A_FINDING = (Cause.UNKNOWN, Cause.BEFORE_WINDOW)
# Causes that a graph would remove, where launches repeat.
_HOST_PACE = (Cause.LAUNCH_BOUND, Cause.HOST_CODE)
_SUBJECTS = {
    Cause.DEVICE: "gaps between queued activities",
    Cause.DEPENDENCY: "waits for another stream",
    Cause.SYNCHRONISATION: "blocking calls that drain the queue",
    Cause.LAUNCH_BOUND: "launches slower than the kernels",
    Cause.DATA_LOADING: "waits for data",
    Cause.HOST_CODE: "host code between launches",
    Cause.MEMORY_MANAGEMENT: "allocator calls",
    Cause.COMPILATION: "compilation or first use",
    Cause.GARBAGE_COLLECTION: "garbage collection",
    Cause.GRAPH_LAUNCH: "launches of graphs",
    Cause.COMMUNICATION_SETUP: "set-up of communication",
    Cause.PROFILER: "the profiler's own work",
}


def analyze(workload: Workload) -> tuple[dict[str, EvidenceValue], list[Draft]]:
    """Summary; one finding for each cause that takes enough of a device's span; one for each op that blocks enough."""
    syncs = find_syncs(workload)
    drafts = [draft for ledger in workload.ledgers for draft in _of_device(workload, ledger, syncs)]
    drafts += _stall_drafts(workload)
    drafts.sort(key=lambda draft: -_number(draft, "idle_ms"))
    inventory = [_sync_draft(workload, kind) for kind in syncs if _is_worth_telling(workload, kind, drafts)]
    inventory.sort(key=lambda draft: -_number(draft, "idle_ms"))
    named = [draft.named(f"idle.F{number}") for number, draft in enumerate([*drafts, *inventory], start=1)]
    return _summary(workload, syncs), named


def _number(draft: Draft, name: str) -> float:
    value = draft.finding.evidence.get(name, 0.0)
    return value if isinstance(value, int | float) else 0.0


def _summary(workload: Workload, syncs: list[SyncKind]) -> dict[str, EvidenceValue]:
    idle = sum(ledger.idle_ns for ledger in workload.ledgers)
    summary: dict[str, EvidenceValue] = {
        "time_ms": ns_to_ms(idle),
        "time_share_pct": pct(idle, workload.span_ns),
    }
    causes = workload.causes
    for cause in Cause:
        spent = int(causes.dur[causes.cause == int(cause)].sum())
        if spent:
            summary[f"{cause.name.lower()}_ms"] = ns_to_ms(spent)
    reasons = sorted_unique(causes.reason[causes.cause == int(Cause.UNKNOWN)]).tolist()
    if reasons:
        summary["unknown_because"] = "; ".join(REASON_NAMES[code] for code in reasons)
    return summary | sync_summary(syncs)


def _of_device(workload: Workload, ledger: DeviceLedger, syncs: list[SyncKind]) -> list[Draft]:
    much = pct(ledger.idle_ns, ledger.span_ns) >= _MIN_IDLE_PCT
    least = _MIN_CAUSE_OF_MUCH_PCT if much else _MIN_CAUSE_PCT
    spent = workload.causes.idle_ns(ledger.device)
    return [
        _draft(workload, ledger, cause, syncs)
        for cause, time in spent.items()
        if cause not in _NEVER_A_FINDING
        and pct(time, ledger.span_ns) >= least
        and not (cause is Cause.HOST_CODE and _is_glue(workload, ledger.device, spent))
    ]


def _is_glue(workload: Workload, device: int, spent: dict[Cause, int]) -> bool:
    """Whether host code is one short gap of a run that slow dispatch holds up: no place to move work away from."""
    one = workload.causes.of_cause(device, Cause.HOST_CODE).size == 1
    host = spent.get(Cause.HOST_CODE, 0)
    return one and host < _MIN_LONE_NS and spent.get(Cause.LAUNCH_BOUND, 0) > host


def _draft(workload: Workload, ledger: DeviceLedger, cause: Cause, syncs: list[SyncKind]) -> Draft:
    gaps = workload.causes.of_cause(ledger.device, cause)
    graphs = _graphs(workload, ledger, gaps) if cause in _HOST_PACE else None
    evidence = {
        **gap_evidence(workload, ledger, gaps),
        "inventory": False,
        **device_evidence(workload, ledger),
    }
    if cause in _HOST_PACE:
        evidence |= dispatch_evidence(workload, gaps) | graph_evidence(workload, gaps, graphs)
        evidence |= wrapper_evidence(workload, gaps)
    if cause is Cause.HOST_CODE:
        evidence["stalled_pct"] = _stalled_pct(workload, gaps)
    if cause is Cause.DATA_LOADING:
        evidence["loader"] = loader_of(workload, gaps)
    if cause is Cause.LAUNCH_BOUND and _is_glue(workload, ledger.device, workload.causes.idle_ns(ledger.device)):
        (lone,) = workload.causes.of_cause(ledger.device, Cause.HOST_CODE).tolist()
        evidence |= glue_evidence(workload, ledger, lone)
    edit = edit_of(workload, cause, gaps, graphs)
    if cause is Cause.SYNCHRONISATION:
        evidence |= _sync_of(workload, gaps, syncs)
        evidence |= shares_of(workload, gaps, f"{evidence['call']}", f"{evidence['frame']}")
        edit = _unblocking(workload, gaps, syncs)
    return _finding(
        workload,
        (f"device {ledger.device} idle: {_SUBJECTS[cause]}", evidence, gaps),
        edit,
        "measured" if cause in HOST_CAUSES or cause is Cause.SYNCHRONISATION else "upper_bound",
    )


def _graphs(workload: Workload, ledger: DeviceLedger, gaps: NDArray[np.int64]) -> Sequences | None:
    """The repeating sequences of a device, if most of the gaps' time lies in them."""
    found = find_sequences(workload, ledger.device)
    causes = workload.causes
    inside = np.isin(causes.after[gaps], found.activities)
    share = pct(int(causes.dur[gaps][inside].sum()), int(causes.dur[gaps].sum()))
    return found if share >= _MIN_GRAPH_PCT and int(found.launches.max(initial=0)) >= MIN_LAUNCHES else None


def _stalled_pct(workload: Workload, gaps: NDArray[np.int64]) -> float:
    """Share of host code in gaps of which at least half passed inside an op or call without any further event."""
    causes = workload.causes
    dur = causes.dur[gaps]
    windows = Windows(lane=causes.lane[gaps], start=causes.start[gaps], end=causes.end[gaps])
    inside = causes.row[gaps] >= 0
    quiet = longest_quiet(workload.trace, windows, inside)
    still = inside & (2 * (quiet.end - quiet.start) >= dur)
    return pct(int(dur[still].sum()), int(dur.sum()))


def _unblocking(workload: Workload, gaps: NDArray[np.int64], syncs: list[SyncKind]) -> Edit:
    """The waits that led to gaps, and with them all of the ops that wait there: else their next ones would instead."""
    causes = workload.causes
    waits = sorted_unique(causes.wait[np.isin(causes.wait_gap, gaps)])
    edits = [sync_edit(workload, kind) for kind in syncs if np.isin(kind.waits, waits).any()]
    return Edit(
        activities=np.concatenate([edit.activities for edit in edits] or [waits[:0]]),
        saved_ns=np.concatenate([edit.saved_ns for edit in edits] or [waits[:0]]),
        removed=np.concatenate([edit.removed for edit in edits] or [waits[:0]]),
        host=tuple(cut for edit in edits for cut in edit.host),
        unblocked=sorted_unique(np.concatenate([waits, *(edit.unblocked for edit in edits)])),
    )


def _sync_of(workload: Workload, gaps: NDArray[np.int64], syncs: list[SyncKind]) -> dict[str, EvidenceValue]:
    """What is known of the op whose blocking calls led to most of the gaps, and all ops that led to some."""
    causes = workload.causes
    spent = [int(causes.dur[np.intersect1d(drained_gaps(workload, kind), gaps)].sum()) for kind in syncs]
    order = [at for at in sorted(range(len(syncs)), key=lambda at: -spent[at]) if spent[at]]
    if not order:
        return {}
    asking = list(dict.fromkeys(asked_by(syncs[at]) for at in order))
    return {**sync_evidence(workload, syncs[order[0]]), "sync_ops": ", ".join(asking)}


def _is_worth_telling(workload: Workload, kind: SyncKind, drafts: list[Draft]) -> bool:
    """Whether a kind of blocking call has enough time, and is not all that a finding by cause tells already."""
    ledger = next(ledger for ledger in workload.ledgers if ledger.device == kind.device)
    if pct(kind.blocked_ns, ledger.span_ns) < _MIN_BLOCKED_PCT:
        return False
    told = [draft.edit.unblocked for draft in drafts if draft.edit.unblocked.size]
    return not any(np.isin(waits, kind.waits).all() for waits in told)


def _sync_draft(workload: Workload, kind: SyncKind) -> Draft:
    ledger = next(ledger for ledger in workload.ledgers if ledger.device == kind.device)
    gaps = drained_gaps(workload, kind)
    gaps = gaps[workload.causes.device[gaps] == kind.device]
    spent = int(workload.causes.dur[gaps].sum())
    evidence: dict[str, EvidenceValue] = {
        "device": ledger.device,
        "cause": "synchronisation",
        "idle_ms": ns_to_ms(spent),
        "idle_pct": pct(spent, ledger.span_ns),
        "all_idle_ms": ns_to_ms(ledger.idle_ns),
        "all_idle_pct": pct(ledger.idle_ns, ledger.span_ns),
        "inventory": True,
        **sync_evidence(workload, kind),
        **device_evidence(workload, ledger),
    }
    way = kind.direction if len(kind.by_direction) < 2 else ""
    subject = f"host blocked in {asked_by(kind)} {way}".rstrip()
    edit = sync_edit(workload, kind)
    draft = _finding(workload, (subject, evidence, gaps), edit, "measured")
    return replace(draft, most_ns=draft.most_ns + int(edit.saved_ns.sum()))


def _stall_drafts(workload: Workload) -> list[Draft]:
    found = stalls_worth_telling(workload)
    if found is None:
        return []
    ledger, stalls = found
    evidence = {**stall_evidence(workload, ledger, stalls), **device_evidence(workload, ledger)}
    no_gaps = np.empty(0, dtype=np.int64)
    draft = _finding(workload, ("host stalls", evidence, no_gaps), stall_edit(stalls), "measured")
    return [replace(draft, most_ns=round(_number(draft, "stalls_ms") * NS_PER_MS))]


def _finding(
    workload: Workload,
    what: tuple[str, dict[str, EvidenceValue], NDArray[np.int64]],
    edit: Edit,
    kind: FindingKind,
) -> Draft:
    """A finding whose id is still to be given; the gaps are its members, the longest first."""
    subject, evidence, gaps = what
    causes, span = workload.causes, workload.span_ns
    idle = idle_of(workload, gaps) if evidence["inventory"] is False else int(causes.dur[gaps].sum())
    longest = gaps[np.lexsort((causes.start[gaps], -causes.dur[gaps]))][:_MAX_MEMBERS]
    known = {**evidence, "kind": kind, "category": "idle", "analyzer": "idle"}
    finding = FindingEvidence(
        id="idle.F1",
        tier="system",
        category="idle",
        subject=subject,
        score=gap_score(idle, span) if kind == "measured" else bound_score(idle, span),
        score_basis="gap_share",
        gpu_time_score=pct(idle, span),
        kind=kind,
        members=[f"gap:{causes.device[gap]}:{causes.start[gap]}" for gap in longest.tolist()],
        evidence=evidence,
        patterns=matching_patterns("idle", known),
    )
    device = evidence["device"]
    most = next(ledger.idle_ns for ledger in workload.ledgers if ledger.device == device)
    return Draft(finding=finding, edit=edit, most_ns=most)
