"""Times become exact integer nanoseconds and ids whole numbers, however they are spelt."""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.calltree import build_tree, collect_activities
from rooftrace.trace import Kind
from tests.support.trace_builder import TraceBuilder
from tests.trace.reading import Folder, assert_same, document, kernel, names_of, read_both, times_of

EXACT = {
    "whole": ("7", 7_000),
    "three decimals": ("7.001", 7_001),
    "one decimal": ("7.5", 7_500),
    "boot time": ("86400000000.123", 86_400_000_000_123),
    "below a century of uptime": ("4398046511103.999", 4_398_046_511_103_999),  # 2^42 - 0.001
    "just below the limit of floats": ("8796093022207.999", 8_796_093_022_207_999),  # 2^43 - 0.001
    "just above the limit of floats": ("8796093022208.001", 8_796_093_022_208_001),
    "absolute, whole": ("1661938466265032", 1_661_938_466_265_032_000),
    "absolute, three decimals": ("1661938466265032.125", 1_661_938_466_265_032_125),
    "absolute, decimals no float holds": ("1661938466265032.001", 1_661_938_466_265_032_001),
    "absolute, one decimal": ("1661938466265032.5", 1_661_938_466_265_032_500),
    "absolute, six decimals": ("1661938466265032.125000", 1_661_938_466_265_032_125),
    "exponent": ("1.5e3", 1_500_000),
    "absolute, exponent": ("1.661938466265032125E15", 1_661_938_466_265_032_125),
    "text": ('"7.001"', 7_001),
    "text, absolute": ('"1661938466265032.125"', 1_661_938_466_265_032_125),
    "text with spaces": ('" 7 "', 7_000),
    "before the base": ("-2.5", -2_500),
}


@pytest.mark.parametrize("case", EXACT)
def test_a_time_becomes_exact_nanoseconds(folder: Folder, case: str) -> None:
    text, ns = EXACT[case]

    trace = folder.trace(document(kernel("k", text, 1)))

    assert times_of(trace) == [(ns, 1_000)]
    assert trace.base_ns == ns


def test_one_exact_time_among_many_does_not_change_the_others(folder: Folder) -> None:
    trace = folder.trace(document(kernel("a", "8796093022208.001"), kernel("b", "8796093022208"), kernel("c", "3.25")))

    # less 3,250 ns, where the trace begins
    assert trace.start.tolist() == [8_796_093_022_204_751, 8_796_093_022_204_750, 0]


DURATIONS = {
    "zero": ("0", 0),
    "a nanosecond": ("0.001", 1),
    "text": ('"2.5"', 2_500),
    "rounded to a nanosecond": ("1.0004", 1_000),
    "rounded up": ("1.0006", 1_001),
}


@pytest.mark.parametrize("case", DURATIONS)
def test_a_duration_becomes_exact_nanoseconds(folder: Folder, case: str) -> None:
    text, ns = DURATIONS[case]

    trace = folder.trace(document(kernel("k", 5, text)))

    assert trace.dur.tolist() == [ns]
    assert trace.repaired.counts == {}


# text of a duration, reason
MENDED = {
    "null": ("null", "event without a duration"),
    "no number": ('"long"', "event without a duration"),
    "true": ("true", "event without a duration"),
    "negative": ("-3", "GPU event with a negative duration"),
    "unfinished": ("-1", "GPU event with a negative duration"),
    "out of range": ("1e300", "event without a duration"),
    "out of all ranges": ("1e999999", "event without a duration"),
}


@pytest.mark.parametrize("case", MENDED)
def test_a_duration_that_is_none_is_empty_and_counted(folder: Folder, case: str) -> None:
    text, reason = MENDED[case]

    trace = folder.trace(document(kernel("a", 5, 2), kernel("k", 6, text)))

    assert trace.dur.tolist() == [2_000, 0]
    assert trace.repaired.counts == {reason: 1}


@pytest.mark.parametrize("text", ["NaN", "inf", "-Infinity"])
def test_a_duration_that_is_not_finite_is_empty_and_counted_twice(folder: Folder, text: str) -> None:
    trace = folder.trace(document(kernel("a", 5, 2), kernel("k", 6, text)))

    assert trace.dur.tolist() == [2_000, 0]
    assert trace.repaired.counts == {"not a finite number": 1, "event without a duration": 1}


