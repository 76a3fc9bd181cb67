"""Chrome traces of other writers than Kineto: their events one by one, and the names of processes and threads.

The Trace Event Format (its document, "Trace Event Format"): times are µs whatever `displayTimeUnit` says; `X` is a
complete event, `B` and `E` enclose one on a thread, `b` and `e` one of an id, `M` names a process or a thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, field

from rooftrace.trace.columns import Columns
from rooftrace.trace.envelope import parse_envelope
from rooftrace.trace.events import Tally
from rooftrace.trace.formats._events import mapping, text_of
from rooftrace.trace.rawevents import MALFORMED, ExactEvent
from rooftrace.trace.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

_decode = msgspec.json.Decoder(list[ExactEvent | None]).decode


class Lanes(Struct):
    """Names of processes and of threads, as `M` events give them."""

    processes: dict[Any, str] = field(default_factory=dict)
    threads: dict[tuple[Any, Any], str] = field(default_factory=dict)

    def take(self, event: ExactEvent) -> None:
        """Learn from an event, if it is a name."""
        if event.ph != "M" or event.name not in ("process_name", "thread_name"):
            return
        name = text_of(arguments(event).get("name"))
        if event.name == "process_name":
            self.processes[_key(event.pid)] = name
        else:
            self.threads[_key(event.pid), _key(event.tid)] = name

    def of(self, event: ExactEvent) -> tuple[str, str]:
        """Names of the process and the thread of an event; "" for none."""
        pid, tid = _key(event.pid), _key(event.tid)
        return self.processes.get(pid, ""), self.threads.get((pid, tid), "")


def _key(value: object) -> str:
    return str(value)


def arguments(event: ExactEvent) -> dict[str, Any]:
    """The arguments of an event; none where they are damaged."""
    try:
        return mapping(msgspec.json.decode(event.args))
    except MALFORMED:
        return {}


def lanes_of(source: Source) -> Lanes:
    """The names of all lanes: a pass of its own, since they may stand behind the events."""
    lanes = Lanes()
    Walk(_Events(lanes.take)).run(source, digest=False)
    source.rewind()
    return lanes


def translated(
    source: Source,
    translate: Callable[[ExactEvent], ExactEvent | None],
    layout: str,
    progress: Callable[[int], None] | None = None,
) -> Trace:
    """The trace of all events as `translate` gives them; None leaves an event out."""
    columns = Columns()
    batch: list[ExactEvent] = []

    def take(event: ExactEvent) -> None:
        changed = translate(event)
        if changed is None:
            return
        batch.append(changed)
        if len(batch) >= 4096:
            columns.add_exact(batch)
            batch.clear()

    events = _Events(take)
    envelope = Walk(events).run(source, progress=progress)
    columns.add_exact(batch)
    columns.repaired.absorb(events.repaired)
    columns.dropped.absorb(events.dropped)
    return columns.finish(parse_envelope(envelope.head, envelope.tail), layout)


class _Events:
    """Hands every event on; counts what is mended and what is lost."""

    def __init__(self, take: Callable[[ExactEvent], None]) -> None:
        self.repaired = Tally()
        self.dropped = Tally()
        self._take = take

    def take_run(self, text: bytes) -> bool:
        """Take the text if it is a whole number of valid events."""
        try:
            events = _decode(b"[" + text + b"]")
        except MALFORMED:
            return False
        self.take_events([event for event in events if event is not None])
        return True

    def take_events(self, events: list[ExactEvent]) -> None:
        """Take events that were decoded one by one."""
        for event in events:
            self._take(event)
