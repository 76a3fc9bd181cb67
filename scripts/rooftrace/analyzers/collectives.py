"""Collectives: what of them nothing hides, how fast they are, and which small ones could be one.

Bandwidth follows the NCCL tests: algorithm bandwidth is the message over the time, bus bandwidth what a link of the
ring carries for it. A rank's collective lasts as long as its slowest peer lets it: what equal messages take beyond the
fastest of them is an estimate of waiting, no more.

Exposed communication goes away in several ways, and the times say which one to try: peers that arrive together, where
most of the time is waiting; a faster link, where large messages are far below it; else compute beside it, or less to
send. Of the last nothing tells how much can go: then the claim is an upper bound, of all that is exposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.analyzers import claims, exposure
from rooftrace.analyzers.messages import UNKNOWN, Message, find_messages
from rooftrace.calltree import Link, Work
from rooftrace.contracts.platform import PlatformFile
from rooftrace.intervals import union
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue, FindingKind

# Links between GPUs, as platform files name them.
_LINKS = ("nvlink", "xgmi")
# Equal messages that are few say nothing about a usual time; and an estimate needs half of the time to rest on.
_MIN_REPEATS = 3
_MIN_ESTIMATED_PCT = 50.0
# Fastest of equal messages: the lowest tenth, so that one clock error does not make all others late.
_FAST_SHARE = 0.1
_MOST_NEIGHBOURS = 3
# Fewer bytes take less than 100 us on any link and network of today (52 us at 10 Gbit/s, and a latency of 20 to 50 us):
# what a collective of that size takes beyond it is waiting, however few are equal. A rule of thumb.
TINY_BYTES = 64 << 10
ENOUGH_NS = 100_000
# Where most of the time is waiting, peers are the remedy; where the best of large messages is below a quarter of the
# link, the link is. The patterns `waiting_for_peers` and `slow_link_*` compare with the same numbers.
_MOSTLY_WAITING_PCT = 50.0
_SLOW_LINK_PCT = 25.0
_FILLS_LINK_BYTES = 4 << 20
# What large messages reach of the links' nominal bandwidth: 235 of 300 GB/s on A100, 370 of 450 on H100 and 310 of 448
# on MI300X are usual in the NCCL and RCCL tests, 0.7 to 0.8. A rule of thumb.
_USUAL_LINK_SHARE = 0.7
BEFORE_WINDOW = "before_window"
_TOLD = "told"
# Annotations of TorchRec's pipeline that exchanges a later batch's indices (`TrainPipelineSparseDist`).
_SPARSE_PIPELINE = ("sparse_data_dist",)


class Collectives(Struct, frozen=True, kw_only=True):
    """The communication of a run; arrays have one entry an activity."""

    index: NDArray[np.int64]  # the activity
    message: NDArray[np.int64]  # number of its message
    messages: list[Message]
    kind: NDArray[np.str_]
    dur: NDArray[np.int64]
    early: NDArray[np.bool_]  # launched before the recorded window
    told: NDArray[np.bool_]  # another finding takes most of its exposed time away
    alone: NDArray[np.int64]  # time in which nothing computes beside it, ns
    shared: NDArray[np.float64]  # the same, shared with the communication beside it

    def where(self, kinds: Iterable[str]) -> NDArray[np.int64]:
        """Places of those of some kinds that were launched in the window and no other finding tells."""
        return np.flatnonzero(np.isin(self.kind, sorted(kinds)) & ~self.early & ~self.told)


def find_collectives(workload: Workload) -> Collectives:
    """All communication of a run, described."""
    activities = workload.activities
    index = exposure.members_of(activities, Work.COMMUNICATION)
    messages, message = find_messages(workload, index)
    kinds = np.array([item.kind for item in messages] or [UNKNOWN])
    return Collectives(
        index=index,
        message=message,
        messages=messages,
        kind=kinds[message],
        dur=activities.dur[index],
        early=activities.link[index] == int(Link.CARRY_IN),
        told=np.zeros(index.size, dtype=bool),
        alone=exposure.uncovered_ns(activities, index, Work.COMMUNICATION),
        shared=exposure.shared_ns(activities, index, Work.COMMUNICATION),
    )


def exposed_by_kind(workload: Workload, found: Collectives) -> dict[str, int]:
    """The ledgers' exposed communication, divided by kind, that launched before the window and that told apart, ns."""
    whole = sum(ledger.exposed_comm_ns for ledger in workload.ledgers)
    kinds = np.where(found.early, BEFORE_WINDOW, np.where(found.told, _TOLD, found.kind))
    return exposure.divided(found.shared, kinds.tolist(), whole)


