"""Hand-overs between threads: forward, autograd, caller. Times are µs."""

from __future__ import annotations

from tests.schedule.scenes import Program, scene_of


def stretch(program: Program, ts: float, end: float, tid: int, stream: int = 7) -> None:
    """An op that launches a kernel."""
    program.op("aten::mm", ts, end - ts, tid=tid)
    program.launched("k", ts=ts + 1, start=1_000 + 10 * ts, dur=5, tid=tid, stream=stream)


def handovers(program: Program) -> list[tuple[int, int, int, int]]:
    """(thread that went on, when, thread it had waited for, when that one was done), times in µs."""
    scene = scene_of(program)
    found, lanes = scene.schedule.handovers, scene.trace.lanes
    return [
        (lanes[lane][1], start // 1_000, lanes[other][1], end // 1_000)
        for lane, start, other, end in zip(
            found.lane.tolist(), found.start.tolist(), found.from_lane.tolist(), found.from_end.tolist(), strict=True
        )
    ]


def test_forward_hands_over_to_autograd_and_autograd_to_the_caller():
    #         0    20   25       55   60   80
    # main    [fwd ]                  [opt ]
    # engine            [backward]
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 25, 55, tid=2)
    stretch(program, 60, 80, tid=1)

    assert handovers(program) == [(2, 25, 1, 20), (1, 60, 2, 55)]


def test_threads_that_work_at_once_hand_over_nothing():
    #         0    20   25       55   60   80
    # main    [    ]                  [    ]
    # other   [                            ]
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 60, 80, tid=1)
    stretch(program, 0, 80, tid=2)

    assert handovers(program) == []


def test_a_little_overlap_elsewhere_is_let_pass():
    # In the first round the caller goes on at 54 while the engine works until 55: 1 of the caller's 56 µs, under 5 %
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 25, 55, tid=2)
    stretch(program, 54, 80, tid=1)
    stretch(program, 95, 150, tid=2)
    stretch(program, 165, 175, tid=1)

    assert handovers(program) == [(2, 95, 1, 80), (1, 165, 2, 150)]


def test_a_thread_that_did_not_rest_until_the_other_was_done_waited_for_nobody():
    # The engine begins while main rests, but main goes on at 40, long before the engine is done at 45
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 25, 45, tid=2)
    stretch(program, 40, 140, tid=1)
    stretch(program, 160, 400, tid=2)

    # The pair works in turn (5 of 120 µs at once); the engine's second stretch follows main's, its first does not
    assert handovers(program) == [(2, 160, 1, 140)]


def test_a_short_pause_is_the_threads_own():
    # Main pauses for 10 µs, which is no rest, while the engine runs from 21 to 29: the two overlap
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 30, 50, tid=1)
    stretch(program, 21, 29, tid=2)

    assert handovers(program) == []


def test_threads_that_neither_launch_nor_wait_do_not_count():
    program = Program()
    stretch(program, 0, 20, tid=1)
    program.op("aten::collate", 25, 30, tid=2)
    stretch(program, 60, 80, tid=1)

    assert handovers(program) == []


def test_of_two_threads_done_before_a_start_the_last_one_handed_over():
    #          0    20   30   40   50   70   80
    # main     [    ]
    # second             [ ]
    # third                        [    ]
    # main                                   [  ]
    program = Program()
    stretch(program, 0, 20, tid=1)
    stretch(program, 30, 40, tid=2)
    stretch(program, 50, 70, tid=3)
    stretch(program, 85, 90, tid=1)

    assert handovers(program) == [(2, 30, 1, 20), (3, 50, 2, 40), (1, 85, 3, 70)]
