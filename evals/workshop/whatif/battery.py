"""One small program a mechanism, with spans worked out by hand.

Every operator is 1,000 ns of host time, a launch call of 5,000 ns and 1,000 ns more: 7,000 ns (*op*). A kernel
can start 6,000 ns after its call began. So the first kernel of a thread that begins with an operator can start
at 7,000 = 1,000 + 6,000. Kernels that are queued follow each other without a gap unless a program says so. All
times are nanoseconds.
"""

from __future__ import annotations

from evals.workshop.instructions import Await, Enter, Exit, Launch, Signal, Synchronize, Thread, Work
from evals.workshop.whatif.cases import Case
from evals.workshop.whatif.changes import (
    Both,
    DropSpans,
    FreeCollectives,
    FreeCopies,
    RemoveWaits,
    ScaleHost,
    ScaleKernels,
)
from evals.workshop.whatif.pieces import (
    ALL_REDUCE,
    CALL,
    COMMUNICATION,
    LATENCY,
    LOADER,
    MAIN,
    SIDE,
    SYNC_CALL,
    TAIL,
    Program,
    activity,
    inside,
    item,
    launch,
    main_thread,
    node,
    numbered,
    op,
    record,
    wait,
)


def battery() -> tuple[Case, ...]:
    """Every case, in the order of the mechanisms."""
    parts = (
        _host_bound(),
        _gpu_bound(),
        _two_streams(),
        _sync_per_step(),
        _event_sync(),
        _drain(),
        _full_queue(),
        _graph(),
        _all_reduce(),
        _blocking_copy(),
        _hand_over(),
        _data_loader(),
    )
    return tuple(case for part in parts for case in part)


def _host_bound() -> tuple[Case, ...]:
    """Ten kernels of 2,000; an operator and 3,000 of Python: one launch every 10,000."""
    threads = main_thread(*([*op("copy_kernel", 2_000), Work(ns=3_000)] for _ in range(10)))
    before = 9 * 10_000 + 2_000
    return (
        Case(
            name="host-bound, host halved",
            threads=threads,
            change=ScaleHost(factor=0.5),
            before_ns=before,  # nine periods, then the last kernel: 92,000
            after_ns=9 * 5_000 + 2_000,  # every launch after half the time; 2,000 < 5,000, so still host-bound
        ),
        Case(
            name="host-bound, kernels halved",
            threads=threads,
            change=ScaleKernels(name="copy_kernel", factor=0.5),
            before_ns=before,
            after_ns=9 * 10_000 + 1_000,  # only the last kernel counts
        ),
    )


def _gpu_bound() -> tuple[Case, ...]:
    """Ten kernels of 50,000 with gaps of 1,000; one launch every 7,000."""
    threads = main_thread(*(op("big_kernel", 50_000, gap=1_000) for _ in range(10)))
    before = 10 * 50_000 + 9 * 1_000
    return (
        Case(
            name="GPU-bound, kernels halved",
            threads=threads,
            change=ScaleKernels(name="big_kernel", factor=0.5),
            before_ns=before,  # 509,000
            after_ns=10 * 25_000 + 9 * 1_000,  # 25,000 > 7,000: still GPU-bound
        ),
        Case(
            name="GPU-bound, host halved",
            threads=threads,
            change=ScaleHost(factor=0.5),
            before_ns=before,
            after_ns=before,  # the GPU never waited for the host
        ),
    )


def _two_streams() -> tuple[Case, ...]:
    """Three rounds on stream 7 and 13: A 40, then B 30 on 13 beside D 25 on 7, then C 20 after both.

    One round on the host: four operators and four event calls, 4 * 7,000 + 4 * 2,000 = 36,000 < 85,000.
    """
    rounds: list[Program] = []
    for number in range(3):
        rounds += [
            op("A_kernel", 40_000),
            record(f"A{number}", MAIN),
            wait(f"A{number}", SIDE),
            op("B_kernel", 30_000, stream=SIDE),
            record(f"B{number}", SIDE),
            op("D_kernel", 25_000),
            wait(f"B{number}", MAIN),
            op("C_kernel", 20_000),
        ]
    case = Case(
        name="two streams, B halved",
        threads=main_thread(*rounds),
        change=ScaleKernels(name="B_kernel", factor=0.5),
        before_ns=3 * (40_000 + 30_000 + 20_000),  # B is the longer branch: 270,000
        after_ns=3 * (40_000 + 25_000 + 20_000),  # B takes 15,000, so D is: 255,000
    )
    return (case,)


