"""Events of any profiler as rows of the columns: what every format here hands on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from rooftrace.trace.columns import Columns
from rooftrace.trace.rawevents import NO_ARGS, NO_RAW, ExactEvent

if TYPE_CHECKING:
    from rooftrace.trace.events import Tally, Trace

_BATCH = 4096
_LARGEST = 1 << 63
Lane = tuple["int | str", "int | str"]
_encode = msgspec.json.encode


class Rows:
    """Collects events, in the vocabulary of Kineto's categories, and gives the trace."""

    def __init__(self) -> None:
        self._columns = Columns()
        self._batch: list[ExactEvent] = []

    @property
    def dropped(self) -> Tally:
        """Count here what cannot become an event."""
        return self._columns.dropped

    @property
    def repaired(self) -> Tally:
        """Count here what was mended."""
        return self._columns.repaired

    def add(
        self,
        category: str,
        name: str,
        lane: Lane,
        times: tuple[int | None, int | None],
        args: dict[str, Any] | None = None,
    ) -> None:
        """An event from its start to its end, ns; None for what is not known."""
        start, end = times
        dur = NO_RAW if start is None or end is None else microseconds(end - start)
        self._put(
            ExactEvent(
                ph="X",
                cat=category,
                name=name,
                pid=lane[0],
                tid=lane[1],
                ts=NO_RAW if start is None else microseconds(start),
                dur=dur,
                args=msgspec.Raw(_encode(_given(args))) if args else NO_ARGS,
            )
        )

    def _put(self, event: ExactEvent) -> None:
        self._batch.append(event)
        if len(self._batch) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._columns.add_exact(self._batch)
        self._batch = []

    def finish(self, header: dict[str, Any], layout: str) -> Trace:
        """The trace of all events."""
        self._flush()
        return self._columns.finish(header, layout)


def microseconds(ns: int) -> msgspec.Raw:
    """A time as Kineto writes it: a decimal number of µs, exact to the ns."""
    whole, rest = divmod(abs(ns), 1000)
    return msgspec.Raw(b"%s%d.%03d" % (b"-" if ns < 0 else b"", whole, rest))


def _given(args: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if value is not None}


def whole(value: object) -> int | None:
    """A whole number of 64 bits from whatever stands in a field, text included; None for anything else."""
    if type(value) is int:  # nearly always
        return value if -_LARGEST <= value < _LARGEST else None
    if isinstance(value, bool) or not isinstance(value, (float, str)):
        return None
    try:
        number = int(value, 0) if isinstance(value, str) else int(value)
    except (ValueError, OverflowError):
        return _whole_of_padded(value)
    return number if -_LARGEST <= number < _LARGEST else None


def _whole_of_padded(value: float | str) -> int | None:
    """`007` is no number of Python's, but one of many writers."""
    text = value.strip() if isinstance(value, str) else ""
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 19 else None


def mapping(value: object) -> dict[str, Any]:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[dict[str, Any]]:
    """The objects of a list; none where it is no list."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def text_of(value: object) -> str:
    """The value where it is text, else an empty one."""
    return value if isinstance(value, str) else ""
