"""Tables and JSON on stdout, prose on stderr."""

from __future__ import annotations

import os
import re
import shutil
import sys
from typing import TYPE_CHECKING, Any, TextIO

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_MAX_CELL = 60
_SHOWN: list[int] = []  # length of the line on the terminal that the next one takes the place of
_REORDERING = [*range(0x200E, 0x2010), *range(0x2028, 0x202F), *range(0x2066, 0x206A)]  # marks, separators, bidi
# What a name may hold that moves the cursor, colours the text or turns it round.
_UNPRINTABLE = {code: "?" for code in [*range(32), *range(127, 160), *_REORDERING]}
_KEPT_IN_TEXT = {code: sign for code, sign in _UNPRINTABLE.items() if code != ord("\n")}
_RAW_IN_JSON = re.compile("[\x7f-\x9f]")  # controls that JSON need not escape


def say(text: str) -> None:
    """A line of prose for a person; the command goes on where nobody reads it."""
    _to_stderr(_wiped() + text.translate(_KEPT_IN_TEXT) + "\n")


def say_over(text: str) -> None:
    """A line on a terminal that the next one takes the place of."""
    room = max(shutil.get_terminal_size().columns - 1, 1)
    shown = text.translate(_UNPRINTABLE)[:room]
    before = _wiped()
    _to_stderr(before + shown)
    _SHOWN.append(len(shown))


def _wiped() -> str:
    """What wipes the line that is to be replaced, if there is one."""
    return f"\r{' ' * _SHOWN.pop()}\r" if _SHOWN else ""


def _to_stderr(text: str) -> None:
    try:
        sys.stderr.write(text)
        sys.stderr.flush()
    except OSError:  # its reader, its terminal or the room on its disk has gone
        abandon(sys.stderr)


def abandon(stream: TextIO) -> None:
    """Let what a stream still holds go nowhere, so that the interpreter's last flush cannot fail."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def put(text: str) -> None:
    """Data."""
    sys.stdout.write(text.translate(_KEPT_IN_TEXT) + "\n")


def put_json(value: Any) -> None:
    """Data for a machine."""
    put_json_text(orjson.dumps(value, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE).decode())


def put_json_text(text: str) -> None:
    """JSON as it stands, with every control character escaped."""
    sys.stdout.write(_RAW_IN_JSON.sub(lambda found: f"\\u{ord(found.group()):04x}", text))


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
