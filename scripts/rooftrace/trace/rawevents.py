"""How one event looks on the wire, for msgspec: the fields that are used, nothing else is decoded.

Three shapes of the same record. `FastEvent` takes numbers as they are and is exact for whole µs and for fractions
below 2^43 µs (a century of uptime, not an absolute date). `StrictEvent` keeps times as text. `ExactEvent` accepts any
type anywhere; it is the slowest and used for the blocks that need it. Arguments stay text in all of them.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

NO_RAW = msgspec.Raw(b"")
NO_ARGS = msgspec.Raw(b"{}")


class FastEvent(msgspec.Struct, gc=False):
    """An event whose fields have the usual types."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: int | float = math.nan
    dur: float = math.nan
    id: int | str = -1
    args: msgspec.Raw = NO_ARGS


class StrictEvent(msgspec.Struct, gc=False):
    """An event whose fields have the usual types; times stay text."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: msgspec.Raw = NO_RAW
    dur: msgspec.Raw = NO_RAW
    id: int | str = -1
    args: msgspec.Raw = NO_ARGS


class ExactEvent(msgspec.Struct, gc=False):
    """An event whose fields may have any type; times stay text."""

    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = -1
    tid: Any = -1
    ts: msgspec.Raw = NO_RAW
    dur: msgspec.Raw = NO_RAW
    id: Any = -1
    args: msgspec.Raw = NO_ARGS


Event = FastEvent | StrictEvent
# What decoding damaged text raises; a text of thousands of brackets exhausts the decoder's stack limit.
MALFORMED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)


def exact_ns(text: str) -> int | None:
    """Integer nanoseconds of a decimal number of microseconds; None for anything else.

    >>> exact_ns("1661938466265032.125")
    1661938466265032125
    """
    try:
        value = Decimal(text.strip().strip('"').strip())
    except InvalidOperation:
        return None
    if not value.is_finite() or value.adjusted() > 18:
        return None
    return int((value * 1000).to_integral_value())


def to_int(value: object, default: int = -1) -> int:
    """An int64 from whatever stands in an id field, -1 for the largest unsigned one.

    Other unsigned numbers of 64 bits go to the upper half of what is positive, where no id is counted up to: an id is
    compared with others and none is negative.
    """
    try:
        number = int(value.strip(), 0) if isinstance(value, str) else int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return default
    if 2**63 <= number < 2**64:
        return -1 if number == 2**64 - 1 else int(number) % 2**62 + 2**62
    return int(number) if -(2**63) <= number < 2**63 else default


def usual(event: ExactEvent) -> StrictEvent:
    """The same event with its fields brought to the usual types."""
    return StrictEvent(
        ph=_text(event.ph),
        cat=_text(event.cat),
        name=_text(event.name),
        pid=_id(event.pid),
        tid=_id(event.tid),
        ts=event.ts,
        dur=event.dur,
        id=_id(event.id),
        args=event.args,
    )


def _id(value: object) -> int | str:
    return value if isinstance(value, int | str) else str(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)