def _sync_per_step() -> tuple[Case, ...]:
    """Four steps of three kernels of 30,000 and an ``aten::item`` that waits for them.

    A step begins at t. Kernels run from t + 7,000 to t + 97,000; the synchronisation (entered at t + 21,000)
    returns 4,000 later, the operator ends 1,000 after that: the next step begins at t + 102,000.
    """
    step = [instruction for _ in range(3) for instruction in op("mm_kernel", 30_000)] + item()
    threads = main_thread(*(step for _ in range(4)))
    before = 3 * 102_000 + 90_000
    return (
        Case(
            name="sync per step, kernels halved",
            threads=threads,
            change=ScaleKernels(name="mm_kernel", factor=0.5),
            before_ns=before,  # 396,000
            after_ns=3 * (7_000 + 45_000 + 4_000 + 1_000) + 45_000,  # 216,000
        ),
        Case(
            name="sync per step, no wait",
            threads=threads,
            change=RemoveWaits(op="aten::item"),
            before_ns=before,
            # A step takes the host 3 * 7,000 + 1,000 + 2,000 + 1,000 = 25,000 < 90,000: kernels back to back.
            after_ns=12 * 30_000,
        ),
    )


def _event_sync() -> tuple[Case, ...]:
    """Twice: A 50, record, B 5, then the host waits for the event after A, not for B. Last C 10.

    First round: A 7..57, B 57..62; the wait returns at 57 + 4 = 61, its operator at 62. Second: call of A at
    63, A 69..119, B 119..124; back at 123, operator ends at 124. Call of C at 125, C 131..141.
    """
    parts: list[Program] = []
    for number in range(2):
        sync = Synchronize(call="event_sync", host_ns=SYNC_CALL, tail_ns=TAIL, event=f"A{number}")
        parts += [op("A_kernel", 50_000), record(f"A{number}", MAIN), op("B_kernel", 5_000)]
        parts += [inside("aten::wait_event", [sync])]
    case = Case(
        name="event sync, A halved",
        threads=main_thread(*parts, op("C_kernel", 10_000)),
        change=ScaleKernels(name="A_kernel", factor=0.5),
        before_ns=141_000 - 7_000,
        # A 7..32, B 32..37, back at 36, 37; call 38, A 44..69, B 69..74, back at 73, 74; call 75, C 81..91
        after_ns=91_000 - 7_000,
    )
    return (case,)


def _drain() -> tuple[Case, ...]:
    """A 20 on stream 7, B 70 on stream 13, a ``cudaFree`` that drains both, C 10.

    A 7..27; call of B at 8, B 14..84; the call frees from 14 on and returns at 84 + 4 = 88; call of C at 89,
    C 95..105.
    """
    free = Synchronize(call="free", host_ns=3_000, tail_ns=TAIL)
    case = Case(
        name="memory freed, B halved",
        threads=main_thread(
            op("A_kernel", 20_000), op("B_kernel", 70_000, stream=SIDE), [free], op("C_kernel", 10_000)
        ),
        change=ScaleKernels(name="B_kernel", factor=0.5),
        before_ns=105_000 - 7_000,
        after_ns=70_000 - 7_000,  # B 14..49; returns at 53; call of C at 54, C 60..70
    )
    return (case,)


