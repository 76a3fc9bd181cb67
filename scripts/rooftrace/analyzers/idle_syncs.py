"""Blocking calls by what asked for them: op, call, user frame, how often and how long they blocked."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.analyzers.claims import MIN_COPY_PCT
from rooftrace.analyzers.idle_edits import cuts
from rooftrace.analyzers.pinning import pinned_edit
from rooftrace.analyzers.transfers import link_gbps
from rooftrace.calltree import Link, Work
from rooftrace.causes import blocked_times, is_memory_call
from rooftrace.kernelnames import describe_copy
from rooftrace.replay.edits import Edit
from rooftrace.schedule import WaitKind
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue

NO_OP = "none"
_PROFILER = re.compile(r"torch[/\\]profiler[/\\]|torch[/\\]autograd[/\\]profiler")
# Ops by what they need the host to wait for: a value, the size of a result, a copy. Of one inside another, the outer
# one is what the program asked for.
_CLASSES = {
    "read": ("item", "is_nonzero", "_local_scalar_dense", "equal", "allclose"),
    "shape": (
        *(
            "nonzero",
            "nonzero_numpy",
            "argwhere",
            "masked_select",
            "index",
            "index_put",
            "index_put_",
            "where",
        ),
        *(
            "_index_put_impl_",
            "unique_consecutive",
            "unique_dim",
            "_unique",
            "_unique2",
            "repeat_interleave",
            "bincount",
        ),
    ),
    "copy": ("to", "_to_copy", "copy_", "_copy_from"),
}
_CLASS_OF = {f"aten::{name}": kind for kind, names in _CLASSES.items() for name in names}


# Waits are told to be few where these hold nearly all of the blocked time.
_NEARLY_ALL = 0.9


class Copies(Struct, frozen=True, kw_only=True):
    """The copies of one direction that calls of an op waited for."""

    waits: int
    blocked_ns: int
    nbytes: int  # moved by them; -1 where a size is not recorded


class SyncKind(Struct, frozen=True, kw_only=True):
    """The blocking calls of one op, whatever they copy: without those of one direction the next ones would wait."""

    op: str
    direction: str  # of most of the time that they blocked: HtoD, DtoH or empty
    by_direction: dict[str, Copies]
    waits: NDArray[np.int64]  # numbers of waits that blocked
    asked: NDArray[np.int64]  # numbers of all waits under the op, those that had nothing to wait for, too
    blocked: NDArray[np.int64]  # how long each blocked, ns
    call: str  # the call that blocked most
    frame: str  # the user frame in which it blocked most; empty where none is recorded
    device: int  # the device it mostly waited for

    @property
    def what(self) -> str:
        """``read`` of a value, ``shape`` that depends on data, ``copy``, other ``op``, or ``call`` without an op."""
        if self.op == NO_OP:
            return "copy" if self.direction else "call"
        found = _CLASS_OF.get(self.op, "op")
        return "op" if found == "copy" and not self.direction else found

    @property
    def blocked_ns(self) -> int:
        """Time blocked, ns."""
        return int(self.blocked.sum())


def find_syncs(workload: Workload) -> list[SyncKind]:
    """Blocking calls that waited for the GPU, most time first.

    Full launch queues and the allocator's calls are none, nor are those of the measurement: the profiler's own, what
    lies outside the annotated steps, and waits for work that was launched before the window.
    """
    waits = workload.schedule.waits
    blocked = blocked_times(workload.tree, workload.activities, waits)
    blocked[is_memory_call(workload.trace, workload.tree.row[waits.node])] = 0
    blocked[_of_measurement(workload, waits.node)] = 0
    awaited = np.flatnonzero(waits.activity >= 0)
    carried = workload.activities.link[waits.activity[awaited]] == int(Link.CARRY_IN)
    blocked[awaited[carried]] = 0
    members: dict[tuple[str, str], list[int]] = defaultdict(list)
    for wait in np.flatnonzero(blocked > 0).tolist():
        op = _asking_op(workload, int(waits.node[wait]))
        members[op, "" if op != NO_OP else _direction(workload, wait)].append(wait)
    kinds = [
        _kind(workload, op, np.array(found, dtype=np.int64), blocked) for (op, _), found in sorted(members.items())
    ]
    return sorted(kinds, key=lambda kind: (-kind.blocked_ns, kind.op, kind.direction))


def _of_measurement(workload: Workload, nodes: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether calls were made by the profiler, or outside all annotated steps."""
    tree, trace, steps = workload.tree, workload.trace, workload.steps
    named = np.array([_PROFILER.search(name) is not None for name in trace.names], dtype=bool)
    inside = tree.innermost((tree.kind == int(Kind.PYTHON)) & named[tree.name])[nodes] >= 0
    if steps.annotated and steps.start.size:
        start = tree.start[nodes]
        inside |= (start < steps.start.min()) | (start >= steps.end.max())
    result: NDArray[np.bool_] = inside
    return result


