"""Where a page differs from what it should be, in one line."""

from __future__ import annotations

from itertools import zip_longest


def first_difference(path: str, expected: str, actual: str) -> str:
    """The first line of `actual` that is another one in `expected`, round the place."""
    pairs = zip_longest(expected.split("\n"), actual.split("\n"), fillvalue="(no line)")
    number, (wanted, found) = next((at, pair) for at, pair in enumerate(pairs, start=1) if pair[0] != pair[1])
    start = max(0, next((at for at, (a, b) in enumerate(zip(wanted, found, strict=False)) if a != b), 0) - 20)
    shown = [text[start : start + 80] for text in (found, wanted)]
    return f"{path}, line {number}: `{shown[0]}` where the evidence gives `{shown[1]}`"
