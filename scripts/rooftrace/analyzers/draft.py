"""A finding before it is scored: its evidence, and the change of the run that fixing it would be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

if TYPE_CHECKING:
    from rooftrace.contracts.evidence import FindingEvidence
    from rooftrace.replay.edits import Edit


class Draft(Struct, frozen=True, kw_only=True):
    """``finding`` holds a gap share as its provisional score; the replay of ``edit`` replaces it.

    ``most_ns`` is what the fix can save at most (METHODS: impact): the scoring never claims more.
    """

    finding: FindingEvidence
    edit: Edit
    most_ns: int

    def named(self, identity: str) -> Draft:
        """The same finding under its id."""
        return replace(self, finding=self.finding.model_copy(update={"id": identity}))
