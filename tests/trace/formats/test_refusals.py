"""Files of other tools that hold no timeline of a GPU are refused by their name, with what to give instead."""

from __future__ import annotations

import json
import pickle

import pytest

from rooftrace.errors import NotATrace, RooftraceError
from tests.support.trace_builder import zip_of
from tests.trace.reading import Folder, kernel

RECORD = "Record with torch.profiler and give what export_chrome_trace wrote"
EXPORTED = "Give the Chrome trace that torch.profiler wrote (export_chrome_trace)"
WROTE = "Give the file that torch.profiler wrote"
NSYS = "is an Nsight Systems report (.nsys-rep), which only Nsight Systems reads"
NSYS_HINT = "Export it with `nsys export --type sqlite REPORT.nsys-rep` and give the .sqlite file"
NCU = "is an Nsight Compute report (.ncu-rep): metrics of single kernels, no timeline"
NCU_HINT = "Give a trace of the whole run: of torch.profiler, or what `nsys export --type sqlite` wrote"
VIZTRACER = "looks like a VizTracer file (Python calls, no GPU events), not like a trace that can be analysed"
CALL = {"ph": "X", "cat": "FEE", "name": "f (a.py:1)", "ts": 1.5, "dur": 2, "pid": 1, "tid": 1}

# name of the file, content, what is said, hint
CASES = {
    "VizTracer, its key first": (
        "result.json",
        json.dumps({"viztracer_metadata": {"version": "1.0"}, "traceEvents": [CALL]}).encode(),
        VIZTRACER,
        RECORD,
    ),
    "VizTracer, its key behind many events": (
        "result.json",
        json.dumps({"traceEvents": [CALL] * 5000, "viztracer_metadata": {}}).encode(),
        VIZTRACER,
        RECORD,
    ),
    "VizTracer, compact": (
        "result.json",
        json.dumps({"traceEvents": [CALL], "viztracer_metadata": {}}, separators=(",", ":")).encode(),
        VIZTRACER,
        RECORD,
    ),
    "py-spy speedscope": (
        "profile.json",
        b'{"$schema":"https://www.speedscope.app/file-format-schema.json","profiles":[],"shared":{"frames":[]}}',
        "looks like a speedscope profile (py-spy and others: samples of a CPU, no GPU events), "
        "not like a trace that can be analysed",
        RECORD,
    ),
    "Chrome CPU profile": (
        "x.cpuprofile",
        b'{"nodes":[{"id":1}],"startTime":1,"endTime":2,"samples":[1],"timeDeltas":[0]}',
        "looks like a CPU profile of Chrome DevTools or Node.js (no GPU events), not like a trace that can be analysed",
        RECORD,
    ),
    "execution trace": (
        "et.json",
        b'{"schema":"1.1.0-chakra.0.0.4","pid":1,"time":"now","start_ts":1,"nodes":[{"id":1,"name":"aten::mm"}]}',
        "looks like a PyTorch execution trace (the graph, without GPU times), not like a profiler trace: "
        "it has no `traceEvents`",
        EXPORTED,
    ),
    "memory snapshot": (
        "snapshot.pickle",
        pickle.dumps({"segments": [], "device_traces": []}, protocol=4),
        "is a Python pickle (a memory snapshot?), not a trace",
        WROTE,
    ),
    "checkpoint": (
        "model.pt",
        zip_of({"archive/data.pkl": b"\x80\x02}."}),
        "is a PyTorch checkpoint, not a trace",
        "Give the file that torch.profiler wrote (export_chrome_trace)",
    ),
    "Nsight Systems report by its name": ("report.nsys-rep", b"\x00\x12\x07binary", NSYS, NSYS_HINT),
    "old Nsight Systems report by its name": ("report.qdrep", b"\x00\x12\x07binary", NSYS, NSYS_HINT),
    "Nsight Systems stream": ("report", b"QDSTRM\x00\x01", NSYS, NSYS_HINT),
    "Nsight Compute report": ("report", b"NVR\x00\x08\x01", NCU, NCU_HINT),
    "Nsight Compute report by its name": ("report.ncu-rep", b"\x00\x12\x07binary", NCU, NCU_HINT),
    "perf.data": ("perf.data", b"PERFILE2h\x00", "is data of Linux `perf`, not a GPU trace", RECORD),
    "perf script": (
        "out.perf",
        b"python 12345 [003] 1234.567890:     250000 cycles:P:  55d8 f+0x1 (/usr/bin/python)\n",
        "is the text of `perf script`, not a GPU trace",
        RECORD,
    ),
    "OTF2": ("traces.otf2", b"OTF2\x00\x01", "is an OTF2 archive, not a GPU trace", RECORD),
    "HTML": (
        "trace.json",
        b"<!doctype html><title>Sign in</title>",
        "is an HTML or XML document, not a trace",
        "The download probably returned a web page; fetch the raw file",
    ),
    "Git LFS pointer": (
        "trace.json.gz",
        b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n",
        "is a Git LFS pointer, not the file itself",
        "Run `git lfs pull` in the repository it comes from",
    ),
    "empty": (
        "t",
        b"",
        "is empty (0 bytes)",
        "The profiler wrote nothing; capture again and let it finish writing",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_file_of_another_tool_is_refused_by_its_name(folder: Folder, case: str) -> None:
    name, content, what, hint = CASES[case]

    with pytest.raises(RooftraceError) as caught:
        folder.load(content, name)

    assert str(caught.value) == f"error: `{name}` {what}\n\nhint: {hint}"
    assert isinstance(caught.value, NotATrace)
    assert caught.value.exit_code == 4


def test_a_trace_whose_names_hold_the_keys_of_others_is_read(folder: Folder) -> None:
    events = [kernel(name) for name in ("viztracer", "speedscope", "nodes", "timeDeltas", "CudaEvent", "/host:CPU")]

    trace = folder.trace(b'{"traceEvents":[' + ",".join(events).encode() + b"]}", "report.nsys-rep")

    assert len(trace.kind) == 6
    assert trace.layout == "object"


def test_a_trace_in_which_viztracer_recorded_kernels_is_read(folder: Folder) -> None:
    content = json.dumps({"traceEvents": [CALL]}).encode()[:-2] + b", " + kernel("k", 5, 7).encode() + b"]}"

    assert folder.trace(content).dur.tolist() == [2_000, 7_000]
