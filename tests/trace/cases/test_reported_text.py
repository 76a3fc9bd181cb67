"""Reported cases, A1: files that do not parse. Every intact event is kept; what was mended or lost is counted."""

from __future__ import annotations

import gzip
import json

import pytest

from rooftrace.errors import NotATrace
from tests.support.trace_builder import zip_of
from tests.trace.cases.runs import result_of
from tests.trace.reading import document, kernel

BEFORE, BEHIND = kernel("before", 10, 10), kernel("behind", 30, 10)
# From 10 to 40 µs with two kernels of 10.
BOTH = {"span_ns": 30_000, "compute_ns": 20_000, "idle_ns": 10_000}
OFFSET = len(document(BEFORE)) - len('],"traceName":"t"}') + 1


def frame(name: bytes) -> bytes:
    return b'{"ph":"X","cat":"python_function","name":"' + name + b'","pid":1,"tid":1,"ts":15,"dur":5}'


# the damaged event, the reason, whether it is lost
CASES = {
    "A-1 freed bytes in a name": (
        frame(b"torch/_inductor/config.py(0): \x8f\xfe\x01"),
        ["control character in a string", "invalid UTF-8"],
        False,
    ),
    "A-2 stray quotes of Python 3.11": (frame(b'f"g"h'), ["unescaped quote in a name"], False),
    "A-3 a dict in a name": (
        frame(b'{"device": "cpu", "x": [1]}(12): run'),
        ["unescaped quote in a name"],
        False,
    ),
    "A-4 a source line in a name": (
        frame(b'x = "a\n  b"'),
        ["control character in a string", "unescaped quote in a name"],
        False,
    ),
    "A-5 a Windows path": (frame(b"torch\\cuda\\__init__.py(219): f"), ["unknown escape in a string"], False),
    "A-7 a quote missing before a key": (
        b'{"ph":"X","cat":"kernel","name":"k","pid":0,tid": 0,"ts":20,"dur":5}',
        ["unreadable event"],
        True,
    ),
    "A-8 infinite bandwidth": (
        b'{"ph":"X","cat":"overhead","name":"x","pid":-1,"tid":0,"ts":15,"dur":0,"args":{"memory bandwidth":inf}}',
        ["not a finite number"],
        False,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_event_costs_itself_at_most_and_is_told_with_its_place(case: str) -> None:
    event, reasons, lost = CASES[case]
    outcome = result_of(document(BEFORE, event, BEHIND))

    assert outcome.parts() == BOTH
    code, verb = ("dropped", "dropped") if lost else ("repaired", "repaired")
    assert [note.text for note in outcome.health.notes if note.code == code] == [
        f"1 events {verb}: {reason}, the first at byte {OFFSET}." for reason in reasons
    ]


def test_a6_import_frames_by_the_thousand_with_control_characters_are_read() -> None:
    frames = [frame(b"torch/_dynamo/x.py(1): \x02" if number % 10 == 0 else b"unknown") for number in range(5000)]
    outcome = result_of(document(BEFORE, *frames, BEHIND))

    assert outcome.parts() == BOTH
    assert outcome.trace.repaired.counts == {"control character in a string": 500}


def test_a9_log_lines_that_are_no_json_and_empty_metadata_do_not_hide_the_events() -> None:
    logs = b'{"schemaVersion":1,,"WARNING":["it said "no""],"ERROR":[a\n],'
    outcome = result_of(logs + b'"traceEvents":[' + f"{BEFORE},{BEHIND}".encode() + b"],}")

    assert outcome.parts() == BOTH
    assert outcome.note("repaired") == ("The header is damaged: what could be read of it is used, keys may be missing.")


FIFTY = document(*(kernel(f"k{number}", 10 * number, 5) for number in range(50)))


def test_a10_of_two_ranks_that_wrote_one_file_every_intact_event_is_kept_and_the_cause_is_told() -> None:
    """The second writer's beginning stands amid the first one's events: the cut one is lost, both of it are read.

    Kernels of 5 µs at 0, 10 … 240; those of 10 µs at 10 and 30 add 5 µs each: 25 * 5 + 2 * 5.
    """
    outcome = result_of(FIFTY[: len(FIFTY) // 2] + document(BEFORE, BEHIND))

    assert outcome.trace.kind.size == 25 + 2
    assert outcome.parts() == {"span_ns": 245_000, "compute_ns": 135_000, "idle_ns": 110_000}
    assert outcome.note("dropped") == (
        "1 events dropped: beginning of another trace: several ranks wrote this file, the first at byte "
        f"{FIFTY.index(kernel('k25', 250, 5).encode())}."
    )


def test_a10_what_a_longer_trace_left_behind_a_shorter_one_is_told_and_not_mixed_in() -> None:
    """Two ranks wrote from the same place on: the rest of the longer file stands behind the end of the shorter."""
    longer = document(*(kernel(f"j{number}", 10 * number, 5) for number in range(60)))
    rest = longer[len(FIFTY) :]
    outcome = result_of(FIFTY + rest)

    assert outcome.parts() == {"span_ns": 495_000, "compute_ns": 250_000, "idle_ns": 245_000}
    # of j0 … j59, each as long as one of k0 … k49, those behind the length of fifty: j50 is cut
    assert outcome.note("dropped") == (
        "9 events dropped: event behind the end of the trace: several ranks wrote this file, "
        f"the first at byte {longer.index(kernel('j51', 510, 5).encode())}."
    )


def test_a10_a_name_that_speaks_of_events_is_no_beginning_of_a_trace() -> None:
    named = kernel('{\\"traceEvents\\":[{\\"ph\\":', 30, 10)
    outcome = result_of(document(BEFORE, named, '{"ph":"X","ts":nan}'))

    assert outcome.parts() == BOTH
    assert "dropped" not in outcome.codes or "another trace" not in outcome.note("dropped")


def test_a11_a_gzip_file_of_nothing_says_so() -> None:
    with pytest.raises(NotATrace, match="holds 0 bytes of JSON inside gzip"):
        result_of(gzip.compress(b""))


def test_a12_a_top_level_array_of_the_legacy_profiler_is_analysed_as_cpu_only() -> None:
    events = [
        {"ph": "X", "name": "aten::mm", "ts": 10, "dur": 5, "tid": 1, "pid": "CPU functions", "args": {}},
        {"ph": "X", "name": "aten::add", "ts": 20, "dur": 5, "tid": 1, "pid": "CPU functions", "args": {}},
    ]
    outcome = result_of(json.dumps(events).encode())

    assert outcome.prepared.workload.ledgers == []
    assert "no_gpu_events" in outcome.codes


def test_a12_the_ops_of_the_legacy_profiler_are_ops() -> None:
    event = {"ph": "X", "name": "aten::mm", "ts": 10, "dur": 5, "tid": 1, "pid": "CPU functions", "args": {}}

    assert "no_ops" not in result_of(json.dumps([event]).encode()).codes


@pytest.mark.parametrize("kept", [0.3, 0.6, 0.95])
def test_a14_of_a_trace_whose_writer_was_killed_the_prefix_is_analysed(kept: float) -> None:
    whole = document(*(kernel(f"k{number}", 10 * number, 5) for number in range(100)))
    outcome = result_of(whole[: int(len(whole) * kept)])

    count = outcome.trace.kind.size
    assert outcome.parts()["compute_ns"] == count * 5_000
    assert outcome.note("truncated") == (
        f"The file is cut short (the event array is not closed); the {count} intact events before are analysed."
    )


def test_events_in_events_and_several_members_of_gzip_are_read() -> None:
    inner = b'{"traceEvents":[{"traceEvents":[' + f"{BEFORE},{BEHIND}".encode() + b"]}]}"
    members = document(BEFORE, BEHIND)

    assert result_of(inner).parts() == BOTH
    assert result_of(gzip.compress(members[:100]) + gzip.compress(members[100:])).parts() == BOTH


def test_an_execution_trace_with_missing_commas_is_refused_by_its_name() -> None:
    with pytest.raises(NotATrace, match="looks like a PyTorch execution trace"):
        result_of(b'{"schema":"1.0.1","pid":1 "nodes":[{"id":1}{"id":2}]')


def test_an_archive_of_ranks_is_told_with_the_one_that_is_analysed() -> None:
    outcome = result_of(zip_of({"rank0.json": document(BEFORE, BEHIND), "rank1.json": document(BEFORE)}))

    assert outcome.parts() == BOTH
    assert outcome.note("several_traces") == (
        "The archive holds 2 traces; `rank0.json` is analysed. Unpack it to analyse the others."
    )
