"""What each GPU activity and each blocking host call had to wait for."""

from __future__ import annotations

from rooftrace.schedule.build import build_schedule
from rooftrace.schedule.model import Handovers, Schedule, Source, WaitKind, Waits

__all__ = ["Handovers", "Schedule", "Source", "WaitKind", "Waits", "build_schedule"]
