"""Performance analysis of GPU workloads: from a raw profile to a prioritised report."""

from __future__ import annotations

__version__ = "0.1.0"
