"""Profiles of JAX and XLA in their own form (``*.xplane.pb``): a protocol buffer, read here field by field.

The messages and the numbers of their fields are those of `xplane.proto` (XLA, `xla/tsl/profiler/protobuf`): an XSpace
has planes, a plane lines, a line events with stats; names stand in maps of metadata. Unknown fields are passed over,
as the wire format provides (Protocol Buffers, "Encoding"). Times are ps from the line's start, which is in ns.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from msgspec import Struct, field

from rooftrace.trace.formats import _xla
from rooftrace.trace.formats._document import whole_text
from rooftrace.trace.formats._events import Rows, text_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

NAME = "XPlane"
_PLANE = "/host:", "/device:", "Task Environment", "#Chip", "/custom:", "Host CPUs", "Syscalls"
_PS_PER_NS = 1000
_MAX_BYTES = 2 << 30
_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
# Stats of a device's plane, by their names there and in Kineto's header.
_PROPERTIES = {
    "core_count": "numSms",
    "memory_size": "totalGlobalMem",
    "compute_cap_major": "computeMajor",
    "compute_cap_minor": "computeMinor",
}


class _DamageError(ValueError):
    """The bytes are no message."""


def recognises(head: bytes) -> bool:
    """A first field that is a plane with a name of XLA's."""
    try:
        number, wire, at = _tag(head, 0)
        if (number, wire) != (1, _LENGTH):
            return False
        _, at = _varint(head, at)
        number, wire, at = _tag(head, at)
        if (number, wire) == (1, _VARINT):
            _, at = _varint(head, at)
            number, wire, at = _tag(head, at)
        if (number, wire) != (2, _LENGTH):
            return False
        length, at = _varint(head, at)
        return length < 256 and head[at : at + length].decode("utf-8", "replace").startswith(_PLANE)
    except _DamageError:
        return False


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events of all planes; of a damaged plane those before the damage."""
    content = whole_text(source, progress, _MAX_BYTES)
    rows, devices = Rows(), []
    try:
        for number, wire, value in _fields(content):
            if (number, wire) == (1, _LENGTH):
                plane = _plane(value, rows)
                _add(plane, rows)
                devices += _device(plane)
    except _DamageError:
        source.truncated = source.truncated or "the last plane is cut short or damaged"
    return rows.finish({"deviceProperties": devices}, NAME)


class _Plane(Struct):
    name: str = ""
    lines: list[bytes] = field(default_factory=list)
    events: dict[int, str] = field(default_factory=dict)
    stats: dict[int, str] = field(default_factory=dict)
    own: list[bytes] = field(default_factory=list)


def _plane(content: bytes, rows: Rows) -> _Plane:
    """A plane with its tables of names; its lines are still messages."""
    plane = _Plane()
    try:
        for number, wire, value in _fields(content):
            if wire != _LENGTH:
                continue
            if number == 2:
                plane.name = _text(value)
            elif number == 3:
                plane.lines.append(value)
            elif number == 4:
                _put_name(plane.events, value, display=4)
            elif number == 5:
                _put_name(plane.stats, value, display=0)
            elif number == 6:
                plane.own.append(value)
    except _DamageError:
        rows.dropped.add("damaged plane of the profile")
    return plane


def _put_name(names: dict[int, str], entry: bytes, *, display: int) -> None:
    """A map's entry: its key, and a message whose second field is the name; events may have a shorter one to show."""
    key, name, shown = 0, "", ""
    for number, wire, value in _fields(entry):
        if (number, wire) == (1, _VARINT):
            key = _signed(value)
        elif (number, wire) == (2, _LENGTH):
            for inner, kind, content in _fields(value):
                if (inner, kind) == (2, _LENGTH):
                    name = _text(content)
                elif (inner, kind) == (display, _LENGTH):
                    shown = _text(content)
    names[key] = name or shown


def _add(plane: _Plane, rows: Rows) -> None:
    heads = [_line_head(content, rows) for content in plane.lines]
    has_streams = any(_xla.is_stream(head.name) for head in heads)
    for head in heads:
        for event in head.events:
            _add_event(plane, head, event, rows, has_streams=has_streams)


class _Line(Struct):
    identity: int = 0
    name: str = ""
    start_ns: int = 0
    events: list[bytes] = field(default_factory=list)


