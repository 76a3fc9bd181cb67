"""Nsight Systems exports as JSON (``nsys export --type json`` or ``jsonlines``): the same activities, an event a line.

The User Guide, "JSON and Text Format Description": every event is an object on its own line; the names stand in one
object ``{"data": [...]}``, by place, or with ``--separate-strings`` in one object ``{"type": "String", "id", "value"}``
each. An event names its group: ``CudaEvent`` (with ``kernel``, ``memcpy``, ``memset`` or ``sync`` in it),
``TraceProcessEvent`` (a call), ``NvtxEvent``. Times are ns; 64-bit numbers are text. Newer versions write an array.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from rooftrace.trace.formats._cuda import Names, Session
from rooftrace.trace.formats._events import Rows, entries, mapping, text_of, whole
from rooftrace.trace.rawevents import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

NAME = "Nsight Systems JSON"
_GROUPS = (b'"CudaEvent"', b'"TraceProcessEvent"', b'"NvtxEvent"')
_SPACES = b" \t\r\n,"
_BETWEEN = re.compile(rb'(?<=\}),\s{0,32}(?=\{"(?:Type|type|data)")')
# The names stand on one line, which may be long; one that is longer still is passed over, to bound memory.
_MAX_LINE = 1 << 30
_LONG_LINE = 4 << 20
_SPAN = 64
# Names alone in so much text may be followed by events.
_MUCH = 1 << 17


def recognises(head: bytes) -> bool:
    """Lines of objects, of which one names a group of Nsight Systems."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    if start not in (b"{", b"[") or b'"traceEvents"' in head:
        return False
    return any(group in head for group in _GROUPS) or (len(head) >= _MUCH and _is_names(head))


def _is_names(head: bytes) -> bool:
    """The table of names comes first and may be long."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n[")
    return text.startswith((b'{"data":[', b'{"data": [', b'{"type":"String"', b'{"type": "String"'))


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All activities; events whose names come later are kept until then."""
    rows, names = Rows(), Names()
    session = Session(rows=rows, names=names)
    waiting: list[dict[str, Any]] = []
    for offset, line in _lines(source, rows, progress):
        for entry in _decoded(line, rows, offset):
            if _take_names(entry, names):
                continue
            if names:
                _take(entry, session)
            else:
                waiting.append(entry)
    for entry in waiting:
        _take(entry, session)
    return rows.finish({}, NAME)


def _lines(source: Source, rows: Rows, progress: Callable[[int], None] | None) -> Iterator[tuple[int, bytes]]:
    """The objects of the file, a line each, and where they begin; brackets and commas of an array fall away.

    A long line is cut between two objects, so that an array on one line takes no more memory than its parts.
    """
    buffer, offset, searched = bytearray(), 0, 0
    for chunk in source.chunks():
        if progress is not None:
            progress(source.content_bytes)
        buffer += chunk
        cut = _last_end(buffer, searched)
        if cut < 0:
            searched = max(0, len(buffer) - _SPAN)
            if len(buffer) > _MAX_LINE:
                rows.dropped.add("line without an end", 1, offset)
                offset, searched = offset + len(buffer), 0
                buffer.clear()
            continue
        text = bytes(buffer[:cut])
        del buffer[: cut + 1]
        yield from _split(text, offset)
        offset, searched = offset + cut + 1, 0
    yield from _split(bytes(buffer), offset)


def _last_end(buffer: bytearray, start: int) -> int:
    """The last end of a line; where there is none in much text, the last comma between two objects; else -1."""
    cut = buffer.rfind(b"\n", start)
    if cut < 0 and len(buffer) > _LONG_LINE:
        found = [match.start() for match in _BETWEEN.finditer(buffer, start)]
        cut = found[-1] if found else -1
    return cut


def _split(text: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    for line in text.split(b"\n"):
        yield from _object(line, offset)
        offset += len(line) + 1


def _object(line: bytes, offset: int) -> Iterator[tuple[int, bytes]]:
    text = line.strip(_SPACES).removeprefix(b"\xef\xbb\xbf")
    if text.startswith(b"[{") or text in (b"[", b"]"):
        text = text[1:].strip(_SPACES)
    if text.endswith(b"}]"):
        text = text[:-1].rstrip(_SPACES)
    if text:
        yield offset, text


def _decoded(line: bytes, rows: Rows, offset: int) -> list[dict[str, Any]]:
    """The objects of a line, mostly one."""
    for text in (line, line.decode("utf-8", "replace").encode()):
        try:
            found = msgspec.json.decode(b"[" + text + b"]")
        except MALFORMED:
            continue
        rows.repaired.add("invalid UTF-8", 0 if text == line else 1, offset)
        return entries(found)
    parts = _BETWEEN.split(line)
    if len(parts) > 1:  # an array on one line, in which something is damaged
        return [entry for part in parts for entry in _decoded(part, rows, offset)]
    rows.dropped.add("unreadable event", 1, offset)
    return []


def _take_names(entry: dict[str, Any], names: Names) -> bool:
    """Whether it holds names and no event."""
    listed = entry.get("data")
    if isinstance(listed, list):
        names.update({number: text_of(value) for number, value in enumerate(listed)})
        return True
    if entry.get("type") == "String":
        number = whole(entry.get("id"))
        if number is not None:
            names[number] = text_of(entry.get("value"))
        return True
    return False


def _take(entry: dict[str, Any], session: Session) -> None:
    event = mapping(entry.get("TraceProcessEvent"))
    if event:
        session.call(_timed(event) | {"nameId": event.get("name")})
    event = mapping(entry.get("CudaEvent"))
    if event:
        _take_activity(event, session)
    event = mapping(entry.get("NvtxEvent"))
    if event:
        session.range(
            {
                "start": event.get("Timestamp"),
                "end": event.get("EndTimestamp"),
                "eventType": event.get("Type", entry.get("Type")),
                "text": event.get("Text"),
                "textId": event.get("TextId"),
                "globalTid": event.get("GlobalTid"),
            }
        )


def _take_activity(event: dict[str, Any], session: Session) -> None:
    timed = _timed(event)
    for key, take in (("kernel", session.kernel), ("memset", session.fill), ("sync", session.wait)):
        if isinstance(event.get(key), dict):
            details = event[key]
            take(timed | details | {"bytes": details.get("sizebytes", details.get("bytes"))})
            return
    if isinstance(event.get("memcpy"), dict):
        details = event["memcpy"]
        session.copy(timed | details | {"bytes": details.get("sizebytes", details.get("bytes"))})


def _timed(event: dict[str, Any]) -> dict[str, Any]:
    return event | {"start": event.get("startNs"), "end": event.get("endNs")}
