"""Tables and JSON on stdout, prose on stderr."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_CELL = 60
_UNPRINTABLE = {code: "?" for code in [*range(32), 127, *range(128, 160)]}


def say(text: str) -> None:
    """A line of prose for a person."""
    sys.stderr.write(text + "\n")


def put(text: str) -> None:
    """Data."""
    sys.stdout.write(text + "\n")


def put_json(value: Any) -> None:
    """Data for a machine."""
    sys.stdout.write(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode() + "\n")


def put_table(header: Sequence[str], rows: Iterable[Sequence[str]], right: Iterable[int] = ()) -> None:
    """Aligned columns; ``right`` are the numbers of those aligned to the right."""
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    rights = set(right)
    for row in cells:
        parts = [
            value.rjust(width) if column in rights else value.ljust(width)
            for column, (value, width) in enumerate(zip(row, widths, strict=True))
        ]
        put("  ".join(parts).rstrip())


def _cell(value: str) -> str:
    """Text of a trace made harmless for a terminal."""
    text = value.translate(_UNPRINTABLE)
    return text if len(text) <= _MAX_CELL else text[: _MAX_CELL - 1] + "…"
