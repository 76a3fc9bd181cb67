"""The pieces that the battery's programs are put together from; all of fixed size, in nanoseconds."""

from __future__ import annotations

from collections.abc import Sequence

from evals.workshop.flows import ENGINE_PREFIX
from evals.workshop.instructions import (
    Activity,
    ActivityKind,
    Args,
    Enter,
    Exit,
    Instruction,
    Launch,
    RecordEvent,
    SpanKind,
    Synchronize,
    Thread,
    WaitEvent,
    Work,
)

CALL, LATENCY, MARGIN = 5_000, 6_000, 1_000
"""Host time of a launch call, launch latency, and an operator's own time on each side of its call."""
EVENT_CALL, SYNC_CALL, TAIL = 2_000, 2_000, 4_000
"""Host time of a record or wait, of a synchronisation, and from the end of awaited work to the return."""
MAIN, COMMUNICATION, SIDE = 7, 20, 13
"""Streams."""
LOADER = "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__"
ALL_REDUCE = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Program = list[Instruction]


def main_thread(*parts: Program) -> tuple[Thread, ...]:
    """The only thread of a run."""
    body = tuple(instruction for part in parts for instruction in part)
    return (Thread(tid=4242, name="python3", instructions=body),)


def inside(name: str, body: Sequence[Instruction], kind: SpanKind = "cpu_op", margin: int = MARGIN) -> Program:
    """A span round some instructions, with host time of its own before and after them."""
    return [Enter(kind=kind, name=name), Work(ns=margin), *body, Work(ns=margin), Exit()]


def numbered(number: int, body: Program) -> Program:
    """A forward operator that recorded the backward node of this number."""
    args: Args = {"Sequence number": number, "Fwd thread id": 0}
    return [Enter(kind="cpu_op", name="aten::mm", args=args), *body[1:]]


def node(number: int, body: Program) -> Program:
    """A backward node on the autograd thread: the engine's span, 1,000 longer on either side, and the node's."""
    args: Args = {"Sequence number": number, "Fwd thread id": 1}
    inner = [Enter(kind="cpu_op", name="MmBackward0", args=args), *body, Exit()]
    outer = Enter(kind="cpu_op", name=f"{ENGINE_PREFIX}MmBackward0", args=args)
    return [outer, Work(ns=MARGIN), *inner, Work(ns=MARGIN), Exit()]


def activity(name: str, duration: int, gap: int = 0, kind: ActivityKind = "kernel") -> Activity:
    """A kernel, or another activity of a stream."""
    return Activity(kind=kind, name=name, duration_ns=duration, gap_ns=gap)


def launch(name: str, duration: int, *, stream: int = MAIN, gap: int = 0) -> Program:
    """A call that launches one kernel."""
    row = activity(name, duration, gap)
    return [Launch(call="launch", host_ns=CALL, stream=stream, activities=(row,), latency_ns=LATENCY)]


def op(name: str, duration: int, *, stream: int = MAIN, gap: int = 0) -> Program:
    """An operator that launches one kernel: 7,000 of host time."""
    return inside("aten::mm", launch(name, duration, stream=stream, gap=gap))


def record(event: str, stream: int) -> Program:
    """Marks the work of a stream so far."""
    return [RecordEvent(event=event, stream=stream, host_ns=EVENT_CALL)]


def wait(event: str, stream: int) -> Program:
    """Lets later work of a stream wait."""
    return [WaitEvent(event=event, stream=stream, host_ns=EVENT_CALL)]


def item() -> Program:
    """``aten::item`` that waits for the main stream."""
    sync = Synchronize(call="stream_sync", host_ns=SYNC_CALL, tail_ns=TAIL, stream=MAIN)
    return inside("aten::item", [sync])
