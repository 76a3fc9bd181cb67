"""What a plot is made of. Coordinates are pixels from the top left; colours are hexadecimal."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct, field

INK = "#1c2126"
PAPER = "#ffffff"
FAINT = "#dfe2e6"
# Mean advance of a sans-serif glyph over its size, rounded up: digits are 0.56, capitals about 0.67.
_ADVANCE = 0.6


class Rect(Struct, frozen=True, kw_only=True):
    """A filled rectangle; `name` is shown by viewers that have a pointer."""

    x: float
    y: float
    width: float
    height: float
    fill: str
    name: str = ""
    stroke: str = PAPER


class Line(Struct, frozen=True, kw_only=True):
    """A straight line."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str = INK
    width: float = 1.5
    is_dashed: bool = False


class Circle(Struct, frozen=True, kw_only=True):
    """A filled, slightly transparent circle."""

    x: float
    y: float
    radius: float
    fill: str


class Text(Struct, frozen=True, kw_only=True):
    """A line of text; a slug that the template has words for is written in words."""

    x: float
    y: float
    text: str
    anchor: Literal["start", "middle", "end"] = "start"
    size: int = 12
    fill: str = INK


class Drawing(Struct, kw_only=True):
    """Shapes of a plot, drawn kind by kind in the order of the fields."""

    height: float = 0.0
    rects: list[Rect] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    circles: list[Circle] = field(default_factory=list)
    texts: list[Text] = field(default_factory=list)


def text_width(text: str, font_size: int = 12) -> float:
    """Pixels that a text takes at most, fonts differing."""
    return len(text) * font_size * _ADVANCE


def shortened(text: str, glyphs: int) -> str:
    """At most `glyphs` characters, the last an ellipsis where something is cut."""
    return text if len(text) <= glyphs else text[: glyphs - 1] + "…"
