"""Reported cases, A2: times that are wrong, and times that only look so."""

from __future__ import annotations

import pytest

from tests.support.trace_builder import TraceBuilder
from tests.trace.cases.runs import MATRIX, Result, result, result_of, run
from tests.trace.cases.test_kinds import THREE, long_one
from tests.trace.reading import document, kernel


def test_a15_steps_whose_kernels_kineto_dropped_are_told_by_their_launches() -> None:
    trace = run(range(2, 5))
    for step in (0, 1):
        trace.annotation(f"ProfilerStep#{step}", ts=1000 + 100 * step, dur=99)
        trace.op("aten::mm", ts=1005 + 100 * step, dur=10, **MATRIX)
        trace.launch(ts=1006 + 100 * step)
    outcome = result(trace)

    assert outcome.note("empty_steps") == "2 of 5 steps launched no GPU work."
    assert outcome.note("launch_without_kernel").startswith("2 of 5 kernel launches have no GPU event: ")


def test_a16_launches_without_any_kernel_are_lost_activity() -> None:
    trace = TraceBuilder()
    for number in range(7):
        trace.launch(ts=10 * number)

    assert result(trace).note("no_gpu_events").startswith("7 kernel launches but no GPU events: the GPU activity was")


def test_a17_a_thousand_kernels_at_time_zero_do_not_stretch_the_span() -> None:
    start = 1_700_000_000_000_000
    outcome = result_of(document(*[kernel("k", 0, 5)] * 1000, kernel("k", start, 5), kernel("k", start + 10, 5)))

    assert outcome.parts() == {"span_ns": 15_000, "compute_ns": 10_000, "idle_ns": 5_000}
    assert outcome.note("dropped") == "1,000 events dropped: GPU event at time zero."


def test_a18_an_unfinished_event_is_cut_at_the_one_around_it() -> None:
    trace = run()
    trace.op("aten::outer", ts=2000, dur=50, tid=4, **MATRIX)
    trace.op("aten::unfinished", ts=2010, dur=-1, tid=4)
    outcome = result(trace)
    tree = outcome.prepared.workload.tree

    ends = {outcome.trace.names[name]: end for name, end in zip(tree.name.tolist(), tree.end.tolist(), strict=True)}
    assert ends["aten::unfinished"] == ends["aten::outer"] == 1_050_000  # 2050 µs, counted from 1000
    assert outcome.note("repaired") == "1 events repaired: unfinished host event."


def test_a19_kernels_shorter_than_a_microsecond_keep_their_nanoseconds() -> None:
    outcome = result_of(document(kernel("a", 10.001, 0.288), kernel("b", 10.289, 0.300), kernel("c", 10.700, 0.001)))

    # 10.001 to 10.701 µs: 288, 300 and 1 ns of work
    assert outcome.parts() == {"span_ns": 700, "compute_ns": 589, "idle_ns": 111}


def test_a19b_a_kernel_of_no_duration_among_others_changes_nothing() -> None:
    outcome = result_of(document(kernel("a", 10, 5), kernel("b", 12, 0), kernel("c", 20, 5), kernel("d", 25, 0)))

    assert outcome.parts() == {"span_ns": 15_000, "compute_ns": 10_000, "idle_ns": 5_000}


def test_a19c_durations_past_their_successors_are_clipped_and_the_recorded_ones_kept() -> None:
    outcome = result(long_one(1_600_000))
    activities = outcome.prepared.workload.activities

    assert int(activities.raw_dur.max()) == 1_600_000_000
    assert int(activities.dur.max()) == 20_000  # to the start of its successor
    assert "1 GPU events have impossible durations (1.600 s recorded)" in outcome.note("impossible_duration")


def test_a19d_a_copy_slower_than_any_link_is_told_and_clipped() -> None:
    """9.7 MB in 3.15 s are 3 MB/s; the slowest that is believed is 10 MB/s and a millisecond: 0.971 s."""
    trace = TraceBuilder()
    trace.kernel("k", ts=0, dur=10, correlation=trace.launch(ts=0))
    trace.memcpy("DtoH", ts=100, dur=3_150_000, bytes=9_700_000, correlation=trace.launch("cudaMemcpyAsync", ts=50))
    outcome = result(trace)

    assert outcome.parts()["exposed_copy_ns"] == 971_000_000
    assert "impossible_duration" in outcome.codes


