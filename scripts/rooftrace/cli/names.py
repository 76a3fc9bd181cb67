"""Names of folders made from names of files: safe on every system, readable in every script."""

from __future__ import annotations

import re
import unicodedata

_SUFFIXES = re.compile(r"(?:\.pt)?(?:\.trace)?(?:\.json)?(?:\.(?:gz|zst|zip|tar|tgz))*$", re.IGNORECASE)
# Letters, their marks and digits; no separator, control, mark of direction or lone surrogate is among them.
_KEPT = frozenset(("Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc", "Nd", "Nl", "No"))
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")  # letters and marks too
_RUN_OF_OTHERS = re.compile("\0+")
_MAX_NAME = 100
_MAX_BYTES = 200  # of 255: a run is written beside its place first, under a longer name
# Names of devices on Windows, which no folder may bear there, whatever follows a dot.
_PORTS = (*"123456789", *"\u00b9\u00b2\u00b3")
_DEVICES = frozenset(("CON", "PRN", "AUX", "NUL", *(f"{port}{n}" for port in ("COM", "LPT") for n in _PORTS)))


def folder_name(file_name: str) -> str:
    """A trace's name without its endings; what is neither letter, digit, dot, dash nor underscore becomes `_`.

    At most 100 characters and 200 bytes of UTF-8, composed (NFC); never empty.
    """
    text = unicodedata.normalize("NFC", _SUFFIXES.sub("", file_name))
    name = _RUN_OF_OTHERS.sub("_", "".join(sign if _is_kept(sign) else "\0" for sign in text))
    name = bounded(name.strip("._"), _MAX_BYTES) or "trace"
    return f"_{name}" if name.partition(".")[0].upper() in _DEVICES else name


def _is_kept(sign: str) -> bool:
    if sign.isascii():
        return sign.isalnum() or sign in "._-"
    return unicodedata.category(sign)[:2] in _KEPT and sign not in _INVISIBLE and not 0xFE00 <= ord(sign) <= 0xFE0F


def bounded(name: str, most_bytes: int) -> str:
    """The name's start, at most 100 characters and `most_bytes` bytes; no dot ends it, which Windows would drop."""
    return name[:_MAX_NAME].encode()[:most_bytes].decode(errors="ignore").rstrip("._")
