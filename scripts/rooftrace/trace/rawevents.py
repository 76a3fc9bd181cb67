"""How one event looks on the wire, for msgspec: the fields that are used, nothing else is decoded.

Two shapes of the same record. `FastEvent` takes numbers as they are and is exact for times below 2^43 µs (a century
of uptime, not an absolute date with fractions). `ExactEvent` keeps times as text and accepts any type anywhere; it is
slower and used for the blocks that need it.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from typing import Any

import msgspec

_NO_RAW = msgspec.Raw(b"")


class FastArgs(msgspec.Struct, gc=False, frozen=True):
    """Arguments that some event kind is analysed by; -1 where absent."""

    correlation: int = -1
    external_id: int = msgspec.field(default=-1, name="External id")
    external_id_old: int = msgspec.field(default=-1, name="external id")
    device: int = -1
    stream: int = -1
    sequence: int = msgspec.field(default=-1, name="Sequence number")
    forward_thread: int = msgspec.field(default=-1, name="Fwd thread id")
    nbytes: int | float | str = msgspec.field(default=-1, name="bytes")
    dims: msgspec.Raw = msgspec.field(default=_NO_RAW, name="Input Dims")
    dims_old: msgspec.Raw = msgspec.field(default=_NO_RAW, name="Input dims")
    types: msgspec.Raw = msgspec.field(default=_NO_RAW, name="Input type")
    strides: msgspec.Raw = msgspec.field(default=_NO_RAW, name="Input Strides")
    concrete: msgspec.Raw = msgspec.field(default=_NO_RAW, name="Concrete Inputs")


NO_ARGS = FastArgs()


class FastEvent(msgspec.Struct, gc=False):
    """An event whose fields have the usual types."""

    ph: str = ""
    cat: str = ""
    name: str = ""
    pid: int | str = -1
    tid: int | str = -1
    ts: float = math.nan
    dur: float = math.nan
    id: int | str = -1
    args: FastArgs = NO_ARGS


class ExactEvent(msgspec.Struct, gc=False):
    """An event whose fields may have any type; times stay text."""

    ph: Any = ""
    cat: Any = ""
    name: Any = ""
    pid: Any = -1
    tid: Any = -1
    ts: msgspec.Raw = _NO_RAW
    dur: msgspec.Raw = _NO_RAW
    id: Any = -1
    args: msgspec.Raw = _NO_RAW


def exact_ns(text: str) -> int | None:
    """Integer nanoseconds of a decimal number of microseconds; None for anything else.

    >>> exact_ns("1661938466265032.125")
    1661938466265032125
    """
    try:
        value = Decimal(text.strip().strip('"').strip())
        return None if not value.is_finite() else int((value * 1000).to_integral_value())
    except (InvalidOperation, OverflowError):
        return None


def to_int(value: object, default: int = -1) -> int:
    """An int64 from whatever stands in an id field."""
    if isinstance(value, bool):
        return int(value)
    try:
        number = int(str(value).strip(), 0) if isinstance(value, str) else int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError, OverflowError):
        return default
    return number if -(2**63) <= number < 2**63 else default


def loose_args(value: object) -> FastArgs:
    """Arguments of any decoded object, field by field."""
    if not isinstance(value, dict):
        return NO_ARGS
    numbers = {
        name: to_int(value[key])
        for name, key in (
            ("correlation", "correlation"),
            ("external_id", "External id"),
            ("external_id_old", "external id"),
            ("device", "device"),
            ("stream", "stream"),
            ("sequence", "Sequence number"),
            ("forward_thread", "Fwd thread id"),
            ("nbytes", "bytes"),
        )
        if key in value
    }
    raws = {
        name: msgspec.Raw(msgspec.json.encode(value[key]))
        for name, key in (
            ("dims", "Input Dims"),
            ("dims_old", "Input dims"),
            ("types", "Input type"),
            ("strides", "Input Strides"),
            ("concrete", "Concrete Inputs"),
        )
        if key in value
    }
    return FastArgs(**numbers, **raws)  # type: ignore[arg-type]
