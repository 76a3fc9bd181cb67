"""Every layout of a document gives its events and its envelope."""

from __future__ import annotations

import json

import pytest

from tests.support.trace_builder import TraceBuilder
from tests.trace.reading import Folder, cut_often, kernel, names_of, read_both, times_of

A, B = kernel("a", 10, 2).encode(), kernel("b", 15, 3.25).encode()
TIMES = [(10_000, 2_000), (15_000, 3_250)]


def pretty(events: bytes = A + b"," + B) -> bytes:
    return json.dumps({"schemaVersion": 1, "traceEvents": json.loads(b"[" + events + b"]")}, indent=4).encode()


# text, layout, whether the array is closed
DOCUMENTS = {
    "object": (b'{"schemaVersion":1,"traceEvents":[' + A + b"," + B + b"]}", "object", True),
    "events alone": (b'{"traceEvents":[' + A + b"," + B + b"]}", "object", True),
    "bare array": (b"[" + A + b"," + B + b"]", "array", True),
    "bare array on lines": (b"[\n" + A + b",\n" + B + b"\n]\n", "array", True),
    "bare array never closed": (b"[\n" + A + b",\n" + B + b",\n", "array", False),
    "pretty-printed": (pretty(), "object", True),
    "pretty-printed with CRLF": (pretty().replace(b"\n", b"\r\n"), "object", True),
    "pretty-printed with tabs": (pretty().replace(b"    ", b"\t"), "object", True),
    "byte order mark": (b"\xef\xbb\xbf" + b'{"traceEvents":[' + A + b"," + B + b"]}", "object", True),
    "byte order mark, bare array": (b"\xef\xbb\xbf[" + A + b"," + B + b"]", "array", True),
    "white space before": (b" \r\n\t" + b'{"traceEvents":[' + A + b"," + B + b"]}", "object", True),
    "zeros behind": (b'{"traceEvents":[' + A + b"," + B + b"]}" + bytes(5000), "object", True),
    "trailing comma": (b'{"traceEvents":[' + A + b"," + B + b",]}", "object", True),
    "trailing comma on a line": (b'{"traceEvents": [\n' + A + b",\n" + B + b",\n]}\n", "object", True),
    "trailing empty event": (b'{"traceEvents":[' + A + b"," + B + b",{}]}", "object", True),
    "object not closed": (b'{"traceEvents":[' + A + b"," + B + b"]", "object", True),
    "array not closed": (b'{"traceEvents":[' + A + b"," + B, "object", False),
    "array ends in a comma": (b'{"traceEvents":[' + A + b"," + B + b",", "object", False),
    "cut in the envelope": (b'{"traceEvents":[' + A + b"," + B + b'],"traceName":"x', "object", True),
    "events in events": (b'{"traceEvents":[{"traceEvents":[' + A + b"," + B + b"]}]}", "object", True),
    "events in a document in an array": (b'[{"traceEvents":[' + A + b"," + B + b"]}]", "object", True),
}


@pytest.mark.parametrize("case", DOCUMENTS)
@pytest.mark.parametrize("block", [1 << 20, 64], ids=["one piece", "many pieces"])
def test_both_events_are_read_from_every_layout(folder: Folder, monkeypatch, case: str, block: int) -> None:
    content, layout, closed = DOCUMENTS[case]
    cut_often(monkeypatch, block, block)

    trace, facts = folder.load(content)

    assert times_of(trace) == TIMES
    assert names_of(trace) == ["a", "b"]
    assert facts.format == f"plain, {layout}"
    assert facts.truncated == (None if closed else "the event array is not closed")
    assert trace.dropped.counts == {}
    assert trace.repaired.counts == {}


def test_the_header_is_read_before_and_behind_the_events(folder: Folder) -> None:
    content = (
        b'{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"H100"},{"id":1,"name":"H100"}],"cupti_version":26,'
        b'"distributedInfo":{"rank":3,"world_size":8},"username":"someone","traceEvents":['
        + A
        + b"],"
        + b'"baseTimeNanoseconds":1700000000000000000,"displayTimeUnit":"ms","with_stack":1,"traceName":"a}b.json"}'
    )

    assert folder.trace(content).header == {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": "H100"}, {"id": 1, "name": "H100"}],
        "identities": {"user": ["someone"]},  # so that it can be redacted
        "distributedInfo": {"rank": 3, "world_size": 8},
        "baseTimeNanoseconds": 1_700_000_000_000_000_000,
        "displayTimeUnit": "ms",
        "traceName": "a}b.json",
        "with_stack": 1,
        "cupti_version": 26,
    }


