"""Reads one damaged event: mends what real writers get wrong, and names each mend.

Mended: invalid UTF-8, unknown escapes, raw control characters, bare ``NaN``/``inf``, stray commas, and unescaped
quotes inside a name. Only the part of the text that needs it is touched.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace.rawevents import MALFORMED, ExactEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.trace.events import Tally

# A string, or what is left of one: it never fails once begun, so a search takes linear time.
_STRING = rb'"[^"\\]*(?:\\.?[^"\\]*)*(?:"|\Z)'
_CONTROL = re.compile(rb"[\x00-\x1f]")
_IN_STRINGS = re.compile(_STRING, re.DOTALL)
# As C, Python and JavaScript write them, and the C library of Windows: ``-nan(ind)``, ``1.#INF``, ``-1.#IND``.
_NOT_FINITE = re.compile(
    _STRING + rb"|(?<![\w.])[-+]?(?:nan(?:\((?:ind|snan)\))?|inf(?:inity)?|1\.#(?:inf|ind|qnan|snan)0*)(?![\w.(])",
    re.DOTALL | re.IGNORECASE,
)
_MAYBE_NOT_FINITE = re.compile(rb"(?i:nan|inf|1\.#)")
_MAYBE_STRAY = re.compile(rb",\s*[,}\]]")
_STRAY_COMMA = re.compile(_STRING + rb"|,(?=\s*[,}\]])", re.DOTALL)
_BAD_ESCAPE = re.compile(rb'\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})|\\')
_SURROGATE = re.compile(
    rb"\\\\|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"
)
# A name runs to the quote that is followed by one of an event's keys or by the end of the event.
_NAME_BEGIN = re.compile(rb'"name"\s*:\s*"')
_NAME_END = re.compile(rb'"\s*(?:,\s*"(?:ph|cat|pid|tid|ts|dur|args|id|s|bp|cname)"\s*:|\}\s*\Z)')
_ESCAPED_OR_QUOTE = re.compile(rb'\\.|"', re.DOTALL)

_decode = msgspec.json.Decoder(ExactEvent).decode


def read_intact(text: bytes) -> ExactEvent | None:
    """The event, if the text is one valid object."""
    try:
        return _decode(text)
    except MALFORMED:
        return None


def read_mended(text: bytes, offset: int, repaired: Tally) -> ExactEvent | None:
    """The event after mending; every mend that it took is counted."""
    if not text.startswith(b"{"):
        return None
    for with_name in (False, True):
        for reasons, attempt in attempts(text, with_name=with_name):
            event = read_intact(attempt)
            if event is not None and event.ph:
                for reason in reasons:
                    repaired.add(reason, 1, offset)
                return event
    return None


def attempts(text: bytes, *, with_name: bool = False) -> Iterator[tuple[list[str], bytes]]:
    """The text with one more kind of damage mended each time."""
    reasons: list[str] = []
    if with_name:
        mended = _escape_quotes_in_name(text)
        if mended == text:
            return
        reasons, text = ["unescaped quote in a name"], mended
        yield reasons, text
    for reason, mend in _MENDS:
        mended = mend(text)
        if mended != text:
            reasons, text = [*reasons, reason], mended
            yield reasons, text


def _escape_quotes_in_name(text: bytes) -> bytes:
    """The text with the quotes inside its first name escaped; one look for the name's end keeps this linear."""
    begin = _NAME_BEGIN.search(text)
    end = _NAME_END.search(text, begin.end()) if begin else None
    if begin is None or end is None:
        return text
    inside = _ESCAPED_OR_QUOTE.sub(
        lambda m: b'\\"' if m.group() == b'"' else m.group(), text[begin.end() : end.start()]
    )
    return text[: begin.end()] + inside + text[end.start() :]


def _replace_invalid_utf8(text: bytes) -> bytes:
    if text.isascii():
        return text
    return text.decode("utf-8", "replace").encode()


def _double_unknown_backslashes(text: bytes) -> bytes:
    return text if b"\\" not in text else _BAD_ESCAPE.sub(lambda m: rb"\\" if len(m.group()) == 1 else m.group(), text)


def _replace_lone_surrogates(text: bytes) -> bytes:
    return text if b"\\u" not in text else _SURROGATE.sub(lambda m: rb"\ufffd" if m.group(1) else m.group(), text)


def _escape_controls(text: bytes) -> bytes:
    def escape(string: re.Match[bytes]) -> bytes:
        return _CONTROL.sub(lambda m: b"\\u%04x" % m.group()[0], string.group())

    return _IN_STRINGS.sub(escape, text) if _CONTROL.search(text) else text


def _null_for_not_finite(text: bytes) -> bytes:
    if not _MAYBE_NOT_FINITE.search(text):
        return text
    return _NOT_FINITE.sub(lambda m: m.group() if m.group()[:1] == b'"' else b"null", text)


def _without_stray_commas(text: bytes) -> bytes:
    if not _MAYBE_STRAY.search(text):
        return text
    return _STRAY_COMMA.sub(lambda m: m.group() if m.group()[:1] == b'"' else b"", text)


_MENDS: tuple[tuple[str, Callable[[bytes], bytes]], ...] = (
    ("invalid UTF-8", _replace_invalid_utf8),
    ("unknown escape in a string", _double_unknown_backslashes),
    ("half of a surrogate pair", _replace_lone_surrogates),
    ("control character in a string", _escape_controls),
    ("not a finite number", _null_for_not_finite),
    ("stray comma", _without_stray_commas),
)
