"""Stages as data flow: what `analyze` and its kin do, in order, and which files they leave."""

from __future__ import annotations

from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.run import analyze

__all__ = ["AnalyzeOptions", "analyze"]