def _direction(workload: Workload, wait: int) -> str:
    """Direction of the copy between host and device that a call waited for; empty if it waited for something else."""
    activity = int(workload.schedule.waits.activity[wait])
    if workload.activities.work[activity] != int(Work.COPY):
        return ""
    name = workload.trace.names[workload.activities.name[activity]]
    return next((way for way in ("HtoD", "DtoH") if describe_copy(name).direction == way), "")


def _asking_op(workload: Workload, node: int) -> str:
    """The outermost of the known ops that the call lies directly inside of, else its innermost op."""
    op, tree, names = workload.context.op, workload.tree, workload.trace.names
    found = int(op[node])
    if found < 0:
        return NO_OP
    while (above := int(tree.parent[found])) >= 0:
        outer = int(op[above])
        if outer < 0 or names[tree.name[outer]] not in _CLASS_OF:
            break
        found = outer
    return names[int(tree.name[found])]


def _kind(workload: Workload, op: str, waits: NDArray[np.int64], blocked: NDArray[np.int64]) -> SyncKind:
    by_direction = _copies(workload, waits, blocked) if _CLASS_OF.get(op, op) in ("copy", NO_OP) else {}
    nodes = workload.schedule.waits.node[waits]
    frames = workload.context.frame[nodes]
    frame = np.where(frames >= 0, workload.tree.name[frames], -1)
    device = workload.activities.device[workload.schedule.waits.activity[waits]]
    return SyncKind(
        op=op,
        direction=min(by_direction, key=lambda way: (-by_direction[way].blocked_ns, way), default=""),
        by_direction=by_direction,
        waits=waits,
        asked=_asked(workload, op, waits),
        blocked=blocked[waits],
        call=workload.trace.names[heaviest(workload.tree.name[nodes], blocked[waits])],
        frame=name_of(workload, heaviest(frame, blocked[waits])),
        device=heaviest(device, blocked[waits]),
    )


def _copies(workload: Workload, waits: NDArray[np.int64], blocked: NDArray[np.int64]) -> dict[str, Copies]:
    """What some waits were for, by direction; empty for what is no copy between host and device."""
    ways = np.array([_direction(workload, wait) for wait in waits.tolist()])
    found = {}
    for way in sorted_unique(ways).tolist():
        mine = waits[ways == way]
        nbytes = workload.activities.nbytes[sorted_unique(workload.schedule.waits.activity[mine])]
        found[way] = Copies(
            waits=int(mine.size),
            blocked_ns=int(blocked[mine].sum()),
            nbytes=-1 if (nbytes < 0).any() else int(nbytes.sum()),
        )
    return found


def _asked(workload: Workload, op: str, blocked: NDArray[np.int64]) -> NDArray[np.int64]:
    """All waits under an op, but for a full queue's and those of the measurement: what goes with the op's blocking."""
    if op == NO_OP:
        return blocked
    waits, tree = workload.schedule.waits, workload.tree
    code = workload.trace.names.index(op)
    under = tree.innermost((tree.name == code) & (tree.kind == int(Kind.CPU_OP)))[waits.node] >= 0
    under &= (waits.kind != int(WaitKind.QUEUE)) & ~_of_measurement(workload, waits.node)
    return np.union1d(blocked, np.flatnonzero(under))


def heaviest(codes: NDArray[np.int64] | NDArray[np.int32], weights: NDArray[np.int64]) -> int:
    """The code with most weight, the smallest of equal ones."""
    distinct, place = np.unique(codes, return_inverse=True)
    total = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(total, place.reshape(-1), weights)
    return int(distinct[total.argmax()])


def name_of(workload: Workload, code: int) -> str:
    """A name by its code; empty for -1."""
    return workload.trace.names[code] if code >= 0 else ""


