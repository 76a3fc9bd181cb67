"""What communication and copies claim before it becomes a finding, and who asked for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.analyzers.messages import nearest
from rooftrace.calltree import PHASES, Link, is_step_name
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.trace import Kind
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue, FindingKind
    from rooftrace.replay.edits import Edit

# From this share of the span on, exposed communication is analysed, and a kind of it stands alone; the same of copies,
# which need no other rank to be mended.
MIN_EXPOSED_PCT = 2.0
MIN_COPY_PCT = 1.0
NOT_RECORDED = "none recorded"
_MOST_MEMBERS = 20
_MOST_AROUND = 6
# Calls of DistributedDataParallel that copy on the GPU: gradients out of their buckets after a reduction, and buffers
# into and out of a flat one when rank 0's are sent before a forward pass.
_DDP_COPIES = {"bucket": ("copy_bucket_to_grad",), "buffer": ("broadcast_coalesced", "_sync_buffers")}


class Claim(Struct, frozen=True, kw_only=True):
    """A finding without id and score.

    ``gap_ns`` is what the scored remedy takes away, of an upper bound all the time that it bounds; ``most_ns`` what a
    fix can save with all that follows from it.
    """

    category: str
    subject: str
    kind: FindingKind
    gap_ns: int
    most_ns: int
    evidence: dict[str, EvidenceValue]
    members: list[str]
    edit: Edit
    confidence: str | None = None


def stand_alone(exposed: Mapping[str, int], span_ns: int, least_pct: float = MIN_EXPOSED_PCT) -> list[list[str]]:
    """Keys by the finding they belong to: one each from a share of the span on, the others together.

    The others are left out where they are below the ranking limit and some key stands alone.
    """
    alone = [key for key, ns in sorted(exposed.items()) if pct(ns, span_ns) >= least_pct]
    rest = [key for key in sorted(exposed) if key not in alone]
    left = pct(sum(exposed[key] for key in rest), span_ns)
    together = [rest] if rest and (not alone or left >= RANKING_LIMIT_PCT) else []
    return [[key] for key in alone] + together


def member_ids(workload: Workload, prefix: str, members: NDArray[np.int64]) -> list[str]:
    """Ids of the longest activities: by correlation, or by their place among the activities where none is recorded."""
    activities = workload.activities
    order = np.lexsort((members, -activities.dur[members]))[:_MOST_MEMBERS]
    correlation = workload.trace.correlation[activities.row[members]]
    return [
        f"{prefix}:{correlation[at]}" if correlation[at] > 0 else f"{prefix}:at{members[at]}" for at in order.tolist()
    ]


def heaviest_name(workload: Workload, members: NDArray[np.int64]) -> int:
    """Code of the name with most time among some activities."""
    spent = _time_by(workload.activities.name[members].astype(np.int64), workload.activities.dur[members])
    return min(spent, key=lambda code: (-spent[code], workload.trace.names[code]))


def heaviest_op(workload: Workload, members: NDArray[np.int64]) -> str:
    """Name of the innermost op that launched most of the time of some activities."""
    names = names_at(workload, workload.context.op, members)
    spent = _time_by(names, workload.activities.dur[members])
    return _name_of(workload, spent) or NOT_RECORDED


def heaviest_frame(workload: Workload, members: NDArray[np.int64]) -> str:
    """The user's frame that launched most of the time of some activities; "" without stacks."""
    names = names_at(workload, workload.context.frame, members)
    spent = _time_by(names, workload.activities.dur[members])
    spent.pop(-1, None)
    return _name_of(workload, spent)


def names_at(workload: Workload, related: NDArray[np.int32], members: NDArray[np.int64]) -> NDArray[np.int64]:
    """Name codes of the related nodes of the activities' launches, -1 where there are none."""
    launch = workload.activities.launch[members]
    names = np.full(members.size, -1, dtype=np.int64)
    launched = np.flatnonzero(launch >= 0)
    node = related[launch[launched]]
    names[launched[node >= 0]] = workload.tree.name[node[node >= 0]]
    return names


def _time_by(keys: NDArray[np.int64], dur: NDArray[np.int64]) -> dict[int, int]:
    distinct, at = np.unique(keys, return_inverse=True)
    total = np.zeros(distinct.size, dtype=np.int64)
    np.add.at(total, at, dur)
    return dict(zip(distinct.tolist(), total.tolist(), strict=True))


def _name_of(workload: Workload, spent: Mapping[int, int]) -> str:
    """Name of the code with most time."""
    names = {code: workload.trace.names[code] if code >= 0 else "" for code in spent}
    return names[min(spent, key=lambda code: (-spent[code], names[code]))] if spent else ""


def calls_around(workload: Workload, activity: int) -> list[str]:
    """Names of the ops and annotations around the launch of an activity, innermost first; steps left out."""
    tree, node = workload.tree, int(workload.activities.launch[activity])
    names: list[str] = []
    while node >= 0 and len(names) < _MOST_AROUND:
        if tree.kind[node] in (int(Kind.CPU_OP), int(Kind.ANNOTATION)):
            name = workload.trace.names[tree.name[node]]
            if not is_step_name(name):
                names.append(name)
        node = int(tree.parent[node])
    return names


def names_holding(workload: Workload, words: Iterable[str]) -> NDArray[np.bool_]:
    """Which of the trace's names hold one of some words, by code."""
    wanted = tuple(words)
    return np.array([any(word in name for word in wanted) for name in workload.trace.names], dtype=bool)


def called_by(workload: Workload, members: NDArray[np.int64], words: Iterable[str]) -> NDArray[np.bool_]:
    """Which activities were launched inside a call whose name holds one of some words."""
    tree = workload.tree
    wanted = names_holding(workload, words)[tree.name]
    return nearest(tree.parent, workload.activities.launch[members], wanted) >= 0


def ddp_copies(workload: Workload, members: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Copies that DistributedDataParallel makes by itself, shares of the time that was launched in the window."""
    activities = workload.activities
    dur = np.where(activities.link[members] == int(Link.CARRY_IN), 0, activities.dur[members])
    evidence: dict[str, EvidenceValue] = {}
    share = 0.0
    for name, words in _DDP_COPIES.items():
        mine = called_by(workload, members, words)
        evidence[f"ddp_{name}_count"] = int(mine.sum())
        evidence[f"ddp_{name}_ms"] = ns_to_ms(int(dur[mine].sum()))
        evidence[f"ddp_{name}_pct"] = pct(int(dur[mine].sum()), int(dur.sum()))
        share += pct(int(dur[mine].sum()), int(dur.sum()))
    return evidence | {"ddp_pct": round(share, 2)}


def phase_of(workload: Workload, members: NDArray[np.int64]) -> str:
    """The phase in which most time of some activities was launched, "unknown" without launches."""
    launch = workload.activities.launch[members]
    known = launch >= 0
    if not known.any():
        return "unknown"
    dur = workload.activities.dur[members[known]]
    spent = np.bincount(workload.context.phase[launch[known]], weights=dur)
    return PHASES[int(spent.argmax())]
