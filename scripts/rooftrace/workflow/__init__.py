"""Stages as data flow: what `analyze` and its kin do, in order, and which files they leave.

The modules are loaded when they are used: the commands that only look into a run's state need none of the analysis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooftrace.workflow.options import AnalyzeOptions
    from rooftrace.workflow.run import analyze

__all__ = ["AnalyzeOptions", "analyze"]


def __getattr__(name: str) -> object:
    """`AnalyzeOptions` and `analyze`, loaded on first use."""
    if name == "AnalyzeOptions":
        from rooftrace.workflow import options

        return options.AnalyzeOptions
    if name == "analyze":
        from rooftrace.workflow import run

        return run.analyze
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
