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

from rooftrace.analyzers import claims
from rooftrace.analyzers.collectives import asked_by
from rooftrace.analyzers.merging import Merged, merged_edit
from rooftrace.analyzers.messages import UNKNOWN
from rooftrace.calltree import Work
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
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
    return [(batch, less) for batch in batches if (less := batch_saving_ns(found, batch)) > 0]


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
    nbytes = np.array([message.nbytes for message in found.messages], dtype=np.int64)[found.message]
    small = np.where(nbytes > 0, nbytes < SMALL_BYTES, found.dur < SMALL_NS)
    merged: NDArray[np.bool_] = small & ~found.early & ~np.isin(found.kind, sorted(_NOT_MERGED))
    return merged


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


def batch_saving_ns(found: Collectives, batch: NDArray[np.int64]) -> int:
    """Time of a batch, waiting left out, less that of one collective; without sizes all latencies but one, ns."""
    group = _group_of(found)
    like = np.flatnonzero(group == group[batch[0]])
    nbytes = np.array([message.nbytes for message in found.messages], dtype=np.int64)[found.message]
    if (nbytes[batch] <= 0).any():
        return int(found.dur[like].min()) * (batch.size - 1)
    timed = like[(nbytes[like] > 0) & (found.dur[like] > 0)]
    if not timed.size:
        return 0
    sizes = sorted_unique(nbytes[timed])
    usual = np.array([_usual_ns(found.dur[timed], nbytes[timed], size) for size in sizes.tolist()])
    best = float((sizes / usual).max())
    apart = int(np.minimum(found.dur[batch], usual[np.searchsorted(sizes, nbytes[batch])]).sum())
    return max(0, apart - int(usual.min()) - round(int(nbytes[batch].sum()) / best))


def _usual_ns(dur: NDArray[np.int64], nbytes: NDArray[np.int64], size: int) -> int:
    """What a collective takes at most without waiting: the median of its equals, the fastest of those that move more.

    Fewer than three equals tell no usual time, and the fastest of them counts.
    """
    equal = np.sort(dur[nbytes == size])
    usual = int(equal[equal.size // 2]) if equal.size >= _ENOUGH_EQUALS else int(equal[0])
    return min(usual, int(dur[nbytes > size].min(initial=usual)))