def test_a_missing_duration_is_empty_and_counted(folder: Folder) -> None:
    trace = folder.trace(document('{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1}'))

    assert times_of(trace) == [(1_000, 0)]
    assert trace.repaired.counts == {"event without a duration": 1}


def test_an_unfinished_host_event_reaches_to_the_end_of_the_window(folder: Folder) -> None:
    builder = TraceBuilder()
    builder.python("forward", ts=10, dur=-1)
    builder.op("aten::mm", ts=12, dur=-4)
    builder.kernel("k", ts=20, dur=30)

    trace = folder.trace(builder.json())

    assert times_of(trace) == [(10_000, 40_000), (12_000, 0), (20_000, 30_000)]  # to 20 + 30 µs
    assert trace.repaired.counts == {"unfinished host event": 1, "host event with a negative duration": 1}


ABSENT = {
    "null": "null",
    "no number": '"soon"',
    "list": "[1]",
    "out of range": "1e30",
    "out of all ranges": "-1e999999",
    "beyond all clocks": "4700000000000000",  # µs since 1970: the year 2118
}


@pytest.mark.parametrize("case", ABSENT)
def test_an_event_without_a_time_is_dropped_and_counted(folder: Folder, case: str) -> None:
    trace = folder.trace(document(kernel("k", ABSENT[case]), kernel("a", 5, 2)))

    assert times_of(trace) == [(5_000, 2_000)]
    assert trace.dropped.counts == {"event without a time": 1}


def test_a_flow_without_a_time_is_dropped_and_counted(folder: Folder) -> None:
    flow = '{"ph":"s","id":1,"pid":1,"tid":1,"cat":"ac2g","name":"ac2g"}'

    trace = folder.trace(document(kernel("a", 5, 2), flow))

    assert trace.flows.ts.tolist() == []
    assert trace.dropped.counts == {"flow without a time": 1}


def test_events_at_zero_beside_a_running_clock_were_never_stamped(folder: Folder) -> None:
    minute = 60_000_000  # µs
    builder = TraceBuilder()
    builder.kernel("lost", ts=0, dur=5)
    builder.op("lost too", ts=0, dur=5)
    builder.kernel("before the clock", ts=-1, dur=5)
    builder.kernel("k", ts=minute + 1, dur=5)

    trace = folder.trace(builder.json())

    assert names_of(trace) == ["k"]
    assert trace.dropped.counts == {"GPU event at time zero": 2, "host event at time zero": 1}


def test_events_at_zero_of_a_clock_that_starts_there_are_kept(folder: Folder) -> None:
    builder = TraceBuilder()
    builder.kernel("first", ts=0, dur=5)
    builder.kernel("second", ts=59_000_000, dur=5)

    assert names_of(folder.trace(builder.json())) == ["first", "second"]


IDS = {
    "number": ("5", 5),
    "text": ('"5"', 5),
    "hexadecimal text": ('"0x10"', 16),
    "float": ("5.0", 5),
    "beyond 2^53": ("9007199254740993", 9_007_199_254_740_993),
    "largest signed": ("9223372036854775807", 2**63 - 1),
    "unsigned": ("9223372036854775808", 2**62),
    "larger unsigned": ("18446744073709551614", 2**63 - 2),
    "largest unsigned is none": ("18446744073709551615", -1),
    "beyond 64 bits": ("18446744073709551616", -1),
    "null": ("null", -1),
    "no number": ('"abc"', -1),
    "list": ("[5]", -1),
    "empty text": ('""', -1),
}


@pytest.mark.parametrize("case", IDS)
def test_an_id_is_a_whole_number_or_none(folder: Folder, case: str) -> None:
    text, number = IDS[case]
    args = f'{{"correlation":{text},"External id":{text},"stream":{text},"bytes":{text}}}'

    trace = folder.trace(document(kernel("a", 1, 1, '{"correlation":3,"stream":7}'), kernel("k", 2, 1, args)))

    assert trace.correlation.tolist() == [3, number]
    assert trace.external_id.tolist() == [-1, number]
    assert trace.stream.tolist() == [7, number]
    assert trace.nbytes.tolist() == [-1, number if number <= 10**15 else -1]  # more than a petabyte is damage


