"""The fusion tier's findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.sections.what_to_do_first import tier_rows

if TYPE_CHECKING:
    from rooftrace.report.view import View


def context(view: View) -> dict[str, object]:
    """Findings of the tier."""
    return tier_rows(view, "fusion")
