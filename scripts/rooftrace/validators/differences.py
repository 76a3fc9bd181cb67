"""Where a page differs from what it should be, in one line each."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


def first_difference(path: str, expected: str, actual: str) -> str:
    """The first line of `actual` that is another one in `expected`, round the place."""
    pairs = zip_longest(expected.split("\n"), actual.split("\n"), fillvalue="(no line)")
    number, (wanted, found) = next((at, pair) for at, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    start = max(0, next((at for at, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), 0) - 20)
    shown = [text[start : start + 80] for text in (found, wanted)]
    return f"{path}, line {number}: `{shown[0]}` where the evidence gives `{shown[1]}`"


def wrong_sections(path: str, text: str, expected: tuple[str, ...]) -> Iterator[str]:
    """The sections of a page, if they are not these, each once and in this order."""
    found = tuple(line.rstrip() for line in text.split("\n") if line.startswith("## "))
    if found != expected:
        yield f"{path} has the sections {', '.join(found)}"
