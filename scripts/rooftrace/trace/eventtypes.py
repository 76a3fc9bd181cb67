"""Decodes a block of events and sorts it: complete events with their kinds, and halves of flows.

Two ways with one result. `typed` has a record for each category that writers use, so that arguments are decoded at
once as what they are, and those of Python frames not at all; it gives up on a block in which anything is unusual.
`untyped` takes the records of `rawevents`, whose arguments are still text.
"""

from __future__ import annotations

import math
from itertools import compress
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Union

import msgspec
import numpy as np
from msgspec import Struct

from rooftrace.trace.arguments import RECORD_OF_KIND
from rooftrace.trace.events import KIND_OF_CATEGORY, Kind
from rooftrace.trace.rawevents import MALFORMED, NO_RAW

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from rooftrace.trace.rawevents import Event

_FWDBWD = "fwdbwd"
_FLOW_CATEGORIES = (_FWDBWD, "ac2g", "async_cpu_to_gpu", "async_gpu", "async", "cpu_to_cuda")
_INSTANT_CATEGORIES = ("cpu_instant_event",)
# Torch up to 1.8 wrote these with a capital.
_CAPITALISED = ("operator", "runtime", "kernel", "memcpy", "memset")
# What a record stands for beside a kind: half of a flow, an event of no duration.
_FLOW, _FWDBWD_FLOW, _INSTANT = 253, 254, 255
_FLOW_PHASES = frozenset("sft")
_X = ord("X")
_IS_FLOW = np.isin(np.arange(256), [ord(phase) for phase in sorted(_FLOW_PHASES)])
_MEANS_FLOW = np.isin(np.arange(256), [_FLOW, _FWDBWD_FLOW])
_PLACE = [("pid", int | str, -1), ("tid", int | str, -1)]


class Block(Struct, frozen=True):
    """The events of a block; `typed`: their arguments are records, not texts."""

    count: int
    complete: Sequence[Any]
    kind: NDArray[np.uint8]
    flows: list[Any]
    is_fwdbwd: NDArray[np.bool_]
    typed: bool


class _Kinds(dict[str, int]):
    """Kind of a category name, looked up once per spelling."""

    def __missing__(self, category: str) -> int:
        kind = self[category] = int(KIND_OF_CATEGORY.get(category.lower(), Kind.OTHER))
        return kind


_KINDS = _Kinds()


def untyped(events: Sequence[Event]) -> Block:
    """The block, whatever its events are."""
    phases = list(map(attrgetter("ph"), events))
    complete, flows = events, []
    if phases.count("X") != len(events):
        complete = list(compress(events, map("X".__eq__, phases)))
        flows = list(compress(events, map(_FLOW_PHASES.__contains__, phases)))
    return Block(
        count=len(events),
        complete=complete,
        kind=np.frombuffer(bytes(map(_KINDS.__getitem__, map(attrgetter("cat"), complete))), np.uint8),
        flows=flows,
        is_fwdbwd=np.array([event.cat == _FWDBWD for event in flows], dtype=np.bool_),
        typed=False,
    )


def _typed_records(*times: tuple[str, Any, Any]) -> dict[type[msgspec.Struct], int]:
    """A record for each category, its times as given, and what it stands for."""
    event = [("ph", str, ""), ("name", str, ""), *_PLACE, *times]
    flow = [("ph", str, ""), *_PLACE, times[0], ("id", int | str, -1)]
    kinds = {category: kind for category, kind in KIND_OF_CATEGORY.items()}
    kinds |= {category.capitalize(): KIND_OF_CATEGORY[category] for category in _CAPITALISED}
    fields = {category: (int(kind), [*event, *_arguments(kind)]) for category, kind in kinds.items()}
    fields |= {category: (_FLOW, flow) for category in _FLOW_CATEGORIES}
    fields[_FWDBWD] = (_FWDBWD_FLOW, flow)
    fields |= {category: (_INSTANT, [event[0]]) for category in _INSTANT_CATEGORIES}
    return {
        msgspec.defstruct(f"Event_{category}", known, tag_field="cat", tag=category, gc=False): meaning
        for category, (meaning, known) in fields.items()
    }


def _arguments(kind: Kind) -> list[tuple[str, Any, Any]]:
    record = RECORD_OF_KIND.get(kind)
    return [("args", record, record())] if record else []


_FAST = _typed_records(("ts", int | float, math.nan), ("dur", float, math.nan))
_STRICT = _typed_records(("ts", msgspec.Raw, NO_RAW), ("dur", msgspec.Raw, NO_RAW))
_MEANING = _FAST | _STRICT
_decode_fast = msgspec.json.Decoder(list[Union[tuple(_FAST)]]).decode  # type: ignore[misc]  # noqa: UP007
_decode_strict = msgspec.json.Decoder(list[Union[tuple(_STRICT)]]).decode  # type: ignore[misc]  # noqa: UP007


def typed(array: bytes, *, times_are_text: bool) -> Block | None:
    """The block of a JSON array; None where anything in it is unusual."""
    decode: Callable[[bytes], list[Any]] = _decode_strict if times_are_text else _decode_fast
    try:
        events = decode(array)
    except MALFORMED:
        return None
    phases = "".join(map(attrgetter("ph"), events)).encode("ascii", "replace")
    if len(phases) != len(events):
        return None
    phase = np.frombuffer(phases, np.uint8)
    meaning = np.frombuffer(bytes(map(_MEANING.__getitem__, map(type, events))), np.uint8)
    complete, flow = phase == _X, _IS_FLOW[phase]
    if not (np.array_equal(complete, meaning < _FLOW) and np.array_equal(flow, _MEANS_FLOW[meaning])):
        return None  # a phase is not the one of its category
    return Block(
        count=len(events),
        complete=events if complete.all() else list(compress(events, complete.tolist())),
        kind=meaning[complete],
        flows=list(compress(events, flow.tolist())) if flow.any() else [],
        is_fwdbwd=meaning[flow] == _FWDBWD_FLOW,
        typed=True,
    )
