"""Two runs side by side: aligned call by call, every nanosecond of the difference of their spans in one row."""

from __future__ import annotations

from rooftrace.compare.pair import Comparison, compare_sides
from rooftrace.compare.side import Side
from rooftrace.compare.verdicts import CAUSES

__all__ = ["CAUSES", "Comparison", "Side", "compare_sides"]
