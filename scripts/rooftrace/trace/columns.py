"""Collects decoded events into columns, block by block; strings and input signatures are interned on the way."""

from __future__ import annotations

import zlib
from contextlib import suppress
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rooftrace.trace import repair
from rooftrace.trace.events import KIND_OF_CATEGORY, Flows, Inputs, Kind, Tally, Trace
from rooftrace.trace.rawevents import MALFORMED, NO_RAW, exact_ns, to_int, usual

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from rooftrace.trace.rawevents import Event, ExactEvent, FastArgs, FastEvent, StrictEvent

# Below this many µs a float64 tells nanoseconds apart: at most 2^-10 µs = 0.98 ns between two, so 0.49 ns of error.
_EXACT_FLOAT_US = float(1 << 43)
# Times beyond are no times (2^62 ns is in the year 2116); within, a start plus a duration fits into 64 bits.
_MAX_NS = 1 << 62
_MIN_NS = -(1 << 60)

# The numbers that are read of an op or annotation, and of an event of any other kind but a Python frame.
_HOST_FIELDS = ("external_id", "external_id_old", "sequence", "forward_thread")
_OTHER_FIELDS = ("external_id", "external_id_old", "correlation", "device", "stream", "nbytes")
_INT_FIELDS = tuple(sorted({*_HOST_FIELDS, *_OTHER_FIELDS}))
_FWDBWD = "fwdbwd"
_LANE = attrgetter("pid", "tid")


class _Interner(dict[Any, int]):
    """Numbers distinct keys in order of appearance."""

    def __missing__(self, key: Any) -> int:
        number = self[key] = len(self)
        return number


class _Kinds(dict[str, int]):
    """Kind of a category name, looked up once per spelling."""

    def __missing__(self, category: str) -> int:
        kind = self[category] = int(KIND_OF_CATEGORY.get(category.lower(), Kind.OTHER))
        return kind


class Columns:
    """Growing columns of a trace."""

    def __init__(self) -> None:
        self.repaired = Tally()
        self.dropped = Tally()
        self.event_count = 0
        self._names = _Interner()
        self._lanes = _Interner()
        self._signatures = _Interner()
        self._kinds = _Kinds()
        self._parts: dict[str, list[NDArray[Any]]] = {}

    def add_fast(self, events: Sequence[FastEvent]) -> bool:
        """Take a decoded block; False (and nothing taken) if its times need the exact reader."""
        complete, flows = _complete_and_flows(events)
        times = _floats(complete, "ts")
        flow_times = _floats(flows, "ts")
        if not (_floats_are_exact(times, complete) and _floats_are_exact(flow_times, flows)):
            return False
        self.event_count += len(events)
        self._take(complete, _us_to_ns(times), _us_to_ns(_floats(complete, "dur")))
        self._take_flows(flows, _us_to_ns(flow_times))
        return True

    def add_strict(self, events: Sequence[StrictEvent]) -> None:
        """Take a decoded block whose times are text."""
        self.event_count += len(events)
        complete, flows = _complete_and_flows(events)
        self._take(complete, _exact_column(complete, "ts"), _exact_column(complete, "dur"))
        self._take_flows(flows, _exact_column(flows, "ts"))

    def add_exact(self, events: Sequence[ExactEvent]) -> None:
        """Take events whose fields may have any type."""
        self.add_strict([usual(event) for event in events])

    def _take(self, events: Sequence[Event], start: NDArray[np.int64], dur: NDArray[np.int64]) -> None:
        count = len(events)
        kind = np.fromiter(map(self._kinds.__getitem__, map(attrgetter("cat"), events)), np.uint8, count)
        self._put("kind", kind)
        self._put("name", _codes(self._names, map(attrgetter("name"), events), count))
        self._put("lane", _codes(self._lanes, map(_LANE, events), count))
        self._put("start", start)
        self._put("dur", dur)
        args = [event.args for event in events]
        host = np.flatnonzero((kind == Kind.CPU_OP) | (kind == Kind.ANNOTATION))
        other = np.flatnonzero(kind > Kind.ANNOTATION)
        host_args = [args[row] for row in host.tolist()]
        columns = {field: np.full(count, -1, dtype=np.int64) for field in _INT_FIELDS}
        _fill(columns, host, host_args, _HOST_FIELDS)
        _fill(columns, other, [args[row] for row in other.tolist()], _OTHER_FIELDS)
        for field, column in columns.items():
            self._put(field, column)
        self._put_inputs(count, host, host_args)

    def _put_inputs(self, count: int, rows: NDArray[np.int64], args: list[FastArgs]) -> None:
        column = np.full(count, -1, dtype=np.int32)
        dims = [arg.dims if arg.dims is not NO_RAW else arg.dims_old for arg in args]
        shaped = [at for at, raw in enumerate(dims) if raw is not NO_RAW]
        if shaped:
            used = [args[at] for at in shaped]
            keys = zip(
                map(bytes, [dims[at] for at in shaped]),
                *(map(bytes, map(attrgetter(field), used)) for field in ("types", "strides", "concrete")),
                strict=True,
            )
            column[rows[shaped]] = _codes(self._signatures, keys, len(shaped))
        self._put("inputs", column)

    def _take_flows(self, flows: Sequence[Event], ts: NDArray[np.int64]) -> None:
        self._put("flow_ts", ts)
        self._put("flow_id", _flow_ids(flows))
        self._put("flow_lane", _codes(self._lanes, map(_LANE, flows), len(flows)))
        self._put("flow_start", np.array([event.ph == "s" for event in flows], dtype=np.bool_))
        self._put("flow_fwdbwd", np.array([event.cat == _FWDBWD for event in flows], dtype=np.bool_))

    def _put(self, name: str, part: NDArray[Any]) -> None:
        self._parts.setdefault(name, []).append(part)

    def finish(self, header: dict[str, Any], layout: str) -> Trace:
        """The trace, with times moved to its first valid event; the collected blocks are released."""
        column = self._column
        kind, start, dur = column("kind", np.uint8), column("start", np.int64), column("dur", np.int64)
        external, old = column("external_id", np.int64), column("external_id_old", np.int64)
        trace = Trace(
            kind=kind,
            name=column("name", np.int32),
            lane=column("lane", np.int32),
            start=start,
            dur=dur,
            correlation=column("correlation", np.int64),
            external_id=np.where(external == -1, old, external),
            device=_as_int32(column("device", np.int64)),
            stream=column("stream", np.int64),
            sequence=column("sequence", np.int64),
            forward_thread=column("forward_thread", np.int64),
            inputs=column("inputs", np.int32),
            nbytes=column("nbytes", np.int64),
            flows=Flows(
                id=column("flow_id", np.int64),
                ts=column("flow_ts", np.int64),
                lane=column("flow_lane", np.int32),
                is_start=column("flow_start", np.bool_),
                is_fwdbwd=column("flow_fwdbwd", np.bool_),
            ),
            names=list(self._names),
            lanes=list(self._lanes),
            signatures=[_decode_signature(key) for key in self._signatures],
            header=header,
            repaired=self.repaired,
            dropped=self.dropped,
            event_count=self.event_count,
            base_ns=0,
            layout=layout,
        )
        self._signatures.clear()
        return trace

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)


