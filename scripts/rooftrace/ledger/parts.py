"""Divides each device's span into compute, exposed communication, exposed copies and idle (METHODS: time ledger).

With U the union over all streams: compute is |U(compute)|, exposed communication what U(compute and communication)
adds to it, exposed copies what U(everything) adds to that, idle the rest of the span. The parts are differences of
nested unions, so they sum to the span exactly, in every stretch of it.
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.contracts.ledger import DeviceLedger, StepLedger
from rooftrace.intervals import shared_time, union
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

_COMMUNICATION, _COPY = 1, 2
UNATTRIBUTED = "unattributed"


class Timeline(Struct, frozen=True, kw_only=True):
    """What the ledger needs of one device's activities, by start; ``work`` is 0 compute, 1 communication, 2 copy."""

    device: int
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    work: NDArray[np.uint8]
    category: NDArray[np.int64]
    step: NDArray[np.int64]
    carry_in: NDArray[np.bool_]
    gaps: GapCauses | None = None


class GapCauses(Struct, frozen=True, kw_only=True):
    """Stretches of a device's idle time, by start and without overlap, each with a cause (an index of names)."""

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    cause: NDArray[np.uint8]


def device_ledgers(
    timelines: Sequence[Timeline],
    categories: Sequence[str],
    step_names: Sequence[str],
    window_ns: int | None,
    *,
    causes: Sequence[str] = (),
) -> list[DeviceLedger]:
    """One ledger a device, cut at the first activity of each step."""
    return [_device_ledger(timeline, categories, step_names, window_ns, causes) for timeline in timelines]


def _device_ledger(
    timeline: Timeline,
    categories: Sequence[str],
    step_names: Sequence[str],
    window_ns: int | None,
    causes: Sequence[str],
) -> DeviceLedger:
    low, high = int(timeline.start.min()), int(timeline.end.max())
    names, bounds = _stretches(timeline, step_names, low, high)
    parts = _parts_by_stretch(timeline, bounds)
    split = _categories_by_stretch(timeline, categories, bounds, parts["compute_ns"])
    idle = _causes_by_stretch(timeline, causes, bounds, parts["idle_ns"])
    steps = [
        StepLedger(
            name=name,
            start_ns=int(bounds[k]),
            span_ns=int(bounds[k + 1] - bounds[k]),
            compute_by_category=split[k],
            idle_by_cause=idle[k],
            **{part: values[k] for part, values in parts.items()},
        )
        for k, name in enumerate(names)
    ]
    totals = {part: sum(values) for part, values in parts.items()}
    return DeviceLedger(
        device=timeline.device,
        start_ns=low,
        span_ns=high - low,
        window_ns=window_ns,
        compute_by_category=_sum_of(split),
        idle_by_cause=_sum_of(idle),
        steps=steps,
        **totals,
    )


def _stretches(
    timeline: Timeline, step_names: Sequence[str], low: int, high: int
) -> tuple[list[str], NDArray[np.int64]]:
    """Names and bounds of the stretches; a step without activities is empty and begins where the next one does."""
    firsts = np.full(len(step_names), high, dtype=np.int64)
    in_step = timeline.step >= 0
    np.minimum.at(firsts, timeline.step[in_step], timeline.start[in_step])
    firsts = np.minimum.accumulate(firsts[::-1])[::-1]
    if firsts.size == 0 or firsts[0] > low:
        return [BEFORE_FIRST_STEP, *step_names], np.r_[low, firsts, high]
    return list(step_names), np.r_[low, firsts[1:], high]