def exposed_claims(workload: Workload, found: Collectives) -> list[claims.Claim]:
    """A claim for each kind whose exposed part is large, one for the rest."""
    exposed = exposed_by_kind(workload, found)
    for apart in (BEFORE_WINDOW, _TOLD):
        exposed.pop(apart, None)
    return [
        _exposed_claim(workload, found, kinds, sum(exposed[kind] for kind in kinds))
        for kinds in claims.stand_alone(exposed, workload.span_ns)
    ]


def _exposed_claim(workload: Workload, found: Collectives, kinds: list[str], exposed: int) -> claims.Claim:
    at = found.where(kinds)
    members = found.index[at]
    hideable, uncovered = _hideable(workload, found, at)
    total = _covered_ns(workload, members)
    hidden = max(total - exposed, 0)
    one = kinds[0] if len(kinds) == 1 else ""
    evidence: dict[str, EvidenceValue] = {
        "aspect": "exposed_communication",
        "collective": one or "mixed",
        "exposed_comm_ms": ns_to_ms(exposed),
        "exposed_comm_pct": pct(exposed, workload.span_ns),
        "total_comm_ms": ns_to_ms(total),
        "hidden_comm_ms": ns_to_ms(hidden),
        "overlap_pct": pct(hidden, total),
        "collectives": ", ".join(sorted(kind for kind in kinds if kind != UNKNOWN)) or "not named",
        "top_collective": workload.activities.infos[claims.heaviest_name(workload, members)].short,
        "comm_kernels_count": int(members.size),
        "hideable_ms": ns_to_ms(hideable),
        "hideable_pct": pct(hideable, exposed),
        "uncovered_compute_ms": ns_to_ms(uncovered),
        "sparse_pipeline": _has_sparse_pipeline(workload),
        **_neighbours(workload, members),
        **asked_by(workload, members),
        **_times(found, at),
        **_bandwidth(workload, found, at),
    }
    remedy = _remedy(workload, found, at, evidence)
    gap = min(int(np.minimum(remedy.saved_ns, found.alone[at]).sum()), exposed) if remedy.known else exposed
    return claims.Claim(
        category="communication",
        subject=_subject(one),
        kind=remedy.kind,
        gap_ns=gap,
        most_ns=gap,
        evidence=evidence | remedy.evidence,
        members=claims.member_ids(workload, "comm", members),
        edit=Edit(activities=members, saved_ns=remedy.saved_ns),
        confidence=remedy.confidence,
    )


class _Remedy(Struct, frozen=True, kw_only=True):
    """What the times of some collectives point to, and what it takes from each of them."""

    saved_ns: NDArray[np.int64]
    evidence: dict[str, EvidenceValue]
    known: bool = True  # else the saving is all that is exposed, and a bound
    confidence: str | None = None

    @property
    def kind(self) -> FindingKind:
        """Savings that are known stand against a model of the time that is left."""
        return "modelled" if self.known else "upper_bound"


def _remedy(
    workload: Workload, found: Collectives, at: NDArray[np.int64], known: Mapping[str, EvidenceValue]
) -> _Remedy:
    """The remedy that is scored: peers, link or overlap; the evidence has what each of the others would take."""
    wait, estimated = _wait_ns(found, at)
    evidence: dict[str, EvidenceValue] = {}
    share = 0.0
    covered = int(found.dur[at[estimated]].sum())
    if covered and pct(covered, int(found.dur[at].sum())) >= _MIN_ESTIMATED_PCT:
        share = pct(int(wait.sum()), covered)
        evidence = {
            "wait_estimate_ms": ns_to_ms(int(wait.sum())),
            "wait_estimate_pct": share,
            "peers_saving_ms": _exposed_part_ms(found, at, wait),
        }
    else:
        wait = np.zeros_like(wait)
    link = _above_link_ns(workload, found, at, wait)
    if "peer_link_pct" in known:
        evidence["link_saving_ms"] = _exposed_part_ms(found, at, link)
    if share >= _MOSTLY_WAITING_PCT:
        sure = "medium" if _number(known, "top_message_count") >= _MIN_REPEATS else "low"
        return _Remedy(saved_ns=wait, evidence=evidence | {"remedy": "peers"}, confidence=sure)
    if (
        _number(known, "peer_link_pct", 100.0) < _SLOW_LINK_PCT
        and _number(known, "top_message_bytes") >= _FILLS_LINK_BYTES
    ):
        return _Remedy(saved_ns=link, evidence=evidence | {"remedy": "link"}, confidence="medium")
    return _Remedy(saved_ns=found.alone[at], evidence=evidence | {"remedy": "overlap"}, known=False)