HEADED = {
    "in a document": b'{"traceName":"outer","traceEvents":[%s]}',
    "in an array": b"[%s]",
    "in an array behind others": b'[{"x":[]},{"y":{"z":"{"}},%s]',
    "under keys": b'{"a":{"b":{"c":"}"},"d":%s}}',
}


@pytest.mark.parametrize("block", [1 << 20, 64], ids=["one piece", "many pieces"])
@pytest.mark.parametrize("case", HEADED)
def test_a_document_in_another_keeps_its_own_header(folder: Folder, monkeypatch, case: str, block: int) -> None:
    cut_often(monkeypatch, block, block)
    inner = b'{"schemaVersion":1,"distributedInfo":{"rank":3},"traceEvents":[' + A + b"," + B + b'],"with_stack":1}'

    trace = folder.trace(HEADED[case] % inner)

    assert times_of(trace) == TIMES
    assert (trace.dropped.counts, trace.repaired.counts) == ({}, {})
    assert trace.header["distributedInfo"] == {"rank": 3}
    assert "damaged" not in trace.header


def test_the_header_of_an_array_of_documents_is_that_of_the_first(folder: Folder) -> None:
    documents = [b'{"distributedInfo":{"rank":%d},"traceEvents":[' % rank + A + b"]}" for rank in range(3)]

    trace = folder.trace(b"[" + b",".join(documents) + b"]")

    assert times_of(trace) == TIMES[:1]
    assert trace.header["distributedInfo"] == {"rank": 0}
    assert trace.dropped.counts.keys() == {"second trace in the same file"}


def test_devices_behind_the_events_are_no_events(folder: Folder) -> None:
    devices = b'"deviceProperties":[{"id":0,"name":"A100"},{"id":1,"name":"A100"},{"id":2,"name":"A100"}]'

    trace = folder.trace(b'{"traceEvents":[' + A + b"," + B + b"]," + devices + b',"traceName":"x"}')

    assert (trace.event_count, trace.dropped.counts) == (2, {})
    assert [device["id"] for device in trace.header["deviceProperties"]] == [0, 1, 2]


def test_log_lines_in_the_envelope_may_be_broken(folder: Folder) -> None:
    # Kineto wrote its own log lines there without escaping them.
    logs = b'"WARNING": ["function "cbapi->getCuptiStatus()" failed"],'

    before = folder.trace(b'{"schemaVersion": 1,' + logs + b'"record_shapes": 1,"traceEvents":[' + A + b"]}")
    behind = folder.trace(b'{"schemaVersion": 1,"traceEvents":[' + A + b"]," + logs + b'"record_shapes": 1}')

    assert before.header == {"schemaVersion": 1, "record_shapes": 1, "damaged": True}
    assert behind.header == {"schemaVersion": 1, "record_shapes": 1}


def test_a_header_with_the_array_in_a_string_is_not_the_array(folder: Folder) -> None:
    note = json.dumps({"note": 'holds "traceEvents":[{"ph":"X"}] and },{'})[1:-1].encode()

    assert names_of(folder.trace(b"{" + note + b',"traceEvents":[' + A + b"]}")) == ["a"]


def test_events_without_a_duration_of_their_own_are_counted_and_not_kept(folder: Folder) -> None:
    # metadata, an instant, a counter, a begin and its end: none is a complete event
    others = [
        b'{"ph":"M","name":"process_name","pid":0,"tid":0,"ts":0,"args":{"name":"python"}}',
        b'{"ph":"i","name":"Record Window End","pid":"","tid":"","ts":20,"s":"g"}',
        b'{"ph":"C","name":"GPU 0 Counters","pid":0,"ts":12,"args":{"sm":1.5}}',
        b'{"ph":"B","name":"x","pid":0,"tid":1,"ts":12}',
        b'{"ph":"E","name":"x","pid":0,"tid":1,"ts":13}',
    ]

    trace = folder.trace(b'{"schemaVersion":1,"traceEvents":[' + b",".join([A, *others, B]) + b"]}")

    assert times_of(trace) == TIMES
    assert trace.event_count == 7


