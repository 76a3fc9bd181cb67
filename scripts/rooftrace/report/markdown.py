"""The only ways by which a string from a trace enters Markdown.

``Safe`` marks text that has been through one of them; the template environment escapes every other string
by itself. Whatever comes out is one line, at most ``LIMIT`` characters of content, and holds neither a
comment marker nor a citation.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rooftrace.contracts import fencing

LIMIT = 120

_SPECIAL = str.maketrans({special: f"\\{special}" for special in "\\`*[]|~"})
# An underscore inside a word is no emphasis, and names are full of them.
_EMPHASIS = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_BLOCK_START = re.compile(r"^(#{1,6}|[-+>=]|\d+[.)])(?=\s|$|[-=])")
_BACKTICKS = re.compile(r"`+")
_NOT_TOKEN = re.compile(r"[^A-Za-z0-9_.:/+-]+")
_BROKEN = (("<!--", "<! --"), ("-->", "-- >"), ("{{", "{ {"), ("}}", "} }"), ("{%", "{ %"), ("%}", "% }"))


class Safe(str):
    """Markdown that may be written as it is."""

    __slots__ = ()


# A quantity that is not known; it is never shown as zero.
UNKNOWN = Safe("-")


def one_line(text: str, limit: int = LIMIT) -> str:
    """`text` without line ends, control and invisible characters and overlong tails."""
    return fencing.one_line(text, limit)


def tail(text: str, limit: int) -> str:
    """The end of a path, which tells more than its beginning."""
    flat = one_line(text, 10_000)
    return flat if len(flat) <= limit else "…" + flat[1 - limit :]


@lru_cache(maxsize=4096)
def md(text: str, limit: int = LIMIT) -> Safe:
    """Text as Markdown that shows it literally, also inside a table cell."""
    flat = one_line(text, limit).translate(_SPECIAL)
    if "_" in flat:
        flat = _EMPHASIS.sub(r"\\_", flat)
    flat = flat.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    flat = flat.replace("{{", "{ {").replace("}}", "} }").replace("{%", "{ %").replace("%}", "% }")
    flat = flat.replace("://", ":&#47;/").replace("www.", "www&#46;")  # a bare address would become a link
    return Safe(_unopened(flat))


def _unopened(line: str) -> str:
    """The line, if need be with a backslash before what would make it a heading, an item or a quotation."""
    return f"\\{line}" if _BLOCK_START.match(line) else line


def literal(text: str) -> Safe:
    """Words of a sentence as Markdown that shows them as they are; spaces at either end stay."""
    inner = text.strip()
    if not inner:
        return Safe(" " if text else "")
    before, after = " " * text[0].isspace(), " " * text[-1].isspace()
    return Safe(f"{before}{md(inner, len(inner) + 1)}{after}")


def spans(text: str, limit: int = LIMIT) -> Safe:
    """Text whose names stand in backticks already: they become inline code, the rest shows literally."""
    parts = one_line(text, limit).split("`")
    if len(parts) % 2 == 0:  # an odd backtick opens what nothing closes
        return md(text, limit)
    return Safe("".join(code(part, limit) if at % 2 else literal(part) for at, part in enumerate(parts)))


def code(text: str, limit: int = LIMIT) -> Safe:
    """Inline code that shows `text`; backticks in it get a longer fence, bars are escaped for tables."""
    flat = one_line(text, limit)
    for marker, broken in _BROKEN:
        flat = flat.replace(marker, broken)
    if not flat:
        return UNKNOWN
    fence = "`" * (max((len(run) for run in _BACKTICKS.findall(flat)), default=0) + 1)
    pad = " " if flat.startswith("`") or flat.endswith("`") else ""
    return Safe(f"{fence}{pad}{flat.replace('|', chr(92) + '|')}{pad}{fence}")


def prose(text: str) -> Safe:
    """Paragraphs whose values are escaped already; here they lose what could close a marker or open a block."""
    for marker, broken in _BROKEN[:2]:
        text = text.replace(marker, broken)
    return Safe("\n\n".join(_unopened(one_line(part, 4_000)) for part in text.split("\n\n")))


def points(text: str) -> Safe:
    """Paragraphs as the first line of a list item and items below it."""
    return Safe(prose(text).replace("\n\n", "\n  - "))


def token(text: str) -> Safe:
    """An attribute value of a marker: letters, digits and ``_.:/+-`` only."""
    return Safe(_NOT_TOKEN.sub("_", text).replace("--", "_") or "_")
