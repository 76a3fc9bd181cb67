"""Idle by cause: why a device had nothing to run, gap by gap."""

from __future__ import annotations

from rooftrace.causes.attribute import attribute
from rooftrace.causes.classes import is_memory_call
from rooftrace.causes.first_use import warm_up
from rooftrace.causes.frames import thread_looked_at, user_frames
from rooftrace.causes.model import (
    CAUSE_NAMES,
    HOST_CAUSES,
    REASON_NAMES,
    Cause,
    IdleCauses,
    Pieces,
    Reason,
)
from rooftrace.causes.queues import blocked_times, launch_delays, queue_curve, queue_depths
from rooftrace.causes.stalls import Stalls, find_stalls

__all__ = [
    "CAUSE_NAMES",
    "HOST_CAUSES",
    "REASON_NAMES",
    "Cause",
    "IdleCauses",
    "Pieces",
    "Reason",
    "Stalls",
    "attribute",
    "blocked_times",
    "find_stalls",
    "is_memory_call",
    "launch_delays",
    "queue_curve",
    "queue_depths",
    "thread_looked_at",
    "user_frames",
    "warm_up",
]
