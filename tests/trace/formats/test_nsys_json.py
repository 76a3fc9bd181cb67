"""Exports of Nsight Systems as JSON: an event a line, names by number."""

from __future__ import annotations

import json

import pytest

from rooftrace.errors import NotATrace
from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder

GLOBAL_PID = str((1 << 48) | (300 << 24))
GLOBAL_TID = str((1 << 48) | (300 << 24) | 301)
NAMES = {"data": ["[Unknown]", "sgemm", "_Z5sgemm", "cudaLaunchKernel_v7000", "cudaMemcpyAsync_v3020"]}


def cuda(start: int, end: int, correlation: int, **what: object) -> dict[str, object]:
    event = {
        "startNs": str(start),
        "endNs": str(end),
        "correlationId": correlation,
        "deviceId": 1,
        "contextId": "1",
        "streamId": "7",
        "globalPid": GLOBAL_PID,
        **what,
    }
    return {"Type": 79, "CudaEvent": event}


def call(start: int, end: int, correlation: int, name: str) -> dict[str, object]:
    event = {"startNs": str(start), "endNs": str(end), "correlationId": correlation, "name": name}
    return {"Type": 48, "TraceProcessEvent": event | {"globalTid": GLOBAL_TID}}


def nvtx(start: int, end: int, text: str) -> dict[str, object]:
    event = {
        "Type": 59,
        "Timestamp": str(start),
        "EndTimestamp": str(end),
        "Text": text,
        "GlobalTid": GLOBAL_TID,
    }
    return {"Type": 59, "NvtxEvent": event}


EVENTS = [
    call(2_000, 4_000, 5, "3"),
    call(5_000, 6_000, 6, "4"),
    cuda(10_000, 30_000, 5, kernel={"demangledName": "1", "shortName": "1", "mangledName": "2", "gridX": 8}),
    cuda(40_000, 45_000, 6, memcpy={"sizebytes": "4096", "copyKind": "1", "srcKind": 1, "dstKind": 2}),
    cuda(0, 0, 7, cudaEventRecord={"eventId": 1}),
    cuda(46_000, 47_000, 8, sync={"syncType": "SYNCHRONIZATION_TYPE_STREAM_SYNCHRONIZE"}),
    nvtx(1_000, 7_000, "aten::mm, seq = 3, op_id = 5"),
    nvtx(0, 50_000, "iteration 16"),
]
EXPECTED = [
    ("RUNTIME", "cudaLaunchKernel", 2_000, 2_000),
    ("RUNTIME", "cudaMemcpyAsync", 5_000, 1_000),
    ("KERNEL", "_Z5sgemm", 10_000, 20_000),
    ("MEMCPY", "Memcpy HtoD (Pinned -> Device)", 40_000, 5_000),
    ("SYNC", "Stream Sync", 46_000, 1_000),
    ("CPU_OP", "aten::mm", 1_000, 6_000),
    ("ANNOTATION", "iteration 16", 0, 50_000),
]


def lines(*objects: object) -> bytes:
    return b"".join(json.dumps(one, separators=(",", ":")).encode() + b"\n" for one in objects)


