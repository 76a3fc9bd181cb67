"""One module a question about the run: what an analyzer claims, in numbers, without words."""

from __future__ import annotations

from rooftrace.analyzers.workload import Workload

__all__ = ["Workload"]
