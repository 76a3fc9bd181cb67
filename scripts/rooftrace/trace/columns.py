"""Collects decoded events into columns, block by block; strings and input signatures are interned on the way."""

from __future__ import annotations

import zlib
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from rooftrace.trace.events import KIND_OF_CATEGORY, Flows, Inputs, Kind, Tally, Trace
from rooftrace.trace.rawevents import NO_ARGS, ExactEvent, FastArgs, FastEvent, exact_ns, loose_args, to_int

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

# Below this many µs a float64 still tells nanoseconds apart (2^43 µs: spacing 2^-9 µs = 1.95 ns, error at most 0.98/2).
_EXACT_FLOAT_US = float(1 << 43)
_INT_FIELDS = (
    "correlation",
    "external_id",
    "external_id_old",
    "device",
    "stream",
    "sequence",
    "forward_thread",
    "nbytes",
)
_PYTHON = int(Kind.PYTHON)
_FWDBWD = "fwdbwd"


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
        complete = [event for event in events if event.ph == "X"]
        times = np.array([event.ts for event in complete], dtype=np.float64)
        if times.size and not _float_is_exact(times):
            return False
        flows = [event for event in events if event.ph in ("s", "f", "t")]
        flow_times = np.array([event.ts for event in flows], dtype=np.float64)
        if flow_times.size and not _float_is_exact(flow_times):
            return False
        self.event_count += len(events)
        durations = np.array([event.dur for event in complete], dtype=np.float64)
        self._take(complete, _us_to_ns(times), _us_to_ns(durations), [event.args for event in complete])
        self._take_flows(flows, _us_to_ns(flow_times))
        return True

    def add_exact(self, events: Sequence[ExactEvent]) -> None:
        """Take a decoded block whose fields may have any type."""
        self.event_count += len(events)
        complete = [_typed(event) for event in events if event.ph == "X"]
        times = _exact_column(event.ts for event in events if event.ph == "X")
        durations = _exact_column(event.dur for event in events if event.ph == "X")
        args = [_decoded_args(event.args) for event in events if event.ph == "X"]
        self._take(complete, times, durations, args)
        flows = [event for event in events if event.ph in ("s", "f", "t")]
        self._take_flows([_typed(event) for event in flows], _exact_column(event.ts for event in flows))

    def _take(
        self, events: list[FastEvent], start: NDArray[np.int64], dur: NDArray[np.int64], args: list[FastArgs]
    ) -> None:
        count = len(events)
        kind = np.array([self._kinds[event.cat] for event in events], dtype=np.uint8)
        self._put("kind", kind)
        self._put("name", _codes(self._names, map(attrgetter("name"), events), count))
        self._put("lane", _codes(self._lanes, ((event.pid, event.tid) for event in events), count))
        self._put("start", start)
        self._put("dur", dur)
        rows = np.flatnonzero(kind != _PYTHON)
        used = [args[row] for row in rows.tolist()]
        for field in _INT_FIELDS:
            column = np.full(count, -1, dtype=np.int64)
            column[rows] = _int_column(used, field)
            self._put(field, column)
        self._take_inputs(kind, args)

    def _take_inputs(self, kind: NDArray[np.uint8], args: list[FastArgs]) -> None:
        column = np.full(kind.size, -1, dtype=np.int32)
        signatures = self._signatures
        for row in np.flatnonzero(kind <= int(Kind.ANNOTATION)).tolist():
            arg = args[row]
            dims = bytes(arg.dims) or bytes(arg.dims_old)
            if dims:
                column[row] = signatures[(dims, bytes(arg.types), bytes(arg.strides), bytes(arg.concrete))]
        self._put("inputs", column)

    def _take_flows(self, flows: list[FastEvent], ts: NDArray[np.int64]) -> None:
        self._put("flow_ts", ts)
        self._put("flow_id", np.array([_flow_id(event.id) for event in flows], dtype=np.int64))
        self._put("flow_lane", _codes(self._lanes, ((event.pid, event.tid) for event in flows), len(flows)))
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
            device=column("device", np.int64).astype(np.int32),
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


def _float_is_exact(times: NDArray[np.float64]) -> bool:
    large = times[np.abs(times) >= _EXACT_FLOAT_US]
    return not large.size or bool(np.all(large == np.floor(large)) and np.all(np.abs(large) < 2**53))


def _us_to_ns(us: NDArray[np.float64]) -> NDArray[np.int64]:
    """Integer ns; `MISSING` where the value is absent or not finite."""
    valid = np.isfinite(us) & (np.abs(us) < 9e15)
    safe = np.where(valid, us, 0.0)
    whole = np.floor(safe)
    ns = whole.astype(np.int64) * 1000 + np.rint((safe - whole) * 1000.0).astype(np.int64)
    return np.where(valid, ns, MISSING)


def _exact_column(raws: Iterable[msgspec.Raw]) -> NDArray[np.int64]:
    values = [exact_ns(bytes(raw).decode("ascii", "replace")) for raw in raws]
    return np.array([MISSING if v is None or abs(v) >= 2**62 else v for v in values], dtype=np.int64)


def _codes(interner: _Interner, keys: Iterable[Any], count: int) -> NDArray[np.int32]:
    return np.fromiter(map(interner.__getitem__, keys), dtype=np.int32, count=count)


def _int_column(args: list[FastArgs], field: str) -> NDArray[np.int64]:
    get: Callable[[FastArgs], int | float | str] = attrgetter(field)
    try:
        return np.fromiter(map(get, args), dtype=np.int64, count=len(args))
    except (OverflowError, ValueError, TypeError):  # an unsigned 64-bit id, or a number written as text
        return np.array([to_int(value) for value in map(get, args)], dtype=np.int64)


def _flow_id(value: int | str) -> int:
    if isinstance(value, int):
        return value if -(2**63) <= value < 2**63 else value % 2**63
    return int(value) if value.isdecimal() and len(value) < 19 else zlib.crc32(value.encode("utf-8", "replace"))


def _typed(event: ExactEvent) -> FastEvent:
    """The same event with its plain fields brought to the usual types."""

    def lane(value: object) -> int | str:
        return value if isinstance(value, int | str) else str(value)

    def text(value: object) -> str:
        return value if isinstance(value, str) else "" if value is None else str(value)

    return FastEvent(
        ph=text(event.ph),
        cat=text(event.cat),
        name=text(event.name),
        pid=lane(event.pid),
        tid=lane(event.tid),
        id=lane(event.id),
    )


def _decoded_args(raw: msgspec.Raw) -> FastArgs:
    data = bytes(raw)
    return loose_args(msgspec.json.decode(data)) if data else NO_ARGS


def _decode_signature(key: tuple[bytes, bytes, bytes, bytes]) -> Inputs:
    dims, types, strides, concrete = (msgspec.json.decode(part) if part else None for part in key)
    return Inputs(dims=dims, types=types, strides=strides, concrete=concrete)
