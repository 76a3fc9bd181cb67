"""Runs programs of host threads against GPU streams in virtual time.

The rules, all in integer nanoseconds:

* The thread with the smallest clock moves first, so streams receive work in the order of the launches.
* An activity starts at the latest of: its launch's begin plus launch latency; the end of its predecessor on
  the stream plus its gap; the end of the events its stream was told to wait for. It runs for its duration.
* A stream holds at most ``queue_depth`` launches that have not ended; a launch beyond that stands still
  until the oldest has ended.
* A blocking call ends when the work it waits for has ended, plus its tail; never before its own host time
  is over.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from evals.workshop.instructions import (
    Args,
    Await,
    Call,
    Enter,
    Executed,
    Exit,
    Instruction,
    Launch,
    RecordEvent,
    Signal,
    Span,
    StartBound,
    Synced,
    Synchronize,
    Thread,
    Timeline,
    WaitEvent,
    Work,
)

QUEUE_DEPTH = 1024
"""Launches a CUDA stream holds before a launch call blocks (observed; not documented by the vendor)."""
LONG_AGO = -(1 << 62)


class ProgramError(ValueError):
    """The programs cannot run to their end: a baton nobody signals, or spans that do not nest."""


@dataclass
class _Stream:
    end_ns: int = LONG_AGO
    event_floor_ns: int = LONG_AGO
    unfinished: deque[int] = field(default_factory=deque)


@dataclass(frozen=True)
class _Event:
    end_ns: int = LONG_AGO
    stream: int | None = None
    record: int | None = None


@dataclass
class _OpenSpan:
    index: int
    start_ns: int
    enter: Enter
    parent: int | None


@dataclass
class _Runner:
    thread: Thread
    now_ns: int
    position: int = 0
    held_since_ns: int | None = None
    spans: list[_OpenSpan] = field(default_factory=list)

    def instruction(self) -> Instruction | None:
        """The next instruction; None at the end of the program."""
        done = self.position >= len(self.thread.instructions)
        return None if done else self.thread.instructions[self.position]

    def owner(self) -> int | None:
        """The innermost open operator or annotation: what a profiler writes as the launch's External id."""
        kept = (span.index for span in reversed(self.spans) if span.enter.kind != "python_function")
        return next(kept, None)


