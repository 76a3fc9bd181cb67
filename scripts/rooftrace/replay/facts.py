"""What a replay tells about a run: its fit, its critical paths, and the span with each resource free."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from rooftrace.calltree import Work
from rooftrace.contracts.report import BOUND_BY, CriticalPath, Quantiles, ReplayEvidence
from rooftrace.contracts.report import Replay as ReplayFacts
from rooftrace.replay.edits import Edit, HostCut
from rooftrace.replay.events import Step
from rooftrace.replay.path import Path, Resource, critical_paths
from rooftrace.schedule import Source, WaitKind
from rooftrace.sorted_unique import grouped, sorted_unique
from rooftrace.units import pct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from rooftrace.contracts.report import BoundBy
    from rooftrace.intervals import Union
    from rooftrace.replay.run import Replay
    from rooftrace.replay.scenarios import Scenario

# A resource bounds the run if the span would lose this much without it, and this many times what it would lose
# without any other (rules of thumb).
_LEAST_SAVED_PCT = 20.0
_CLEARLY = 1.5
# A run of which less is explained keeps gap shares, and nothing is said about what bounds it (METHODS: impact).
LEAST_EXPLAINED_PCT = 70.0
_STRIP = 100
_QUEUE_POINTS = 20
_FAR = np.iinfo(np.int64).max // 4
_WORK = {"compute": Work.COMPUTE, "communication": Work.COMMUNICATION, "copy": Work.COPY}


def describe_replay(replay: Replay, halved: Edit | None = None) -> ReplayFacts:
    """Everything about a replay that needs no finding; ``halved`` is the host time that the profiler may have doubled.

    Without it that is taken to be all host time.
    """
    paths = [_contract(path) for path in critical_paths(replay)]
    free = _free_edits(replay)
    at_half = (halved if halved is not None else Edit(host=everywhere(replay, 0.5)), 1.0)
    alone: list[Scenario] = [((edit, 1.0),) for edit in free.values()]
    spans = replay.spans([(), *alone, (at_half,), *[(at_half, *scenario) for scenario in alone]])
    (baseline, *full), (half, *halves) = spans[: len(free) + 1], spans[len(free) + 1 :]
    if_free = {name: min(span, baseline) for name, span in zip(free, full, strict=True)}
    half_if_free = {name: min(span, half) for name, span in zip(free, halves, strict=True)}
    measured = replay.measured_ns
    unexplained = sum(path.by_resource["unexplained"] for path in paths)
    explained = round(100.0 - pct(unexplained, measured), 2)
    known = explained >= LEAST_EXPLAINED_PCT
    return ReplayFacts(
        baseline_ns=baseline,
        measured_ns=measured,
        error_pct=pct(baseline - measured, measured),
        explained_pct=explained,
        bound_by=_bound_by(if_free, baseline) if known else "unknown",
        paths=paths,
        if_free=if_free,  # type: ignore[arg-type]
        half_host_ns=half,
        bound_by_half_host=_bound_by(half_if_free, half) if known else "unknown",
        evidence=_evidence(replay),
    )


def everywhere(replay: Replay, share: float) -> tuple[HostCut, ...]:
    """The same share of all host time, from the first launch or GPU activity to the last end."""
    first, last = _bounds(replay)
    start, end = np.array([first]), np.array([last])
    return tuple(HostCut(lane=lane, start=start, end=end, share=share) for lane in host_lanes(replay).tolist())


def without_profiler(replay: Replay, unslowed: Mapping[int, Union], share: float = 0.5) -> Edit:
    """A share of all host time is gone, but for the stretches, by thread, that the recording does not lengthen."""
    first, last = _bounds(replay)
    cuts = []
    for cut in everywhere(replay, share):
        kept = unslowed.get(cut.lane)
        if kept is not None:
            inside = (kept.end > first) & (kept.start < last)
            start, end = np.r_[first, kept.end[inside]], np.r_[kept.start[inside], last]
            cut = replace(cut, start=start[end > start], end=end[end > start])
        cuts.append(cut)
    return Edit(host=tuple(cuts))


def host_lanes(replay: Replay) -> NDArray[np.int64]:
    """The threads that launch, wait or hand work over."""
    lanes: NDArray[np.int64] = sorted_unique(replay.events.lane)
    return lanes[lanes >= 0]


def _bounds(replay: Replay) -> tuple[int, int]:
    """The first launch or start of an activity, and the last end."""
    activities, launches = replay.activities, replay.events.step == int(Step.LAUNCH)
    first = min(activities.start.min(initial=_FAR), replay.events.time[launches].min(initial=_FAR))
    return int(first), int(activities.end.max(initial=first))


def _free_edits(replay: Replay) -> dict[str, Edit]:
    """One edit a resource: its activities without duration, its host time gone, its waits not waited for."""
    activities = replay.activities
    edits = {
        name: Edit(activities=members, saved_ns=activities.dur[members])
        for name, work in _WORK.items()
        if (members := np.flatnonzero(activities.work == int(work))).size
    }
    edits["host"] = Edit(host=everywhere(replay, 1.0))
    waits = replay.schedule.waits
    if waits.node.size:
        edits["synchronisation"] = Edit(unblocked=np.flatnonzero(waits.kind != int(WaitKind.QUEUE)))
    return edits


def _bound_by(if_free: dict[str, int], baseline: int) -> BoundBy:
    """The resource whose time alone decides: without it the run would lose much, and clearly more than without others.

    The critical path does not tell: where two resources run abreast, either may hold all of it, and freeing that one
    leaves the other.
    """
    saved = sorted(((baseline - if_free.get(name, baseline), name) for name in BOUND_BY), reverse=True)
    (most, name), (second, _) = saved[:2]
    return name if pct(most, baseline) >= _LEAST_SAVED_PCT and most >= _CLEARLY * second else "mixed"  # type: ignore[return-value]


def _contract(path: Path) -> CriticalPath:
    spent = path.by_resource()
    return CriticalPath(
        device=path.device,
        span_ns=sum(spent.values()),
        by_resource=spent,  # type: ignore[arg-type]  # the names of the enum are the literal's
        strip=_strip(path),
    )


def _strip(path: Path) -> list[str]:
    """The resource with most time in each of equal stretches of the span."""
    if not path.start.size:
        return []
    low, high = int(path.start[0]), int(path.end[-1])
    edges = np.linspace(low, high, min(_STRIP, max(1, high - low)) + 1).round().astype(np.int64)
    times = np.concatenate([path.start, path.end[-1:]])
    shares = np.zeros((len(Resource), edges.size - 1), dtype=np.int64)
    for code, mine in grouped(path.resource):
        gone = np.zeros(times.size, dtype=np.int64)
        gone[mine + 1] = path.end[mine] - path.start[mine]
        shares[code] = np.diff(np.interp(edges, times, np.cumsum(gone)))
    runs = [(Resource(code).name.lower(), len(list(same))) for code, same in groupby(shares.argmax(axis=0).tolist())]
    return [f"{resource}:{count}" for resource, count in runs]


def _evidence(replay: Replay) -> ReplayEvidence:
    activities, schedule = replay.activities, replay.schedule
    waits = schedule.waits
    sources = np.bincount(schedule.dependency_source, minlength=len(Source))
    return ReplayEvidence(
        launches=int(replay.events.launch_of.max(initial=-1)) + 1,
        unlinked=int((activities.launch < 0).sum()),
        waits={
            kind.name.lower(): count
            for kind in WaitKind
            if (count := int(((waits.kind == int(kind)) & (waits.waited | (kind is not WaitKind.QUEUE))).sum()))
        },
        waits_guessed=int((waits.guessed & (waits.kind != int(WaitKind.QUEUE))).sum()),
        dependencies={source.name.lower(): int(sources[source]) for source in Source if source and sources[source]},
        handovers=int(schedule.handovers.lane.size),
        queue_depth=schedule.depth,
        launch_latency=_latencies(replay),
        queued=_queued(replay),
    )


def _latencies(replay: Replay) -> Quantiles | None:
    activities, schedule = replay.activities, replay.schedule
    chosen = schedule.found_empty & ~activities.graph & (activities.work == int(Work.COMPUTE))
    if not chosen.any():
        return None
    delays = np.maximum(activities.start[chosen] - schedule.launch_start[chosen], 0)
    low, median, high = (int(value) for value in np.percentile(delays, (10, 50, 90)))
    return Quantiles(p10=low, median=median, p90=high)


def _queued(replay: Replay) -> list[int]:
    """Activities launched and not yet ended, at equally spaced times of the span."""
    activities = replay.activities
    bound = activities.launch >= 0
    if not bound.any():
        return []
    times = np.linspace(int(activities.start.min()), int(activities.end.max()), _QUEUE_POINTS)
    launched = np.searchsorted(np.sort(replay.schedule.launch_start[bound]), times, side="right")
    ended = np.searchsorted(np.sort(activities.end[bound]), times, side="right")
    queued: list[int] = np.maximum(launched - ended, 0).tolist()
    return queued
