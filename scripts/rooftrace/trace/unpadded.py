"""Fractions of a microsecond without their leading zeros, as torch nightlies of March 2024 wrote them (kineto#896).

There a time of 10 µs and 5 ns stands as ``10.5`` and one of 10 µs and 50 ns as ``10.50``. Those files say
``"displayTimeUnit": "ns"`` and have no ``baseTimeNanoseconds``, as correct ones of April 2024 do, so their digits
have to tell: a fraction with a zero in front is never written so, and digits of different number, some with a zero at
the end, are written in no other way.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from msgspec import Struct

if TYPE_CHECKING:
    from rooftrace.trace.containers import Source

REASON = "time without the zeros of its fraction"
_DIGITS = 3
# Fewer fractions than this are no evidence.
_LEAST = 10
_FRACTION = re.compile(rb'"(?:ts|dur)"\s{0,8}:\s{0,8}-?[0-9]{1,20}\.([0-9]{1,20})(?![0-9eE])')
# No more text than this stands between two commas of an event that any writer wrote.
_MOST_HELD = 1 << 22


class Fractions(Struct):
    """What the fractions of a file look like: how many have one, two and three digits or more."""

    ones: int = 0
    twos: int = 0
    threes: int = 0
    end_in_zero: int = 0
    correct: bool = False  # one has a leading zero, or more digits than a ns
    first: int | None = None  # byte offset of the first with fewer than three digits

    @property
    def short(self) -> int:
        """Fractions that stand for something else if zeros are missing."""
        return 0 if self.correct else self.ones + self.twos

    @property
    def lack_zeros(self) -> bool:
        """Whether the file can only have been written without zeros."""
        kinds = sum(count > 0 for count in (self.ones, self.twos, self.threes))
        enough = self.ones + self.twos + self.threes >= _LEAST
        return self.short > 0 and kinds > 1 and self.end_in_zero > 0 and enough

    def take(self, digits: bytes, offset: int) -> None:
        """Count one fraction."""
        count = len(digits)
        if not digits.strip(b"0"):
            self.correct = self.correct or count > 1
            return
        self.correct = self.correct or digits.startswith(b"0") or count > _DIGITS
        self.ones += count == 1
        self.twos += count == _DIGITS - 1
        self.threes += count >= _DIGITS
        self.end_in_zero += digits.endswith(b"0")
        if count < _DIGITS and self.first is None:
            self.first = offset


def may_lack_zeros(header: dict[str, Any]) -> bool:
    """Whether the envelope is one of those weeks."""
    unit, base = header.get("displayTimeUnit"), header.get("baseTimeNanoseconds")
    return unit == "ns" and base is None and "schemaVersion" in header


def look_at(source: Source) -> Fractions:
    """The fractions of a file, up to the first that shows it to be correct."""
    found = Fractions()
    held, offset = b"", 0
    for chunk in source.chunks(digest=False):
        text = held + chunk
        end = text.rfind(b",") + 1
        if not end and len(text) > _MOST_HELD:
            end = len(text)
        for match in _FRACTION.finditer(text, 0, end):
            found.take(match.group(1), offset + match.start(1))
        held, offset = text[end:], offset + end
        if found.correct:
            break
    for match in _FRACTION.finditer(held):
        found.take(match.group(1), offset + match.start(1))
    return found


def with_zeros(text: bytes) -> bytes:
    """The text of a time with the zeros that its fraction lacks.

    >>> with_zeros(b"10.5")
    b'10.005'
    """
    whole, point, digits = text.partition(b".")
    return whole + point + digits.rjust(_DIGITS, b"0") if digits.isdigit() and digits != b"0" else text
