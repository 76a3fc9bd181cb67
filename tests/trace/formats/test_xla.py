"""Profiles of JAX and XLA: their Chrome traces and their own `xplane.pb`."""

from __future__ import annotations

import gzip
import json
import struct

import pytest

from rooftrace.errors import NotATrace
from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder

# --- Chrome traces


def name(pid: int, text: str, tid: int | None = None) -> dict[str, object]:
    what = "process_name" if tid is None else "thread_name"
    place = {"pid": pid} if tid is None else {"pid": pid, "tid": tid}
    return {"ph": "M", **place, "name": what, "args": {"name": text}}


def event(pid: int, tid: int, text: str, ts: float, dur: float, **args: str) -> dict[str, object]:
    return {"ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "name": text, "args": args}


LANES = [
    name(1, "/device:GPU:0"),
    name(701, "/host:CPU"),
    name(1, "Stream #14(Compute)", 14),
    name(1, "Stream #15(MemcpyH2D)", 15),
    name(1, "XLA Ops", 3),
    name(701, "python", 9),
]
KERNEL_ARGS = {
    "correlation_id": "77",
    "hlo_op": "dot.1",
    "hlo_module": "jit_f",
    "kernel_details": "regs:32 static_shared:0 dynamic_shared:0 grid:8,4,1 block:256,1,1 occ_pct:50",
}
EVENTS = [
    event(701, 9, "train", 0, 100, step_num="5"),
    event(701, 9, "PjitFunction(f)", 1, 20),
    event(701, 9, "cuLaunchKernel", 2, 3, correlation_id="77"),
    event(701, 9, "$model.py:12 forward", 1, 19),
    event(1, 14, "sm80_xmma_gemm", 10, 20, **KERNEL_ARGS),
    event(1, 15, "MemcpyH2D", 40, 5, memcpy_details="kind_src:pinned kind_dst:device size:4096 dest:0 async:1"),
    event(1, 3, "dot.1", 10, 20),
]
EXPECTED = [
    ("ANNOTATION", "ProfilerStep#5", 0, 100_000),
    ("CPU_OP", "PjitFunction(f)", 1_000, 20_000),
    ("RUNTIME", "cuLaunchKernel", 2_000, 3_000),
    ("PYTHON", "model.py:12 forward", 1_000, 19_000),
    ("KERNEL", "sm80_xmma_gemm", 10_000, 20_000),
    ("MEMCPY", "Memcpy HtoD (Host -> Device)", 40_000, 5_000),
    ("GPU_ANNOTATION", "dot.1", 10_000, 20_000),
]


def document(*events: object) -> bytes:
    whole = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": list(events)}
    return json.dumps(whole).encode()


@pytest.mark.parametrize("order", ["names first", "names last"])
def test_a_chrome_trace_is_read_by_the_names_of_its_lanes(folder: Folder, order: str) -> None:
    content = document(*LANES, *EVENTS) if order == "names first" else document(*EVENTS, *LANES)

    trace, facts = folder.load(gzip.compress(content), "host.trace.json.gz")

    assert facts.format == "gzip, XLA Chrome trace"
    assert events_of(trace) == EXPECTED
    assert trace.correlation.tolist() == [-1, -1, 77, -1, 77, -1, -1]
    assert trace.stream.tolist()[4:6] == [14, 15]
    assert trace.nbytes.tolist()[5] == 4096
    assert trace.grids == [(8, 4, 1)]


def test_time_told_twice_by_op_and_by_stream_counts_once(folder: Folder) -> None:
    result = analysed(folder, document(*LANES, *EVENTS))

    assert result.parts() == {
        "span_ns": 35_000,
        "compute_ns": 20_000,
        "exposed_copy_ns": 5_000,
        "idle_ns": 10_000,
    }
    assert result.steps == ["ProfilerStep#5"]


def test_without_streams_the_ops_are_what_ran(folder: Folder) -> None:
    lanes = [name(3, "/device:TPU:0"), name(3, "XLA Ops", 2), name(3, "XLA Modules", 1)]

    trace = folder.trace(document(*lanes, event(3, 2, "fusion.7", 5, 10), event(3, 1, "jit_f", 5, 10)))

    assert events_of(trace) == [("KERNEL", "fusion.7", 0, 10_000), ("GPU_ANNOTATION", "jit_f", 0, 10_000)]


def test_a_damaged_event_costs_itself_alone(folder: Folder) -> None:
    content = document(*LANES, *EVENTS).replace(b'"dur": 19', b'"dur": 1.9.')

    trace, facts = folder.load(content)

    assert events_of(trace) == [expected for expected in EXPECTED if expected[0] != "PYTHON"]
    assert trace.dropped.counts == {"unreadable event": 1}
    assert facts.truncated is None


def test_a_chrome_trace_cut_short_keeps_what_is_whole(folder: Folder) -> None:
    content = document(*LANES, *EVENTS)

    trace, facts = folder.load(content[: content.index(b'"MemcpyH2D"')])

    assert events_of(trace) == EXPECTED[:5]
    assert facts.truncated == "the event array is not closed"


# --- xplane.pb


def varint(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def number(tag: int, value: int) -> bytes:
    return varint(tag << 3) + varint(value)


def part(tag: int, content: bytes | str) -> bytes:
    data = content.encode() if isinstance(content, str) else content
    return varint(tag << 3 | 2) + varint(len(data)) + data


class Plane:
    """A plane that numbers its names as they come."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._events: dict[str, int] = {}
        self._stats: dict[str, int] = {}
        self._lines = b""
        self._own = b""

    def stat(self, key: str, value: int | float | str) -> bytes:
        identity = number(1, self._stats.setdefault(key, len(self._stats) + 1))
        if isinstance(value, str):
            return identity + part(5, value)
        return identity + (number(4, value) if isinstance(value, int) else b"\x11" + struct.pack("<d", value))

    def own(self, key: str, value: int | float | str) -> None:
        self._own += part(6, self.stat(key, value))

    def event(self, text: str, offset_ps: int, duration_ps: int, **stats: int | float | str) -> bytes:
        identity = number(1, self._events.setdefault(text, len(self._events) + 1))
        told = b"".join(part(4, self.stat(key, value)) for key, value in stats.items())
        return part(4, identity + number(2, offset_ps) + number(3, duration_ps) + told)

    def line(self, identity: int, title: str, start_ns: int, *events: bytes) -> None:
        self._lines += part(3, number(1, identity) + part(2, title) + number(3, start_ns) + b"".join(events))

    def bytes(self) -> bytes:
        names = b"".join(
            part(tag, number(1, identity) + part(2, number(1, identity) + part(2, text)))
            for tag, known in ((4, self._events), (5, self._stats))
            for text, identity in known.items()
        )
        return part(1, number(1, 1) + part(2, self._title) + self._lines + names + self._own)


def space() -> bytes:
    gpu = Plane("/device:GPU:0")
    args = {"correlation_id": 77, "kernel_details": KERNEL_ARGS["kernel_details"]}
    gpu.line(14, "Stream #14(Compute)", 10_000, gpu.event("sm80_xmma_gemm", 500, 20_000_000, **args))
    gpu.line(
        15,
        "Stream #15(MemcpyH2D)",
        40_000,
        gpu.event("MemcpyH2D", 0, 5_000_000, memcpy_details="kind_src:pinned kind_dst:device size:4096"),
    )
    gpu.line(3, "XLA Ops", 10_000, gpu.event("dot.1", 0, 20_000_000, flops=1.5))
    for key, value in (
        ("core_count", 132),
        ("memory_size", 85_017_755_648),
        ("compute_cap_major", 9),
        ("compute_cap_minor", 0),
    ):
        gpu.own(key, value)
    calls = Plane("/host:CUPTI")
    calls.line(9, "9", 0, calls.event("cuLaunchKernel", 2_000_000, 3_000_000, correlation_id=77))
    host = Plane("/host:CPU")
    host.line(9, "python", 0, host.event("PjitFunction(f)", 1_000_000, 20_000_000))
    return host.bytes() + gpu.bytes() + calls.bytes() + part(4, "a host")


def test_an_xplane_is_read_by_the_names_of_its_lanes(folder: Folder) -> None:
    trace, facts = folder.load(space(), "host.xplane.pb")

    assert facts.format == "plain, XPlane"
    assert facts.truncated is None
    assert events_of(trace) == [  # after the first event, which begins at 1 µs
        ("CPU_OP", "PjitFunction(f)", 0, 20_000),
        ("KERNEL", "sm80_xmma_gemm", 9_000, 20_000),
        ("MEMCPY", "Memcpy HtoD (Host -> Device)", 39_000, 5_000),
        ("GPU_ANNOTATION", "dot.1", 9_000, 20_000),
        ("RUNTIME", "cuLaunchKernel", 1_000, 3_000),
    ]
    assert trace.correlation.tolist() == [-1, 77, -1, -1, 77]
    assert trace.nbytes.tolist() == [-1, -1, 4096, -1, -1]
    assert trace.grids == [(8, 4, 1)]
    assert trace.header["deviceProperties"] == [
        {
            "id": 0,
            "name": "",
            "numSms": 132,
            "totalGlobalMem": 85_017_755_648,
            "computeMajor": 9,
            "computeMinor": 0,
        }
    ]


def test_an_xplane_is_analysed_with_its_gpu(folder: Folder) -> None:
    result = analysed(folder, gzip.compress(space()), "host.xplane.pb.gz")

    assert result.parts() == {
        "span_ns": 35_000,
        "compute_ns": 20_000,
        "exposed_copy_ns": 5_000,
        "idle_ns": 10_000,
    }
    assert result.platform == "h100-sxm"


def test_an_xplane_cut_anywhere_keeps_its_whole_planes(folder: Folder) -> None:
    content = space()
    for length in range(len(content) - 8):
        try:
            trace, facts = folder.load(content[:length], "host.xplane.pb")
        except NotATrace:
            continue
        assert facts.truncated == "the last plane is cut short or damaged" or length in _plane_ends(content)
        assert events_of(trace)[0] == ("CPU_OP", "PjitFunction(f)", 0, 20_000)


def _plane_ends(content: bytes) -> list[int]:
    return [
        content.index(b"/device:GPU:0") - 7,
        content.index(b"/host:CUPTI") - 6,
        content.index(b"a host") - 2,
    ]


def test_a_plane_of_nonsense_is_dropped_and_counted(folder: Folder) -> None:
    trace = folder.trace(space() + part(1, part(2, "/host:x") + b"\xff" * 20), "host.xplane.pb")

    assert len(trace.kind) == 5
    assert trace.dropped.counts == {"damaged plane of the profile": 1}
