"""The time ledger: every nanosecond of a device's span in exactly one part."""

from __future__ import annotations

from rooftrace.ledger.gaps import Gap, GapColumns, find_gaps, gap_columns
from rooftrace.ledger.parts import GapCauses, Timeline, device_ledgers

__all__ = [
    "Gap",
    "GapCauses",
    "GapColumns",
    "Timeline",
    "device_ledgers",
    "find_gaps",
    "gap_columns",
]