MISSING = np.iinfo(np.int64).min


def _complete_and_flows(events: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The events with a duration, and the halves of flows."""
    complete = [event for event in events if event.ph == "X"]
    if len(complete) == len(events):
        return complete, []
    return complete, [event for event in events if event.ph in ("s", "f", "t")]


def _floats(events: Sequence[Event], field: str) -> NDArray[np.float64]:
    return np.fromiter(map(attrgetter(field), events), np.float64, len(events))


def _floats_are_exact(times: NDArray[np.float64], events: Sequence[FastEvent]) -> bool:
    if not np.any(np.abs(times) >= _EXACT_FLOAT_US):
        return True
    # A fraction may be rounded away: only what was written as a whole number is one.
    return all(isinstance(event.ts, int) for event in events)


def _us_to_ns(us: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integer ns; `MISSING` where the value is absent, not finite or beyond all clocks."""
    valid = (us > _MIN_NS / 1000) & (us < _MAX_NS / 1000)
    safe = np.where(valid, us, 0.0)
    whole = np.floor(safe)
    ns = whole.astype(np.int64) * 1000 + np.rint((safe - whole) * 1000.0).astype(np.int64)
    return np.where(valid, ns, MISSING)


def _exact_column(events: Sequence[StrictEvent], field: str) -> NDArray[np.int64]:
    """Integer ns of times as text, the same way."""
    texts = list(map(bytes, map(attrgetter(field), events)))
    try:  # three decimals, as every writer with absolute times has them: without the point they are ns
        values: list[int | None] = [
            int(text.replace(b".", b"", 1)) if text[-4:-3] == b"." else exact_ns(text.decode("ascii", "replace"))
            for text in texts
        ]
    except ValueError:
        values = [exact_ns(text.decode("ascii", "replace")) for text in texts]
    return np.array([v if v is not None and _MIN_NS < v < _MAX_NS else MISSING for v in values], dtype=np.int64)


def _as_int32(column: NDArray[np.int64]) -> NDArray[np.int32]:
    fits = np.abs(column) < 2**31
    return np.where(fits, column, -1).astype(np.int32)


def _codes(interner: _Interner, keys: Iterable[Any], count: int) -> NDArray[np.int32]:
    return np.fromiter(map(interner.__getitem__, keys), dtype=np.int32, count=count)


def _fill(
    columns: dict[str, NDArray[np.int64]], rows: NDArray[np.int64], args: list[FastArgs], fields: tuple[str, ...]
) -> None:
    """Write the given fields of some rows into their columns."""
    width = len(fields)
    values = chain.from_iterable(map(attrgetter(*fields), args))
    try:
        table = np.fromiter(values, np.int64, len(args) * width).reshape(-1, width)
    except (OverflowError, ValueError, TypeError):  # an unsigned 64-bit id, or a number written as text
        get: Callable[[FastArgs], tuple[Any, ...]] = attrgetter(*fields)
        table = np.array([[to_int(value) for value in get(arg)] for arg in args], dtype=np.int64)
    for at, field in enumerate(fields):
        columns[field][rows] = table[:, at]


def _flow_ids(flows: Sequence[Event]) -> NDArray[np.int64]:
    ids = [event.id for event in flows]
    try:
        return np.fromiter(ids, np.int64, len(ids))
    except (OverflowError, ValueError, TypeError):
        return np.array([_flow_id(value) for value in ids], dtype=np.int64)


def _flow_id(value: int | str) -> int:
    number = to_int(value)
    return number if number != -1 else zlib.crc32(str(value).encode("utf-8", "replace"))


def _decode_signature(key: tuple[bytes, bytes, bytes, bytes]) -> Inputs:
    dims, types, strides, concrete = (_decode_part(part) if part else None for part in key)
    return Inputs(dims=dims, types=types, strides=strides, concrete=concrete)


def _decode_part(text: bytes) -> Any:
    """A recorded list; strings in it were passed over so far and may hold any bytes."""
    try:
        return msgspec.json.decode(text)
    except MALFORMED:
        pass
    for _, attempt in repair.attempts(text):
        with suppress(*MALFORMED):
            return msgspec.json.decode(attempt)
    return None