def test_a_second_trace_in_the_same_file_is_reported(folder: Folder) -> None:
    first = b'{"traceEvents":[' + A + b"," + B + b"]}"

    trace = folder.trace(first + b"\n" + first)

    assert times_of(trace) == TIMES
    assert trace.dropped.counts == {"second trace in the same file": 2}
    assert trace.dropped.first_offset == {"second trace in the same file": len(first) + 2}  # newline and bracket


@pytest.mark.parametrize("text", ["},{", "]", '"traceEvents":[', '"}],"x":[{"', "[[[[", '\\"},{\\"', "\\\\"])
@pytest.mark.parametrize("block", [1 << 20, 64, 200], ids=["one piece", "small pieces", "middling pieces"])
def test_structure_in_a_name_or_an_argument_is_text(folder: Folder, monkeypatch, text: str, block: int) -> None:
    cut_often(monkeypatch, block, block)
    builder = TraceBuilder()
    builder.kernel(f"before {text}", ts=10, dur=2, note=text)
    builder.kernel(text, ts=15, dur=3.25, note=f"{text}{text}")
    builder.op(f"{text} after", ts=20, dur=1, dims=[[2, 3]], types=[text], concrete=[text])

    trace = folder.trace(builder.json())

    assert times_of(trace) == [*TIMES, (20_000, 1_000)]
    assert names_of(trace) == [f"before {text}", text, f"{text} after"]
    assert trace.signatures[0].types == [text]
    assert (trace.repaired.counts, trace.dropped.counts) == ({}, {})


@pytest.mark.parametrize("block", [1 << 20, 64, 500], ids=["one piece", "small pieces", "middling pieces"])
def test_objects_in_arguments_are_no_events(folder: Folder, monkeypatch, block: int) -> None:
    cut_often(monkeypatch, block, block)
    builder = TraceBuilder()
    groups = [{"rank": rank, "peers": [{"rank": peer} for peer in range(3)]} for rank in range(40)]
    builder.kernel("a", ts=10, dur=2, groups=groups)
    builder.kernel("b", ts=15, dur=3.25, occupancy={"blocks": [{"n": 1}], "limits": {}})

    trace = folder.trace(builder.json())

    assert times_of(trace) == TIMES
    assert (trace.event_count, trace.dropped.counts) == (2, {})


@pytest.mark.parametrize("width", [100, 5_000, 200_000])
def test_an_event_may_be_longer_than_many_pieces(folder: Folder, monkeypatch, width: int) -> None:
    cut_often(monkeypatch, 4096, 1024)
    builder = TraceBuilder()
    builder.kernel("a", ts=10, dur=2)
    builder.kernel("x" * width, ts=11, dur=1, lines=[{"at": n} for n in range(width // 10)], note="},{" * (width // 3))
    builder.kernel("b", ts=15, dur=3.25)

    trace = folder.trace(builder.json())

    assert times_of(trace) == [TIMES[0], (11_000, 1_000), TIMES[1]]
    assert (trace.repaired.counts, trace.dropped.counts) == ({}, {})


def test_an_event_may_be_cut_where_no_boundary_is_near(folder: Folder, monkeypatch) -> None:
    cut_often(monkeypatch, 8, 8)  # a piece without a boundary is handed on after 32 blocks: 256 bytes

    trace = folder.trace(b'{"traceEvents":[' + A + b"," + kernel("x" * 3000, 11, 1).encode() + b"," + B + b"]}")

    assert times_of(trace) == [TIMES[0], (11_000, 1_000), TIMES[1]]
    assert (trace.repaired.counts, trace.dropped.counts) == ({}, {})


def test_every_layout_that_is_valid_json_reads_the_same_by_both_readers(folder: Folder) -> None:
    from tests.trace.reading import assert_same

    for case in ("object", "events alone", "bare array", "pretty-printed with CRLF", "trailing empty event"):
        assert_same(*read_both(folder.write(DOCUMENTS[case][0])))


def test_an_array_without_events_has_no_trace_but_is_read(folder: Folder) -> None:
    fast, reference = read_both(folder.write(b'{"schemaVersion":1,"traceEvents":[ ],"traceName":"x"}'))

    assert fast.event_count == reference.event_count == 0
    assert fast.header == reference.header == {"schemaVersion": 1, "traceName": "x"}
