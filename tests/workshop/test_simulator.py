"""The simulator against timelines worked out by hand; all times in nanoseconds."""

from __future__ import annotations

import pytest

from evals.workshop.instructions import (
    Activity,
    Await,
    Enter,
    Exit,
    Instruction,
    Launch,
    RecordEvent,
    Signal,
    Synchronize,
    Thread,
    Timeline,
    WaitEvent,
    Work,
)
from evals.workshop.simulator import ProgramError, simulate


def kernel(name: str, duration: int, gap: int = 0) -> Activity:
    return Activity(kind="kernel", name=name, duration_ns=duration, gap_ns=gap)


def launch(*activities: Activity, stream: int = 7, host: int = 5, latency: int = 10) -> Launch:
    return Launch(call="launch", host_ns=host, stream=stream, activities=activities, latency_ns=latency)


def run(*instructions: Instruction, queue_depth: int = 1024) -> Timeline:
    return simulate((Thread(tid=1, name="main", instructions=instructions),), queue_depth=queue_depth)


def executed(timeline: Timeline) -> list[tuple[str, int, int, str]]:
    return [(row.name, row.start_ns, row.end_ns, row.bound) for row in timeline.activities]


def calls(timeline: Timeline) -> list[tuple[str, int, int]]:
    return [(row.name, row.start_ns, row.end_ns) for row in timeline.calls]


def test_a_host_bound_chain_starts_each_kernel_one_latency_after_its_launch():
    #          0    5    10   15   20   25   30   35
    # host     [L-A]               [L-B]
    # kernels            [A]                 [B]
    timeline = run(launch(kernel("A", 4)), Work(ns=15), launch(kernel("B", 4)))

    assert executed(timeline) == [("A", 10, 14, "launch"), ("B", 30, 34, "launch")]  # 20 + 10 = 30
    assert timeline.end_ns == 34


def test_a_gpu_bound_chain_runs_back_to_back_with_the_gap_of_the_queue():
    #          0    5    10   15        60 61        111 112
    # host     [L-A][L-B][L-C]
    # kernels            [A 50-------] [B 50--------] [C 50 --
    timeline = run(*(launch(kernel(name, 50, gap=1)) for name in "ABC"))

    assert executed(timeline) == [
        ("A", 10, 60, "launch"),
        ("B", 61, 111, "stream"),
        ("C", 112, 162, "stream"),
    ]
    assert [row.launch_ready_ns for row in timeline.activities] == [10, 15, 20]


def test_a_kernel_waits_for_an_event_of_another_stream():
    #          0    5  7  9    14   19                   40
    # host     [L-A]R  W  [L-B][L-C]
    # stream 7            [A 30 -------------------------]
    # stream 8                                           [B 8]
    # stream 8                                                [C 8]
    timeline = run(
        launch(kernel("A", 30)),
        RecordEvent(event="a done", stream=7, host_ns=2),
        WaitEvent(event="a done", stream=8, host_ns=2),
        launch(kernel("B", 8), stream=8),
        launch(kernel("C", 8), stream=8),
    )

    assert executed(timeline) == [("A", 10, 40, "launch"), ("B", 40, 48, "event"), ("C", 48, 56, "stream")]


def test_work_after_the_record_does_not_delay_the_event():
    timeline = run(
        launch(kernel("A", 30)),
        RecordEvent(event="a done", stream=7, host_ns=2),
        launch(kernel("late", 500)),
        WaitEvent(event="a done", stream=8, host_ns=2),
        launch(kernel("B", 8), stream=8),
    )

    assert executed(timeline)[2] == ("B", 40, 48, "event")  # not 540, when `late` ends


def test_streams_without_events_run_side_by_side():
    timeline = run(launch(kernel("A", 100), stream=7), launch(kernel("B", 100), stream=8))

    assert executed(timeline) == [("A", 10, 110, "launch"), ("B", 15, 115, "launch")]


def test_a_blocking_copy_returns_one_tail_after_the_copy_ended():
    #          0        5        35       65  69  74
    # host     [L-A    ][copy blocks          ][L-B]
    # kernels     10 [A 25 -----]
    # copies                     [copy 30 -]
    # kernels                                       79 [B]
    copy = Launch(
        call="memcpy",
        host_ns=5,
        stream=7,
        activities=(Activity(kind="gpu_memcpy", name="Memcpy HtoD", duration_ns=30),),
        latency_ns=10,
        is_blocking=True,
        tail_ns=4,
    )
    timeline = run(launch(kernel("A", 25)), copy, launch(kernel("B", 6)))

    assert calls(timeline) == [("launch", 0, 5), ("memcpy", 5, 69), ("launch", 69, 74)]  # 35 + 30 + 4
    assert executed(timeline)[2] == ("B", 79, 85, "launch")
    assert timeline.calls[1].waited_ns == 59  # 64 long, 5 of it its own


def test_a_synchronisation_ends_one_tail_after_the_stream_and_at_once_on_an_empty_one():
    busy = run(launch(kernel("A", 40)), Synchronize(call="stream_sync", stream=7, host_ns=2, tail_ns=3))
    empty = run(Synchronize(call="stream_sync", stream=7, host_ns=2, tail_ns=3))

    assert calls(busy)[1] == ("stream_sync", 5, 53)  # 10 + 40 + 3
    assert calls(empty) == [("stream_sync", 0, 2)]