class _Machine:
    """One run in progress."""

    def __init__(self, threads: tuple[Thread, ...], queue_depth: int, first_correlation: int) -> None:
        self.runners = [_Runner(thread, thread.start_ns) for thread in threads]
        self.queue_depth = queue_depth
        self.correlation = first_correlation
        self.streams: dict[int, _Stream] = {}
        self.events: dict[str, _Event] = {}
        self.batons: dict[str, int] = {}
        self.spans: dict[int, Span] = {}
        self.opened = 0
        self.calls: list[Call] = []
        self.activities: list[Executed] = []

    def run(self) -> Timeline:
        while (runner := self._next_runner()) is not None:
            instruction = runner.instruction()
            if instruction is not None:
                self._step(runner, instruction)
        for runner in self.runners:
            if runner.spans:
                raise ProgramError(f"thread `{runner.thread.name}` ends inside `{runner.spans[-1].enter.name}`")
        ends = [runner.now_ns for runner in self.runners] + [row.end_ns for row in self.activities]
        return Timeline(
            spans=tuple(self.spans[index] for index in sorted(self.spans)),
            calls=tuple(self.calls),
            activities=tuple(self.activities),
            end_ns=max(ends, default=0),
        )

    def _next_runner(self) -> _Runner | None:
        best: _Runner | None = None
        asleep: list[str] = []
        for runner in self.runners:
            instruction = runner.instruction()
            if instruction is None:
                continue
            if isinstance(instruction, Await) and instruction.baton not in self.batons:
                asleep.append(f"`{runner.thread.name}`")
            elif best is None or runner.now_ns < best.now_ns:
                best = runner
        if best is None and asleep:
            raise ProgramError(f"every thread awaits a baton that nobody signals: {', '.join(asleep)}")
        return best

    def _step(self, runner: _Runner, instruction: Instruction) -> None:
        if isinstance(instruction, Launch):
            if not self._launch(runner, instruction):
                return
        elif isinstance(instruction, (Enter, Exit)):
            self._span(runner, instruction)
        elif isinstance(instruction, (Synchronize, RecordEvent, WaitEvent)):
            self._synchronise(runner, instruction)
        else:
            self._host(runner, instruction)
        runner.position += 1

    def _host(self, runner: _Runner, instruction: Work | Signal | Await) -> None:
        if isinstance(instruction, Work):
            runner.now_ns += instruction.ns
        elif isinstance(instruction, Signal):
            self.batons[instruction.baton] = runner.now_ns
        else:
            signalled = self.batons[instruction.baton]
            if signalled > runner.now_ns:
                runner.now_ns = signalled + instruction.wake_ns

    def _span(self, runner: _Runner, instruction: Enter | Exit) -> None:
        if isinstance(instruction, Enter):
            parent = runner.spans[-1].index if runner.spans else None
            runner.spans.append(_OpenSpan(self.opened, runner.now_ns, instruction, parent))
            self.opened += 1
            return
        if not runner.spans:
            raise ProgramError(f"thread `{runner.thread.name}` closes a span that it never opened")
        span = runner.spans.pop()
        self.spans[span.index] = Span(
            index=span.index,
            parent=span.parent,
            tid=runner.thread.tid,
            kind=span.enter.kind,
            name=span.enter.name,
            start_ns=span.start_ns,
            end_ns=runner.now_ns,
            args=span.enter.args,
        )

    def _stream(self, number: int) -> _Stream:
        return self.streams.setdefault(number, _Stream())

    def _launch(self, runner: _Runner, launch: Launch) -> bool:
        """Puts the activities on the stream; False where the queue is full and the thread must wait first."""
        stream = self._stream(launch.stream)
        while stream.unfinished and stream.unfinished[0] <= runner.now_ns:
            stream.unfinished.popleft()
        begin = runner.now_ns if runner.held_since_ns is None else runner.held_since_ns
        if len(stream.unfinished) >= self.queue_depth:
            runner.held_since_ns = begin
            runner.now_ns = stream.unfinished[len(stream.unfinished) - self.queue_depth]
            return False
        runner.held_since_ns = None
        accepted = runner.now_ns
        self._execute(launch, stream, accepted, runner.owner())
        stream.unfinished.append(stream.end_ns)
        end = accepted + launch.host_ns
        if launch.is_blocking:
            end = max(end, stream.end_ns + launch.tail_ns)
        self._record(runner, launch.call, (begin, end), end - begin - launch.host_ns, launch.args)
        return True

    def _execute(self, launch: Launch, stream: _Stream, accepted: int, owner: int | None) -> None:
        launch_ready = accepted + launch.latency_ns
        for place, activity in enumerate(launch.activities):
            stream_ready = stream.end_ns + activity.gap_ns
            start = max(launch_ready, stream_ready, stream.event_floor_ns)
            self.activities.append(
                Executed(
                    correlation=self.correlation,
                    owner=owner,
                    kind=activity.kind,
                    name=activity.name,
                    stream=launch.stream,
                    start_ns=start,
                    end_ns=start + activity.duration_ns,
                    bound=_bound(start, place, (launch_ready, stream_ready)),
                    launch_ready_ns=launch_ready,
                    stream_ready_ns=stream_ready,
                    event_ready_ns=stream.event_floor_ns,
                    args=activity.args,
                    tag=activity.tag,
                )
            )
            stream.end_ns = start + activity.duration_ns

    def _synchronise(self, runner: _Runner, instruction: Synchronize | RecordEvent | WaitEvent) -> None:
        begin = runner.now_ns
        end = begin + instruction.host_ns
        synced: Synced | None = None
        if isinstance(instruction, RecordEvent):
            number = instruction.stream
            self.events[instruction.event] = _Event(self._stream(number).end_ns, number, self.correlation)
        else:
            event = self.events.get(instruction.event or "", _Event())
            synced = Synced(
                stream=instruction.stream, event=instruction.event, event_stream=event.stream, record=event.record
            )
            if isinstance(instruction, WaitEvent):
                stream = self._stream(instruction.stream)
                stream.event_floor_ns = max(stream.event_floor_ns, event.end_ns)
            else:
                waited_for = self._waited_for(instruction, event)
                if waited_for > begin:
                    end = max(end, waited_for + instruction.tail_ns)
        waited = end - begin - instruction.host_ns
        self._record(runner, instruction.call, (begin, end), waited, instruction.args, synced)

    def _waited_for(self, instruction: Synchronize, event: _Event) -> int:
        """When that ends for which a host thread waits."""
        if instruction.event is not None:
            return event.end_ns
        numbers = sorted(self.streams) if instruction.stream is None else [instruction.stream]
        return max((self._stream(number).end_ns for number in numbers), default=LONG_AGO)

    def _record(
        self,
        runner: _Runner,
        name: str,
        interval: tuple[int, int],
        waited: int,
        args: Args,
        synced: Synced | None = None,
    ) -> None:
        self.calls.append(
            Call(
                correlation=self.correlation,
                owner=runner.owner(),
                tid=runner.thread.tid,
                name=name,
                start_ns=interval[0],
                end_ns=interval[1],
                waited_ns=waited,
                args=args,
                synced=synced,
            )
        )
        self.correlation += 1
        runner.now_ns = interval[1]


def _bound(start: int, place: int, ready: tuple[int, int]) -> StartBound:
    launch_ready, stream_ready = ready
    if place > 0 and start == stream_ready:
        return "graph"
    if start == launch_ready:
        return "launch"
    return "stream" if start == stream_ready else "event"


def simulate(threads: tuple[Thread, ...], *, queue_depth: int = QUEUE_DEPTH, first_correlation: int = 1) -> Timeline:
    """The timeline of one process: its host threads and the streams of its GPU."""
    return _Machine(threads, queue_depth, first_correlation).run()
