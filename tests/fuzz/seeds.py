"""Small valid traces from which mutations start: one of each kind that takes a different way through the program."""

from __future__ import annotations

import gzip
import json
import sqlite3
import tempfile
import zipfile
from contextlib import closing
from functools import cache
from pathlib import Path

import zstandard

from tests.support.trace_builder import TraceBuilder, collective, tar_of
from tests.trace.formats import test_nsys_json, test_nsys_sqlite, test_rocprofv3, test_xla
from tests.trace.formats.test_chrome import ROCTRACER
from tests.trace.reading import document, kernel
from tests.trace.test_limits import zip_by

_MATRIX = [[64, 32], [32, 16]]


@cache
def seeds() -> dict[str, bytes]:
    """Content by name."""
    made = {name: build().json() for name, build in _BUILDERS.items()}
    made["compressed"] = gzip.compress(made["training"], mtime=0)
    made["zstd"] = zstandard.ZstdCompressor().compress(made["gpu_alone"])
    made["zip"] = zip_by(zipfile.ZIP_DEFLATED, {"a.json": made["graph_replay"], "b.json": made["gpu_alone"]})
    made["tar"] = tar_of({"a.json.gz": gzip.compress(made["graph_replay"], mtime=0), "b.json": made["gpu_alone"]})
    made["two_writers"] = made["training"][: len(made["training"]) // 2] + made["gpu_alone"]
    made["without_zeros"] = _without_zeros()
    made["rocprofv3"] = test_rocprofv3.ONE
    made["nsys_json"] = test_nsys_json.LAYOUTS["names first"]
    made["nsys_sqlite"] = _sqlite()
    made["xla_chrome"] = test_xla.document(*test_xla.LANES, *test_xla.EVENTS)
    made["xplane"] = test_xla.space()
    made["roctracer"] = ROCTRACER
    made["halves"] = _halves()
    return made


def _training() -> TraceBuilder:
    """Three steps with ops, shapes, stacks, links, copies, waits and a collective."""
    trace = TraceBuilder()
    trace.device()
    trace.header(record_shapes=1, with_stack=1, distributedInfo={"backend": "nccl", "rank": 0, "world_size": 2})
    for step in range(3):
        at = step * 200
        trace.annotation(f"ProfilerStep#{step}", ts=at, dur=190)
        trace.python("nn.Module: Linear_0", ts=at + 1, dur=80)
        trace.python("model.py(12): forward", ts=at + 2, dur=78)
        trace.op(
            "aten::linear",
            ts=at + 5,
            dur=40,
            external_id=10 * step + 1,
            sequence=step,
            dims=_MATRIX,
            types=["float", "float"],
            strides=[[32, 1], [16, 1]],
        )
        trace.op("aten::mm", ts=at + 8, dur=30, external_id=10 * step + 2, dims=_MATRIX, types=["float", "float"])
        launch = trace.launch(ts=at + 10, dur=4)
        trace.kernel(
            "ampere_sgemm_128x64_nn",
            ts=at + 20,
            dur=50,
            correlation=launch,
            external_id=10 * step + 2,
            grid=[4, 2, 1],
        )
        trace.flow(launch, ts=at + 10, to_ts=at + 20)
        trace.op("aten::copy_", ts=at + 50, dur=20, external_id=10 * step + 3, dims=[[64, 16], [64, 16]])
        launch = trace.launch("cudaMemcpyAsync", ts=at + 52, dur=3)
        trace.memcpy("HtoD", ts=at + 75, dur=10, bytes=4096, correlation=launch, external_id=10 * step + 3)
        trace.op(
            "record_param_comms",
            ts=at + 80,
            dur=10,
            external_id=10 * step + 4,
            **collective("allreduce", 1024),
        )
        launch = trace.launch("cudaLaunchKernelExC", ts=at + 82, dur=3)
        trace.kernel(
            "ncclDevKernel_AllReduce_Sum_f32_RING_LL",
            ts=at + 90,
            dur=40,
            stream=20,
            correlation=launch,
            **collective("allreduce", 1024),
        )
        launch = trace.launch("cudaStreamSynchronize", ts=at + 100, dur=60)
        trace.sync("Stream Sync", ts=at + 100, dur=60, correlation=launch, wait_stream=7)
        trace.op("autograd::engine::evaluate_function: MmBackward0", ts=at + 5, dur=30, tid=2, sequence=step)
        trace.flow(900 + step, ts=at + 8, to_ts=at + 5, to_tid=2, cat="fwdbwd")
    return trace


def _graph_replay() -> TraceBuilder:
    trace = TraceBuilder()
    trace.device()
    for step in range(4):
        launch = trace.launch("cudaGraphLaunch", ts=step * 100, dur=10)
        for number in range(8):
            trace.kernel(f"k{number % 3}", ts=step * 100 + 15 + number * 8, dur=6, correlation=launch)
    return trace


def _gpu_alone() -> TraceBuilder:
    trace = TraceBuilder()
    for number in range(40):
        trace.kernel(f"triton_poi_fused_add_{number % 4}", ts=number * 10, dur=7, stream=number % 3)
    return trace


def _host_alone() -> TraceBuilder:
    trace = TraceBuilder()
    for number in range(20):
        trace.op("aten::add", ts=number * 10, dur=8, dims=[[8, 8], [8, 8]], types=["float", "float"])
    return trace


def _clocks_apart() -> TraceBuilder:
    """Steps whose GPU counts from another year, and a stray."""
    trace = TraceBuilder()
    trace.device()
    for step in range(30):
        at = step * 200
        trace.annotation(f"ProfilerStep#{step}", ts=at, dur=190)
        trace.op("aten::mm", ts=at + 5, dur=40, external_id=step + 1, dims=_MATRIX, types=["float", "float"])
        launch = trace.launch(ts=at + 10, dur=4)
        trace.kernel("sgemm", ts=at + 20 + 4e13, dur=50, correlation=launch, external_id=step + 1)
        launch = trace.launch("cudaStreamSynchronize", ts=at + 100, dur=60)
        trace.sync("Stream Sync", ts=at + 100 + 4e13, dur=60, correlation=launch, wait_stream=7)
    trace.kernel("stray", ts=9e13, dur=1)
    return trace


def _without_zeros() -> bytes:
    """Times as nightlies of March 2024 wrote them."""
    times = [(f"{1000 + 10 * number}.{number}", "2.50") for number in range(30)]
    content = document(*(kernel("k", ts, dur) for ts, dur in times))
    return content.replace(b'"schemaVersion":1,', b'"schemaVersion":1,"displayTimeUnit":"ns",', 1)


_BUILDERS = {
    "clocks_apart": _clocks_apart,
    "training": _training,
    "graph_replay": _graph_replay,
    "gpu_alone": _gpu_alone,
    "host_alone": _host_alone,
}


def _sqlite() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        return test_nsys_sqlite.export(Path(folder) / "made.sqlite")


def _halves() -> bytes:
    events = []
    for number in range(20):
        place = {"pid": 1, "tid": number % 3, "name": f"f{number}", "cat": "app"}
        events.append({"ph": "B", "ts": number * 10, **place})
        events.append({"ph": "E", "ts": number * 10 + 5, **place})
    return json.dumps({"traceEvents": events}).encode()


def sqlite_is_whole(content: bytes) -> bool:
    """Whether a content is a database that can be opened, for tests of the seeds."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.sqlite"
        path.write_bytes(content)
        with closing(sqlite3.connect(path)) as database:
            return database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