def sync_evidence(workload: Workload, kind: SyncKind) -> dict[str, EvidenceValue]:
    """What one kind of blocking call cost."""
    waits = workload.schedule.waits
    copies = waits.kind[kind.waits] == int(WaitKind.COPY)
    evidence: dict[str, EvidenceValue] = {
        "sync_op": asked_by(kind),
        "sync_class": kind.what,
        "copy_direction": kind.direction,
        "call": kind.call,
        "frame": kind.frame,
        "waits_count": int(kind.waits.size),
        "blocked_ms": ns_to_ms(kind.blocked_ns),
        "blocked_pct": pct(kind.blocked_ns, _span(workload, kind.device)),
        "longest_wait_ms": ns_to_ms(int(kind.blocked.max())),
        "most_waits_count": _fewest_with_most(kind.blocked),
        "blocking_copy": bool(2 * kind.blocked[copies].sum() > kind.blocked_ns),
        "guessed_pct": pct(int(kind.blocked[waits.guessed[kind.waits]].sum()), kind.blocked_ns),
    }
    for way in ("HtoD", "DtoH"):
        copied = kind.by_direction.get(way)
        if copied is None:
            continue
        evidence[f"{way.lower()}_waits_count"] = copied.waits
        evidence[f"{way.lower()}_blocked_ms"] = ns_to_ms(copied.blocked_ns)
        if copied.nbytes >= 0:
            evidence[f"{way.lower()}_bytes"] = copied.nbytes
    if workload.steps.annotated and workload.steps.names:
        evidence["waits_per_step"] = round(kind.waits.size / len(workload.steps.names), 2)
    return evidence


def _fewest_with_most(blocked: NDArray[np.int64]) -> int:
    """How many of the longest waits hold nearly all of the time."""
    total = np.cumsum(np.sort(blocked)[::-1])
    return int(np.searchsorted(total, _NEARLY_ALL * int(total[-1]))) + 1


def asked_by(kind: SyncKind) -> str:
    """The op that blocks, or the call where no op does."""
    return kind.op if kind.op != NO_OP else kind.call


def sync_edit(workload: Workload, kind: SyncKind) -> Edit:
    """The calls of a kind no longer block. A value that is not read is not copied, and nothing asks for it.

    Copies to the GPU, for which pinned memory is the remedy, get faster, too; where copies are analysed by themselves,
    their time is told there.
    """
    if kind.what == "read":
        return _without_reads(workload, kind)
    exposed = sum(ledger.exposed_copy_ns for ledger in workload.ledgers)
    if kind.what != "copy" or kind.direction != "HtoD" or pct(exposed, workload.span_ns) >= MIN_COPY_PCT:
        return Edit(unblocked=kind.asked)
    waits = workload.schedule.waits
    mine = kind.asked[(waits.kind[kind.asked] == int(WaitKind.COPY)) & (waits.activity[kind.asked] >= 0)]
    copies = sorted_unique(waits.activity[mine])
    shortest = int(workload.activities.dur[copies].min(initial=0))
    pinned = pinned_edit(workload, copies, "HtoD", link_gbps=link_gbps(workload, "HtoD"), shortest_ns=shortest)
    if pinned is None:
        return Edit(unblocked=kind.asked)
    return replace(pinned, unblocked=np.union1d(pinned.unblocked, kind.asked))


def _without_reads(workload: Workload, kind: SyncKind) -> Edit:
    tree, activities = workload.tree, workload.activities
    code = workload.trace.names.index(kind.op)
    around = tree.innermost((tree.name == code) & (tree.kind == int(Kind.CPU_OP)))
    ops = sorted_unique(around[workload.schedule.waits.node[kind.asked]])
    ops = ops[ops >= 0]
    copies = np.flatnonzero((activities.work == int(Work.COPY)) & (activities.launch >= 0))
    return Edit(
        removed=copies[np.isin(around[activities.launch[copies]], ops)],
        host=cuts(tree.lane[ops].astype(np.int64), tree.start[ops], tree.end[ops]),
        unblocked=kind.asked,
    )


def drained_gaps(workload: Workload, kind: SyncKind) -> NDArray[np.int64]:
    """Gaps caused by synchronisation that calls of this kind led to."""
    causes = workload.causes
    gaps: NDArray[np.int64] = sorted_unique(causes.wait_gap[np.isin(causes.wait, kind.waits)])
    return gaps


def sync_summary(kinds: list[SyncKind], shown: int = 3) -> dict[str, EvidenceValue]:
    """The kinds that blocked longest, as values of a summary."""
    summary: dict[str, EvidenceValue] = {}
    for number, kind in enumerate(kinds[:shown], start=1):
        summary |= {
            f"sync{number}_op": kind.op,
            f"sync{number}_call": kind.call,
            f"sync{number}_frame": kind.frame,
            f"sync{number}_waits_count": int(kind.waits.size),
            f"sync{number}_blocked_ms": ns_to_ms(kind.blocked_ns),
        }
    return summary


def _span(workload: Workload, device: int) -> int:
    return next((ledger.span_ns for ledger in workload.ledgers if ledger.device == device), 0)
