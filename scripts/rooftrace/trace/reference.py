"""The reference reader: ijson, event by event, exact decimals. Slow and simple; tests hold the fast reader to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ijson
import msgspec

from rooftrace.trace.archives import ChunkStream
from rooftrace.trace.columns import Columns
from rooftrace.trace.envelope import parse_envelope
from rooftrace.trace.rawevents import NO_ARGS, NO_RAW, ExactEvent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

_BATCH = 4096
_encode = msgspec.json.Encoder(decimal_format="number").encode


def read(source: Source) -> Trace:
    """All events of a well-formed trace file, as `fast.read` gives them."""
    columns = Columns()
    batch: list[ExactEvent] = []
    header: dict[str, Any] = {}
    layout = "object"
    for key, value in _walk(source):
        if key == "layout":
            layout = value
        elif key != "event":
            header[key] = value
        else:
            batch.append(_event(value))
            if len(batch) >= _BATCH:
                columns.add_exact(batch)
                batch = []
    columns.add_exact(batch)
    text = _encode(header)
    return columns.finish(parse_envelope(text[:-1], b""), layout)


def _walk(source: Source) -> Iterator[tuple[str, Any]]:
    """(key, value) of the envelope and ("event", dict) of the array."""
    stream = ChunkStream(source.chunks())
    events = ijson.parse(_Blocking(stream))
    _, kind, _ = next(events)
    prefix = "item" if kind == "start_array" else "traceEvents.item"
    yield "layout", "array" if kind == "start_array" else "object"
    for at, kind, value in events:
        if at == prefix and kind == "start_map":
            yield "event", _build(events, kind, value)
        elif prefix == "traceEvents.item" and at and "." not in at and at != "traceEvents" and kind != "map_key":
            yield at, _build(events, kind, value)


def _build(events: Iterator[tuple[str, str, Any]], kind: str, value: Any) -> Any:
    """The value that starts with the given parse event."""
    if kind == "start_map":
        result: dict[str, Any] = {}
        for _, inner, item in events:
            if inner == "end_map":
                return result
            key = item
            _, child, item = next(events)
            result[key] = _build(events, child, item)
    if kind == "start_array":
        items: list[Any] = []
        for _, inner, item in events:
            if inner == "end_array":
                return items
            items.append(_build(events, inner, item))
    return value


def _event(value: dict[str, Any]) -> ExactEvent:
    return ExactEvent(
        ph=value.get("ph", ""),
        cat=value.get("cat", ""),
        name=value.get("name", ""),
        pid=value.get("pid", -1),
        tid=value.get("tid", -1),
        ts=msgspec.Raw(str(value["ts"]).encode()) if "ts" in value else NO_RAW,
        dur=msgspec.Raw(str(value["dur"]).encode()) if "dur" in value else NO_RAW,
        id=value.get("id", -1),
        args=msgspec.Raw(_encode(value["args"])) if "args" in value else NO_ARGS,
    )


class _Blocking:
    """What ijson wants: `read(n)`."""

    def __init__(self, stream: ChunkStream) -> None:
        self._stream = stream

    def read(self, count: int = -1) -> bytes:
        return b"" if count == 0 else self._stream.read(count if count > 0 else 1 << 16) or b""
