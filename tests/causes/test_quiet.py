"""Long stretches inside a call in which nothing else is recorded. Times are µs, in results ns."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.calltree import build_tree
from rooftrace.causes.quiet import long_calls
from tests.causes.runs import Run


def stretches(run: Run) -> list[tuple[int, int]]:
    """Those of the thread of the first event."""
    trace = run.build()
    lane = int(trace.lane[0])
    found = long_calls(trace, build_tree(trace), np.array([lane]))[lane]
    return list(zip(found.start.tolist(), found.end.tolist(), strict=True))


def decoding(*inside: tuple[float, float]) -> Run:
    """A frame of 10 ms in one of 20 ms, which launches at its begin; in the inner one more frames: start, duration."""
    run = Run()
    run.python("train.py(1): main", 0, 20_000)
    run.launch(ts=100, dur=5)
    run.python("<built-in method decode>", 500, 10_000)
    for start, dur in inside:
        run.python("<built-in method len>", start, dur)
    return run


@pytest.mark.parametrize(
    ("run", "found"),
    [
        # main is open alone for the last 9.5 ms, which is as quiet; its first 0.5 ms are short
        pytest.param(decoding(), [(500_000, 10_500_000), (10_500_000, 20_000_000)], id="a leaf"),
        pytest.param(
            decoding((4000, 1)),
            [(500_000, 4_000_000), (4_001_000, 10_500_000), (10_500_000, 20_000_000)],
            id="on both sides of a short call",
        ),
        pytest.param(
            decoding((1499, 8002)),
            [(1_499_000, 9_501_000), (10_500_000, 20_000_000)],
            id="in the inner one, not in what is left of the outer",
        ),
    ],
)
def test_a_long_stretch_inside_a_call_ends_where_anything_begins_or_ends(run, found):
    assert stretches(run) == found


@pytest.mark.parametrize(("dur", "count"), [(999, 0), (1000, 1)])
def test_a_stretch_is_long_from_a_millisecond_on(dur, count):
    run = Run()
    run.op("aten::sort", 0, dur)

    assert len(stretches(run)) == count


def test_many_short_calls_are_no_long_one():
    # 20 frames of 0.4 ms in one of 10 ms
    assert stretches(decoding(*[(500 + 500 * number, 400) for number in range(20)])) == [(10_500_000, 20_000_000)]


def test_where_no_call_is_open_nothing_says_what_the_thread_does():
    run = Run()
    run.op("aten::mm", 0, 10)
    run.op("aten::mm", 5000, 10)

    assert stretches(run) == []


def test_an_op_that_ends_after_its_last_child_is_quiet_until_then():
    # the op runs on alone from 1,010 to 4,000; then nothing is open until the next op, which is short
    run = Run()
    run.op("aten::sort", 0, 4000)
    run.op("aten::copy_", 500, 510)
    run.op("aten::mm", 9000, 10)

    assert stretches(run) == [(1_010_000, 4_000_000)]


def test_two_stretches_that_a_call_without_length_parts_are_two():
    run = Run()
    run.op("aten::sort", 0, 4000)
    run.op("aten::view", 2000, 0)

    assert stretches(run) == [(0, 2_000_000), (2_000_000, 4_000_000)]


def test_another_threads_events_do_not_disturb():
    run = Run()
    run.op("aten::sort", 0, 2000)
    run.op("aten::mm", 1000, 10, tid=2)

    assert stretches(run) == [(0, 2_000_000)]


def test_a_thread_without_calls_has_none():
    run = Run()
    run.op("aten::mm", 0, 10)

    trace = run.build()

    assert long_calls(trace, build_tree(trace), np.array([99]))[99].length == 0
