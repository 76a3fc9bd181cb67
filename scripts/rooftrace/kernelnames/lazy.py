"""Regular expressions compiled when first used: a trace follows a few naming schemes of the dozens known."""

from __future__ import annotations

import re


class LazyPattern:
    """`re.compile(source)`, later."""

    __slots__ = ("_compiled", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self._compiled: re.Pattern[str] | None = None

    def _get(self) -> re.Pattern[str]:
        if self._compiled is None:
            self._compiled = re.compile(self.source)
        return self._compiled

    def search(self, text: str) -> re.Match[str] | None:
        """First match anywhere in `text`."""
        return self._get().search(text)

    def match(self, text: str) -> re.Match[str] | None:
        """Match at the start of `text`."""
        return self._get().match(text)
