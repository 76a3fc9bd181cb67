"""GPU activities: every kernel, copy and fill with its device, stream, launch and the way it was linked."""

from __future__ import annotations

import re
from enum import IntEnum
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from rooftrace.kernelnames import KernelInfo, describe
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import GPU_KINDS, Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree.tree import CallTree
    from rooftrace.trace import Flows, Trace


class Link(IntEnum):
    """How the launch of an activity was found, or why there is none."""

    CORRELATION = 0
    EXTERNAL_ID = 1
    FLOW = 2
    CARRY_IN = 3
    LOST = 4


class Work(IntEnum):
    """What an activity does for the ledger."""

    COMPUTE = 0
    COMMUNICATION = 1
    COPY = 2


LINK_NAMES = tuple(link.name.lower() for link in Link)
_WORK_OF_KIND = {
    "kernel": Work.COMPUTE,
    "communication": Work.COMMUNICATION,
    "copy": Work.COPY,
    "fill": Work.COMPUTE,
}
# The External id of kernels is no op id where it equals their own correlation nearly always (writers before 2024).
_SUSPECT_EXTERNAL_SHARE = 0.95
_GRAPH = "graphlaunch"
_NUMBERED_LANE = re.compile(r"(?:stream )?(\d{1,9})\b", re.IGNORECASE)


class Activities(Struct, kw_only=True):
    """One entry a GPU event, by (device, start, file order); ``end`` and ``dur`` count, ``raw_dur`` was recorded."""

    row: NDArray[np.int64]
    device: NDArray[np.int64]
    stream: NDArray[np.int64]
    name: NDArray[np.int32]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    dur: NDArray[np.int64]
    raw_dur: NDArray[np.int64]
    nbytes: NDArray[np.int64]
    work: NDArray[np.uint8]
    launch: NDArray[np.int64]
    link: NDArray[np.uint8]
    graph: NDArray[np.bool_]
    infos: dict[int, KernelInfo]
    apart: bool = False  # host and GPU have clocks of their own: a launch owns its work, their distance means nothing

    def clip(self, index: int, end: int) -> None:
        """Let an activity count only up to ``end``."""
        self.end[index] = end
        self.dur[index] = end - self.start[index]

    @property
    def linked(self) -> NDArray[np.bool_]:
        """Whether a launch (or at least the op) is known."""
        return self.link <= int(Link.FLOW)

    @property
    def comparable(self) -> Activities:
        """The activities with those launches whose times can be compared with theirs: none where clocks are apart."""
        return replace(self, launch=np.full_like(self.launch, -1)) if self.apart else self

    def select(self, keep: NDArray[np.bool_]) -> Activities:
        """The activities for which ``keep`` holds."""
        whole = ("infos", "apart")
        return Activities(
            **{name: getattr(self, name)[keep] for name in self.__struct_fields__ if name not in whole},
            infos=self.infos,
            apart=self.apart,
        )


def collect_activities(trace: Trace, tree: CallTree) -> Activities:
    """All GPU activities of a trace, classified by name and linked to their launches."""
    rows = trace.of_kind(*GPU_KINDS)
    device = _device_of(trace, rows)
    order = np.lexsort((rows, trace.start[rows], device))
    rows, device = rows[order], device[order]
    infos = {code: describe(trace.names[code]) for code in sorted_unique(trace.name[rows]).tolist()}
    activities = Activities(
        row=rows,
        device=device,
        stream=_stream_of(trace, rows),
        name=trace.name[rows],
        start=trace.start[rows],
        end=trace.end_of(rows),
        dur=trace.dur[rows].copy(),
        raw_dur=trace.dur[rows],
        nbytes=trace.nbytes[rows].astype(np.int64),
        work=_work_of(trace, rows, infos),
        launch=np.full(rows.size, -1, dtype=np.int64),
        link=np.full(rows.size, int(Link.LOST), dtype=np.uint8),
        graph=np.zeros(rows.size, dtype=bool),
        infos=infos,
        apart=trace.clocks_apart_ns != 0,
    )
    _link_by_correlation(activities, trace, tree)
    _link_by_external_id(activities, trace, tree)
    _link_by_flow(activities, trace, tree)
    _mark_carry_in(activities, trace, tree)
    _mark_graph_replay(activities, trace, tree)
    return activities


