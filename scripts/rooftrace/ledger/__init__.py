"""The time ledger: every nanosecond of a device's span in exactly one part."""

from __future__ import annotations

from rooftrace.ledger.gaps import GapColumns, gap_columns
from rooftrace.ledger.parts import GapCauses, Timeline, device_ledgers

__all__ = [
    "GapCauses",
    "GapColumns",
    "Timeline",
    "device_ledgers",
    "gap_columns",
]
