"""Patterns of words that most texts do not hold: compiled when a text first holds one of their hints.

Compiling all of them takes longer than reading a small run; a substring is looked for in no time.
"""

from __future__ import annotations

import re
from functools import cache

from msgspec import Struct


class Wording(Struct, frozen=True):
    """A pattern, upper and lower case alike, and the lower-case pieces of which a match holds at least one."""

    pattern: str
    hints: tuple[str, ...]

    def search(self, text: str) -> re.Match[str] | None:
        """The first match."""
        return _compiled(self.pattern).search(text) if self._may_match(text) else None

    def matches(self, text: str) -> list[re.Match[str]]:
        """All matches."""
        return list(_compiled(self.pattern).finditer(text)) if self._may_match(text) else []

    def _may_match(self, text: str) -> bool:
        low = text.lower()
        return any(hint in low for hint in self.hints)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)
