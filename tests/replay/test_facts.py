"""What a replay tells about a run. Times are µs, results ns."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.intervals import union
from rooftrace.replay.edits import Edit
from rooftrace.replay.facts import describe_replay, everywhere, host_lanes, without_profiler
from tests.schedule.scenes import RECORD, STREAM_SYNC, STREAM_WAIT, Program, scene_of

NCCL = "ncclDevKernel_AllReduce_Sum_f32_RING_LL"


def facts_of(builder):
    return describe_replay(scene_of(builder).replay())


def gaps(*widths: float) -> Program:
    """Kernels of 100, all launched at the beginning, with the given gaps between them."""
    program = Program()
    start = 10.0
    for ts, width in enumerate((0, *widths)):
        start += width
        program.launched("k", ts=ts, start=start, dur=100)
        start += 100
    return program


def test_the_fit_says_what_the_constraints_explain_beside_the_error():
    # Three gaps of 2, the usual one, and one of 102: 100 of 608 unexplained
    fit = facts_of(gaps(2, 2, 2, 102))

    assert (fit.measured_ns, fit.baseline_ns, fit.error_pct) == (608_000, 608_000, 0.0)
    assert fit.explained_pct == 83.55  # 508 of 608


@pytest.mark.parametrize(
    ("last", "bound_by"), [(210, "compute"), (250, "unknown")], ids=["71 % explained", "67 % explained"]
)
def test_nothing_is_said_about_what_bounds_a_run_of_which_too_little_is_explained(last, bound_by):
    # 5 kernels of 100 and three gaps of 2; the last gap exceeds the usual 2 by 208 of 716, or by 248 of 756
    assert facts_of(gaps(2, 2, 2, last)).bound_by == bound_by


def host_bound() -> Program:
    program = Program()
    for number in range(5):
        program.launched("k", ts=100 * number, start=100 * number + 10, dur=5)
    return program


def copies() -> Program:
    program = Program()
    for ts in range(3):
        program.copied("DtoD", ts=ts, start=10 + 50 * ts, dur=50, lasts=0.5)
    return program


def thirds() -> Program:
    """A third each of compute, communication and copies."""
    program = Program()
    program.copied("DtoD", ts=0, start=10, dur=50, lasts=1)
    program.launched(NCCL, ts=2, start=60, dur=50)
    program.launched("k", ts=4, start=110, dur=50)
    return program


def all_reduce(compute: float) -> Program:
    """A kernel, then a collective of 50."""
    program = Program()
    program.launched("k", ts=0, start=10, dur=compute)
    program.launched(NCCL, ts=2, start=10 + compute, dur=50)
    return program


def abreast() -> Program:
    """A kernel and a collective, both from 10 to 110: without one of them the other is left."""
    program = Program()
    program.launched("k", ts=0, start=10, dur=100)
    program.launched(NCCL, ts=0.5, start=10, dur=100, stream=8)
    return program


@pytest.mark.parametrize(
    ("program", "bound_by"),
    [
        pytest.param(gaps(2, 2), "compute", id="compute"),
        pytest.param(host_bound(), "host", id="host"),
        pytest.param(copies(), "copy", id="copy"),
        pytest.param(all_reduce(33), "communication", id="communication"),  # 50 against 33
        pytest.param(all_reduce(34), "mixed", id="not half as much again as another"),
        pytest.param(abreast(), "mixed", id="two abreast"),
        pytest.param(thirds(), "mixed", id="mixed"),
    ],
)
def test_a_run_is_bound_by_what_it_would_lose_most_without_if_that_is_clear(program, bound_by):
    assert facts_of(program).bound_by == bound_by


def late_kernels() -> Program:
    """Kernels of 60 launched every 100."""
    program = Program()
    for number in range(5):
        program.launched("k", ts=100 * number, start=100 * number + 10, dur=60)
    return program


@pytest.mark.parametrize(
    ("program", "recorded", "halved"),
    [
        # From 10 to 470. Without host time 5 * 60 and 4 gaps of 1 are left of 460, 34 % less; without kernels 400 are,
        # 13 % less. With launches every 50 it is the kernels' 304, and without host time no less
        pytest.param(late_kernels(), "host", "compute", id="host, until it is halved"),
        pytest.param(host_bound(), "host", "host", id="host in any case"),
        pytest.param(gaps(2, 2), "compute", "compute", id="compute in any case"),
        pytest.param(gaps(2, 2, 2, 250), "unknown", "unknown", id="67 % explained"),
    ],
)
def test_what_bounds_a_run_is_also_told_with_host_time_halved(program, recorded, halved):
    facts = facts_of(program)

    assert (facts.bound_by, facts.bound_by_half_host) == (recorded, halved)


def test_each_resource_free_gives_a_bound():
    # a from 10 to 110, the call returns at 115, b launched at 120 and running from 130 to 140; an all-reduce of 20
    # queued behind it, from 140
    program = Program()
    program.launched("a", ts=0, start=10, dur=100)
    program.launch(STREAM_SYNC, ts=2, dur=113)
    program.launched("b", ts=120, start=130, dur=10)
    program.launched(NCCL, ts=122, start=140, dur=20)

    assert facts_of(program).if_free == {
        # a ends at 10, the call (from 2, own time 5; it returns 5 after a) at 15, b at 20 + 10 = 30; the all-reduce,
        # launched at 22, a latency after that: 10, the median of those seen: 32 to 52
        "compute": 42_000,
        "communication": 130_000,  # it ends as b does, at 140
        # without host time the call returns at 115 and b is launched then: 125 to 135; the all-reduce until 155
        "host": 145_000,
        # unblocked the call ends at 7, b is launched at 12 and follows a at 110, after the usual gap, 1: until 121;
        # the all-reduce until 141
        "synchronisation": 131_000,
    }


def test_the_evidence_counts_what_the_constraints_come_from():
    program = Program()
    program.kernel("carried", ts=0, dur=1, stream=9)
    program.launched("a", ts=2, start=10, dur=100)
    program.launch(RECORD, ts=4)
    program.launch(STREAM_WAIT, ts=6)
    program.launched("b", ts=8, start=112, dur=10, stream=8)
    program.launch(STREAM_SYNC, ts=10, dur=115)
    program.launch("cudaDeviceSynchronize", ts=130, dur=2)
    evidence = facts_of(program).evidence

    assert (evidence.launches, evidence.unlinked, evidence.handovers, evidence.queue_depth) == (2, 1, 0, 0)
    assert evidence.waits == {"stream": 1, "device": 1}
    assert evidence.waits_guessed == 1
    assert evidence.dependencies == {"calls": 1}


def test_launch_latencies_and_the_queue_are_told_as_distributions():
    # Latencies 10 five times; at 20 times from 10 to 415 a kernel is under way from its launch to its end, 15 of 100
    evidence = facts_of(host_bound()).evidence

    assert evidence.launch_latency is not None
    assert (evidence.launch_latency.p10, evidence.launch_latency.median, evidence.launch_latency.p90) == (
        10_000,
        10_000,
        10_000,
    )
    assert len(evidence.queued) == 20
    assert (evidence.queued[0], evidence.queued[1], evidence.queued[9]) == (1, 0, 1)  # at 10, 31.3 and 201.8


def test_a_run_without_launches_has_neither():
    program = Program()
    program.kernel("k", ts=0, dur=5)
    evidence = facts_of(program).evidence

    assert (evidence.launch_latency, evidence.queued, evidence.unlinked) == (None, [], 1)


def test_all_host_time_is_that_between_the_first_launch_and_the_last_end():
    # The host works for 10,000 before its first launch, of which 10 lie after the start of a carried kernel at 9,990:
    # these and the 100 after it are gone. Both kernels are launched at 9,990; a runs from 10,000 to 10,005, b, a gap
    # of 1 later, until 10,011: 21 from 9,990 on
    program = Program()
    program.op("start-up", 0, 10_000)
    program.kernel("carried", ts=9_990, dur=2, stream=8)
    program.launched("a", ts=10_000, start=10_010, dur=5)
    program.launched("b", ts=10_100, start=10_110, dur=5)
    replay = scene_of(program).replay()
    edit = Edit(host=everywhere(replay, 1.0))

    assert replay.spans([((edit, 1.0),)]) == [21_000]


@pytest.mark.parametrize(
    ("kept", "cuts"),
    [
        pytest.param(None, [(0, 410_000)], id="none"),
        pytest.param((50_000, 250_000), [(0, 50_000), (250_000, 410_000)], id="in the middle"),
        pytest.param((-5_000, 100_000), [(100_000, 410_000)], id="from before the first launch on"),
        pytest.param((400_000, 500_000), [(0, 400_000)], id="beyond the last end"),
        pytest.param((500_000, 600_000), [(0, 410_000)], id="after the run"),
    ],
)
def test_what_the_recording_does_not_lengthen_is_not_halved(kept, cuts):
    # Launches from 0 on, every 100; the last of 4 kernels of 100 ends at 410
    program = Program()
    for number in range(4):
        program.launched("k", ts=100 * number, start=100 * number + 10, dur=100)
    replay = scene_of(program).replay()
    (lane,) = host_lanes(replay).tolist()
    unslowed = {} if kept is None else {lane: union(np.array([kept[0]]), np.array([kept[1]]))}
    (cut,) = without_profiler(replay, unslowed).host

    assert (cut.lane, cut.share) == (lane, 0.5)
    assert list(zip(cut.start.tolist(), cut.end.tolist(), strict=True)) == cuts


def test_a_run_bound_by_one_long_call_of_the_host_stays_bound_by_the_host():
    # Kernels of 60 launched every 100: halved, they run back to back; but not where calls of 80 before each launch stay
    replay = scene_of(late_kernels()).replay()
    (lane,) = host_lanes(replay).tolist()
    starts = np.array([number * 100_000 + 10_000 for number in range(4)])
    long = {lane: union(starts, starts + 80_000)}

    assert describe_replay(replay, without_profiler(replay, {})).bound_by_half_host == "compute"
    assert describe_replay(replay, without_profiler(replay, long)).bound_by_half_host == "host"
    assert describe_replay(replay, without_profiler(replay, long)).half_host_ns == 420_000  # 460 less half of 4 * 20


def test_halved_host_time_loses_no_nanosecond_to_rounding():
    # 1,000 launches 3.001 apart: halved, the last one begins 999 * 3,001 / 2 = 1,498,999.5 earlier, rounded to even
    program = Program()
    for number in range(1_000):
        program.launched("k", ts=3.001 * number, start=3.001 * number + 10, dur=0.1)
    replay = scene_of(program).replay()
    timeline = replay.timeline(((Edit(host=everywhere(replay, 0.5)), 1.0),))

    assert timeline.launched[-1] == 2_997_999 - 1_499_000