STRINGS = [{"type": "String", "id": str(number), "value": value} for number, value in enumerate(NAMES["data"])]
LAYOUTS = {
    "names first": lines(NAMES, *EVENTS),
    "names last": lines(*EVENTS, NAMES),
    "names one by one": lines(*STRINGS, *EVENTS),
    "an array over lines": b"[\n" + lines(NAMES, *EVENTS).replace(b"}\n", b"},\n").rstrip(b",\n") + b"\n]\n",
    "an array on one line": json.dumps([NAMES, *EVENTS]).encode(),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_events_are_read_from_every_layout(folder: Folder, layout: str) -> None:
    trace, facts = folder.load(LAYOUTS[layout])

    assert facts.format == "plain, Nsight Systems JSON"
    assert events_of(trace) == EXPECTED
    assert trace.correlation.tolist() == [5, 6, 5, 6, 8, -1, -1]
    assert trace.device.tolist()[2:4] == [1, 1]
    assert trace.sequence.tolist()[5] == 3


def test_an_export_is_analysed(folder: Folder) -> None:
    result = analysed(folder, LAYOUTS["names first"])

    # 10 to 45 µs: a kernel of 20, a wait of 10, a copy of 5
    assert result.parts(device=1) == {
        "span_ns": 35_000,
        "compute_ns": 20_000,
        "exposed_copy_ns": 5_000,
        "idle_ns": 10_000,
    }
    assert "unknown_gpu" in result.codes


def test_a_damaged_line_costs_one_event(folder: Folder) -> None:
    content = lines(NAMES, EVENTS[0]) + b'{"Type":48,"TraceProc\n' + lines(*EVENTS[1:])
    offset = len(lines(NAMES, EVENTS[0]))

    trace = folder.trace(content)

    assert events_of(trace) == EXPECTED
    assert trace.dropped.counts == {"unreadable event": 1}
    assert trace.dropped.first_offset == {"unreadable event": offset}


def test_an_export_cut_short_keeps_its_lines(folder: Folder) -> None:
    for layout in ("names first", "an array on one line"):
        trace = folder.trace(LAYOUTS[layout][:-20])

        # without the last range, the first event is that of `aten::mm`, which begins at 1 µs
        assert events_of(trace) == [(kind, name, start - 1_000, dur) for kind, name, start, dur in EXPECTED[:6]]
        assert trace.dropped.counts == {"unreadable event": 1}


def test_a_name_that_is_no_utf8_is_mended(folder: Folder) -> None:
    trace = folder.trace(LAYOUTS["names first"].replace(b"iteration 16", b"iteration \xff"))

    assert events_of(trace)[6] == ("ANNOTATION", "iteration \ufffd", 0, 50_000)
    assert trace.repaired.counts == {"invalid UTF-8": 1}


@pytest.mark.parametrize("value", [None, "x", [], {}, -1, 1 << 70, 2.5], ids=repr)
def test_any_value_may_stand_in_any_field(folder: Folder, value: object) -> None:
    for field in ("deviceId", "streamId", "correlationId", "globalPid", "kernel"):
        event = json.loads(json.dumps(EVENTS[2]))
        event["CudaEvent"][field] = value
        trace = folder.trace(lines(NAMES, event, *EVENTS[3:]))
        assert ("MEMCPY", "Memcpy HtoD (Pinned -> Device)", 40_000, 5_000) in events_of(trace)


def test_a_long_array_on_one_line_is_read_in_parts(folder: Folder, monkeypatch) -> None:
    from rooftrace.trace import containers
    from rooftrace.trace.formats import nsys_json

    monkeypatch.setattr(nsys_json, "_LONG_LINE", 300)
    monkeypatch.setattr(containers, "CHUNK", 128)

    trace = folder.trace(LAYOUTS["an array on one line"])

    assert events_of(trace) == EXPECTED
    assert trace.dropped.counts == {}


def test_a_line_without_an_end_is_passed_over_and_counted(folder: Folder, monkeypatch) -> None:
    from rooftrace.trace import containers
    from rooftrace.trace.formats import nsys_json

    monkeypatch.setattr(nsys_json, "_MAX_LINE", 2000)
    monkeypatch.setattr(containers, "CHUNK", 512)

    trace = folder.trace(lines(NAMES, *EVENTS) + b'{"x":"' + b"x" * 4000 + b'"}')

    assert events_of(trace) == EXPECTED
    assert trace.dropped.counts["line without an end"] >= 1


def test_a_table_of_names_may_fill_what_is_looked_at(folder: Folder) -> None:
    names = {"data": [*NAMES["data"], *(f"a name of number {number}" for number in range(20_000))]}

    assert events_of(folder.trace(lines(names, *EVENTS))) == EXPECTED


def test_other_json_with_data_is_no_export(folder: Folder) -> None:
    with pytest.raises(NotATrace, match="is JSON without `traceEvents`"):
        folder.load(b'{"data":["a","b"],"rows":1}')
