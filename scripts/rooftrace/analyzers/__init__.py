"""One module a question about the run: what an analyzer claims, in numbers, without words."""

from __future__ import annotations

from rooftrace.analyzers.workload import RatedRun, Workload

__all__ = ["RatedRun", "Workload"]
