"""Chrome traces of Perfetto, of rocprof and roctracer, and of other writers that name things their own way.

`B` and `E`, and `b` and `e`, are joined to complete events. A category that is not Kineto's is looked up here, else
the names of process and thread tell: ``GPU0``, ``CPU HIP API`` and ``COPY`` (roctracer), ``COMPUTE AGENT [1] QUEUE``
(rocprofv3 through Perfetto).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from rooftrace.trace.events import KIND_OF_CATEGORY
from rooftrace.trace.formats._chrome import Lanes, arguments, lanes_of, translated
from rooftrace.trace.formats._events import whole
from rooftrace.trace.rawevents import ExactEvent, exact_ns

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

NAME = "Chrome trace"
_PHASE = re.compile(rb'"ph"\s*:\s*"[BEbe]"')
_WHOLE = re.compile(rb'"ph"\s*:\s*"X"')
_ROCTRACER = (b'"CPU HIP API"', b'"GPU0"', b"COMPUTE AGENT")
_KINETO = (b'"schemaVersion"', b'"deviceProperties"', b'"ac2g"')
_CATEGORIES = {
    "kernel_dispatch": "kernel",
    "memory_copy": "gpu_memcpy",
    "hip_api": "cuda_runtime",
    "hip_runtime_api": "cuda_runtime",
    "hsa_api": "cuda_runtime",
    "marker_api": "user_annotation",
}
# (process or thread name, category); the first that fits
_LANES = (
    (re.compile(r"HIP API|HSA API|CUDA API", re.IGNORECASE), "cuda_runtime"),
    (re.compile(r"COPY\b|Memcpy", re.IGNORECASE), "gpu_memcpy"),
    (re.compile(r"Markers|roctx|NVTX", re.IGNORECASE), "user_annotation"),
    (re.compile(r"\bGPU ?\d+|COMPUTE AGENT|\bStream #?\d+|\bCUDA HW", re.IGNORECASE), "kernel"),
)
_NUMBER = re.compile(r"(?:GPU ?|AGENT \[)(\d{1,6})")
_MAX_OPEN = 1 << 20


def recognises(head: bytes) -> bool:
    """A Chrome trace with events in two halves, or of roctracer; one of Kineto only if all events were divided."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if not (text.startswith(b"[") or (text.startswith(b"{") and b'"traceEvents"' in head)):
        return False
    if any(key in head for key in _KINETO):
        return _PHASE.search(head) is not None and not _WHOLE.search(head)
    return _PHASE.search(head) is not None or any(name in head for name in _ROCTRACER)


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events, halves joined."""
    joining = _Joining(lanes_of(source))
    trace = translated(source, joining.take, NAME, progress)
    trace.dropped.add("end of an event that never began", joining.lonely_ends)
    trace.dropped.add("event that never ends", joining.still_open)
    return trace


class _Joining:
    """Turns halves of events into whole ones and gives every event its category."""

    def __init__(self, lanes: Lanes) -> None:
        self.lonely_ends = 0
        self.still_open = 0
        self._lanes = lanes
        self._open: dict[tuple[str, ...], list[ExactEvent]] = {}
        self._category: dict[tuple[str, str, str], str] = {}

    def take(self, event: ExactEvent) -> ExactEvent | None:
        """A whole event, or None."""
        phase = event.ph
        if phase in ("B", "b"):
            self._begin(event)
            return None
        if phase in ("E", "e"):
            return self._end(event)
        if phase == "X":
            return self._categorised(event)
        return event if phase in ("s", "t", "f") else None

    def _begin(self, event: ExactEvent) -> None:
        if self.still_open < _MAX_OPEN:
            self._open.setdefault(_place(event), []).append(event)
        self.still_open += 1

    def _end(self, event: ExactEvent) -> ExactEvent | None:
        stack = self._open.get(_place(event))
        if not stack:
            self.lonely_ends += 1
            return None
        begun = stack.pop()
        self.still_open -= 1
        start, end = _time(begun), _time(event)
        if start is None or end is None:
            return None
        begun.ph = "X"
        begun.dur = msgspec.Raw(b"%d.%03d" % divmod(max(0, end - start), 1000))
        if event.ph == "e":  # of an id, not of a thread: it may overlap what is on the thread
            begun.tid = f"{begun.tid} {begun.name}"[:200]
        return self._categorised(begun)

    def _categorised(self, event: ExactEvent) -> ExactEvent:
        category = str(event.cat)
        process, thread = self._lanes.of(event)
        key = (category, process, thread)
        if key not in self._category:
            self._category[key] = _category(category.lower(), process, thread)
        event.cat = self._category[key]
        if event.cat in ("kernel", "gpu_memcpy"):
            event.args = _placed(event, f"{process} {thread}")
        return event


def _place(event: ExactEvent) -> tuple[str, ...]:
    """What the two halves of an event have in common."""
    if event.ph in ("B", "E"):
        return ("", str(event.pid), str(event.tid))
    return ("id", str(event.pid), str(event.cat), str(event.id))


def _time(event: ExactEvent) -> int | None:
    return exact_ns(bytes(event.ts).decode("ascii", "replace"))


def _category(category: str, process: str, thread: str) -> str:
    if category in KIND_OF_CATEGORY:
        return category
    if category in _CATEGORIES:
        return _CATEGORIES[category]
    for name in (thread, process):
        found = next((meant for pattern, meant in _LANES if pattern.search(name)), None)
        if found is not None:
            return found
    return "cpu_op"


def _placed(event: ExactEvent, lane: str) -> msgspec.Raw:
    """Arguments with the device that the lane names, and the correlation under its usual name."""
    args: dict[str, Any] = arguments(event)
    number = _NUMBER.search(lane)
    if number and "device" not in args:
        args["device"] = int(number.group(1))
    for other in ("correlation_id", "corr_id", "correlationId"):
        if "correlation" not in args and whole(args.get(other)) is not None:
            args["correlation"] = whole(args[other])
    return msgspec.Raw(msgspec.json.encode(args))