def _number(known: Mapping[str, EvidenceValue], name: str, default: float = 0.0) -> float:
    value = known.get(name, default)
    return default if isinstance(value, str) else float(value)


def _exposed_part_ms(found: Collectives, at: NDArray[np.int64], saved: NDArray[np.int64]) -> float:
    """What of some savings falls on time in which nothing computes: at most the shared part of it, ms."""
    alone = int(np.minimum(saved, found.alone[at]).sum())
    return ns_to_ms(min(alone, round(float(found.shared[at].sum()))))


def _has_sparse_pipeline(workload: Workload) -> bool:
    """Whether a pipeline that exchanges the indices of a later batch runs already, by its annotations."""
    named = claims.names_holding(workload, _SPARSE_PIPELINE)
    return bool(named[workload.tree.name].any())


def _subject(kind: str) -> str:
    if not kind:
        return "exposed communication"
    return "exposed communication of unknown kind" if kind == UNKNOWN else f"exposed {kind.replace('_', '-')}"


def _hideable(workload: Workload, found: Collectives, at: NDArray[np.int64]) -> tuple[int, int]:
    """Exposed time that compute could hide, and the compute that hides nothing yet, ns."""
    device = workload.activities.device[found.index[at]]
    most = free = 0
    for number in sorted_unique(device).tolist():
        uncovered = exposure.uncovered_compute_ns(workload.activities, number)
        free += uncovered
        most += min(round(float(found.shared[at][device == number].sum())), uncovered)
    return most, free


def _covered_ns(workload: Workload, members: NDArray[np.int64]) -> int:
    """Time in which any of some activities runs, over all devices."""
    activities = workload.activities
    device = activities.device[members]
    return sum(
        union(activities.start[mine], activities.end[mine]).length
        for number in sorted_unique(device).tolist()
        for mine in (members[device == number],)
    )


