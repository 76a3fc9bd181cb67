"""What host threads do and what a simulation records: plain frozen records, integer nanoseconds.

A *program* is a list of instructions a thread. Instructions carry every number a run needs (durations, launch
latencies), so that the simulator draws nothing at random and two programs that differ in one place differ in
nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

Json: TypeAlias = "bool | int | float | str | Sequence[Json] | Mapping[str, Json] | None"
Args = Mapping[str, Json]
SpanKind = Literal["cpu_op", "python_function", "user_annotation"]
ActivityKind = Literal["kernel", "gpu_memcpy", "gpu_memset"]
StartBound = Literal["launch", "stream", "event", "graph"]


@dataclass(frozen=True, kw_only=True)
class Enter:
    """Opens a span on the thread: an operator, a Python frame or an annotation."""

    kind: SpanKind
    name: str
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Exit:
    """Closes the innermost span of the thread."""


@dataclass(frozen=True, kw_only=True)
class Work:
    """Host work without a call that a profiler records."""

    ns: int


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One thing a stream executes; ``gap_ns`` is the least time after its predecessor on the stream.

    No trace shows ``tag``, what it is there for, and ``floor_ns``, the least time of its work (-1: not known).
    """

    kind: ActivityKind
    name: str
    duration_ns: int
    gap_ns: int = 0
    args: Args = field(default_factory=dict)
    tag: str = ""
    floor_ns: int = -1


@dataclass(frozen=True, kw_only=True)
class Launch:
    """A host call that puts activities on a stream: a kernel, a copy, a memset or a whole graph.

    The first activity starts at the earliest ``latency_ns`` after the call began; those after it follow on
    the stream. A blocking launch returns ``tail_ns`` after its last activity ended (synchronous and
    pageable copies).
    """

    call: str
    host_ns: int
    stream: int
    activities: tuple[Activity, ...]
    latency_ns: int
    tail_ns: int = 0
    is_blocking: bool = False
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Synchronize:
    """Waits until all work put on ``stream`` so far has ended (None: every stream), then for ``tail_ns``.

    With ``event`` it waits for what that event marks instead, and ``stream`` says nothing. A call that frees
    memory is one of these without a stream: it drains the device.
    """

    call: str
    host_ns: int
    tail_ns: int
    stream: int | None = None
    event: str | None = None
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RecordEvent:
    """Marks the work put on ``stream`` so far as ``event``."""

    event: str
    stream: int
    host_ns: int
    call: str = "event_record"
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WaitEvent:
    """Makes later work of ``stream`` start no earlier than the end of what ``event`` marks."""

    event: str
    stream: int
    host_ns: int
    call: str = "stream_wait"
    args: Args = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Signal:
    """Hands over to whoever awaits ``baton`` (loss.backward() waking the autograd thread)."""

    baton: str


@dataclass(frozen=True, kw_only=True)
class Await:
    """Sleeps until ``baton`` was signalled, then for ``wake_ns`` more if it had to sleep."""

    baton: str
    wake_ns: int = 0


Instruction: TypeAlias = "Enter | Exit | Work | Launch | Synchronize | RecordEvent | WaitEvent | Signal | Await"


@dataclass(frozen=True, kw_only=True)
class Thread:
    """A host thread: its id as the trace shows it, its name, when it begins, and what it does."""

    tid: int
    name: str
    instructions: tuple[Instruction, ...]
    start_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Span:
    """A span as recorded; ``index`` is its place in opening order over all threads."""

    index: int
    parent: int | None
    tid: int
    kind: SpanKind
    name: str
    start_ns: int
    end_ns: int
    args: Args


@dataclass(frozen=True, kw_only=True)
class Synced:
    """What a synchronising call was about: its stream, or an event and where that was recorded.

    ``stream`` is the one waited for (for a stream's wait the one that waits), None for all. ``record`` is the
    correlation of the call that recorded ``event``, None where none did.
    """

    stream: int | None
    event: str | None = None
    event_stream: int | None = None
    record: int | None = None


@dataclass(frozen=True, kw_only=True)
class Call:
    """A runtime call as recorded; ``owner`` is its enclosing span, ``waited_ns`` what it stood still for."""

    correlation: int
    owner: int | None
    tid: int
    name: str
    start_ns: int
    end_ns: int
    waited_ns: int
    args: Args
    synced: Synced | None = None


@dataclass(frozen=True, kw_only=True)
class Executed:
    """A GPU activity as executed, with the truth about its start.

    ``bound`` names what it waited for last: its launch, its stream, an event of another stream, or (inside a
    graph) the node before it. Where two are equal the first of launch, stream, event is named.
    """

    correlation: int
    owner: int | None
    kind: ActivityKind
    name: str
    stream: int
    start_ns: int
    end_ns: int
    bound: StartBound
    launch_ready_ns: int
    stream_ready_ns: int
    event_ready_ns: int
    args: Args
    tag: str = ""


@dataclass(frozen=True, kw_only=True)
class Timeline:
    """Everything one run did: spans in opening order, calls and activities in order of correlation."""

    spans: tuple[Span, ...]
    calls: tuple[Call, ...]
    activities: tuple[Executed, ...]
    end_ns: int
