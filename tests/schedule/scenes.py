"""Small traces on their way to a schedule, and drawn ones of any shape. Times are µs, in results ns."""

from __future__ import annotations

from dataclasses import dataclass

from hypothesis import strategies as st

from rooftrace.calltree import Activities, CallTree, build_tree, collect_activities
from rooftrace.replay.run import Replay
from rooftrace.schedule import Schedule, Source, WaitKind, build_schedule
from rooftrace.trace import Trace
from tests.support.trace_builder import TraceBuilder

STREAM_SYNC = "cudaStreamSynchronize"
DEVICE_SYNC = "cudaDeviceSynchronize"
EVENT_SYNC = "cudaEventSynchronize"
RECORD = "cudaEventRecord"
STREAM_WAIT = "cudaStreamWaitEvent"
COPY = "cudaMemcpyAsync"


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A trace with its schedule."""

    trace: Trace
    tree: CallTree
    activities: Activities
    schedule: Schedule

    def kernel(self, name: str) -> int:
        """Index of the only activity of a name."""
        (found,) = [at for at, code in enumerate(self.activities.name.tolist()) if self.trace.names[code] == name]
        return found

    def named(self, index: int) -> str | None:
        """Name of an activity; None for -1."""
        return self.trace.names[self.activities.name[index]] if index >= 0 else None

    def names(self, indices) -> list[str | None]:
        return [self.named(index) for index in indices.tolist()]

    def dependencies(self) -> dict[str | None, tuple[str | None, str]]:
        """For each activity that waited for another queue's, that one and how it is known."""
        schedule = self.schedule
        return {
            self.named(at): (self.named(other), Source(source).name)
            for at, (other, source) in enumerate(
                zip(schedule.dependency.tolist(), schedule.dependency_source.tolist(), strict=True)
            )
            if other >= 0
        }

    def waits(self) -> list[tuple[str, str, str | None]]:
        """Every blocking call: its name, what it waits for, and the activity; in (thread, start) order."""
        waits = self.schedule.waits
        return [
            (self.trace.names[self.tree.name[node]], WaitKind(kind).name, self.named(activity))
            for node, kind, activity in zip(
                waits.node.tolist(), waits.kind.tolist(), waits.activity.tolist(), strict=True
            )
        ]

    def replay(self) -> Replay:
        return Replay(self.tree, self.activities, self.schedule)


def scene_of(builder: TraceBuilder) -> Scene:
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    return Scene(trace=trace, tree=tree, activities=activities, schedule=build_schedule(trace, tree, activities))


class Program(TraceBuilder):
    """A trace whose kernels are named with their launches: ``launched("a", ts=1, start=7, dur=5)``."""

    def launched(self, name, ts, start, dur, *, stream=7, device=0, tid=1, call="cudaLaunchKernel", lasts=1.0):
        correlation = self.launch(call, ts=ts, dur=lasts, tid=tid)
        self.kernel(name, ts=start, dur=dur, stream=stream, device=device, correlation=correlation)
        return correlation

    def copied(self, direction, ts, start, dur, *, lasts, stream=7, tid=1):
        correlation = self.launch(COPY, ts=ts, dur=lasts, tid=tid)
        self.memcpy(direction, ts=start, dur=dur, stream=stream, correlation=correlation)
        return correlation


_CALLS = (
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cudaLaunchKernel",
    "cudaGraphLaunch",
    COPY,
    STREAM_SYNC,
    DEVICE_SYNC,
    EVENT_SYNC,
    RECORD,
    STREAM_WAIT,
    "cudaFree",
)
_LAUNCHING = frozenset(("cudaLaunchKernel", "cudaGraphLaunch", COPY))
_SYNCS = {STREAM_SYNC: "Stream Sync", EVENT_SYNC: "Event Sync", STREAM_WAIT: "Stream Wait Event"}
_WITH_ROOM = st.integers(0, 60)


@st.composite
def any_run(draw: st.DrawFn, devices: int = 2) -> TraceBuilder:
    """Calls and activities at any times: clocks that disagree, overlaps, work and launches without the other."""
    builder = TraceBuilder()
    records: list[int] = []
    for _ in range(draw(st.integers(1, 14))):
        name = draw(st.sampled_from(_CALLS))
        ts, dur, tid = draw(st.integers(0, 300)), draw(_WITH_ROOM), draw(st.integers(1, 3))
        correlation = builder.launch(name, ts=ts, dur=dur, tid=tid)
        if name == RECORD:
            records.append(correlation)
        if name in _SYNCS and draw(st.booleans()):
            builder.sync(
                _SYNCS[name],
                ts=ts,
                stream=draw(st.sampled_from((7, 8, -1))),
                correlation=correlation,
                wait_stream=draw(st.sampled_from((7, 8))),
                wait_record=draw(st.sampled_from(records)) if records else None,
            )
        count = draw(st.integers(0, 3 if name == "cudaGraphLaunch" else 1)) if name in _LAUNCHING else 0
        for _ in range(count):
            start = max(0, ts + draw(st.integers(-5, 120)))
            place = {"stream": draw(st.sampled_from((7, 8, 9))), "device": draw(st.integers(0, devices - 1))}
            if name == COPY:
                way = draw(st.sampled_from(("HtoD", "DtoH", "DtoD")))
                builder.memcpy(way, start, draw(_WITH_ROOM), correlation=correlation, **place)
            else:
                kernel = draw(st.sampled_from(("a", "b", "ncclDevKernel_AllReduce_Sum_f32")))
                builder.kernel(kernel, start, draw(_WITH_ROOM), correlation=correlation, **place)
    for _ in range(draw(st.integers(0, 3))):
        stream, device = draw(st.sampled_from((7, 8))), draw(st.integers(0, devices - 1))
        builder.kernel("unlinked", draw(st.integers(0, 300)), draw(_WITH_ROOM), stream=stream, device=device)
    return builder