def _full_queue() -> tuple[Case, ...]:
    """One kernel of 10 ms, 1,033 of 40,000, then 50 ms of Python and a last kernel of 3,000.

    Launch i begins at 7,000 * (i - 1) + 1,000 as long as nothing stands still. The first kernel ends at
    10,007,000, kernel j at 10,007,000 + (j - 1) * 40,000. Launch 1,025 (begun at 7,169,000) finds 1,024 kernels
    that are not done: it is taken as the first one ends, launch 1,026 as the second one does, launch 1,034 at
    10,007,000 + 9 * 40,000 = 10,367,000; its operator ends 6,000 later.
    """
    queued = [instruction for _ in range(1_033) for instruction in op("queued_kernel", 40_000)]
    case = Case(
        name="full queue, first kernel halved",
        threads=main_thread(op("long_kernel", 10_000_000), queued, [Work(ns=50_000_000)], op("last_kernel", 3_000)),
        change=ScaleKernels(name="long_kernel", factor=0.5),
        # Python is done at 60,373,000 (the queue at 10,007,000 + 1,033 * 40,000 = 51,327,000); call at
        # 60,374,000, kernel 60,380,000..60,383,000.
        before_ns=60_383_000 - 7_000,
        # The long one ends at 5,007,000, so nothing stands still: 1,034 operators end at 7,238,000, Python at
        # 57,238,000 (the queue at 46,327,000); call at 57,239,000, kernel 57,245,000..57,248,000.
        after_ns=57_248_000 - 7_000,
    )
    return (case,)


def _graph() -> tuple[Case, ...]:
    """Two launches of a graph of four kernels (20, 30, 10, 40; gaps of 1,000), 200,000 of Python after each.

    A launch is 1,000 + 8,000 + 1,000 of host time. One graph runs 100,000 + 3 * 1,000 = 103,000.
    """
    nodes = (("A", 20_000), ("B", 30_000), ("C", 10_000), ("D", 40_000))
    activities = tuple(activity(f"{name}_kernel", duration, gap=1_000) for name, duration in nodes)
    replay = Launch(call="graph_launch", host_ns=8_000, stream=MAIN, activities=activities, latency_ns=LATENCY)
    threads = main_thread(*([*inside("graph_replay", [replay]), Work(ns=200_000)] for _ in range(2)))
    before = 210_000 + 103_000
    return (
        Case(
            name="graph launch, B halved",
            threads=threads,
            change=ScaleKernels(name="B_kernel", factor=0.5),
            before_ns=before,
            after_ns=210_000 + 88_000,  # 103,000 - 15,000
        ),
        Case(
            name="graph launch, host halved",
            threads=threads,
            change=ScaleHost(factor=0.5),
            before_ns=before,
            after_ns=105_000 + 103_000,  # the first graph is done at 103,000 + a gap of 1,000 < 105,000
        ),
    )


def _all_reduce() -> tuple[Case, ...]:
    """Three rounds: A 50 on stream 7; then an all-reduce of 80 on stream 20 beside C 20 on 7; then B 30.

    One round on the host: four operators and four event calls, 36,000 < 100,000.
    """
    rounds: list[Program] = []
    for number in range(3):
        rounds += [
            op("A_kernel", 50_000),
            record(f"ready {number}", MAIN),
            wait(f"ready {number}", COMMUNICATION),
            inside("nccl:all_reduce", launch(ALL_REDUCE, 80_000, stream=COMMUNICATION)),
            record(f"reduced {number}", COMMUNICATION),
            op("C_kernel", 20_000),
            wait(f"reduced {number}", MAIN),
            op("B_kernel", 30_000),
        ]
    case = Case(
        name="exposed all-reduce, free",
        threads=main_thread(*rounds),
        change=FreeCollectives(),
        before_ns=3 * (50_000 + 80_000 + 30_000),  # 480,000
        after_ns=3 * (50_000 + 20_000 + 30_000),  # C is then the longer branch: 300,000
    )
    return (case,)


