"""``evidence/replay.json``: what the run waited for, and what it would take with something changed."""

from __future__ import annotations

from pydantic import Field

from rooftrace.contracts.base import Artifact
from rooftrace.contracts.report import Remaining, Replay


class ReplayFile(Artifact):
    """The replay of a run."""

    replay: Replay = Field(description="The same as in `report.json`.")
    together: list[Remaining] | None = Field(
        description="What is left when the first findings are fixed; null where too little of the run is explained."
    )
