"""Collects decoded events into columns, block by block; strings and input signatures are interned on the way."""

from __future__ import annotations

import zlib
from operator import attrgetter, ne
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from rooftrace.trace.arguments import DTYPES, Arguments, Interner, by_first_row, codes, recoded
from rooftrace.trace.events import Flows, Tally, Trace
from rooftrace.trace.eventtypes import untyped
from rooftrace.trace.rawevents import exact_ns, to_int, usual
from rooftrace.trace.unpadded import REASON, with_zeros

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.trace.eventtypes import Block
    from rooftrace.trace.rawevents import ExactEvent

# Below this many µs a float64 tells nanoseconds apart: at most 2^-10 µs = 0.98 ns between two, so 0.49 ns of error.
_EXACT_FLOAT_US = float(1 << 43)
# Times beyond are no times (2^62 ns is in the year 2116); within, a start plus a duration fits into 64 bits.
_MAX_NS = 1 << 62
_MIN_NS = -(1 << 60)

_LANE = attrgetter("pid", "tid")


class ColumnsState(Struct, frozen=True, kw_only=True):
    """Columns and what their codes stand for, to go from one process to another."""

    count: int
    event_count: int
    parts: dict[str, NDArray[Any]]
    arguments: dict[str, NDArray[Any]]
    names: list[str]
    lanes: list[Any]
    flow_lanes: list[Any]
    interned: dict[str, list[Any]]
    repaired: Tally
    dropped: Tally


