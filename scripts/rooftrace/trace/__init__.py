"""Reading: a trace file in, columns of events out. Knows containers and dialects, nothing about analysis."""

from __future__ import annotations

from rooftrace.trace.events import GPU_KINDS, HOST_KINDS, Collective, Flows, Inputs, Kind, Tally, Trace
from rooftrace.trace.load import FileFacts, load

__all__ = [
    "GPU_KINDS",
    "HOST_KINDS",
    "Collective",
    "FileFacts",
    "Flows",
    "Inputs",
    "Kind",
    "Tally",
    "Trace",
    "load",
]