def _blocking_copy() -> tuple[Case, ...]:
    """Three times: a kernel of 60, then a pageable copy to the host of 25 that blocks.

    A round begins at t: kernel t + 7..67, copy t + 67..92, the call returns at t + 96, its operator ends at
    t + 97.
    """
    copy = Launch(
        call="memcpy_blocking",
        host_ns=CALL,
        stream=MAIN,
        activities=(activity("Memcpy DtoH (Device -> Pageable)", 25_000, kind="gpu_memcpy"),),
        latency_ns=LATENCY,
        tail_ns=TAIL,
        is_blocking=True,
    )
    threads = main_thread(*(op("mm_kernel", 60_000) + inside("aten::copy_", [copy]) for _ in range(3)))
    before = 2 * 97_000 + 85_000
    return (
        Case(
            name="blocking copy, free",
            threads=threads,
            change=FreeCopies(),
            before_ns=before,  # 279,000
            after_ns=2 * 72_000 + 60_000,  # the call still waits for the kernel: 67 + 4 + 1 = 72
        ),
        Case(
            name="blocking copy, no wait",
            threads=threads,
            change=RemoveWaits(op="aten::copy_"),
            before_ns=before,
            after_ns=3 * 85_000,  # the host takes 14,000 a round: kernels and copies back to back
        ),
    )


def _hand_over() -> tuple[Case, ...]:
    """Two steps over two threads; kernels of 2,000, so that all is host-bound.

    A step: three operators; hand-over to the autograd thread, which wakes 10,000 later; there four nodes of
    9,000, the first with a hook of 40,000; hand-over back (12,000); one more operator. It begins at t: forward
    ends at t + 21, the other thread wakes at t + 31 and is done at t + 31 + 40 + 36 = t + 107; this one wakes
    at t + 119 and ends its step at t + 126.
    """
    main: Program = []
    engine: Program = []
    hook: Program = [Enter(kind="user_annotation", name="gradient hook"), Work(ns=40_000), Exit()]
    for step in range(2):
        numbers = range(100 + 10 * step, 104 + 10 * step)
        for number in numbers[1:]:
            main += numbered(number, op("forward_kernel", 2_000))
        hand_over: Program = [Signal(baton=f"start {step}"), Await(baton=f"done {step}", wake_ns=12_000)]
        name = "<built-in method run_backward of torch._C._EngineBase object>"
        main += [*inside(name, hand_over, "python_function", 0), *op("step_kernel", 2_000)]
        engine += [Await(baton=f"start {step}", wake_ns=10_000)]
        for number in reversed(numbers):
            body = op("backward_kernel", 2_000)
            engine += node(number, [*hook, *body] if number == numbers[-1] else body)
        engine += [Signal(baton=f"done {step}")]
    threads = (*main_thread(main), Thread(tid=4300, name="pt_autograd_0", instructions=tuple(engine)))
    case = Case(
        name="autograd thread, no hook",
        threads=threads,
        change=DropSpans(name="gradient hook"),
        # From the first kernel at 7 to the last: second step begins at 126, its operator at 126 + 119, its
        # kernel 7 later and 2 long.
        before_ns=126_000 + 119_000 + 9_000 - 7_000,
        after_ns=86_000 + 79_000 + 9_000 - 7_000,  # the same, 40 earlier in each step
    )
    return (case,)


def _data_loader() -> tuple[Case, ...]:
    """Three steps: a batch (20, in the second step 300, then 20), two operators with kernels of 50.

    First step: kernels from 27 to 127. Second: its batch comes at 334, kernels 341..441. Third: launched at
    355 and later, kernels 441..541.
    """
    steps: list[Program] = []
    for batch in (20_000, 300_000, 20_000):
        steps += [inside(LOADER, [Work(ns=batch)], "user_annotation", 0)]
        steps += [op("mm_kernel", 50_000), op("mm_kernel", 50_000)]
    threads = main_thread(*steps)
    return (
        Case(
            name="data loading, none",
            threads=threads,
            change=DropSpans(name=LOADER),
            before_ns=541_000 - 27_000,
            after_ns=6 * 50_000,
        ),
        Case(
            name="data loading, none, and kernels halved",
            threads=threads,
            change=Both(first=DropSpans(name=LOADER), second=ScaleKernels(name="mm_kernel", factor=0.5)),
            before_ns=541_000 - 27_000,
            after_ns=6 * 25_000,
        ),
    )
