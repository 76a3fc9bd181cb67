"""Checks of prose files: their shape, the findings they are about, the evidence they belong to, their plain text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.validators.checks import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.validators.checks import Files

PROSE_FILES = "prose/*.json"


class PROSE001(Check):
    """Prose must match its schema: the slots and nothing else, each within its length; leave out what is not there."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Parse every prose file."""
        yield from files.flaws("PROSE001")


class PROSE002(Check):
    """Prose must have one entry for each finding it is asked about, by the id of the evidence, and no other."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the ids with the evidence."""
        yield from files.flaws("PROSE002")


class PROSE003(Check):
    """Prose must belong to an analyzer of this run and to its evidence as it is: write it anew from the brief."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare name and digest."""
        yield from files.flaws("PROSE003")


class PROSE004(Check):
    """Prose must be plain sentences on one line (a resolution: four), names in backticks: no markup, nothing hidden."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look at every slot."""
        yield from files.flaws("PROSE004")