def test_a_stream_synchronisation_ignores_other_streams_and_a_device_one_does_not():
    work = [launch(kernel("A", 40), stream=7), launch(kernel("B", 400), stream=8)]
    stream = run(*work, Synchronize(call="stream_sync", stream=7, host_ns=2, tail_ns=0))
    device = run(*work, Synchronize(call="device_sync", host_ns=2, tail_ns=0))

    assert stream.calls[2].end_ns == 50  # 10 + 40
    assert device.calls[2].end_ns == 415  # 15 + 400


def test_a_launch_into_a_full_queue_stands_still_until_the_oldest_kernel_ended():
    #          0  5  10                 110  115
    # host     [A][B][C stands still -------][D stands ...
    # kernels       10 [A 100 ---------][B 100 -----------][C 100
    names = "ABCD"
    timeline = run(*(launch(kernel(name, 100)) for name in names), queue_depth=2)

    assert calls(timeline) == [
        ("launch", 0, 5),
        ("launch", 5, 10),
        ("launch", 10, 115),  # A ends at 110, then 5 of host time
        ("launch", 115, 215),  # B ends at 210
    ]
    assert [row.waited_ns for row in timeline.calls] == [0, 0, 100, 95]
    assert executed(timeline) == [
        ("A", 10, 110, "launch"),
        ("B", 110, 210, "stream"),
        ("C", 210, 310, "stream"),
        ("D", 310, 410, "stream"),
    ]


def test_a_graph_is_one_launch_of_many_kernels():
    #          0     8
    # host     [graph]
    # kernels     10 [A 20][B 20][C 20]   one correlation id
    nodes = [kernel("A", 20), kernel("B", 20, gap=2), kernel("C", 20, gap=2)]
    timeline = run(launch(*nodes, host=8))

    assert executed(timeline) == [("A", 10, 30, "launch"), ("B", 32, 52, "graph"), ("C", 54, 74, "graph")]
    assert [row.correlation for row in timeline.activities] == [1, 1, 1]
    assert len(timeline.calls) == 1


def test_threads_hand_over_and_back():
    #          0       20    23         43    46
    # main     [work 20]S                 A.....[launch
    # autograd          A....[work][launch]S
    #                   wakes 3 later      wakes 3 later
    main = Thread(
        tid=1,
        name="main",
        instructions=(
            Work(ns=20),
            Signal(baton="go"),
            Await(baton="done", wake_ns=3),
            launch(kernel("step", 5)),
        ),
    )
    engine = Thread(
        tid=2,
        name="autograd",
        instructions=(
            Await(baton="go", wake_ns=3),
            Work(ns=15),
            launch(kernel("grad", 5)),
            Signal(baton="done"),
        ),
    )
    timeline = simulate((main, engine))

    assert [(row.tid, row.start_ns) for row in timeline.calls] == [(2, 38), (1, 46)]  # 20+3+15; 43+3
    assert executed(timeline) == [("grad", 48, 53, "launch"), ("step", 56, 61, "launch")]


def test_a_signal_that_came_first_costs_no_wake_up():
    early = Thread(tid=1, name="early", instructions=(Signal(baton="go"),))
    late = Thread(tid=2, name="late", instructions=(Work(ns=50), Await(baton="go", wake_ns=3), Work(ns=1)))

    assert simulate((early, late)).end_ns == 51


def test_two_threads_share_a_stream_in_the_order_of_their_launches():
    first = Thread(tid=1, name="first", instructions=(Work(ns=30), launch(kernel("A", 10))))
    second = Thread(tid=2, name="second", instructions=(Work(ns=10), launch(kernel("B", 100))))

    assert executed(simulate((first, second))) == [("B", 20, 120, "launch"), ("A", 120, 130, "stream")]


def test_spans_nest_and_own_what_is_launched_inside_them():
    timeline = run(
        Enter(kind="python_function", name="model.py(3): forward"),
        Work(ns=2),
        Enter(kind="cpu_op", name="aten::mm"),
        Work(ns=3),
        launch(kernel("A", 7)),
        Exit(),
        Exit(),
        launch(kernel("B", 7)),
    )

    assert [(row.name, row.parent, row.start_ns, row.end_ns) for row in timeline.spans] == [
        ("model.py(3): forward", None, 0, 10),
        ("aten::mm", 0, 2, 10),
    ]
    assert [row.owner for row in timeline.calls] == [1, None]
    assert [row.owner for row in timeline.activities] == [1, None]


@pytest.mark.parametrize(
    ("instructions", "message"),
    [
        ((Await(baton="never"),), "every thread awaits a baton that nobody signals: `main`"),
        ((Exit(),), "thread `main` closes a span that it never opened"),
        ((Enter(kind="cpu_op", name="aten::mm"),), "thread `main` ends inside `aten::mm`"),
    ],
    ids=["nobody signals", "close without open", "open without close"],
)
def test_a_program_that_cannot_end_is_refused(instructions: tuple[Instruction, ...], message: str):
    with pytest.raises(ProgramError) as caught:
        run(*instructions)

    assert str(caught.value) == message
