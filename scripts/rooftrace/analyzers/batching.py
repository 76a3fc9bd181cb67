"""Small collectives that one larger collective could replace.

A batch is a run of small collectives of one kind and group in one step, of which none but the last is used before the
next one starts: no other work and no blocking call waits for it, as far as the schedule knows. One collective in their
place takes one latency and the time of all their bytes at the best bandwidth seen for the kind and group. What each of
them takes without waiting for peers is at most the median of its equals, and the fastest of those that move more. The
time that they wait stays, and so does the last of their calls; the other calls are gone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.analyzers import claims
from rooftrace.analyzers.collectives import asked_by
from rooftrace.analyzers.merging import Merged, merged_edit
from rooftrace.analyzers.messages import UNKNOWN
from rooftrace.calltree import Work
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.sorted_unique import grouped
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.analyzers.collectives import Collectives
    from rooftrace.analyzers.workload import Workload
    from rooftrace.contracts.base import EvidenceValue

# Below this, latency and not bandwidth decides on NVLink and on a network: 1 MiB takes 2 to 50 us. A rule of thumb.
SMALL_BYTES = 1 << 20
SMALL_NS = 50_000
_NOT_MERGED = frozenset({"barrier", "send_recv", UNKNOWN})
_ENOUGH_EQUALS = 3
_NEVER = np.iinfo(np.int64).max


class _Usual(Struct, frozen=True, kw_only=True):
    """What collectives of one kind and group take without waiting, by size: sizes that are known, ascending."""

    nbytes: NDArray[np.int64]
    ns: NDArray[np.int64]
    shortest_ns: int  # of all of them, with a size or without
    latency_ns: int  # the shortest of `ns`; 0 without sizes
    gbps: float  # the best bandwidth, bytes/ns; 0 without sizes


def batching_claim(workload: Workload, found: Collectives) -> claims.Claim | None:
    """The claim that small collectives be merged, if it is worth a rank."""
    worth = _worth_merging(workload, found)
    if not worth:
        return None
    at = np.sort(np.concatenate([batch for batch, _ in worth]))
    exposed = round(float(found.shared[at].sum()))
    saving = sum(less for _, less in worth)
    edit = merged_edit(workload, [_merged(found, batch, less) for batch, less in worth])
    most = min(saving, exposed)
    if pct(most, workload.span_ns) < RANKING_LIMIT_PCT:
        return None
    members = found.index[at]
    host = sum(int((cut.end - cut.start).sum()) for cut in edit.host)
    return claims.Claim(
        category="communication",
        subject="small collectives one by one",
        kind="modelled",
        gap_ns=most,
        most_ns=most + host,  # fewer calls let the host launch earlier what comes after them
        evidence=_evidence(workload, found, at, len(worth)) | {"saving_ms": ns_to_ms(saving)},
        members=claims.member_ids(workload, "comm", members),
        edit=edit,
        confidence="medium",
    )


def _worth_merging(workload: Workload, found: Collectives) -> list[tuple[NDArray[np.int64], int]]:
    """Batches of which one collective saves time, and how much, ns."""
    batches = find_batches(workload, found)
    return [(batch, less) for batch, less in zip(batches, savings_ns(found, batches), strict=True) if less > 0]


def _merged(found: Collectives, batch: NDArray[np.int64], less: int) -> Merged:
    """One collective in the place of the last, since it needs the data of all; the time that they waited stays."""
    return Merged(activities=found.index[batch], time_ns=int(found.dur[batch].sum()) - less, at_end=True)


def mostly_saved(workload: Workload, found: Collectives) -> NDArray[np.bool_]:
    """Whether each collective is in a batch of which merging takes at least half of the exposed time away."""
    told = np.zeros(found.index.size, dtype=bool)
    for batch, less in _worth_merging(workload, found):
        told[batch] = 2 * less >= float(found.shared[batch].sum())
    return told


def _evidence(workload: Workload, found: Collectives, at: NDArray[np.int64], batches: int) -> dict[str, EvidenceValue]:
    members, kinds = found.index[at], sorted(set(found.kind[at].tolist()))
    exposed = round(float(found.shared[at].sum()))
    return {
        "aspect": "small_collectives",
        "remedy": "batching",
        "collective": kinds[0] if len(kinds) == 1 else "mixed",
        "collectives": ", ".join(kinds),
        "time_ms": ns_to_ms(int(found.dur[at].sum())),
        "exposed_comm_ms": ns_to_ms(exposed),
        "exposed_comm_pct": pct(exposed, workload.span_ns),
        "comm_kernels_count": int(members.size),
        "batches_count": batches,
        "mean_us": ns_to_us(float(found.dur[at].mean())),
        "min_us": ns_to_us(int(found.dur[at].min())),
        "top_collective": workload.activities.infos[claims.heaviest_name(workload, members)].short,
        **asked_by(workload, members),
    }


def find_batches(workload: Workload, found: Collectives) -> list[NDArray[np.int64]]:
    """Places of the collectives of each batch of two or more, in time order."""
    at = np.flatnonzero(_is_small(found))
    if at.size <= 1:
        return []
    activities = workload.activities
    members, kind = found.index[at], _group_of(found)[at]
    step, device = workload.steps.of_activity[members], activities.device[members]
    order = np.lexsort((activities.start[members], kind, step, device))
    at, members = at[order], members[order]
    keys = np.stack([device, step, kind], axis=1)[order]
    same = (np.diff(keys, axis=0) == 0).all(axis=1)
    unused = first_use(workload, found)[at][:-1] >= activities.start[members[1:]]
    cuts = np.flatnonzero(~(same & unused)) + 1
    return [batch for batch in np.split(at, cuts) if batch.size > 1]


def _is_small(found: Collectives) -> NDArray[np.bool_]:
    nbytes = _nbytes_of(found)
    small = np.where(nbytes > 0, nbytes < SMALL_BYTES, found.dur < SMALL_NS)
    merged: NDArray[np.bool_] = small & ~found.early & ~np.isin(found.kind, sorted(_NOT_MERGED))
    return merged


def _nbytes_of(found: Collectives) -> NDArray[np.int64]:
    """Size of each message; -1 where it is not known."""
    return np.array([message.nbytes for message in found.messages], dtype=np.int64)[found.message]


def _group_of(found: Collectives) -> NDArray[np.int64]:
    """A number for each kind and group."""
    keys = [(message.kind, message.group, message.group_size) for message in found.messages]
    number = {key: position for position, key in enumerate(sorted(set(keys)))}
    return np.array([number[key] for key in keys], dtype=np.int64)[found.message]


def first_use(workload: Workload, found: Collectives) -> NDArray[np.int64]:
    """When the first activity that waits for each collective starts, or a blocking call that does ends, ns."""
    activities, schedule = workload.activities, workload.schedule
    used = np.full(activities.row.size, _NEVER, dtype=np.int64)
    other = activities.work != int(Work.COMMUNICATION)
    waiting = np.flatnonzero(other & (schedule.dependency >= 0))
    np.minimum.at(used, schedule.dependency[waiting], activities.start[waiting])
    waits = schedule.waits
    known = waits.activity >= 0
    np.minimum.at(used, waits.activity[known], workload.tree.end[waits.node[known]])
    others = np.flatnonzero(other)
    others = others[np.lexsort((activities.start[others], schedule.queue[others]))]
    width = int(activities.end.max()) + 1
    place = schedule.queue[others] * width + activities.start[others]
    mine = schedule.queue[found.index] * width + activities.start[found.index]
    after = np.searchsorted(place, mine)
    inside = np.minimum(after, max(others.size - 1, 0))
    first = used[found.index]
    if others.size:
        follows = (after < others.size) & (schedule.queue[others[inside]] == schedule.queue[found.index])
        first = np.minimum(first, np.where(follows, activities.start[others[inside]], _NEVER))
    return first


def savings_ns(found: Collectives, batches: Sequence[NDArray[np.int64]]) -> list[int]:
    """For each batch its time, waiting left out, less that of one collective; without sizes all latencies but one."""
    group, nbytes = _group_of(found), _nbytes_of(found)
    alike = dict(grouped(group))
    usual: dict[int, _Usual] = {}  # by group: a run may hold as many batches as collectives
    savings = []
    for batch in batches:
        number = int(group[batch[0]])
        if number not in usual:
            usual[number] = _usual(found.dur[alike[number]], nbytes[alike[number]])
        savings.append(_saving_ns(found.dur[batch], nbytes[batch], usual[number]))
    return savings


def _saving_ns(dur: NDArray[np.int64], nbytes: NDArray[np.int64], usual: _Usual) -> int:
    if (nbytes <= 0).any():
        return usual.shortest_ns * (dur.size - 1)
    if not usual.nbytes.size:
        return 0
    timed = dur > 0  # the size of one recorded as taking no time need not be among the usual ones
    at = np.searchsorted(usual.nbytes, nbytes[timed])
    apart = int(np.minimum(dur[timed], usual.ns[at]).sum())
    return max(0, apart - usual.latency_ns - round(int(nbytes.sum()) / usual.gbps))


def _usual(dur: NDArray[np.int64], nbytes: NDArray[np.int64]) -> _Usual:
    """What collectives take at most without waiting: the median of their equals, the fastest of those that move more.

    Fewer than three equals tell no usual time, and the fastest of them counts.
    """
    shortest_ns = int(dur.min())
    timed = np.flatnonzero((nbytes > 0) & (dur > 0))
    order = timed[np.lexsort((dur[timed], nbytes[timed]))]
    dur, nbytes = dur[order], nbytes[order]
    first = np.flatnonzero(np.diff(nbytes, prepend=0))  # of each size, the place of its fastest
    equals = np.diff(first, append=nbytes.size)
    ns = dur[np.where(equals >= _ENOUGH_EQUALS, first + equals // 2, first)]
    from_here = np.minimum.accumulate(dur[first][::-1])[::-1]  # the fastest of each size and those above
    ns[:-1] = np.minimum(ns[:-1], from_here[1:])
    nbytes = nbytes[first]
    return _Usual(
        nbytes=nbytes,
        ns=ns,
        shortest_ns=shortest_ns,
        latency_ns=int(ns.min()) if ns.size else 0,
        gbps=float((nbytes / ns).max(initial=0.0)),
    )
