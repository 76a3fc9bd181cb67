"""Copies: which way, between which memories, how large, how fast, who asked for them, who waited.

A memset is no copy. Bandwidth is bytes over time; a copy on one GPU reads and writes each byte, so it is held against
half the bandwidth of the memory.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace import platforms
from rooftrace.analyzers import claims, exposure
from rooftrace.analyzers.collectives import peer_link_gbps
from rooftrace.analyzers.pinning import blocked_ns, pinned_edit
from rooftrace.calltree import Work
from rooftrace.contracts.platform import CalibratedFile
from rooftrace.kernelnames import describe_copy
from rooftrace.replay.edits import Edit
from rooftrace.sorted_unique import grouped, sorted_unique
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Iterable

    from numpy.typing import NDArray

    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.kernelnames import CopyFacts

UNKNOWN = "unknown"
# Upper ends of the size classes, bytes: up to 64 KiB a copy is latency, from 16 MiB on it is bandwidth. Rules of thumb.
SIZE_CLASSES = (("tiny", 64 << 10), ("small", 1 << 20), ("medium", 16 << 20))
LARGE = "large"
TINY_BYTES = SIZE_CLASSES[0][1]
_GIGA = 1e9
_HOST_WAYS = ("HtoD", "DtoH")
_ENDS = {
    "HtoD": "to the GPU",
    "DtoH": "from the GPU",
    "DtoD": "on the GPU",
    "PtoP": "between GPUs",
    "HtoH": "on the host",
    UNKNOWN: "of unknown direction",
}


class Transfers(Struct, frozen=True, kw_only=True):
    """The copies of a run; arrays have one entry an activity."""

    index: NDArray[np.int64]  # the activity
    way: NDArray[np.str_]  # HtoD, DtoH, DtoD, PtoP, HtoH or unknown
    kind: NDArray[np.str_]  # direction and memory as one key
    memory: NDArray[np.str_]  # of the host's end: pageable, pinned or unknown; "device" where there is none
    size: NDArray[np.str_]  # class of its size
    nbytes: NDArray[np.int64]
    dur: NDArray[np.int64]
    shared: NDArray[np.float64]  # time in which nothing but copies runs, shared with those beside it, ns
    blocked: NDArray[np.int64]  # from the call to the end of the copy where it waited for that, else 0, ns

    def where(self, kinds: Iterable[str]) -> NDArray[np.int64]:
        """Places of those of some kinds."""
        return np.flatnonzero(np.isin(self.kind, sorted(kinds)))


def find_transfers(workload: Workload) -> Transfers:
    """All copies of a run, described."""
    activities = workload.activities
    index = exposure.members_of(activities, Work.COPY)
    codes, at = np.unique(activities.name[index], return_inverse=True)
    facts = [describe_copy(workload.trace.names[code]) for code in codes.tolist()]
    way = np.array([fact.direction or UNKNOWN for fact in facts] or [UNKNOWN])
    memory = np.array([_memory(fact) for fact in facts] or [UNKNOWN])
    kind = np.array([f"{one} {other}" for one, other in zip(way.tolist(), memory.tolist(), strict=True)])
    nbytes = activities.nbytes[index]
    return Transfers(
        index=index,
        way=way[at],
        kind=kind[at],
        memory=memory[at],
        size=_size_class(nbytes),
        nbytes=nbytes,
        dur=activities.dur[index],
        shared=exposure.shared_ns(activities, index, Work.COPY),
        blocked=blocked_ns(workload)[index],
    )


def _memory(fact: CopyFacts) -> str:
    ends = (fact.source, fact.destination)
    if "pageable" in ends or "pinned" in ends:
        return "pageable" if "pageable" in ends else "pinned"
    return "device" if fact.direction in ("DtoD", "PtoP") else UNKNOWN


def _size_class(nbytes: NDArray[np.int64]) -> NDArray[np.str_]:
    names = np.array([*(name for name, _ in SIZE_CLASSES), LARGE])
    sizes = names[np.searchsorted([limit for _, limit in SIZE_CLASSES], nbytes, side="right")]
    return np.where(nbytes >= 0, sizes, UNKNOWN)


def exposed_by_kind(workload: Workload, found: Transfers) -> dict[str, int]:
    """The ledgers' exposed copies, divided by direction and memory, ns."""
    return exposure.divided(found.shared, found.kind.tolist(), _exposed_ns(workload))


