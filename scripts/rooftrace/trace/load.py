"""Reads a trace file and brings its times in order: the one entrance to the layer."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING

import numpy as np

from rooftrace.errors import NotATrace
from rooftrace.trace import containers, fast, formats
from rooftrace.trace.columns import MISSING
from rooftrace.trace.events import GPU_KINDS, Kind, Trace
from rooftrace.units import NS_PER_S

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

# A clock that has run for a minute: events at or before zero beside it were never stamped.
_UNSTAMPED_BEFORE_NS = 60 * NS_PER_S
_RECORD_AGAIN = "Record again, while the workload runs, and let the profiler finish writing"
# A hundred days and a petabyte: beyond, a number is damage, and sums of it would leave 64 bits.
_LONGEST_NS = 100 * 86_400 * NS_PER_S
_MOST_BYTES = 10**15


@dataclass(frozen=True, slots=True, kw_only=True)
class FileFacts:
    """What is known of the file itself."""

    name: str
    sha256: str
    format: str
    truncated: str | None
    members: tuple[str, ...]
    member: str | None
    content_bytes: int


def load(path: Path, progress: Callable[[int], None] | None = None) -> tuple[Trace, FileFacts]:
    """A trace with all times in integer ns since its first event, and the facts of its file."""
    source = containers.open_source(path)
    other = formats.find(source)
    trace = settle_times(other.read(source, progress) if other else fast.read(source, progress))
    if not trace.kind.size:
        raise NotATrace(_nothing_intact(source, trace), hint=_RECORD_AGAIN)
    container = "+".join(source.container) or "plain"
    facts = FileFacts(
        name=path.name,
        sha256=source.sha256,
        format=f"{container}, {trace.layout}",
        truncated=source.truncated,
        members=tuple(source.members),
        member=source.member,
        content_bytes=source.content_bytes,
    )
    return trace, facts


def _nothing_intact(source: containers.Source, trace: Trace) -> str:
    name = source.path.name
    if trace.event_count == 0 and not trace.dropped.counts:
        return f"`{name}` holds no events"
    return f"`{name}` holds no intact event with a time ({trace.event_count} read, none usable)"


def settle_times(trace: Trace) -> Trace:
    """Drop events that were never stamped, mend durations, and count from the first event on."""
    trace = _without_unstamped(trace)
    _drop_flows_without_time(trace)
    if not trace.start.size:
        return trace
    _mend_durations(trace)
    base = int(trace.start.min())
    trace.start -= base
    trace.flows.ts -= base
    return replace(trace, base_ns=base)


def _without_unstamped(trace: Trace) -> Trace:
    absent = trace.start == MISSING
    stamped = trace.start[~absent & (trace.start > 0)]
    late_clock = stamped.size and int(stamped.min()) > _UNSTAMPED_BEFORE_NS
    unstamped = ~absent & (trace.start <= 0) if late_clock else np.zeros(absent.shape, dtype=bool)
    gpu = np.isin(trace.kind, GPU_KINDS)
    trace.dropped.add("event without a time", int(absent.sum()))
    trace.dropped.add("GPU event at time zero", int((unstamped & gpu).sum()))
    trace.dropped.add("host event at time zero", int((unstamped & ~gpu).sum()))
    gone = absent | unstamped
    return _select(trace, ~gone) if gone.any() else trace


def _drop_flows_without_time(trace: Trace) -> None:
    flows = trace.flows
    keep = flows.ts != MISSING
    trace.dropped.add("flow without a time", int((~keep).sum()))
    if not keep.all():
        trace.flows = replace(flows, **{f.name: getattr(flows, f.name)[keep] for f in fields(flows)})


def _select(trace: Trace, keep: NDArray[np.bool_]) -> Trace:
    columns = {
        f.name: getattr(trace, f.name)[keep] for f in fields(trace) if isinstance(getattr(trace, f.name), np.ndarray)
    }
    return replace(trace, **columns)


def _mend_durations(trace: Trace) -> None:
    """Unfinished host events reach to the window's end (the tree cuts them at their parent); others become empty."""
    dur = trace.dur
    absent, negative = dur == MISSING, (dur < 0) & (dur != MISSING)
    endless = dur > _LONGEST_NS
    unfinished = (dur == -1000) & (trace.kind <= int(Kind.DRIVER))
    dur[absent | negative | endless] = 0
    trace.nbytes = np.where(trace.nbytes > _MOST_BYTES, -1, trace.nbytes)
    end = int((trace.start + dur).max())
    dur[unfinished] = end - trace.start[unfinished]
    gpu = np.isin(trace.kind, GPU_KINDS)
    trace.repaired.add("event longer than a hundred days", int(endless.sum()))
    trace.repaired.add("event without a duration", int(absent.sum()))
    trace.repaired.add("unfinished host event", int(unfinished.sum()))
    trace.repaired.add("GPU event with a negative duration", int((negative & gpu).sum()))
    trace.repaired.add("host event with a negative duration", int((negative & ~gpu & ~unfinished).sum()))