def _line_head(content: bytes, rows: Rows) -> _Line:
    line, shown = _Line(), ""
    try:
        for number, wire, value in _fields(content):
            if (number, wire) == (1, _VARINT):
                line.identity = _signed(value)
            elif (number, wire) == (2, _LENGTH):
                line.name = _text(value)
            elif (number, wire) == (3, _VARINT):
                line.start_ns = _signed(value)
            elif (number, wire) == (4, _LENGTH):
                line.events.append(value)
            elif (number, wire) == (11, _LENGTH):
                shown = _text(value)
    except _DamageError:
        rows.dropped.add("damaged line of the profile")
    line.name = line.name or shown
    return line


def _add_event(plane: _Plane, line: _Line, content: bytes, rows: Rows, *, has_streams: bool) -> None:
    try:
        event = _event(plane, content)
    except _DamageError:
        rows.dropped.add("damaged event of the profile")
        return
    if event is None:
        return
    identity, offset, duration, stats = event
    start = line.start_ns * _PS_PER_NS + offset
    times = (start // _PS_PER_NS, (start + duration) // _PS_PER_NS)
    found = _xla.meaning((plane.name, line.name), plane.events.get(identity, ""), stats, has_streams=has_streams)
    rows.add(found.category, found.name or "unnamed event", (plane.name, line.identity), times, found.args)


def _event(plane: _Plane, content: bytes) -> tuple[int, int, int, dict[str, Any]] | None:
    """Number of the name, offset and duration in ps, and stats; None for one that is counted and not timed."""
    identity, offset, duration = 0, 0, 0
    stats: dict[str, Any] = {}
    for number, wire, value in _fields(content):
        if wire == _VARINT:
            if number == 1:
                identity = _signed(value)
            elif number == 2:
                offset = _signed(value)
            elif number == 3:
                duration = _signed(value)
            elif number == 5:
                return None
        elif (number, wire) == (4, _LENGTH):
            name, stat = _stat(value, plane.stats)
            stats[name] = stat
    return identity, offset, duration, stats


def _stat(content: bytes, names: dict[int, str]) -> tuple[str, Any]:
    """Name and value of a stat; a value may be the number of a name."""
    identity, result = 0, None
    for number, wire, value in _fields(content):
        if wire == _VARINT:
            if number == 1:
                identity = _signed(value)
            elif number == 3:
                result = value
            elif number == 4:
                result = _signed(value)
            elif number == 7:
                result = names.get(value, "")
        elif (number, wire) == (5, _LENGTH):
            result = _text(value)
        elif (number, wire) == (2, _FIXED64):
            result = struct.unpack("<d", value)[0]
    return names.get(identity, ""), result


def _device(plane: _Plane) -> list[dict[str, Any]]:
    """The GPU of a plane as Kineto's header describes it, where the plane says anything of it."""
    number = _xla.device_of(plane.name)
    if number is None:
        return []
    try:
        stats = dict(_stat(content, plane.stats) for content in plane.own)
    except _DamageError:
        return []
    found: dict[str, Any] = {key: whole(stats.get(stat)) for stat, key in _PROPERTIES.items()}
    found = {key: value for key, value in found.items() if value is not None}
    name = text_of(stats.get("device_type_string"))
    return [{"id": number, "name": name, **found}] if found or name else []


def _fields(content: bytes) -> Iterator[tuple[int, int, Any]]:
    """Number, wire type and value of every field of a message; groups, which are long gone, are damage."""
    at, size = 0, len(content)
    while at < size:
        number, wire, at = _tag(content, at)
        if wire == _VARINT:
            value, at = _varint(content, at)
            yield number, wire, value
            continue
        if wire == _LENGTH:
            length, at = _varint(content, at)
        elif wire in (_FIXED64, _FIXED32):
            length = 8 if wire == _FIXED64 else 4
        else:
            raise _DamageError
        if at + length > size:
            raise _DamageError
        yield number, wire, content[at : at + length]
        at += length


def _tag(content: bytes, at: int) -> tuple[int, int, int]:
    value, at = _varint(content, at)
    if not value >> 3:
        raise _DamageError
    return value >> 3, value & 7, at


def _varint(content: bytes, at: int) -> tuple[int, int]:
    """A number of 7 bits a byte, the lowest first, and where it ends."""
    value = shift = 0
    try:
        while True:
            byte = content[at]
            at += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value & (1 << 64) - 1, at
            shift += 7
            if shift > 63:
                raise _DamageError
    except IndexError:
        raise _DamageError from None


def _signed(value: int) -> int:
    return value - (1 << 64) if value >> 63 else value


def _text(value: bytes) -> str:
    return value.decode("utf-8", "replace")