def exposed_by_class(workload: Workload, found: Transfers) -> dict[str, int]:
    """The same, divided by direction, memory and size class."""
    keys = [f"{kind} {size}" for kind, size in zip(found.kind.tolist(), found.size.tolist(), strict=True)]
    return exposure.divided(found.shared, keys, _exposed_ns(workload))


def _exposed_ns(workload: Workload) -> int:
    return sum(ledger.exposed_copy_ns for ledger in workload.ledgers)


def exposed_claims(workload: Workload, found: Transfers) -> list[claims.Claim]:
    """A claim for each direction and memory whose exposed part is large, one for the rest."""
    exposed = exposed_by_kind(workload, found)
    return [
        _exposed_claim(workload, found, kinds, sum(exposed[kind] for kind in kinds))
        for kinds in claims.stand_alone(exposed, workload.span_ns, claims.MIN_COPY_PCT)
    ]


def _exposed_claim(workload: Workload, found: Transfers, kinds: list[str], exposed: int) -> claims.Claim:
    at = found.where(kinds)
    members = found.index[at]
    way, memory = kinds[0].split(" ") if len(kinds) == 1 else ("mixed", "mixed")
    evidence: dict[str, EvidenceValue] = {
        "aspect": "exposed_copies",
        "direction": way,
        "memory": memory,
        "exposed_copy_ms": ns_to_ms(exposed),
        "exposed_copy_pct": pct(exposed, workload.span_ns),
        **_evidence(workload, found, at),
        **_large_pinned(workload, found),
    }
    pinnable = way in _HOST_WAYS and (memory == "pageable" or (memory == UNKNOWN and _is_blocking(found, at)))
    modelled = _pinned(workload, found, members, way) if pinnable else None
    gap, more, edit = exposed, 0, Edit(activities=members, saved_ns=_alone(workload, members))
    if modelled is not None:
        edit, gap = modelled, min(int(modelled.saved_ns.sum()), exposed)
        evidence["pinned_saving_ms"] = ns_to_ms(gap)
        if modelled.unblocked.size:  # a call that returns at once saves at most the idle time that it caused
            more = min(int(found.blocked[at].sum()), sum(ledger.idle_ns for ledger in workload.ledgers))
    return claims.Claim(
        category="copy",
        subject="exposed copies" if way == "mixed" else _subject(way, memory),
        kind="upper_bound" if modelled is None else "modelled",
        gap_ns=gap,
        most_ns=gap + more,
        evidence=evidence,
        members=claims.member_ids(workload, "copy", members),
        edit=edit,
        confidence="medium" if modelled is not None and memory == UNKNOWN else None,
    )


def _pinned(workload: Workload, found: Transfers, members: NDArray[np.int64], way: str) -> Edit | None:
    shortest = int(found.dur[found.way == way].min())
    return pinned_edit(workload, members, way, link_gbps=link_gbps(workload, way), shortest_ns=shortest)


def _is_blocking(found: Transfers, at: NDArray[np.int64]) -> bool:
    """Whether most of the time of some copies is of such as their calls wait for: HIP does not say which memory."""
    return 2 * int(found.dur[at][found.blocked[at] > 0].sum()) > int(found.dur[at].sum())


def _subject(way: str, memory: str) -> str:
    return (
        f"exposed {memory} copies {_ENDS[way]}" if memory in ("pageable", "pinned") else f"exposed copies {_ENDS[way]}"
    )


def _alone(workload: Workload, members: NDArray[np.int64]) -> NDArray[np.int64]:
    return exposure.uncovered_ns(workload.activities, members, Work.COPY)


def link_gbps(workload: Workload, way: str) -> float | None:
    """What copies of a direction can reach, 10^9 bytes/s one way; None where it is not known."""
    platform = workload.platform
    if platform is None:
        return None
    if way == "DtoD":
        return round(platforms.bandwidth_ceiling(platform).bytes_per_s / 2 / _GIGA, 1)
    if way == "PtoP":
        return peer_link_gbps(workload)
    if way not in _HOST_WAYS:
        return None
    if isinstance(platform, CalibratedFile):
        measured = platform.links.host_to_device if way == "HtoD" else platform.links.device_to_host
        return measured.value_gbytes_per_s if measured is not None else None
    return platform.links["pcie"].gbytes_per_s if "pcie" in platform.links else None


