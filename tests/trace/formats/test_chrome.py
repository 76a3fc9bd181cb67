"""Chrome traces of other writers: halves of events are joined, lanes tell what is a kernel."""

from __future__ import annotations

import json

from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder


def document(*events: dict[str, object], **envelope: object) -> bytes:
    return json.dumps({"traceEvents": list(events), "displayTimeUnit": "ns", **envelope}).encode()


def meta(what: str, pid: int, text: str, tid: int = 0) -> dict[str, object]:
    return {
        "ph": "M",
        "cat": "__metadata",
        "name": what,
        "pid": pid,
        "tid": tid,
        "ts": 0,
        "args": {"name": text},
    }


def half(phase: str, pid: int, tid: int, text: str, ts: float, **rest: object) -> dict[str, object]:
    return {"ph": phase, "pid": pid, "tid": tid, "name": text, "ts": ts, "cat": "app", **rest}


def test_begins_and_ends_of_a_thread_are_joined_and_the_unit_of_display_means_nothing(folder: Folder) -> None:
    #  0    5    10   15   20
    #  [outer   [inner]    ]      [other thread
    trace, facts = folder.load(
        document(
            half("B", 1, 1, "outer", 0),
            half("B", 1, 2, "elsewhere", 1),
            half("B", 1, 1, "inner", 10),
            half("E", 1, 1, "", 15),
            half("E", 1, 1, "", 20),
            half("E", 1, 2, "", 21),
            half("E", 1, 3, "", 22),
            half("B", 1, 4, "never ends", 23),
        )
    )

    assert facts.format == "plain, Chrome trace"
    assert sorted(events_of(trace)) == [
        ("CPU_OP", "elsewhere", 1_000, 20_000),
        ("CPU_OP", "inner", 10_000, 5_000),
        ("CPU_OP", "outer", 0, 20_000),
    ]
    assert trace.dropped.counts == {"end of an event that never began": 1, "event that never ends": 1}


def test_halves_of_one_id_are_joined_whatever_lies_between(folder: Folder) -> None:
    trace = folder.trace(
        document(
            half("b", 1, 1, "request", 0, id="0x1", cat="server"),
            half("b", 1, 1, "request", 5, id="0x2", cat="server"),
            half("e", 1, 1, "request", 10, id="0x1", cat="server"),
            half("e", 1, 1, "request", 20, id="0x2", cat="server"),
        )
    )

    assert events_of(trace) == [("CPU_OP", "request", 0, 10_000), ("CPU_OP", "request", 5_000, 15_000)]


ROCTRACER = document(
    meta("process_name", 2, "CPU HIP API"),
    meta("process_name", 6, "GPU0"),
    meta("process_name", 8, "COPY"),
    {
        "ph": "X",
        "name": "hipLaunchKernel",
        "pid": 2,
        "tid": 11,
        "ts": "100",
        "dur": "5",
        "args": {"corr_id": "1"},
    },
    {"ph": "X", "name": "Cijk_MT64", "pid": 6, "tid": 0, "ts": "110", "dur": "20", "args": {"corr_id": "1"}},
    {"ph": "X", "name": "CopyHostToDevice", "pid": 8, "tid": 0, "ts": "140", "dur": "5", "args": {}},
)


def test_lanes_of_roctracer_tell_what_ran_on_the_gpu(folder: Folder) -> None:
    trace = folder.trace(ROCTRACER)

    assert events_of(trace) == [
        ("RUNTIME", "hipLaunchKernel", 0, 5_000),
        ("KERNEL", "Cijk_MT64", 10_000, 20_000),
        ("MEMCPY", "CopyHostToDevice", 40_000, 5_000),
    ]
    assert trace.device.tolist()[1] == 0


def test_a_trace_of_roctracer_is_analysed(folder: Folder) -> None:
    result = analysed(folder, ROCTRACER)

    assert result.parts()["compute_ns"] == 20_000
    assert "lost_launch" in result.codes or "carry_in" not in result.codes


def test_a_trace_of_kineto_that_perfetto_wrote_keeps_kinetos_words(folder: Folder) -> None:
    """Perfetto writes slices as complete events with their categories and arguments; flows it writes as `s` and `f`."""
    events = [
        meta("process_name", 4242, "python 4242"),
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 4242, "tid": 1, "ts": 0, "dur": 30},
        half("X", 4242, 1, "cudaLaunchKernel", 5, dur=5, cat="cuda_runtime", args={"correlation": 7}),
        half("X", 0, 7, "sgemm", 20, dur=40, cat="kernel", args={"correlation": 7, "stream": 7, "device": 0}),
        half("b", 4242, 1, "async", 0, id=1),
        half("e", 4242, 1, "async", 3, id=1),
    ]

    trace = folder.trace(document(*events, metadata={"telemetry": {}}))

    assert events_of(trace) == [
        ("CPU_OP", "aten::mm", 0, 30_000),
        ("RUNTIME", "cudaLaunchKernel", 5_000, 5_000),
        ("KERNEL", "sgemm", 20_000, 40_000),
        ("CPU_OP", "async", 0, 3_000),
    ]
    assert trace.correlation.tolist() == [-1, 7, 7, -1]
