"""Writes a timeline as the JSON that PyTorch's profiler exports: order of keys and events, number format.

Two dialects: NVIDIA (CUPTI names, ``cbid``, launch geometry on the kernel) and AMD (roctracer names,
``cid``, launch geometry on the call, ``kind`` on the kernel). Timestamps are microseconds with three
decimals, relative to ``baseTimeNanoseconds``. The header says ``"synthetic": true``, and so does the
process name.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evals.workshop.flows import forward_backward_pairs
from evals.workshop.hardware import Gpu
from evals.workshop.instructions import Call, Executed, Json, Span, Timeline

BASE_TIME_NS = 1_751_328_000_000_000_000
"""2025-07-01T00:00:00Z; a constant, so that a trace's bytes depend on nothing else."""
START_NS = 1_240_000_000_000_000
"""Virtual time zero relative to the base: time stamps of today's traces are this long."""
PID = 4242
NVIDIA_CALLS: Mapping[str, tuple[str, str, int]] = {
    "launch": ("cuda_runtime", "cudaLaunchKernel", 211),
    "launch_ex": ("cuda_driver", "cuLaunchKernelEx", 652),
    "launch_cluster": ("cuda_runtime", "cudaLaunchKernelExC", 430),
    "memcpy": ("cuda_runtime", "cudaMemcpyAsync", 41),
    "memcpy_blocking": ("cuda_runtime", "cudaMemcpyAsync", 41),
    "memset": ("cuda_runtime", "cudaMemsetAsync", 51),
    "stream_sync": ("cuda_runtime", "cudaStreamSynchronize", 131),
    "device_sync": ("cuda_runtime", "cudaDeviceSynchronize", 165),
    "event_record": ("cuda_runtime", "cudaEventRecord", 135),
    "stream_wait": ("cuda_runtime", "cudaStreamWaitEvent", 147),
    "graph_launch": ("cuda_runtime", "cudaGraphLaunch", 311),
    "event_sync": ("cuda_runtime", "cudaEventSynchronize", 137),
    "malloc": ("cuda_runtime", "cudaMalloc", 20),
    "free": ("cuda_runtime", "cudaFree", 22),
}
"""Call as programs name it -> category, name and CUPTI callback id."""
AMD_CALLS: Mapping[str, tuple[str, str, int]] = {
    "launch": ("cuda_runtime", "hipLaunchKernel", 107),
    "launch_ex": ("cuda_runtime", "hipExtModuleLaunchKernel", 65),
    "launch_cluster": ("cuda_runtime", "hipExtModuleLaunchKernel", 65),
    "memcpy": ("cuda_runtime", "hipMemcpyAsync", 134),
    "memcpy_blocking": ("cuda_runtime", "hipMemcpyWithStream", 153),
    "memset": ("cuda_runtime", "hipMemsetAsync", 159),
    "stream_sync": ("cuda_runtime", "hipStreamSynchronize", 196),
    "device_sync": ("cuda_runtime", "hipDeviceSynchronize", 48),
    "event_record": ("cuda_runtime", "hipEventRecord", 56),
    "stream_wait": ("cuda_runtime", "hipStreamWaitEvent", 200),
    "graph_launch": ("cuda_runtime", "hipGraphLaunch", 215),
    "event_sync": ("cuda_runtime", "hipEventSynchronize", 60),
    "malloc": ("cuda_runtime", "hipMalloc", 108),
    "free": ("cuda_runtime", "hipFree", 69),
}
"""The same in roctracer's names; ids as ROCm 6.4 traces show.

NB: none showed hipStreamSynchronize and hipEventRecord; their ids are guesses.
"""
SYNC_NAMES: Mapping[str, str] = {
    "stream_sync": "Stream Sync",
    "device_sync": "Context Sync",
    "event_sync": "Event Sync",
    "stream_wait": "Stream Wait Event",
}
"""Calls of which CUPTI writes a ``cuda_sync`` event where it was asked to; not of allocator calls."""
GEOMETRY = ("grid", "block", "shared memory")
FIRST_EXTERNAL_ID = 1


@dataclass(frozen=True, kw_only=True)
class Header:
    """What a trace states beside its timeline; ``sync_events``: the profiler was asked for ``cuda_sync`` events.

    They are off unless asked for, and only NVIDIA's profiler has them.
    """

    gpu: Gpu
    threads: Mapping[int, str]
    trace_name: str
    trace_id: str
    rank: int | None = None
    world_size: int = 1
    notes: Mapping[str, Json] = field(default_factory=dict)
    sync_events: bool = False