def _device_of(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Device id; writers that record none use the process id of the lane."""
    device: NDArray[np.int64] = trace.device[rows].astype(np.int64)
    absent = np.flatnonzero(device < 0)
    for at in absent.tolist():
        pid = trace.lanes[trace.lane[rows[at]]][0]
        device[at] = pid if isinstance(pid, int) and 0 <= pid < 4096 else 0
    return device


def _stream_of(trace: Trace, rows: NDArray[np.int64]) -> NDArray[np.int64]:
    """Stream id; writers that record none give each queue a lane of its own, mostly under the stream's number.

    A lane without a number becomes a negative stream, which no recorded one is.
    """
    stream: NDArray[np.int64] = trace.stream[rows].astype(np.int64)
    absent = stream < 0
    lanes = trace.lane[rows[absent]]
    number = {lane: _stream_of_lane(trace.lanes[lane][1], -2 - lane) for lane in sorted_unique(lanes).tolist()}
    stream[absent] = [number[lane] for lane in lanes.tolist()]
    return stream


def _stream_of_lane(tid: int | str, other: int) -> int:
    """The number in ``7`` or ``stream 7``, else `other`."""
    match = _NUMBERED_LANE.match(str(tid))
    return int(match.group(1)) if match else other


def _work_of(trace: Trace, rows: NDArray[np.int64], infos: dict[int, KernelInfo]) -> NDArray[np.uint8]:
    lookup: NDArray[np.uint8] = np.zeros(len(trace.names), dtype=np.uint8)
    for code, info in infos.items():
        lookup[code] = int(_WORK_OF_KIND[info.kind])
    work: NDArray[np.uint8] = lookup[trace.name[rows]]
    kind = trace.kind[rows]
    work[kind == int(Kind.MEMCPY)] = int(Work.COPY)
    work[kind == int(Kind.MEMSET)] = int(Work.COMPUTE)
    return work


def _link_by_correlation(activities: Activities, trace: Trace, tree: CallTree) -> None:
    """The runtime or driver call with the same correlation; 0 and -1 are no ids."""
    calls = np.flatnonzero((tree.kind == int(Kind.RUNTIME)) | (tree.kind == int(Kind.DRIVER)))
    keys = trace.correlation[tree.row[calls]]
    calls, keys = calls[keys > 0], keys[keys > 0]
    order = np.lexsort((tree.start[calls], keys))  # of several calls with one id, the outermost launched it
    wanted = trace.correlation[activities.row]
    found = _lookup(keys[order], calls[order], wanted)
    _accept(activities, np.where(wanted > 0, found, -1), Link.CORRELATION)


def _link_by_external_id(activities: Activities, trace: Trace, tree: CallTree) -> None:
    external, own = trace.external_id[activities.row], trace.correlation[activities.row]
    both = (external > 0) & (own > 0)
    if both.any() and (external[both] == own[both]).mean() >= _SUSPECT_EXTERNAL_SHARE:
        return
    ops = np.flatnonzero(tree.kind == int(Kind.CPU_OP))
    keys = trace.external_id[tree.row[ops]]
    ops, keys = ops[keys > 0], keys[keys > 0]
    order = np.lexsort((-tree.depth[ops], keys))
    found = np.where(external > 0, _lookup(keys[order], ops[order], external), -1)
    known = np.flatnonzero(found >= 0)
    early = tree.start[found[known]] > activities.start[known]  # an op cannot follow its own kernel
    found[known[early]] = -1
    _accept(activities, found, Link.EXTERNAL_ID)


def _link_by_flow(activities: Activities, trace: Trace, tree: CallTree) -> None:
    """The host event at which a launch flow starts that ends at the activity's own lane and time."""
    missing = np.flatnonzero(~activities.linked)
    flows = trace.flows
    if not missing.size or not flows.id.size:
        return
    launch = ~flows.is_fwdbwd
    starts = _flow_points(flows, launch & flows.is_start)
    ends = _flow_points(flows, launch & ~flows.is_start)
    id_at_end = {(lane, ts): flow for flow, lane, ts in ends}
    start_of_id = {flow: (lane, ts) for flow, lane, ts in reversed(starts)}
    places = zip(tree.lane.tolist(), tree.start.tolist(), strict=True)
    node_at = {place: node for node, place in enumerate(places)}  # the innermost of those that start together
    found = np.full(activities.row.size, -1, dtype=np.int64)
    lanes, times = trace.lane[activities.row], activities.start
    for at in missing.tolist():
        flow = id_at_end.get((int(lanes[at]), int(times[at])))
        found[at] = node_at.get(start_of_id.get(flow, (-1, -1)), -1) if flow is not None else -1
    _accept(activities, found, Link.FLOW)


def _flow_points(flows: Flows, which: NDArray[np.bool_]) -> list[tuple[int, int, int]]:
    return list(zip(flows.id[which].tolist(), flows.lane[which].tolist(), flows.ts[which].tolist(), strict=True))


def _lookup(keys: NDArray[np.int64], values: NDArray[np.int64], wanted: NDArray[np.int64]) -> NDArray[np.int64]:
    """``values`` at the first place where sorted ``keys`` equals ``wanted``, -1 where it does not occur."""
    if not keys.size:
        return np.full(wanted.size, -1, dtype=np.int64)
    at = np.searchsorted(keys, wanted)
    inside = np.minimum(at, keys.size - 1)
    return np.where(keys[inside] == wanted, values[inside], -1)


def _accept(activities: Activities, found: NDArray[np.int64], link: Link) -> None:
    new = (found >= 0) & ~activities.linked
    activities.launch[new] = found[new]
    activities.link[new] = int(link)


def _mark_carry_in(activities: Activities, trace: Trace, tree: CallTree) -> None:
    """Activities without a launch that precede their stream's first linked one were launched before the window."""
    calls = (tree.kind == int(Kind.RUNTIME)) | (tree.kind == int(Kind.DRIVER))
    launched = calls & (trace.correlation[tree.row] > 0)
    first_launch = int(tree.start[launched].min()) if launched.any() else None
    order = np.lexsort((activities.start, activities.stream, activities.device))
    stream, device = activities.stream[order], activities.device[order]
    cuts = np.flatnonzero((np.diff(stream) != 0) | (np.diff(device) != 0)) + 1
    bounds, is_linked = np.concatenate([[0], cuts, [order.size]]), activities.linked
    lacking = np.searchsorted(bounds, np.flatnonzero(~is_linked[order]), side="right") - 1
    for at in sorted_unique(lacking).tolist():
        members = order[bounds[at] : bounds[at + 1]]
        unlinked, linked = members[~is_linked[members]], members[is_linked[members]]
        if linked.size:
            early = unlinked[activities.start[unlinked] < activities.start[linked[0]]]
        else:
            before = first_launch is not None and int(activities.start[unlinked[0]]) < first_launch
            early = unlinked if before else unlinked[:0]
        activities.link[early] = int(Link.CARRY_IN)


def _mark_graph_replay(activities: Activities, trace: Trace, tree: CallTree) -> None:
    """Kernels of a graph launch: the call says so, or it owns several kernels."""
    linked = np.flatnonzero(activities.link == int(Link.CORRELATION))
    if not linked.size:
        return
    launches = activities.launch[linked]
    names = {code: _GRAPH in trace.names[code].lower() for code in sorted_unique(tree.name[launches]).tolist()}
    by_name = np.array([names[code] for code in tree.name[launches].tolist()], dtype=bool)
    kernels = linked[activities.work[linked] == int(Work.COMPUTE)]
    counts = np.bincount(activities.launch[kernels], minlength=tree.row.size)
    activities.graph[linked] = by_name | (counts[launches] > 1)