def with_stray(event: str) -> Result:
    """100 kernels of 5 µs, one every 10 µs, and another event."""
    events = [kernel("k", 1_700_000_000_000_000 + 10 * number, 5) for number in range(100)]
    return result_of(document(*events, event))


def test_a19e_an_event_at_time_zero_does_not_make_the_span() -> None:
    assert with_stray(kernel("stray", 0, 1)).parts()["span_ns"] == 995_000


def test_a19e_one_event_far_from_all_others_does_not_make_the_span() -> None:
    outcome = with_stray(kernel("stray", 1_700_000_000_000_000 + 10**12, 1))  # 11.6 days later

    assert outcome.parts() == {"span_ns": 995_000, "compute_ns": 500_000, "idle_ns": 495_000}
    assert outcome.note("dropped") == "1 events dropped: event a day or more from all others."


def test_a19f_the_unit_of_display_is_no_unit() -> None:
    for unit in ("ns", "ms"):
        trace = run()
        trace.header(displayTimeUnit=unit)
        assert result(trace).parts() == THREE


@pytest.mark.parametrize(
    "times",
    [
        ("1700000000000010", "1700000000000030"),
        ("1700000000000010.000", "1700000000000030.000"),
        ("10.000", "30.000"),
        ("1.0e1", "3.0e1"),
    ],
    ids=["whole", "decimal", "relative", "exponent"],
)
def test_a19g_times_of_every_spelling_are_the_same_times(times: tuple[str, str]) -> None:
    outcome = result_of(document(kernel("a", times[0], 10), kernel("b", times[1], 10)))

    assert outcome.parts() == {"span_ns": 30_000, "compute_ns": 20_000, "idle_ns": 10_000}


@pytest.mark.parametrize(("early_us", "told"), [(3, False), (5_000, True)])
def test_a19h_kernels_before_their_launch_are_told_beyond_a_jitter_of_clocks(early_us: int, told: bool) -> None:
    trace = TraceBuilder()
    for number in range(3):
        at = 100_000 + 100 * number
        trace.kernel("k", ts=at - early_us, dur=10, correlation=trace.launch(ts=at))
    outcome = result(trace)

    assert outcome.parts() == {"span_ns": 210_000, "compute_ns": 30_000, "idle_ns": 180_000}
    assert ("clock" in outcome.codes) is told


def disjoint_clocks() -> TraceBuilder:
    """The host's clock counts from boot, the GPU's from 1970."""
    trace = TraceBuilder()
    for number in range(3):
        launch = trace.launch(ts=1000 + 100 * number)
        trace.kernel("k", ts=1_700_000_000_000_000 + 100 * number, dur=40, correlation=launch)
    return trace


def test_a19i_two_clocks_in_one_file_do_not_change_the_gpus_own_totals() -> None:
    assert result(disjoint_clocks()).parts() == {
        "span_ns": 240_000,
        "compute_ns": 120_000,
        "idle_ns": 120_000,
    }


def test_a19i_disjoint_ranges_of_host_and_gpu_are_told() -> None:
    """1.7e15 µs less the 1000 of the host's first event are 472,222 hours."""
    assert result(disjoint_clocks()).note("clocks_apart") == (
        "Host and GPU have clocks of their own, 472,222 hours apart: ops own the kernels that they launched, "
        "but why the GPU waited is not known."
    )


def test_a19j_times_and_ids_as_text_beyond_a_doubles_precision_are_exact() -> None:
    content = document(
        '{"ph":"X","cat":"cpu_op","name":"aten::mm","pid":1,"tid":1,"ts":"1700000000000000.001","dur":"50.000",'
        '"args":{"External id":"9007199254740993"}}',
        '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":"1700000000000010.001","dur":"5.002",'
        '"args":{"External id":"9007199254740993"}}',
        '{"ph":"X","cat":"cpu_op","name":"aten::other","pid":1,"tid":1,"ts":"1700000000000002.001","dur":"1.000",'
        '"args":{"External id":"9007199254740992"}}',
    )
    outcome = result_of(content)

    assert outcome.parts() == {"span_ns": 5_002, "compute_ns": 5_002}
    assert outcome.ops == {"aten::mm": 5_002}
