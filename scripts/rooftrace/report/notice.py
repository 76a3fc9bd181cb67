"""The line under the title of ``analysis.md`` while words of a prepared run are still open.

It tells how far the writing is, not what the evidence says, so the check that renders the report again leaves it out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.errors import RooftraceError

if TYPE_CHECKING:
    from pathlib import Path

_TEXT = "> Words still open for %s: run `next`. Numbers, titles and order stay as they are.\n\n"
_LINE = re.compile(re.escape(_TEXT).replace("%s", r"[a-z_]+(?:, [a-z_]+){0,20}").replace("\\\n", "\n"))
_OPEN = ("open", "handed_out")


def open_words(run: Path) -> list[str]:
    """Analyzers whose words may still come; none where the run was not prepared for them."""
    from rooftrace.contracts.state import StateFile

    path = run / store.STATE
    if not path.is_file():
        return []
    try:
        state = store.read_artifact(path, StateFile)
    except RooftraceError:  # its own check tells
        return []
    return [task.analyzer for task in state.tasks if task.status in _OPEN]


def with_notice(analysis: str, names: list[str]) -> str:
    """The report with the line under its title; as it is where nothing is open."""
    title, line_end, rest = analysis.partition("\n\n")
    return f"{title}{line_end}{_TEXT % ', '.join(names)}{rest}" if names else analysis


def without_notice(analysis: str) -> str:
    """The report as the evidence renders it."""
    title, line_end, rest = analysis.partition("\n\n")
    found = _LINE.match(rest)
    return f"{title}{line_end}{rest[found.end() :]}" if found else analysis
