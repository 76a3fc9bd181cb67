"""What bringing a row to the other side's time changes in the run of the slower side."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.causes import HOST_CAUSES, Cause
from rooftrace.intervals import union
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.roofline import Rating
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.compare.side import Side
    from rooftrace.compare.table import Half, Measured, Row


class Fix(Struct, frozen=True, kw_only=True):
    """An edit, whether a floor kept it from reaching the other side, and whether a replay can tell its gain."""

    edit: Edit
    at_floor: bool = False
    can_replay: bool = True


def fix_of(rows: Sequence[tuple[Row, str]], slower: Measured, *, is_target: bool, same_gpu: bool) -> Fix:
    """The change that brings rows (with their causes) to the other side's time; ``slower`` is the side changed.

    On the same GPU the other side shows what can be reached; on another one the floor of the slower side's GPU holds.
    """
    parts = [_fix_row(row, cause, slower, (is_target, same_gpu)) for row, cause in rows]
    return Fix(
        edit=_joined([part.edit for part in parts]),
        at_floor=any(part.at_floor for part in parts),
        can_replay=all(part.can_replay for part in parts),
    )


def _fix_row(row: Row, cause: str, slower: Measured, where: tuple[bool, bool]) -> Fix:
    is_target, same_gpu = where
    mine, other = (row.target, row.base) if is_target else (row.base, row.target)
    if row.idle is not None:
        return _fix_idle(slower.side, row.idle, mine, _excess_share(mine.ns, other.ns))
    if row.kind == "left_out":
        return Fix(edit=Edit(), can_replay=False)
    if not other.calls:
        return Fix(edit=Edit(removed=np.sort(mine.activities), host=_calls_gone(slower, mine)))
    if cause == "lost_overlap":
        return _fix_evenly(slower, mine, slower.shares, _excess_share(mine.ns, other.ns))
    if row.kind == "block":
        return _fix_evenly(slower, mine, slower.side.activities.dur, _excess_share(mine.raw_ns, other.raw_ns))
    return _fix_durations(slower, mine, other, same_gpu=same_gpu)


def _excess_share(mine: int, other: int) -> float:
    """The share of a time that the other side does not take."""
    return max(0.0, 1.0 - other / mine) if mine else 0.0


def _fix_idle(side: Side, cause: Cause, mine: Half, share: float) -> Fix:
    causes = side.causes
    if cause is Cause.SYNCHRONISATION:
        waits = sorted_unique(causes.wait[np.isin(causes.wait_gap, mine.gaps)])
        return Fix(edit=Edit(unblocked=waits), can_replay=bool(waits.size) and share >= 0.5)
    if cause not in HOST_CAUSES:
        return Fix(edit=Edit(), can_replay=False)
    chosen = np.isin(causes.pieces.gap, mine.gaps)
    lanes, start, end = causes.pieces.lane[chosen], causes.pieces.start[chosen], causes.pieces.end[chosen]
    host = tuple(
        HostCut(lane=lane, start=merged.start, end=merged.end, share=share)
        for lane in sorted_unique(lanes).tolist()
        for merged in (union(start[lanes == lane], end[lanes == lane]),)
        if lane >= 0
    )
    return Fix(edit=Edit(host=host), can_replay=bool(host))


def _calls_gone(slower: Measured, mine: Half) -> tuple[HostCut, ...]:
    """The host's time in calls that the other side does not make."""
    tree, calls = slower.side.tree, slower.slots.calls
    nodes = sorted_unique(calls.node[mine.call_numbers])
    nodes = nodes[nodes >= 0]
    cuts = []
    for lane in sorted_unique(tree.lane[nodes]).tolist():
        on_lane = nodes[tree.lane[nodes] == lane]
        merged = union(tree.start[on_lane], tree.end[on_lane])
        cuts.append(HostCut(lane=lane, start=merged.start, end=merged.end))
    return tuple(cuts)


def _fix_evenly(slower: Measured, mine: Half, times: NDArray[np.int64], share: float) -> Fix:
    """The same share of what each activity takes."""
    dur = slower.side.activities.dur[mine.activities]
    saved = np.minimum(np.rint(times[mine.activities] * share).astype(np.int64), dur)
    return Fix(edit=_saving(mine.activities, saved))


def _fix_durations(slower: Measured, mine: Half, other: Half, *, same_gpu: bool) -> Fix:
    """Each call as long as the other side's, but not below what this GPU needs for it at least."""
    side = slower.side
    per_call = other.raw_ns / max(1, mine.calls)  # the other side's time for the same work, over the calls here
    floors = _floors(side)
    members = [slower.slots.calls.members[number] for number in mine.call_numbers.tolist()]
    sizes = np.array([part.size for part in members], dtype=np.int64)
    flat = np.concatenate(members)
    dur = side.activities.dur[flat].astype(float)
    firsts = np.r_[0, np.cumsum(sizes)[:-1]]
    total = np.add.reduceat(dur, firsts)
    groups = slower.slots.calls.group[mine.call_numbers]
    floor = np.where((groups >= 0) & (not same_gpu), floors[groups], 0)
    least = np.maximum(per_call, floor)
    at_floor = bool((floor > per_call).any())
    share = np.clip(1.0 - least / np.maximum(total, 1.0), 0.0, 1.0)
    saved = np.rint(dur * np.repeat(share, sizes)).astype(np.int64)
    return Fix(edit=_saving(flat, saved), at_floor=at_floor)


def _floors(side: Side) -> NDArray[np.float64]:
    """Floor of one call of each op group, ns; 0 where it is not known."""
    known = [rating.floor_ns if isinstance(rating, Rating) else 0 for rating in side.ratings]
    return np.array([*known, 0], dtype=float)


def _saving(activities: NDArray[np.int64], saved: NDArray[np.int64]) -> Edit:
    order = np.argsort(activities, kind="stable")
    return Edit(activities=activities[order], saved_ns=saved[order])


def _joined(edits: Sequence[Edit]) -> Edit:
    """Several edits of different activities as one."""
    activities = np.concatenate([edit.activities for edit in edits])
    saved = np.concatenate([edit.saved_ns for edit in edits])
    joined = _saving(activities, saved)
    by_lane: dict[int, list[HostCut]] = defaultdict(list)
    for edit in edits:
        for cut in edit.host:
            by_lane[cut.lane].append(cut)
    return Edit(
        activities=joined.activities,
        saved_ns=joined.saved_ns,
        removed=sorted_unique(np.concatenate([edit.removed for edit in edits])),
        host=tuple(_merged(lane, cuts) for lane, cuts in sorted(by_lane.items())),
        unblocked=sorted_unique(np.concatenate([edit.unblocked for edit in edits])),
    )


def _merged(lane: int, cuts: Sequence[HostCut]) -> HostCut:
    both = union(np.concatenate([cut.start for cut in cuts]), np.concatenate([cut.end for cut in cuts]))
    return HostCut(lane=lane, start=both.start, end=both.end, share=max(cut.share for cut in cuts))
