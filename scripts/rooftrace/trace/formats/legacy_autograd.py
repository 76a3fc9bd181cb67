"""Chrome traces of `torch.autograd.profiler` without Kineto (torch up to 1.7, and where it is switched off since).

Its `EventList.export_chrome_trace` writes an array of complete events without categories: ops in the process
``CPU functions``, one thread each; what they ran on a GPU in ``CUDA functions``, one lane a device, with an arrow
``cpu_to_cuda`` from the op.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace.formats._chrome import translated
from rooftrace.trace.formats._events import whole

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace
    from rooftrace.trace.rawevents import ExactEvent

NAME = "legacy autograd"
_HOST, _GPU = "CPU functions", "CUDA functions"
_MARKS = (
    b'"pid": "CPU functions"',
    b'"pid":"CPU functions"',
    b'"pid": "CUDA functions"',
    b'"pid":"CUDA functions"',
)


def recognises(head: bytes) -> bool:
    """Chrome events in the processes of this profiler, and no envelope of Kineto's."""
    return b'"schemaVersion"' not in head and any(mark in head for mark in _MARKS)


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All ops, and what they ran on GPUs."""
    return translated(source, _translate, NAME, progress)


def _translate(event: ExactEvent) -> ExactEvent:
    if event.ph == "X" and event.pid == _HOST:
        event.cat = "cpu_op"
    elif event.ph == "X" and event.pid == _GPU:
        event.cat = "gpu_memcpy" if str(event.name).startswith("Memcpy") else "kernel"
        event.args = msgspec.Raw(msgspec.json.encode({"device": whole(event.tid)}))
    return event