def _evidence(workload: Workload, found: Transfers, at: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """What some copies are, how long they take and who asked for them."""
    members, dur = found.index[at], found.dur[at]

    def time_of(which: NDArray[np.bool_]) -> float:
        return ns_to_ms(int(dur[which].sum()))

    blocked = found.blocked[at]
    return {
        "total_copy_ms": ns_to_ms(int(dur.sum())),
        "htod_ms": time_of(found.way[at] == "HtoD"),
        "dtoh_ms": time_of(found.way[at] == "DtoH"),
        "dtod_ms": time_of(found.way[at] == "DtoD"),
        "pageable_ms": time_of(found.memory[at] == "pageable"),
        "copies_count": int(members.size),
        "top_copy": _named_with_ends(workload, members),
        "top_copy_op": claims.heaviest_op(workload, members),
        "top_copy_frame": claims.heaviest_frame(workload, members),
        "blocking_count": int((blocked > 0).sum()),
        "blocked_ms": ns_to_ms(int(blocked.sum())),
        "htod_blocked_ms": ns_to_ms(int(blocked[found.way[at] == "HtoD"].sum())),
        "dtoh_blocked_ms": ns_to_ms(int(blocked[found.way[at] == "DtoH"].sum())),
        "on_compute_stream_pct": _on_compute_stream(workload, members),
        **claims.ddp_copies(workload, members),
        **_sizes(workload, found, at),
    }


def _on_compute_stream(workload: Workload, members: NDArray[np.int64]) -> float:
    """Share of the copies' time on streams that kernels run on as well, where compute cannot hide them."""
    activities, queue = workload.activities, workload.schedule.queue
    computing = sorted_unique(queue[activities.work == int(Work.COMPUTE)])
    dur = activities.dur[members]
    return pct(int(dur[np.isin(queue[members], computing)].sum()), int(dur.sum()))


def _sizes(workload: Workload, found: Transfers, at: NDArray[np.int64]) -> dict[str, EvidenceValue]:
    """Bytes and bandwidth, if every size is recorded; that of the large ones against the link."""
    nbytes, dur, size = found.nbytes[at], found.dur[at], found.size[at]
    spent = int(dur.sum())
    if not at.size or (nbytes < 0).any() or not spent:
        return {}
    tiny = size == "tiny"
    evidence: dict[str, EvidenceValue] = {
        "copy_bytes": int(nbytes.sum()),
        "achieved_gbps": round(int(nbytes.sum()) / spent, 2),
        "largest_bytes": int(nbytes.max()),
        "tiny_count": int(tiny.sum()),
        "tiny_ms": ns_to_ms(int(dur[tiny].sum())),
        "tiny_pct": pct(int(dur[tiny].sum()), spent),
        "tiny_saving_ms": ns_to_ms(_merged_saving_ns(found, at[tiny])),
    }
    large = np.isin(size, ("medium", LARGE))
    way = found.way[at]
    link = link_gbps(workload, str(way[0])) if (way == way[0]).all() else None
    if link is None or not dur[large].sum():
        return evidence
    rate = int(nbytes[large].sum()) / int(dur[large].sum())
    return evidence | {"large_gbps": round(rate, 2), "link_gbps": link, "link_pct": pct(rate, link)}


def _large_pinned(workload: Workload, found: Transfers) -> dict[str, EvidenceValue]:
    """How fast the run's large copies from pinned memory to the GPU are, whatever finding this is."""
    pinned = np.flatnonzero(found.kind == "HtoD pinned")
    large = pinned[np.isin(found.size[pinned], ("medium", LARGE))]
    link, spent = link_gbps(workload, "HtoD"), int(found.dur[large].sum())
    if link is None or not spent:
        return {}
    rate = int(found.nbytes[large].sum()) / spent
    exposed = round(float(found.shared[pinned].sum()))
    return {
        "pinned_gbps": round(rate, 2),
        "pinned_link_gbps": link,
        "pinned_link_pct": pct(rate, link),
        "pinned_exposed_ms": ns_to_ms(exposed),
        "pinned_exposed_pct": pct(exposed, workload.span_ns),
    }


def _merged_saving_ns(found: Transfers, at: NDArray[np.int64]) -> int:
    """What some copies take beyond one each direction that moves all their bytes at the best bandwidth seen, ns."""
    saving = 0
    for way in sorted_unique(found.way[at]).tolist():
        mine, like = at[found.way[at] == way], np.flatnonzero((found.way == way) & (found.dur > 0))
        if mine.size > 1 and like.size:
            best = float((found.nbytes[like] / found.dur[like]).max())
            moved = int(found.nbytes[mine].sum()) / best if best > 0 else 0.0
            saving += max(0, int(found.dur[mine].sum()) - int(found.dur[like].min()) - round(moved))
    return saving


def _named_with_ends(workload: Workload, members: NDArray[np.int64]) -> str:
    """The heaviest copy, with the kinds of memory it goes between where its name tells them."""
    code = claims.heaviest_name(workload, members)
    short, facts = workload.activities.infos[code].short, describe_copy(workload.trace.names[code])
    if not (facts.source and facts.destination):
        return short
    return f"{short} ({facts.source.capitalize()} -> {facts.destination.capitalize()})"


# A transfer is called repeated from this many in a step on (three equal ones are no accident of two inputs).
_MIN_REPEATS = 3
MIN_REPEATED_PCT = 0.5


def repeated_claim(workload: Workload, found: Transfers) -> claims.Claim | None:
    """The claim that equal transfers to the GPU, asked for at one place in a step, move the same data.

    Others are left out: what comes from the GPU is a result, and a loop over layers makes equal copies on it of
    different data.
    """
    classes = _repeated(workload, found)
    again = np.concatenate([same[1:] for same in classes]) if classes else np.empty(0, dtype=np.int64)
    again.sort()
    exposed = round(float(found.shared[again].sum()))
    if not again.size or pct(exposed, workload.span_ns) < MIN_REPEATED_PCT:
        return None
    members = found.index[again]
    top = max(classes, key=lambda same: (int(found.dur[same].sum()), -int(same[0])))
    frame = claims.heaviest_frame(workload, members)
    return claims.Claim(
        category="copy",
        subject="equal transfers again and again",
        kind="upper_bound",
        gap_ns=exposed,
        most_ns=exposed,
        evidence={
            "aspect": "repeated_transfers",
            "direction": str(found.way[top[0]]),
            "time_ms": ns_to_ms(int(found.dur[again].sum())),
            "exposed_copy_ms": ns_to_ms(exposed),
            "exposed_copy_pct": pct(exposed, workload.span_ns),
            "copies_count": int(again.size),
            "classes_count": len(classes),
            "top_repeat_count": int(top.size),
            "top_repeat_bytes": int(found.nbytes[top[0]]),
            "top_repeat_us": ns_to_us(float(np.median(found.dur[top]))),
            "top_copy": _named_with_ends(workload, found.index[top]),
            "top_copy_op": claims.heaviest_op(workload, found.index[top]),
            "top_copy_frame": claims.heaviest_frame(workload, found.index[top]),
        },
        members=claims.member_ids(workload, "copy", members),
        edit=Edit(removed=members),
        confidence="medium" if frame else "low",
    )


def _repeated(workload: Workload, found: Transfers) -> list[NDArray[np.int64]]:
    """Places of three or more transfers, by start, with one step, device, name, size and issuer."""
    at = np.flatnonzero((found.way == "HtoD") & (found.nbytes > 0))
    if at.size < _MIN_REPEATS:
        return []
    activities, members = workload.activities, found.index[at]
    launch = activities.launch[members]
    frame, op = (
        claims.names_at(workload, related, members) for related in (workload.context.frame, workload.context.op)
    )
    keys = np.stack(
        [
            workload.steps.of_activity[members],
            activities.device[members],
            activities.name[members],
            found.nbytes[at],
            frame,
            op,
        ],
        axis=1,
    )[launch >= 0]
    at = at[launch >= 0]
    _, group, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    group = group.reshape(-1)
    return [at[mine] for number, mine in grouped(group) if count[number] >= _MIN_REPEATS]
