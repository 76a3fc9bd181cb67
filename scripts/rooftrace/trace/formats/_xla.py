"""What the lanes and events of XLA's profiler stand for, in its own files and in the Chrome traces made from them.

The names are those of `xplane_schema.cc` (XLA, `xla/tsl/profiler/utils`): planes ``/device:GPU:0``, ``/host:CPU`` and
``/host:CUPTI``; on a device a line ``Stream #14(Compute)`` for each stream, and derived lines such as ``XLA Ops`` that
tell the same time again, by op.
"""

from __future__ import annotations

import re
from typing import Any

from msgspec import Struct

from rooftrace.trace.formats._events import text_of, whole

_DEVICE = re.compile(r"/device:(GPU|TPU|CUSTOM):(\d{1,6})\b")
_STREAM = re.compile(r"Stream #(\d{1,9})")
_COPIES = {
    "memcpyh2d": "Memcpy HtoD (Host -> Device)",
    "memcpyd2h": "Memcpy DtoH (Device -> Host)",
    "memcpyd2d": "Memcpy DtoD (Device -> Device)",
    "memcpyp2p": "Memcpy PtoP (Device -> Device)",
    "memcpyh2h": "Memcpy HtoH (Host -> Host)",
}
_SIZE = re.compile(r"\b(?:size|num_bytes):(\d{1,18})\b")
_GRID = re.compile(r"\bgrid:(\d{1,10}),(\d{1,10}),(\d{1,10})\b")
_CALL = re.compile(r"(?:cuda|cu|hip)[A-Z]\w*$")
_OPS_LINE = "XLA Ops"


class Meaning(Struct, frozen=True, kw_only=True):
    """An event in our vocabulary; None for a lane: as it is in the file."""

    category: str
    name: str
    args: dict[str, Any]


def device_of(plane: str) -> int | None:
    """The number of the device whose plane it is; None for a plane of the host."""
    match = _DEVICE.search(plane)
    return int(match.group(2)) if match else None


def is_stream(line: str) -> bool:
    """Whether a line of a device holds what ran in one of its streams."""
    return _STREAM.match(line) is not None


def meaning(lane: tuple[str, str], name: str, stats: dict[str, Any], *, has_streams: bool) -> Meaning:
    """What an event of the given plane and line is; without streams (on TPUs), the ops stand for what ran."""
    plane, line = lane
    device = device_of(plane)
    if device is None:
        return _on_host(plane, name, stats)
    stream = _STREAM.match(line)
    if stream is None and (has_streams or line != _OPS_LINE):
        return Meaning(category="gpu_user_annotation", name=name, args={"device": device})
    number = int(stream.group(1)) if stream else 0
    args: dict[str, Any] = {
        "device": device,
        "stream": number,
        "correlation": whole(stats.get("correlation_id")),
    }
    copy = _copy(line, name, stats)
    if copy is not None:
        return Meaning(category=copy[0], name=copy[1], args=args | {"bytes": _bytes(stats)})
    grid = _GRID.search(text_of(stats.get("kernel_details")))
    if grid:
        args["grid"] = [int(part) for part in grid.groups()]
    return Meaning(category="kernel", name=name, args=args)


def _copy(line: str, name: str, stats: dict[str, Any]) -> tuple[str, str] | None:
    key = name.lower()
    if key.startswith("memset") or "memset_details" in map(str.lower, stats):
        return "gpu_memset", "Memset (Device)"
    if key in _COPIES:
        return "gpu_memcpy", _COPIES[key]
    if key.startswith("memcpy") or "memcpy_details" in stats:
        kind = line[line.find("(") + 1 :].rstrip(")").lower()
        return "gpu_memcpy", _COPIES.get(kind, name)
    return None


def _bytes(stats: dict[str, Any]) -> int | None:
    details = next((text_of(value) for key, value in stats.items() if key.lower().endswith("_details")), "")
    size = _SIZE.search(details)
    return int(size.group(1)) if size else None


def _on_host(plane: str, name: str, stats: dict[str, Any]) -> Meaning:
    """A call of the GPU's runtime, a frame of Python, a step, or an op of the framework."""
    correlation = whole(stats.get("correlation_id"))
    if "CUPTI" in plane or "ROCTRACER" in plane or (correlation and _CALL.match(name)):
        return Meaning(category="cuda_runtime", name=name, args={"correlation": correlation})
    if name.startswith("$") or "python-tracer" in plane:
        return Meaning(category="python_function", name=name.removeprefix("$"), args={})
    step = whole(stats.get("step_num"))
    if step is not None:  # StepTraceAnnotation("train", step_num=5): the name that steps are found by
        return Meaning(category="user_annotation", name=f"ProfilerStep#{step}", args={})
    return Meaning(category="cpu_op", name=name, args={})
