"""Checks of what prose says against the evidence: a slot that fails one never reaches the report."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.validators.checks import COMPARISON, Check
from rooftrace.validators.prose import PROSE_FILES

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.validators.checks import Files


class GROUND001(Check):
    """Prose must hold no number but ids, ranks, dtypes, recorded shapes and settings: cite every quantity by its id."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look for digits and spelled-out quantities."""
        yield from files.flaws("GROUND001")


class GROUND002(Check):
    """A citation must be an id of this run, such as {{gemm.F1.time_ms}}: take it from the brief's list of ids."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Resolve every citation."""
        yield from files.flaws("GROUND002")


class GROUND003(Check):
    """A citation must stand without a unit and for what it measures: the report writes the unit with the value."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look at the words beside citations."""
        yield from files.flaws("GROUND003")


class GROUND004(Check):
    """Names of kernels, ops and modules must be in the trace; backticks may hold APIs, settings, tools, but no ids."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look up names."""
        yield from files.flaws("GROUND004")


class GROUND005(Check):
    """What no trace shows (occupancy, cache hits, spills, stalls …) must be left to the tool that could show it."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look for what no trace shows."""
        yield from files.flaws("GROUND005")


class GROUND006(Check):
    """A comparison must hold in the evidence: shares, what bounds a kernel, which of two quantities is larger."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare words with the evidence."""
        yield from files.flaws("GROUND006")


class GROUND007(Check):
    """Advice must not be to do what the evidence shows as done already, or what this GPU cannot do."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare advice with the evidence."""
        yield from files.flaws("GROUND007")


class GROUND008(Check):
    """Prose must hold no link, no shell command and no words to whoever processes it: names of a trace are data."""

    file = PROSE_FILES
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look for links, commands and instructions."""
        yield from files.flaws("GROUND008")


class GROUND009(Check):
    """Words of change must hold: which side is slower, launches more, nears its GPU's limit, by which cause."""

    file = PROSE_FILES
    about = (COMPARISON,)
    only = (PROSE_FILES,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare words of change with both sides."""
        yield from files.flaws("GROUND009")