def test_a_device_beyond_32_bits_is_unknown(folder: Folder) -> None:
    trace = folder.trace(document(kernel("a", 1, 1, '{"device":3}'), kernel("b", 2, 1, '{"device":4294967296}')))

    assert trace.device.tolist() == [3, -1]


def test_flow_ids_of_any_form_pair_up(folder: Folder) -> None:
    forms = ["7", '"0x1f"', '"launch-3"', "18446744073709551614"]
    half = '{{"ph":"{}","id":{},"pid":1,"tid":1,"ts":5,"cat":"ac2g","name":"ac2g"}}'
    halves = [half.format(ph, form) for form in forms for ph in "sf"]

    flows = folder.trace(document(kernel(), *halves)).flows

    assert flows.id[0::2].tolist() == flows.id[1::2].tolist()
    assert flows.id[0::2].tolist()[:2] == [7, 31]
    assert len(np.unique(flows.id)) == 4
    assert flows.is_start.tolist() == [True, False] * 4


NO_ARGUMENTS = {
    "missing": '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":2,"dur":1}',
    "null": kernel("k", 2, 1, "null"),
    "empty": kernel("k", 2, 1, "{}"),
    "text": kernel("k", 2, 1, '"none"'),
    "list": kernel("k", 2, 1, "[1,2]"),
}


@pytest.mark.parametrize("case", NO_ARGUMENTS)
def test_an_event_needs_no_arguments(folder: Folder, case: str) -> None:
    trace = folder.trace(document(kernel("a", 1, 1, '{"stream":7}'), NO_ARGUMENTS[case]))

    assert times_of(trace) == [(1_000, 1_000), (2_000, 1_000)]
    assert trace.stream.tolist() == [7, -1]
    assert (trace.repaired.counts, trace.dropped.counts) == ({}, {})


def test_names_categories_and_lanes_may_be_of_any_type(folder: Folder) -> None:
    event = '{"ph":"X","name":null,"pid":null,"tid":1.5,"ts":2,"dur":1}'
    other = '{"ph":"X","cat":3,"name":12,"pid":"Spans","tid":-7,"ts":3,"dur":1}'

    trace = folder.trace(document(kernel("a"), event, other))

    assert names_of(trace) == ["a", "", "12"]
    assert trace.kind.tolist() == [Kind.KERNEL, Kind.OTHER, Kind.OTHER]
    assert [trace.lanes[code] for code in trace.lane.tolist()] == [(0, 7), ("None", "1.5"), ("Spans", -7)]


def test_names_of_five_thousand_characters_and_other_scripts_are_kept(folder: Folder) -> None:
    long, other = "void at::native::" + "x" * 5_160, "核函数 ✓ é"
    builder = TraceBuilder()
    builder.kernel(long, ts=1, dur=1)
    builder.kernel(other, ts=2, dur=1)

    raw = folder.trace(builder.json().decode().encode())
    unescaped = folder.trace(document(kernel(other)))

    assert names_of(raw) == [long, other]
    assert names_of(unescaped) == [other]