def microseconds(ns: int) -> str:
    """Integer nanoseconds as Kineto prints microseconds: three decimals."""
    return f"{ns // 1000}.{ns % 1000:03d}"


def trace_chunks(timeline: Timeline, header: Header) -> Iterator[str]:
    """The text of a trace, piece by piece."""
    yield "{\n"
    yield "".join(f"  {json.dumps(key)}: {_dump(value)},\n" for key, value in _envelope(header))
    yield '  "traceEvents": [\n'
    yield ",\n".join(_events(timeline, header))
    yield f'\n  ],\n  "traceName": {json.dumps(header.trace_name)},\n'
    yield f'  "displayTimeUnit": "ms",\n  "baseTimeNanoseconds": {BASE_TIME_NS}\n}}\n'


def trace_text(timeline: Timeline, header: Header) -> str:
    """The whole trace as one string."""
    return "".join(trace_chunks(timeline, header))


def write_trace(path: Path, text: str) -> None:
    """Writes ``text``, compressed for a name in ``.gz`` (no file name, no time inside)."""
    data = text.encode()
    if path.suffix == ".gz":
        data = gzip.compress(data, compresslevel=9, mtime=0)
    path.write_bytes(data)


def _envelope(header: Header) -> list[tuple[str, Json]]:
    gpu = header.gpu
    rows: list[tuple[str, Json]] = [
        ("schemaVersion", 1),
        ("synthetic", True),
        ("metadata", {"synthetic": True, "generator": "evals.workshop", **header.notes}),
        ("deviceProperties", [_device(gpu)]),
    ]
    if gpu.vendor == "nvidia":
        rows += [("cuda_runtime_version", 12080), ("cupti_version", 26), ("cuda_driver_version", 12080)]
    else:
        rows += [
            ("roctracer_version", 4.1),
            ("hip_runtime_version", 60443483),
            ("hip_driver_version", 60443483),
        ]
    if header.rank is not None:
        group: dict[str, Json] = {
            "pg_name": "0",
            "pg_desc": "default_pg",
            "backend_config": "cuda:nccl",
            "pg_size": header.world_size,
        }
        rows.append(
            (
                "distributedInfo",
                {
                    "backend": "nccl",
                    "rank": header.rank,
                    "world_size": header.world_size,
                    "pg_count": 1,
                    "pg_config": [{**group, "ranks": list(range(header.world_size))}],
                    "nccl_version": "2.26.2",
                },
            )
        )
    return [*rows, ("record_shapes", 1), ("with_stack", 1), ("trace_id", header.trace_id)]


def _device(gpu: Gpu) -> dict[str, Json]:
    device: dict[str, Json] = {"id": 0}
    device.update(gpu.properties)
    return device


def _events(timeline: Timeline, header: Header) -> Iterator[str]:
    yield from _host_events(timeline.spans)
    yield from _flow_pairs(timeline.spans)
    yield from _device_events(timeline, header.gpu)
    if header.sync_events and header.gpu.vendor == "nvidia":
        yield from _sync_events(timeline)
    yield from _annotations_on_device(timeline)
    yield from _metadata(timeline, header)
    yield from _closing(timeline)


def _host_events(spans: tuple[Span, ...]) -> Iterator[str]:
    """Operators and annotations in opening order, then Python frames: Ev Idx counts through both."""
    recorded = [span for span in spans if span.kind != "python_function"]
    frames = [span for span in spans if span.kind == "python_function"]
    external = external_ids(spans)
    for event_index, span in enumerate(recorded):
        ids: dict[str, Json] = {"External id": external[span.index], "Record function id": 0}
        yield _complete(span.kind, span.name, span, {**ids, **span.args, "Ev Idx": event_index})
    python_ids = {span.index: number for number, span in enumerate(frames, start=1)}
    parents = {span.index: span.parent for span in spans}
    for number, span in enumerate(frames, start=1):
        parent = span.parent
        while parent is not None and parent not in python_ids:
            parent = parents[parent]
        ids = {"Python parent id": None if parent is None else python_ids[parent], "Python id": number}
        event_index = len(recorded) + number - 1
        yield _complete(span.kind, span.name, span, {**ids, **span.args, "Ev Idx": event_index})


def external_ids(spans: tuple[Span, ...]) -> dict[int, int]:
    """Span index -> External id, for operators and annotations in opening order."""
    recorded = (span.index for span in spans if span.kind != "python_function")
    return {index: number for number, index in enumerate(recorded, start=FIRST_EXTERNAL_ID)}


