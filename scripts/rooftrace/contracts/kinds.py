"""What a folder holds: the run of one trace, or a comparison of two. Loads nothing heavy."""

from __future__ import annotations

from typing import TYPE_CHECKING

import orjson

if TYPE_CHECKING:
    from pathlib import Path

MANIFEST, ANALYSIS, COMPARISON_PAGE = "manifest.json", "analysis.md", "compare.md"
COMPARE = "compare"  # the one analyzer of a comparison


def is_comparison(run: Path) -> bool:
    """Whether the folder's manifest says that it is a comparison."""
    try:
        content = orjson.loads((run / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return False  # whoever reads the manifest tells what is wrong with it
    return isinstance(content, dict) and content.get("kind") == "comparison"


def page_of(run: Path) -> str:
    """The deliverable for people, relative to the folder."""
    return COMPARISON_PAGE if is_comparison(run) else ANALYSIS
