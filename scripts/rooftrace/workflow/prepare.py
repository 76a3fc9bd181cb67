"""From a trace to a workload: link, group, divide and rate it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace import calltree, causes, platforms, roofline
from rooftrace.analyzers import RatedRun, Workload
from rooftrace.calltree import Link, Quarantined
from rooftrace.contracts.base import Category
from rooftrace.ledger import device_ledgers
from rooftrace.ledger.parts import GapCauses, Timeline
from rooftrace.schedule import build_schedule
from rooftrace.trace import GPU_KINDS
from rooftrace.workflow.options import AnalyzeOptions, select_steps
from rooftrace.workflow.timing import stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, OpGroup, Steps
    from rooftrace.contracts.ledger import DeviceLedger
    from rooftrace.platforms import Platform
    from rooftrace.trace import Trace

CATEGORIES: tuple[str, ...] = tuple(Category.__args__)  # type: ignore[attr-defined]


class PlatformChoice(Struct, frozen=True, kw_only=True):
    """The GPU a run is rated against and how it was found."""

    platform: Platform | None
    how: str
    warning: str | None


class Rated(Struct, frozen=True, kw_only=True):
    """A run with its kernels rated, and what was noticed on the way."""

    run: RatedRun
    choice: PlatformChoice
    quarantined: tuple[Quarantined, ...]


class Prepared(Struct, frozen=True, kw_only=True):
    """A workload and what was noticed while preparing it."""

    workload: Workload
    choice: PlatformChoice
    quarantined: tuple[Quarantined, ...]


def prepare_workload(trace: Trace, options: AnalyzeOptions) -> Prepared:
    """Everything an analyzer needs, from the columns of a trace."""
    return attribute_idle(rate_kernels(trace, options))


def rate_kernels(trace: Trace, options: AnalyzeOptions) -> Rated:
    """What analyzers of kernels need: link, group and rate them."""
    choice = choose_platform(trace, options)
    with stage("tree"):
        tree = calltree.build_tree(trace)
    with stage("activities"):
        activities = calltree.collect_activities(trace, tree)
    quarantined = calltree.quarantine(activities, trace.names)
    with stage("context"):
        context = calltree.build_context(trace, tree)
    with stage("steps"):
        steps = calltree.find_steps(trace, tree, activities)
    whole = activities
    activities, steps = select_steps(whole, steps, options.steps)
    chosen = np.isin(whole.row, activities.row)
    quarantined = tuple(item for item in quarantined if chosen[item.index])
    with stage("groups"):
        groups = calltree.group_ops(trace, tree, context, activities)
        ratings = _rate_all(groups, activities, choice.platform)
    with stage("schedule"):
        schedule = build_schedule(trace, tree, activities.comparable)
    run = RatedRun(
        trace=trace,
        tree=tree,
        context=context,
        activities=activities,
        steps=steps,
        groups=groups,
        ratings=ratings,
        op_ids=[f"op{number}" for number in range(1, len(groups) + 1)],
        platform=choice.platform,
        schedule=schedule,
        span_ns=sum(high - low for low, high in device_spans(activities).values()),
    )
    return Rated(run=run, choice=choice, quarantined=quarantined)


def attribute_idle(rated: Rated) -> Prepared:
    """The workload of a rated run: every gap gets its cause, every device its ledger."""
    run = rated.run
    with stage("causes"):
        idle = causes.attribute(run.trace, run.tree, run.context, run.activities.comparable, run.schedule)
        ledgers = device_ledgers_of(run.activities, run.groups, run.steps, idle)
    known = {name: getattr(run, name) for name in RatedRun.__struct_fields__}
    workload = Workload(**known, ledgers=ledgers, causes=idle)
    return Prepared(workload=workload, choice=rated.choice, quarantined=rated.quarantined)


def _rate_all(
    groups: Sequence[OpGroup], activities: Activities, platform: Platform | None
) -> list[roofline.Rating | roofline.Unrated]:
    floor = roofline.latency_floor(platform, activities) if platform is not None else 0
    return [roofline.rate(group, activities, platform, floor) for group in groups]


def device_ledgers_of(
    activities: Activities, groups: Sequence[OpGroup], steps: Steps, idle: causes.IdleCauses | None = None
) -> list[DeviceLedger]:
    """The time ledger of every device, with idle by cause where the causes are given."""
    codes = {name: code for code, name in enumerate(CATEGORIES)}
    category = np.full(activities.row.size, codes["generic"], dtype=np.int64)
    for group in groups:
        category[group.activities] = codes[group.category]
    timelines = []
    for device in device_spans(activities):
        mine = _of_device(activities.device, device)
        timelines.append(
            Timeline(
                device=device,
                start=activities.start[mine],
                end=activities.end[mine],
                work=activities.work[mine],
                category=category[mine],
                step=steps.of_activity[mine],
                carry_in=activities.link[mine] == int(Link.CARRY_IN),
                gaps=_gaps(idle, device) if idle is not None else None,
            )
        )
    window = int(steps.end.max() - steps.start.min()) if steps.annotated and steps.start.size else None
    return device_ledgers(timelines, CATEGORIES, steps.names, window, causes=causes.CAUSE_NAMES)


def device_spans(activities: Activities) -> dict[int, tuple[int, int]]:
    """First start and last end of every device that has activities, by device, which they are sorted by; ns."""
    firsts = np.flatnonzero(np.diff(activities.device, prepend=activities.device[:1] - 1))
    if not firsts.size:
        return {}
    starts, ends = np.minimum.reduceat(activities.start, firsts), np.maximum.reduceat(activities.end, firsts)
    spans = zip(starts.tolist(), ends.tolist(), strict=True)
    return dict(zip(activities.device[firsts].tolist(), spans, strict=True))


def _of_device(devices: NDArray[np.int64], device: int) -> slice:
    """The entries of one device, where they are sorted by device: a look at all of them for each takes too long."""
    low, high = np.searchsorted(devices, (device, device + 1)).tolist()
    return slice(low, high)


def _gaps(idle: causes.IdleCauses, device: int) -> GapCauses:
    mine = idle.of_device(device)
    return GapCauses(start=idle.start[mine], end=idle.end[mine], cause=idle.cause[mine])


def choose_platform(trace: Trace, options: AnalyzeOptions) -> PlatformChoice:
    """The platform asked for, else the one the device properties of the busiest device tell."""
    facts = device_facts(trace)
    platform, how = options.own_platform, "file"
    if platform is None and options.platform is not None:
        platform, how = platforms.load_platform(options.platform), "option"
    if platform is not None:
        return PlatformChoice(
            platform=platform, how=how, warning=platforms.mismatch(platform, facts) if facts else None
        )
    if facts is None:
        return PlatformChoice(platform=None, how="none", warning=None)
    detection = platforms.detect(facts)
    return PlatformChoice(platform=detection.platform, how=detection.how, warning=detection.warning)


def device_facts(trace: Trace) -> platforms.DeviceFacts | None:
    """Properties of the device with most GPU events; None where the trace lists no devices."""
    properties = device_properties(trace)
    if not properties:
        return None
    busy = trace.device[trace.of_kind(*GPU_KINDS)]
    busy = busy[busy >= 0]
    ids, counts = np.unique(busy, return_counts=True)
    device = int(ids[counts.argmax()]) if ids.size else 0
    chosen = properties.get(device) or properties[min(properties)]
    return platforms.DeviceFacts(
        name=str(chosen.get("name") or ""),
        compute_major=_int(chosen.get("computeMajor")),
        compute_minor=_int(chosen.get("computeMinor")),
        num_units=_int(chosen.get("numSms")),
        memory_bytes=_int(chosen.get("totalGlobalMem")),
    )


def device_properties(trace: Trace) -> dict[int, dict[str, Any]]:
    """Device properties of the header, by device id."""
    listed = trace.header.get("deviceProperties")
    if not isinstance(listed, list):
        return {}
    found: dict[int, dict[str, Any]] = {}
    for position, entry in enumerate(listed):
        if isinstance(entry, dict):
            identity = _int(entry.get("id"))
            found[position if identity is None else identity] = entry
    return found


def _int(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