def _neighbours(workload: Workload, members: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """The compute before and after, which could run meanwhile if nothing ties it to the result."""
    infos = workload.activities.infos
    spent: dict[str, int] = {}
    for code, ns in exposure.neighbours(workload.activities, members).items():
        spent[infos[code].short] = spent.get(infos[code].short, 0) + ns
    names = sorted(spent, key=lambda name: (-spent[name], name))
    return {
        "neighbours_ms": ns_to_ms(sum(spent.values())),
        "top_neighbour": names[0] if names else NO_COMPUTE,
        "top_neighbour_ms": ns_to_ms(spent[names[0]] if names else 0),
        "neighbours": ", ".join(names[:_MOST_NEIGHBOURS]) or NO_COMPUTE,
    }


NO_COMPUTE = "no compute"


def asked_by(workload: Workload, members: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Which calls ask for some communication: of the longest one, and where most time was launched."""
    around = claims.calls_around(workload, int(members[workload.activities.dur[members].argmax()]))
    return {
        "comm_op": around[-1] if around else claims.NOT_RECORDED,
        "comm_calls": " < ".join(around) or claims.NOT_RECORDED,
        "comm_frame": claims.heaviest_frame(workload, members),
        "comm_phase": claims.phase_of(workload, members),
        "gpu_vendor": workload.platform.vendor if workload.platform is not None else "",
    }


def _times(found: Collectives, at: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Times of the equal messages that take most; their group where it is recorded."""
    spent = np.bincount(found.message[at], weights=found.dur[at])
    number = int(spent.argmax())
    message, mine = found.messages[number], found.dur[at[found.message[at] == number]]
    evidence: dict[str, EvidenceValue] = {
        "top_message_count": int(mine.size),
        "top_message_min_us": ns_to_us(int(mine.min())),
        "top_message_median_us": ns_to_us(float(np.median(mine))),
        "top_message_max_us": ns_to_us(int(mine.max())),
        "top_message_pct": pct(int(mine.sum()), int(found.dur[at].sum())),
    }
    if message.nbytes > 0:
        evidence |= {"top_message_bytes": message.nbytes, "top_message_dtype": message.dtype}
    if message.group_size > 0:
        evidence |= {
            "group_size": message.group_size,
            "group_name": message.group or "not named",
            "group_ranks": message.ranks or "not recorded",
        }
    return evidence


def _bandwidth(workload: Workload, found: Collectives, at: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Algorithm and bus bandwidth where sizes are recorded; the best against the GPU's links to other GPUs."""
    nbytes = np.array([message.nbytes for message in found.messages], dtype=np.int64)[found.message[at]]
    dur = found.dur[at]
    sized = (nbytes > 0) & (dur > 0)
    if not sized.any():
        return {}
    evidence: dict[str, EvidenceValue] = {
        "moved_bytes": int(nbytes[sized].sum()),
        "sized_pct": pct(int(dur[sized].sum()), int(dur.sum())),
        "algorithm_gbps": round(int(nbytes[sized].sum()) / int(dur[sized].sum()), 2),
        "best_algorithm_gbps": round(float((nbytes[sized] / dur[sized]).max()), 2),
    }
    factors = np.array([message.bus_factor or np.nan for message in found.messages])[found.message[at]]
    known = sized & ~np.isnan(factors)
    if not known.any():
        return evidence
    carried = nbytes[known] * factors[known]
    best = float((carried / dur[known]).max())
    evidence |= {
        "bus_gbps": round(float(carried.sum()) / int(dur[known].sum()), 2),
        "best_bus_gbps": round(best, 2),
    }
    link = peer_link_gbps(workload)
    return evidence if link is None else evidence | {"peer_link_gbps": link, "peer_link_pct": pct(best, link)}


def peer_link_gbps(workload: Workload) -> float | None:
    """Bandwidth of all links to other GPUs in one direction, 10^9 bytes/s; None where it is not known."""
    platform = workload.platform
    if not isinstance(platform, PlatformFile):
        return None
    return next((platform.links[name].gbytes_per_s for name in _LINKS if name in platform.links), None)


def _wait_ns(found: Collectives, at: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """What each takes beyond the fastest of its equals: an estimate of waiting for peers; and where there is one.

    Equal messages have to repeat to tell, but for tiny ones: those need no more than `ENOUGH_NS` on any link.
    """
    wait, estimated = np.zeros(at.size, dtype=np.int64), np.zeros(at.size, dtype=bool)
    order = np.argsort(found.message[at], kind="stable")
    alike = np.split(order, np.flatnonzero(np.diff(found.message[at][order])) + 1) if order.size else []
    for mine in alike:
        nbytes = found.messages[int(found.message[at[mine[0]]])].nbytes
        dur = np.sort(found.dur[at[mine]])
        usual = int(dur[int(_FAST_SHARE * (dur.size - 1))])
        if 0 < nbytes < TINY_BYTES:
            usual = min(usual, ENOUGH_NS) if dur.size >= _MIN_REPEATS else ENOUGH_NS
        elif nbytes <= 0 or dur.size < _MIN_REPEATS:
            continue
        wait[mine] = np.maximum(found.dur[at[mine]] - usual, 0)
        estimated[mine] = True
    return wait, estimated


def _above_link_ns(
    workload: Workload, found: Collectives, at: NDArray[np.int64], wait: NDArray[np.int64]
) -> NDArray[np.int64]:
    """What each takes, waiting apart, beyond the time of its bytes at the usual bandwidth of the GPU's links, ns.

    None gets faster than the fastest collective of the run; none without a size, or a link, is said to.
    """
    link = peer_link_gbps(workload)
    if link is None:
        return np.zeros(at.size, dtype=np.int64)
    carried = np.array([message.nbytes * (message.bus_factor or 0.0) for message in found.messages])[found.message[at]]
    needed = np.maximum(carried / (link * _USUAL_LINK_SHARE), int(found.dur.min()))
    above = np.maximum(found.dur[at] - wait - np.ceil(needed).astype(np.int64), 0)
    return np.where(carried > 0, above, 0)
