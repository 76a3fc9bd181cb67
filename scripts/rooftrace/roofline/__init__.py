"""Cost times ceiling against time: what each op group could take at best, and how far it is from it."""

from __future__ import annotations

from rooftrace.roofline.coverage import coverage
from rooftrace.roofline.rating import Rating, Unrated, is_inferred, latency_floor, rate

__all__ = ["Rating", "Unrated", "coverage", "is_inferred", "latency_floor", "rate"]
