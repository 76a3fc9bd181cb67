"""Reads a trace file and brings its times in order: the one entrance to the layer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.errors import NotATrace
from rooftrace.trace import clocks, containers, fast, formats, unpadded
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
# A petabyte: beyond, a number is damage.
_MOST_BYTES = 10**15
# Sums over all events have to stay within 64 bits, with as much again for what is added to them.
_LARGEST_SUM = 1 << 62


class FileFacts(Struct, frozen=True, kw_only=True):
    """What is known of the file itself."""

    name: str
    sha256: str
    format: str
    truncated: str | None
    members: tuple[str, ...]
    member: str | None
    content_bytes: int
    unclear_fractions: int = 0  # times whose fraction may lack its zeros


def load(
    path: Path, progress: Callable[[int], None] | None = None, *, max_bytes: int | None = None
) -> tuple[Trace, FileFacts]:
    """A trace with all times in integer ns since its first event, and the facts of its file.

    `max_bytes`: the most that is unpacked; unless given, as much as a trace in a file of this size may hold.
    """
    source = containers.open_source(path, max_bytes)
    trace, unclear = _read(source, progress)
    trace = settle_times(trace)
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
        unclear_fractions=unclear,
    )
    return trace, facts


def _read(source: containers.Source, progress: Callable[[int], None] | None) -> tuple[Trace, int]:
    """The columns, and how many times have fractions of which it is not known whether zeros are missing."""
    other = formats.find(source)
    if other is not None:
        return other.read(source, progress), 0
    trace = fast.read(source, progress)
    if not unpadded.may_lack_zeros(trace.header):
        return trace, 0
    found = unpadded.look_at(containers.open_source(source.path, source.max_bytes))
    if not found.lack_zeros:
        return trace, found.short
    source.rewind()
    trace = fast.read_adding_zeros(source, progress)
    if found.first is not None:
        trace.repaired.first_offset[unpadded.REASON] = found.first
    return trace, 0


def _nothing_intact(source: containers.Source, trace: Trace) -> str:
    name = source.path.name
    if trace.event_count == 0 and not trace.dropped.counts:
        return f"`{name}` holds no events"
    return f"`{name}` holds no intact event with a time ({trace.event_count} read, none usable)"


def settle_times(trace: Trace) -> Trace:
    """Drop events that were never stamped, mend durations, and count from the first event on."""
    trace = _without_copies(_without_strays(_without_unstamped(trace)))
    _drop_flows_without_time(trace)
    if not trace.start.size:
        return trace
    trace = clocks.bring_together(trace)
    _mend_durations(trace)
    base = int(trace.start.min())
    trace.start -= base
    trace.flows.ts -= base
    return replace(trace, base_ns=base)


def _without_strays(trace: Trace) -> Trace:
    gone = clocks.strays(trace)
    if gone is None:
        return trace
    trace.dropped.add("event a day or more from all others", int(gone.sum()))
    return _select(trace, ~gone)


def _without_copies(trace: Trace) -> Trace:
    """Without GPU events that are written twice: a launch does not run one kernel two times at once."""
    rows = trace.of_kind(*GPU_KINDS)
    rows = rows[(trace.dur[rows] > 0) & (trace.correlation[rows] > 0)]
    rows = rows[np.lexsort((trace.start[rows], trace.correlation[rows]))]
    alike = (np.diff(trace.correlation[rows].astype(np.int64)) == 0) & (np.diff(trace.start[rows]) == 0)
    if not alike.any():  # in nearly every trace
        return trace
    rows = np.sort(rows[np.append(alike, False) | np.append(False, alike)])
    columns = [
        column[rows] for column in (trace.start, trace.dur, trace.lane, trace.name, trace.correlation, trace.kind)
    ]
    order = np.lexsort(columns)
    again = np.ones(max(rows.size - 1, 0), dtype=bool)
    for column in columns:
        again &= np.diff(column[order].astype(np.int64)) == 0
    if not again.any():
        return trace
    keep = np.ones(trace.kind.size, dtype=bool)
    keep[rows[order[1:][again]]] = False
    trace.dropped.add("GPU event written twice", int(again.sum()))
    return _select(trace, keep)


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
        trace.flows = replace(flows, **{name: getattr(flows, name)[keep] for name in flows.__struct_fields__})


def _select(trace: Trace, keep: NDArray[np.bool_]) -> Trace:
    given = ((name, getattr(trace, name)) for name in trace.__struct_fields__)
    columns: dict[str, Any] = {name: _rows_of(column, keep) for name, column in given if isinstance(column, np.ndarray)}
    return replace(trace, **columns)


def _rows_of(column: NDArray[Any], keep: NDArray[np.bool_]) -> NDArray[Any]:
    """The rows that are kept; a column of one value for all takes no memory and stays one."""
    return column[keep] if column.strides[0] else np.broadcast_to(column[:1], int(keep.sum()))


def _mend_durations(trace: Trace) -> None:
    """Unfinished host events reach to the window's end (the tree cuts them at their parent); others become empty."""
    dur = trace.dur
    absent, negative = dur == MISSING, (dur < 0) & (dur != MISSING)
    unfinished = (dur == -1000) & (trace.kind <= int(Kind.DRIVER))
    dur[absent | negative] = 0
    end = int((trace.start + np.where(dur > clocks.LONGEST_NS, 0, dur)).max())
    dur[unfinished] = np.minimum(end - trace.start[unfinished], clocks.LONGEST_NS)
    endless = _beyond(dur, clocks.LONGEST_NS)
    dur[endless] = 0
    too_many = _beyond(trace.nbytes, _MOST_BYTES)
    if too_many.any():
        trace.nbytes = np.where(too_many, -1, trace.nbytes)
    gpu = np.isin(trace.kind, GPU_KINDS)
    trace.repaired.add("event of impossible length", int(endless.sum()))
    trace.repaired.add("event without a duration", int(absent.sum()))
    trace.repaired.add("unfinished host event", int(unfinished.sum()))
    trace.repaired.add("GPU event with a negative duration", int((negative & gpu).sum()))
    trace.repaired.add("host event with a negative duration", int((negative & ~gpu & ~unfinished).sum()))


def _beyond(values: NDArray[np.int64], most: int) -> NDArray[np.bool_]:
    """Values over the limit; over the mean that a sum allows, if the sum of the others is more than it may be."""
    beyond: NDArray[np.bool_] = values > most
    if float(np.where(beyond, 0, values).sum(dtype=np.float64)) > _LARGEST_SUM:
        beyond = values > _LARGEST_SUM // values.size
    return beyond
