"""Scenarios in the form that a replay works with: one column a scenario, rows only where something is changed."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from rooftrace.replay.edits import Edit
from rooftrace.replay.events import Step

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities
    from rooftrace.replay.edits import HostCut
    from rooftrace.replay.events import Events
    from rooftrace.schedule import Schedule

# Fixes that are made together, each with the share of it that is reached.
Scenario: TypeAlias = "Sequence[tuple[Edit, float]]"
Rows: TypeAlias = "dict[int, NDArray[np.int64]]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What differs from the recorded run, by row and scenario."""

    count: int
    durations: Rows  # activity -> duration in each scenario, ns
    removed: dict[int, NDArray[np.bool_]]  # activity -> whether it is gone
    unblocked: dict[int, NDArray[np.float64]]  # wait -> share of its waiting that is gone
    cuts: Rows  # position of an event -> host time gone since the thread's last event, ns
    own_cuts: Rows  # position of a wait -> host time gone of the call itself, ns
    work_cuts: Rows  # position of a wait -> host time gone of what the call does after the wait, ns


def compile_scenarios(
    scenarios: Sequence[Scenario], activities: Activities, schedule: Schedule, events: Events
) -> Changes:
    """The changes of some scenarios."""
    cuts, own_cuts, work_cuts = _host_cuts(scenarios, schedule, events)
    return Changes(
        count=len(scenarios),
        durations=_durations(scenarios, activities),
        removed=_removed(scenarios),
        unblocked=_unblocked(scenarios),
        cuts=cuts,
        own_cuts=own_cuts,
        work_cuts=work_cuts,
    )


def _durations(scenarios: Sequence[Scenario], activities: Activities) -> Rows:
    touched = [edit.activities for scenario in scenarios for edit, _ in scenario if edit.activities.size]
    if not touched:
        return {}
    rows = np.unique(np.concatenate(touched))
    saved = np.zeros((rows.size, len(scenarios)), dtype=np.int64)
    for column, scenario in enumerate(scenarios):
        for edit, closure in scenario:
            at = np.searchsorted(rows, edit.activities)
            np.add.at(saved[:, column], at, np.rint(edit.saved_ns * closure).astype(np.int64))
    durations = np.maximum(activities.dur[rows][:, None] - saved, 0)
    return dict(zip(rows.tolist(), durations, strict=True))


def _removed(scenarios: Sequence[Scenario]) -> dict[int, NDArray[np.bool_]]:
    result: dict[int, NDArray[np.bool_]] = {}
    for column, scenario in enumerate(scenarios):
        for edit, _ in scenario:
            for activity in edit.removed.tolist():
                result.setdefault(activity, np.zeros(len(scenarios), dtype=bool))[column] = True
    return result


def _unblocked(scenarios: Sequence[Scenario]) -> dict[int, NDArray[np.float64]]:
    result: dict[int, NDArray[np.float64]] = {}
    for column, scenario in enumerate(scenarios):
        for edit, closure in scenario:
            for wait in edit.unblocked.tolist():
                shares = result.setdefault(wait, np.zeros(len(scenarios)))
                shares[column] = max(shares[column], closure)
    return result


def _host_cuts(scenarios: Sequence[Scenario], schedule: Schedule, events: Events) -> tuple[Rows, Rows, Rows]:
    """Host time gone before each event of a thread, and of its blocking calls before and after the wait."""
    by_lane: dict[int, dict[int, list[tuple[HostCut, float]]]] = defaultdict(lambda: defaultdict(list))
    for column, scenario in enumerate(scenarios):
        for edit, closure in scenario:
            for cut in edit.host:
                by_lane[cut.lane][column].append((cut, closure))
    cuts: Rows = {}
    own_cuts: Rows = {}
    work_cuts: Rows = {}
    positions_of = _by_lane(events) if by_lane else {}
    for lane in sorted(by_lane):
        positions = positions_of.get(lane)
        if positions is None:
            continue
        segments = _segments(positions, schedule, events)
        gone = {column: _gone_until(pieces) for column, pieces in by_lane[lane].items()}
        for rows, (lows, highs) in zip((cuts, own_cuts, work_cuts), segments, strict=True):
            table = np.zeros((positions.size, len(scenarios)), dtype=np.int64)
            for column, until in gone.items():
                table[:, column] = _gone_between(*until, lows, highs)
            _keep_nonzero(rows, positions, table)
    return cuts, own_cuts, work_cuts


def _by_lane(events: Events) -> dict[int, NDArray[np.int64]]:
    """Positions of the events of each thread."""
    order = np.argsort(events.lane, kind="stable")
    cuts = np.flatnonzero(np.diff(events.lane[order])) + 1
    return {int(events.lane[mine[0]]): mine for mine in np.split(order, cuts) if mine.size}


def _segments(
    positions: NDArray[np.int64], schedule: Schedule, events: Events
) -> list[tuple[NDArray[np.int64], NDArray[np.int64]]]:
    """Host time of a thread around each of its events: from the one before; of waits, before and after waiting."""
    step, begin, time = events.step[positions], events.begin[positions], events.time[positions]
    lows = np.minimum(np.r_[np.iinfo(np.int64).min // 2, time[:-1]], begin)
    lows = np.where(step == int(Step.RESUME), begin, lows)  # it waited for the other thread
    own, work = np.zeros_like(begin), np.zeros_like(begin)
    waits = np.flatnonzero(step == int(Step.WAIT))
    own[waits] = schedule.waits.own_ns[events.item[positions[waits]]]
    work[waits] = schedule.waits.work_ns[events.item[positions[waits]]]
    return [(lows, begin), (begin, begin + own), (time - work, time)]


def _gone_until(pieces: list[tuple[HostCut, float]]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Times, and the host time gone until each; where cuts overlap the larger share counts."""
    times = np.unique(np.concatenate([np.r_[cut.start, cut.end] for cut, _ in pieces]))
    share = np.zeros(max(times.size - 1, 0))
    for cut, closure in pieces:
        change = np.zeros(times.size, dtype=np.int64)
        np.add.at(change, np.searchsorted(times, cut.start), 1)
        np.add.at(change, np.searchsorted(times, cut.end), -1)
        covered = np.cumsum(change)[:-1] > 0
        share = np.maximum(share, np.where(covered, min(cut.share * closure, 1.0), 0.0))
    return times, np.r_[0.0, np.cumsum(share * np.diff(times))]


def _gone_between(
    times: NDArray[np.int64], gone: NDArray[np.float64], lows: NDArray[np.int64], highs: NDArray[np.int64]
) -> NDArray[np.int64]:
    if times.size < 2:
        return np.zeros(lows.size, dtype=np.int64)
    until = np.rint(np.interp(highs, times, gone)) - np.rint(np.interp(lows, times, gone))  # sums stay exact
    return until.astype(np.int64)


def _keep_nonzero(rows: Rows, positions: NDArray[np.int64], table: NDArray[np.int64]) -> None:
    for at in np.flatnonzero(table.any(axis=1)).tolist():
        rows[int(positions[at])] = table[at]