def _complete(category: str, name: str, span: Span, args: Mapping[str, Json]) -> str:
    return _event(category, name, (PID, span.tid), (span.start_ns, span.end_ns), args)


def _event(
    category: str, name: str, place: tuple[int, int], interval: tuple[int, int], args: Mapping[str, Json]
) -> str:
    start, end = interval
    fields = _dump(dict(args))[1:-1]
    return (
        f'  {{\n    "ph": "X", "cat": "{category}", "name": {_dump(name)}, '
        f'"pid": {place[0]}, "tid": {place[1]},\n'
        f'    "ts": {microseconds(START_NS + start)}, "dur": {microseconds(end - start)},\n'
        f'    "args": {{\n      {fields}\n    }}\n  }}'
    )


def _flow(kind: str, phase: str, number: int, place: tuple[int, int], at_ns: int) -> str:
    tail = ', "bp": "e"' if phase == "f" else ""
    return (
        f'  {{\n    "ph": "{phase}", "id": {number}, "pid": {place[0]}, "tid": {place[1]}, '
        f'"ts": {microseconds(START_NS + at_ns)},\n    "cat": "{kind}", "name": "{kind}"{tail}\n  }}'
    )


def _flow_pairs(spans: tuple[Span, ...]) -> Iterator[str]:
    for number, (forward, backward) in enumerate(forward_backward_pairs(spans), start=1):
        yield _flow("fwdbwd", "s", number, (PID, forward.tid), forward.start_ns)
        yield _flow("fwdbwd", "f", number, (PID, backward.tid), backward.start_ns)


def _device_events(timeline: Timeline, gpu: Gpu) -> Iterator[str]:
    """Each call with what it launched: activity, arrow head, call, arrow tail, as Kineto interleaves them."""
    external = external_ids(timeline.spans)
    by_correlation: dict[int, list[Executed]] = {}
    for activity in timeline.activities:
        by_correlation.setdefault(activity.correlation, []).append(activity)
    for call in timeline.calls:
        launched = by_correlation.get(call.correlation, [])
        for activity in launched:
            yield _activity(activity, gpu, external)
            yield _flow("ac2g", "f", call.correlation, (0, activity.stream), activity.start_ns)
        yield _call(call, launched, gpu, external)
        if launched:
            yield _flow("ac2g", "s", call.correlation, (PID, call.tid), call.start_ns)


def _activity(activity: Executed, gpu: Gpu, external: Mapping[int, int]) -> str:
    args: dict[str, Json] = {}
    if activity.owner is not None:
        args["External id"] = external[activity.owner]
    if gpu.vendor == "amd":
        kind = "Dispatch Kernel" if activity.kind == "kernel" else _copy_direction(activity.name)
        args |= {"device": 0, "stream": activity.stream, "correlation": activity.correlation, "kind": kind}
    else:
        if activity.kind == "kernel":
            args["queued"] = 0
        args |= {"device": 0, "context": 1, "stream": activity.stream, "correlation": activity.correlation}
        args |= activity.args
    size, duration = activity.args.get("bytes"), activity.end_ns - activity.start_ns
    if isinstance(size, int) and duration > 0:
        args |= {"bytes": size, "memory bandwidth (GB/s)": size / duration}
    return _event(activity.kind, activity.name, (0, activity.stream), (activity.start_ns, activity.end_ns), args)


def _copy_direction(name: str) -> str:
    """``HtoD`` of ``Memcpy HtoD (Host -> Device)``; ``Device`` for a memset."""
    return name.split()[1].strip("()")


def _call(call: Call, launched: list[Executed], gpu: Gpu, external: Mapping[int, int]) -> str:
    category, name, number = (NVIDIA_CALLS if gpu.vendor == "nvidia" else AMD_CALLS)[call.name]
    args: dict[str, Json] = {} if call.owner is None else {"External id": external[call.owner]}
    if gpu.vendor == "nvidia":
        args |= {"cbid": number, "correlation": call.correlation}
    else:
        shown = launched[0].args if launched else {}
        if launched and launched[0].kind == "kernel":
            args["kernel"] = launched[0].name
        args |= {"cid": number, "correlation": call.correlation}
        args |= {key: shown[key] for key in GEOMETRY if key in shown}
    args |= call.args
    return _event(category, name, (PID, call.tid), (call.start_ns, call.end_ns), args)