class Columns:
    """Growing columns of a trace; `add_zeros`: the fractions of its times lack theirs (see `unpadded`)."""

    def __init__(self, *, add_zeros: bool = False) -> None:
        self._add_zeros = add_zeros
        self.repaired = Tally()
        self.dropped = Tally()
        self.event_count = 0
        self._names = Interner()
        self._lanes = Interner()
        self._flow_lanes = Interner()
        self._arguments = Arguments()
        self._parts: dict[str, list[NDArray[Any]]] = {}
        self._argument_parts: list[tuple[int, dict[str, NDArray[Any]]]] = []

    def add_fast(self, block: Block) -> bool:
        """Take a block whose times are numbers; False (and nothing taken) if they need the exact reader."""
        times = _floats(block.complete, "ts")
        flow_times = _floats(block.flows, "ts")
        if not (_floats_are_exact(times, block.complete) and _floats_are_exact(flow_times, block.flows)):
            return False
        self._take(block, _us_to_ns(times), _us_to_ns(_floats(block.complete, "dur")))
        self._take_flows(block, _us_to_ns(flow_times))
        return True

    def add_strict(self, block: Block) -> None:
        """Take a block whose times are text."""
        starts, durations = _texts(block.complete, "ts"), _texts(block.complete, "dur")
        flows = _texts(block.flows, "ts")
        if self._add_zeros:
            starts, durations = self._with_zeros(starts, durations)
            flows = list(map(with_zeros, flows))
        self._take(block, _exact_column(starts), _exact_column(durations))
        self._take_flows(block, _exact_column(flows))

    def _with_zeros(self, starts: list[bytes], durations: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """Both with the zeros that their fractions lack; events of which one changes are counted."""
        written = list(zip(starts, durations, strict=True))
        meant = [(with_zeros(start), with_zeros(duration)) for start, duration in written]
        self.repaired.add(REASON, sum(map(ne, written, meant)))
        return [start for start, _ in meant], [duration for _, duration in meant]

    def add_exact(self, events: Sequence[ExactEvent]) -> None:
        """Take events whose fields may have any type."""
        self.add_strict(untyped([usual(event) for event in events]))

    def _take(self, block: Block, start: NDArray[np.int64], dur: NDArray[np.int64]) -> None:
        self.event_count += block.count
        events, count = block.complete, len(block.complete)
        self._put("kind", block.kind)
        self._put("name", codes(self._names, map(attrgetter("name"), events), count))
        self._put("lane", codes(self._lanes, map(_LANE, events), count))
        self._put("start", start)
        self._put("dur", dur)
        read = self._arguments.of_records if block.typed else self._arguments.of_texts
        self._argument_parts.append((count, read(block.kind, events)))

    def _take_flows(self, block: Block, ts: NDArray[np.int64]) -> None:
        flows = block.flows
        self._put("flow_ts", ts)
        self._put("flow_id", _flow_ids(flows))
        self._put("flow_lane", codes(self._flow_lanes, map(_LANE, flows), len(flows)))
        self._put("flow_start", np.array([event.ph == "s" for event in flows], dtype=np.bool_))
        self._put("flow_fwdbwd", block.is_fwdbwd)

    def _put(self, name: str, part: NDArray[Any]) -> None:
        self._parts.setdefault(name, []).append(part)

    def release(self) -> ColumnsState:
        """All that was collected; nothing is left."""
        arguments = {name: _narrow(self._argument_column(name)) for name in DTYPES if self._has_argument(name)}
        return ColumnsState(
            count=sum(count for count, _ in self._argument_parts),
            event_count=self.event_count,
            parts={name: self._column(name, None) for name in list(self._parts)},
            arguments=arguments,
            names=list(self._names),
            lanes=list(self._lanes),
            flow_lanes=list(self._flow_lanes),
            interned=self._arguments.interned(),
            repaired=self.repaired,
            dropped=self.dropped,
        )

    def absorb(self, state: ColumnsState) -> None:
        """Take what another reader collected further on in the file; nothing is left there."""
        known = {"name": (self._names, state.names), "lane": (self._lanes, state.lanes)}
        known["flow_lane"] = (self._flow_lanes, state.flow_lanes)
        for name, part in state.parts.items():
            self._put(name, recoded(part, *known[name]) if name in known else part)
        arguments = self._arguments.recoded(state.arguments, state.interned)
        self._argument_parts.append((state.count, arguments))
        state.parts.clear()
        state.arguments.clear()
        self.event_count += state.event_count
        self.repaired.absorb(state.repaired)
        self.dropped.absorb(state.dropped)

    def finish(self, header: dict[str, Any], layout: str) -> Trace:
        """The trace, with times moved to its first valid event; the collected blocks are released."""
        column = self._column
        numbers: dict[str, Any] = {"external_id": self._external_ids()}
        for name in DTYPES:
            if name not in _EXTERNAL:
                numbers[name] = _narrow(self._argument_column(name))
        collective, collectives = by_first_row(numbers["collective"], self._arguments.collectives())
        numbers["collective"] = _narrow(collective)
        flow_lane = recoded(column("flow_lane", np.int32), self._lanes, list(self._flow_lanes))
        return Trace(
            kind=column("kind", np.uint8),
            name=column("name", np.int32),
            lane=column("lane", np.int32),
            start=column("start", np.int64),
            dur=column("dur", np.int64),
            device=_narrow(_as_int32(numbers.pop("device"))),
            **numbers,
            flows=Flows(
                id=column("flow_id", np.int64),
                ts=column("flow_ts", np.int64),
                lane=flow_lane,
                is_start=column("flow_start", np.bool_),
                is_fwdbwd=column("flow_fwdbwd", np.bool_),
            ),
            names=list(self._names),
            lanes=list(self._lanes),
            signatures=self._arguments.signatures(),
            collectives=collectives,
            grids=self._arguments.grids(),
            header=header,
            repaired=self.repaired,
            dropped=self.dropped,
            event_count=self.event_count,
            base_ns=0,
            layout=layout,
        )

    def _column(self, name: str, dtype: Any) -> NDArray[Any]:
        parts = self._parts.pop(name, [])
        return np.concatenate(parts) if parts else np.empty(0, dtype=dtype)

    def _external_ids(self) -> NDArray[Any]:
        """External ids, by the key of today or by the one that older writers used."""
        old = self._argument_column("external_id_old")
        ids = self._argument_column("external_id")
        if not old.strides[0]:  # nothing was written by the old key
            return _narrow(ids)
        return _narrow(np.where(ids == -1, old, ids))

    def _has_argument(self, name: str) -> bool:
        return any(name in part for _, part in self._argument_parts)

    def _argument_column(self, name: str) -> NDArray[Any]:
        """The blocks' parts joined; where no block has any, a view of a single -1, which takes no memory."""
        dtype = DTYPES[name]
        size = sum(count for count, _ in self._argument_parts)
        if not self._has_argument(name):
            return np.broadcast_to(np.array(-1, dtype=dtype), size)
        column = np.full(size, -1, dtype=dtype)
        at = 0
        for count, part in self._argument_parts:
            if name in part:
                column[at : at + count] = part.pop(name)
            at += count
        return column


MISSING = np.iinfo(np.int64).min
_EXTERNAL = ("external_id", "external_id_old")
_NARROW = (np.int8, np.int16, np.int32, np.int64)


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The column in the fewest bytes in which all of its numbers fit, with room for as many more."""
    if not column.size or not column.strides[0]:
        return column
    low, high = int(column.min()), int(column.max())
    for dtype in _NARROW[: _NARROW.index(column.dtype.type)]:
        if 2 * low >= np.iinfo(dtype).min and 2 * high <= np.iinfo(dtype).max:
            return column.astype(dtype)
    return column


def _floats(events: Sequence[Any], field: str) -> NDArray[np.float64]:
    return np.fromiter(map(attrgetter(field), events), np.float64, len(events))


def _floats_are_exact(times: NDArray[np.float64], events: Sequence[Any]) -> bool:
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


def _texts(events: Sequence[Any], field: str) -> list[bytes]:
    return list(map(bytes, map(attrgetter(field), events)))


def _exact_column(texts: list[bytes]) -> NDArray[np.int64]:
    """Integer ns of times as text, the same way."""
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


def _flow_ids(flows: Sequence[Any]) -> NDArray[np.int64]:
    ids = [event.id for event in flows]
    try:
        return np.fromiter(ids, np.int64, len(ids))
    except (OverflowError, ValueError, TypeError):
        return np.array([_flow_id(value) for value in ids], dtype=np.int64)


def _flow_id(value: int | str) -> int:
    number = to_int(value)
    return number if number != -1 else zlib.crc32(str(value).encode("utf-8", "replace"))
