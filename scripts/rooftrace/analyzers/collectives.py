"""Collectives: what of them nothing hides, how fast they are, and which small ones could be one.

Bandwidth follows the NCCL tests: algorithm bandwidth is the message over the time, bus bandwidth what a link of the
ring carries for it. A rank's collective lasts as long as its slowest peer lets it: what equal messages take beyond the
fastest of them is an estimate of waiting, no more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.analyzers import claims, exposure
from rooftrace.analyzers.messages import UNKNOWN, Message, find_messages
from rooftrace.calltree import Work
from rooftrace.contracts.platform import PlatformFile
from rooftrace.intervals import union
from rooftrace.replay.edits import Edit
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue

# Links between GPUs, as platform files name them.
_LINKS = ("nvlink", "xgmi")
# Equal messages that are few say nothing about a usual time; and an estimate needs half of the time to rest on.
_MIN_REPEATS = 3
_MIN_ESTIMATED_PCT = 50.0
# Fastest of equal messages: the lowest tenth, so that one clock error does not make all others late.
_FAST_SHARE = 0.1
_MOST_NEIGHBOURS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Collectives:
    """The communication of a run; arrays have one entry an activity."""

    index: NDArray[np.int64]  # the activity
    message: NDArray[np.int64]  # number of its message
    messages: list[Message]
    kind: NDArray[np.str_]
    dur: NDArray[np.int64]
    alone: NDArray[np.int64]  # time in which nothing computes beside it, ns
    shared: NDArray[np.float64]  # the same, shared with the communication beside it

    def where(self, kinds: Iterable[str]) -> NDArray[np.int64]:
        """Places of those of some kinds."""
        return np.flatnonzero(np.isin(self.kind, sorted(kinds)))


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
        alone=exposure.uncovered_ns(activities, index, Work.COMMUNICATION),
        shared=exposure.shared_ns(activities, index, Work.COMMUNICATION),
    )


def exposed_by_kind(workload: Workload, found: Collectives) -> dict[str, int]:
    """The ledgers' exposed communication, divided by kind, ns."""
    whole = sum(ledger.exposed_comm_ns for ledger in workload.ledgers)
    return exposure.divided(found.shared, found.kind.tolist(), whole)


def exposed_claims(workload: Workload, found: Collectives) -> list[claims.Claim]:
    """A claim for each kind whose exposed part is large, one for the rest."""
    exposed = exposed_by_kind(workload, found)
    return [
        _exposed_claim(workload, found, kinds, sum(exposed[kind] for kind in kinds))
        for kinds in claims.stand_alone(exposed, workload.span_ns)
    ]


def _exposed_claim(workload: Workload, found: Collectives, kinds: list[str], exposed: int) -> claims.Claim:
    at = found.where(kinds)
    members = found.index[at]
    hideable, saved, uncovered = _hideable(workload, found, at)
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
        **_neighbours(workload, members),
        **asked_by(workload, members),
        **_times(found, at),
        **_bandwidth(workload, found, at),
        **_waiting(found, at),
    }
    return claims.Claim(
        category="communication",
        subject=_subject(one),
        kind="upper_bound",
        exposed_ns=exposed,
        gap_ns=hideable,
        most_ns=hideable,
        evidence=evidence,
        members=claims.member_ids(workload, "comm", members),
        edit=Edit(activities=members, saved_ns=saved),
    )


def _subject(kind: str) -> str:
    if not kind:
        return "exposed communication"
    return "exposed communication of unknown kind" if kind == UNKNOWN else f"exposed {kind.replace('_', '-')}"


def _hideable(workload: Workload, found: Collectives, at: NDArray[np.int64]) -> tuple[int, NDArray[np.int64], int]:
    """Exposed time that compute could hide, its part of each collective, and the compute that hides nothing yet, ns."""
    device = workload.activities.device[found.index[at]]
    saved = found.alone[at].copy()
    most = free = 0
    for number in np.unique(device).tolist():
        mine = device == number
        exposed = float(found.shared[at][mine].sum())
        uncovered = exposure.uncovered_compute_ns(workload.activities, number)
        free += uncovered
        most += min(round(exposed), uncovered)
        if uncovered < exposed:
            saved[mine] = np.floor(saved[mine] * (uncovered / exposed)).astype(np.int64)
    return most, saved, free


def _covered_ns(workload: Workload, members: NDArray[np.int64]) -> int:
    """Time in which any of some activities runs, over all devices."""
    activities = workload.activities
    device = activities.device[members]
    return sum(
        union(activities.start[mine], activities.end[mine]).length
        for number in np.unique(device).tolist()
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


def _waiting(found: Collectives, at: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """What equal messages take beyond the fastest of them: an estimate of waiting for peers, where enough repeat."""
    excess = covered = 0
    for number in np.unique(found.message[at]).tolist():
        mine = np.sort(found.dur[at[found.message[at] == number]])
        if found.messages[number].nbytes > 0 and mine.size >= _MIN_REPEATS:
            usual = mine[int(_FAST_SHARE * (mine.size - 1))]
            excess += int(np.maximum(mine - usual, 0).sum())
            covered += int(mine.sum())
    if not covered or pct(covered, int(found.dur[at].sum())) < _MIN_ESTIMATED_PCT:
        return {}
    return {"wait_estimate_ms": ns_to_ms(excess), "wait_estimate_pct": pct(excess, covered)}