def _sync_events(timeline: Timeline) -> Iterator[str]:
    """``cuda_sync`` events; each lies inside its call, on the lane of its stream (-1: the whole context)."""
    external = external_ids(timeline.spans)
    numbers: dict[str, int] = {}
    for call in timeline.calls:
        synced = call.synced
        if synced is None or call.name not in SYNC_NAMES:
            continue
        name = SYNC_NAMES[call.name]
        args: dict[str, Json] = {} if call.owner is None else {"External id": external[call.owner]}
        args["cuda_sync_kind"] = name
        if synced.event is not None:
            args["wait_on_stream"] = -1 if synced.event_stream is None else synced.event_stream
            args["wait_on_cuda_event_record_corr_id"] = -1 if synced.record is None else synced.record
            args["wait_on_cuda_event_id"] = numbers.setdefault(synced.event, len(numbers))
        stream = -1 if synced.stream is None else synced.stream
        args |= {"stream": stream, "correlation": call.correlation, "device": 0, "context": 1}
        start = call.start_ns + (call.end_ns - call.start_ns) // 4
        yield _event("cuda_sync", name, (0, stream), (start, call.end_ns), args)


def _annotations_on_device(timeline: Timeline) -> Iterator[str]:
    """Each annotation's extent on each stream: first start to last end of what was launched inside it."""
    parents = {span.index: span.parent for span in timeline.spans}
    names = {span.index: span for span in timeline.spans if span.kind == "user_annotation"}
    extents: dict[tuple[int, int], tuple[int, int]] = {}
    for activity in timeline.activities:
        ancestor = activity.owner
        while ancestor is not None and ancestor not in names:
            ancestor = parents[ancestor]
        if ancestor is not None:
            key = (ancestor, activity.stream)
            low, high = extents.get(key, (activity.start_ns, activity.end_ns))
            extents[key] = (min(low, activity.start_ns), max(high, activity.end_ns))
    external = external_ids(timeline.spans)
    for (index, stream), interval in sorted(extents.items()):
        yield _event("gpu_user_annotation", names[index].name, (0, stream), interval, {"External id": external[index]})


def _metadata(timeline: Timeline, header: Header) -> Iterator[str]:
    rows: list[tuple[str, int, int, dict[str, Json]]] = []
    for pid, label, order in ((PID, "CPU", PID), (0, "GPU 0", 5_000_000)):
        rows.append(("process_name", pid, 0, {"name": "python3 (synthetic)"}))
        rows.append(("process_labels", pid, 0, {"labels": label}))
        rows.append(("process_sort_index", pid, 0, {"sort_index": order}))
    for stream in sorted({activity.stream for activity in timeline.activities}):
        rows.append(("thread_name", 0, stream, {"name": f"stream {stream} "}))
        rows.append(("thread_sort_index", 0, stream, {"sort_index": stream}))
    for tid, name in sorted(header.threads.items()):
        rows.append(("thread_name", PID, tid, {"name": f"thread {tid} ({name})"}))
        rows.append(("thread_sort_index", PID, tid, {"sort_index": tid}))
    for name, pid, tid, args in rows:
        yield (
            f'  {{\n    "name": "{name}", "ph": "M", "ts": {microseconds(START_NS)}, '
            f'"pid": {pid}, "tid": {tid},\n'
            f'    "args": {_dump(args)}\n  }}'
        )


def _closing(timeline: Timeline) -> Iterator[str]:
    begin, end = microseconds(START_NS), microseconds(START_NS + timeline.end_ns)
    yield (
        f'  {{\n    "ph": "X", "cat": "Trace", "ts": {begin}, "dur": {microseconds(timeline.end_ns)},\n'
        '    "pid": "Spans", "tid": "PyTorch Profiler", "name": "PyTorch Profiler (0)",\n'
        '    "args": {\n      "Op count": 0\n    }\n  }'
    )
    yield (
        f'  {{\n    "name": "process_sort_index", "ph": "M", "ts": {begin}, "pid": "Spans", "tid": 0,\n'
        '    "args": {\n      "sort_index": 536870912\n    }\n  }'
    )
    yield (
        '  {\n    "name": "Iteration Start: PyTorch Profiler", "ph": "i", "s": "g", "pid": "Traces",\n'
        f'    "tid": "Trace PyTorch Profiler", "ts": {begin}\n  }}'
    )
    yield (f'  {{\n    "name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": {end}\n  }}')


_ENCODER = json.JSONEncoder(ensure_ascii=False)


def _dump(value: Json) -> str:
    return _ENCODER.encode(value)
