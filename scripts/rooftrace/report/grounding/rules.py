"""The rules by their codes; the checks of the same names tell them to whoever reads them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.report.grounding.already_done import needless_advice
from rooftrace.report.grounding.citing import contradicted_units, unknown_ids
from rooftrace.report.grounding.comparisons import contradicted_comparisons
from rooftrace.report.grounding.directions import contradicted_changes
from rooftrace.report.grounding.instructions import instructions, not_plain
from rooftrace.report.grounding.naming import unknown_names
from rooftrace.report.grounding.numbers import bare_numbers
from rooftrace.report.grounding.unobservable import unseen_claims

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.report.grounding.grounds import Basis, Slot

    Rule = Callable[[Slot, Basis], Iterator[str]]

RULES: dict[str, Rule] = {
    "PROSE004": not_plain,
    "GROUND001": bare_numbers,
    "GROUND002": unknown_ids,
    "GROUND003": contradicted_units,
    "GROUND004": unknown_names,
    "GROUND005": unseen_claims,
    "GROUND006": contradicted_comparisons,
    "GROUND007": needless_advice,
    "GROUND008": instructions,
    "GROUND009": contradicted_changes,
}