def _parts_by_stretch(timeline: Timeline, bounds: NDArray[np.int64]) -> dict[str, list[int]]:
    work = timeline.work

    def covered(which: NDArray[np.bool_]) -> NDArray[np.int64]:
        return np.diff(union(timeline.start[which], timeline.end[which]).covered_before(bounds))

    compute = covered(work < _COMMUNICATION)
    communicates, copies = (bool((work == kind).any()) for kind in (_COMMUNICATION, _COPY))
    nothing = np.zeros_like(compute)
    with_communication = covered(work < _COPY) if communicates else compute
    busy = covered(np.ones(work.shape, dtype=bool)) if copies else with_communication
    return {
        "compute_ns": compute.tolist(),
        "exposed_comm_ns": (with_communication - compute).tolist(),
        "exposed_copy_ns": (busy - with_communication).tolist(),
        "idle_ns": (np.diff(bounds) - busy).tolist(),
        "total_comm_ns": (covered(work == _COMMUNICATION) if communicates else nothing).tolist(),
        "total_copy_ns": (covered(work == _COPY) if copies else nothing).tolist(),
        "carry_in_ns": _carry_in_by_stretch(timeline, bounds),
    }


def _carry_in_by_stretch(timeline: Timeline, bounds: NDArray[np.int64]) -> list[int]:
    """Summed durations of the activities launched before the window, in the stretch in which each starts."""
    start = timeline.start[timeline.carry_in]
    at = np.clip(np.searchsorted(bounds, start, side="right") - 1, 0, bounds.size - 2)
    spent = np.zeros(bounds.size - 1, dtype=np.int64)
    np.add.at(spent, at, (timeline.end - timeline.start)[timeline.carry_in])
    carried: list[int] = spent.tolist()
    return carried


def _categories_by_stretch(
    timeline: Timeline, categories: Sequence[str], bounds: NDArray[np.int64], compute: list[int]
) -> list[dict[str, int]]:
    """Compute time by category: at each instant shared equally by the kernels then running."""
    mine = timeline.work < _COMMUNICATION
    shares = shared_time(timeline.start[mine], timeline.end[mine], timeline.category[mine], bounds)
    result = []
    for stretch, whole in enumerate(compute):
        exact = {
            categories[code]: sum((Fraction(*pair) for pair in stretches[stretch]), Fraction(0))
            for code, stretches in shares.items()
        }
        result.append(apportion(exact, whole))
    return result


def _causes_by_stretch(
    timeline: Timeline, causes: Sequence[str], bounds: NDArray[np.int64], idle: list[int]
) -> list[dict[str, int]]:
    """Idle time by cause, gaps cut at the bounds; what no given gap covers is unattributed."""
    spent = _spent_by_cause(timeline.gaps, causes, bounds) if timeline.gaps is not None else {}
    spent[UNATTRIBUTED] = (np.array(idle, dtype=np.int64) - sum(map(np.array, spent.values()))).tolist()
    return [{name: spent[name][at] for name in sorted(spent) if spent[name][at]} for at in range(len(idle))]


def _spent_by_cause(gaps: GapCauses, causes: Sequence[str], bounds: NDArray[np.int64]) -> dict[str, list[int]]:
    """Time of each cause in each stretch."""
    spent: dict[str, list[int]] = {}
    for code in sorted_unique(gaps.cause).tolist():
        mine = gaps.cause == code
        spent[causes[code]] = np.diff(union(gaps.start[mine], gaps.end[mine]).covered_before(bounds)).tolist()
    return spent


def apportion(exact: Mapping[str, Fraction], whole: int) -> dict[str, int]:
    """Integers that sum to ``whole``: floors, the rest to the largest remainders, ties in name order.

    >>> apportion({"a": Fraction(1, 2), "b": Fraction(5, 2)}, 3)
    {'a': 1, 'b': 2}
    """
    floors = {name: int(value) for name, value in sorted(exact.items())}
    missing = whole - sum(floors.values())
    by_remainder = sorted(floors, key=lambda name: (floors[name] - exact[name], name))
    for name in by_remainder[:missing]:
        floors[name] += 1
    return {name: value for name, value in floors.items() if value}


def _sum_of(splits: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = sorted({name for split in splits for name in split})
    return {name: sum(split.get(name, 0) for split in splits) for name in names}