def test_what_is_recorded_is_found_in_its_column(folder: Folder) -> None:
    builder = TraceBuilder()
    builder.op(
        "aten::mm",
        ts=1,
        dur=8,
        dims=[[4, 5], [5, 6], []],
        types=["float", "float", "Scalar"],
        strides=[[5, 1], [6, 1], []],
        concrete=["", "", "1"],
        sequence=11,
        forward_thread=2,
        external_id=5,
    )
    correlation = builder.launch(ts=3, external_id=5)
    builder.kernel("gemm", ts=6, dur=4, stream=9, device=1, correlation=correlation, external_id=5)
    builder.memcpy("HtoD", ts=11, dur=1, bytes=4096, stream=9, device=1)
    builder.memset(ts=12, dur=1, bytes=64, stream=9, device=1)
    builder.gpu_annotation("step", ts=6, dur=7, stream=9, device=1)
    builder.flow(correlation, ts=3, to_ts=6, stream=9, device=1)

    trace = folder.trace(builder.json())

    assert [Kind(kind).name for kind in trace.kind] == [
        "CPU_OP",
        "RUNTIME",
        "KERNEL",
        "MEMCPY",
        "MEMSET",
        "GPU_ANNOTATION",
    ]
    assert trace.correlation.tolist() == [-1, 1, 1, -1, -1, -1]
    assert trace.external_id.tolist() == [5, -1, 5, -1, -1, -1]
    assert trace.device.tolist() == [-1, -1, 1, 1, 1, 1]
    assert trace.stream.tolist() == [-1, -1, 9, 9, 9, 9]
    assert trace.sequence.tolist() == [11, -1, -1, -1, -1, -1]
    assert trace.forward_thread.tolist() == [2, -1, -1, -1, -1, -1]
    assert trace.nbytes.tolist() == [-1, -1, -1, 4096, 64, -1]
    inputs = trace.signatures[trace.inputs[0]]
    assert (inputs.dims, inputs.strides) == ([[4, 5], [5, 6], []], [[5, 1], [6, 1], []])
    assert (inputs.types, inputs.concrete) == (["float", "float", "Scalar"], ["", "", "1"])
    assert trace.inputs.tolist()[1:] == [-1] * 5
    assert trace.flows.ts.tolist() == [2_000, 5_000]  # from the first event on, which is at 1 µs
    assert trace.end.tolist()[2] == 9_000


def test_both_readers_give_the_same_values(folder: Folder) -> None:
    events = [kernel(f"t{n}", text, 1) for n, (text, _) in enumerate(EXACT.values())]
    events += [kernel(f"d{n}", 3, text) for n, (text, _) in enumerate(DURATIONS.values())]
    events += [kernel("i", 4, 1, f'{{"correlation":{text},"bytes":{text}}}') for text, _ in IDS.values()]
    events += list(NO_ARGUMENTS.values())

    assert_same(*read_both(folder.write(document(*events))))


def test_an_event_longer_than_a_hundred_days_counts_as_empty():
    builder = TraceBuilder()
    for stream in range(5):
        builder.kernel("k", ts=stream, dur=4e15, stream=stream)
    trace = builder.build()

    assert trace.dur.tolist() == [0] * 5
    assert trace.repaired.counts == {"event of impossible length": 5}


def copies(*sizes):
    """A trace of copies of some bytes, with 7 to 9 as correlations."""
    builder = TraceBuilder()
    for number, nbytes in enumerate(sizes):
        builder.memcpy("HtoD", ts=10 * number, dur=5, correlation=7 + number, bytes=nbytes)
    return builder.build()


# the largest size in a trace, and the bytes it takes: twice the size has to fit too
WIDTHS = {63: 1, 64: 2, 2**14 - 1: 2, 2**14: 4, 2**30 - 1: 4, 2**30: 8, 2**40: 8}


@pytest.mark.parametrize("size", WIDTHS)
def test_sizes_take_as_few_bytes_as_all_of_them_need(size):
    trace = copies(1, size, 5)

    assert trace.nbytes.itemsize == WIDTHS[size]
    assert trace.nbytes.tolist() == [1, size, 5]
    assert (trace.correlation.itemsize, trace.correlation.tolist()) == (1, [7, 8, 9])


def test_sums_are_made_of_64_bits():
    small = copies(*[2**30 - 1] * 3)  # three times 2^30 is more than 32 bits hold

    activities = collect_activities(small, build_tree(small))
    assert activities.nbytes.sum() == 3 * (2**30 - 1)
    assert activities.nbytes.dtype == np.int64


def test_a_kernel_that_is_written_twice_runs_once():
    builder = TraceBuilder()
    for correlation, at in ((1, 0.0), (1, 0.0), (2, 0.0), (3, 9.0)):  # the third only looks like the first two
        builder.kernel("gemm", ts=at, dur=4, correlation=correlation, stream=7)
    builder.kernel("empty", ts=20, dur=0, correlation=4, stream=7)
    builder.kernel("empty", ts=20, dur=0, correlation=4, stream=7)
    for _ in range(2):
        builder.kernel("of no known launch", ts=30, dur=4, stream=7)
    trace = builder.build()

    assert trace.correlation.tolist() == [1, 2, 3, 4, 4, -1, -1]
    assert trace.dropped.counts == {"GPU event written twice": 1}
