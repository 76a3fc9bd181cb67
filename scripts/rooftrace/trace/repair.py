"""Reads the events of a piece that is not valid JSON, one at a time; what cannot be mended is dropped and counted.

Mended: bare ``NaN``/``inf``, invalid UTF-8, raw control characters, unknown escapes and unescaped quotes inside
names, stray commas. Every repair is counted with its reason and the offset of the first.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace import blocks
from rooftrace.trace.rawevents import ExactEvent

if TYPE_CHECKING:
    from rooftrace.trace.events import Tally

_MAX_JOIN = 6
_NOT_FINITE = re.compile(rb"([:\[,]\s*)[-+]?(?:[Nn]a[Nn]|[Ii]nf(?:inity)?)(?=\s*[,}\]])")
_CONTROL = re.compile(rb"[\x00-\x1f]")
_BAD_ESCAPE = re.compile(rb'\\(?!["\\/bfnrtu]|u[0-9a-fA-F]{4})|\\(?=u(?![0-9a-fA-F]{4}))')
# A name runs to the quote that is followed by the next key or the end of the event.
_NAME = re.compile(
    rb'("name"\s*:\s*")(.*?)("\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp)"\s*:|\}\s*$))', re.DOTALL
)
_LONE_QUOTE = re.compile(rb'(?<!\\)((?:\\\\)*)"')
_STRAY_COMMA = re.compile(rb",(\s*[}\]])")

_decode = msgspec.json.Decoder(ExactEvent).decode


def salvage(text: bytes, offset: int, repaired: Tally, dropped: Tally) -> list[ExactEvent]:
    """All events of `text` that can be read, in order."""
    events: list[ExactEvent] = []
    start, joined = 0, 0
    ends = [*blocks.boundaries(text), (len(text), len(text))]
    for end, after in ends:
        event = _read(text[start:end], offset + start, repaired)
        if event is not None:
            events.append(event)
        elif joined < _MAX_JOIN and end < len(text):
            joined += 1  # the cut may lie inside a name or an argument: try with the next part
            continue
        elif text[start:end].strip(b" \t\r\n,"):
            dropped.add("unreadable event", 1, offset + start)
        start, joined = after, 0
    return events


def _read(fragment: bytes, offset: int, repaired: Tally) -> ExactEvent | None:
    fragment = fragment.strip(b" \t\r\n,\x00")
    if not fragment.startswith(b"{"):
        return None
    for reason, text in _attempts(fragment):
        try:
            event = _decode(text)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
        if reason:
            repaired.add(reason, 1, offset)
        return event
    return None


def _attempts(fragment: bytes) -> list[tuple[str, bytes]]:
    """The fragment, then the fragment with one more kind of damage mended each time."""
    attempts = [("", fragment)]
    text = _NOT_FINITE.sub(rb"\1null", fragment)
    attempts.append(("not a finite number", text))
    text = _STRAY_COMMA.sub(rb"\1", text)
    attempts.append(("stray comma", text))
    text = text.decode("utf-8", "replace").encode()
    attempts.append(("invalid UTF-8", text))
    text = _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0] if m.group() not in b"\n\r\t" else b" ", text)
    attempts.append(("control character in a string", text))
    text = _BAD_ESCAPE.sub(rb"\\\\", text)
    attempts.append(("unknown escape in a string", text))
    text = _NAME.sub(lambda m: m.group(1) + _LONE_QUOTE.sub(rb'\1\\"', m.group(2)) + m.group(3), text, count=1)
    attempts.append(("unescaped quote in a name", text))
    return attempts
