"""The time ledger: every nanosecond of a device's span in exactly one part."""

from __future__ import annotations

from rooftrace.ledger.gaps import Gap, find_gaps
from rooftrace.ledger.parts import device_ledgers

__all__ = ["Gap", "device_ledgers", "find_gaps"]
