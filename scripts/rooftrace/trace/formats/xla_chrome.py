"""Chrome traces of JAX and XLA (``*.trace.json.gz`` of ``jax.profiler`` and XProf).

Processes are the planes of XLA's profiler and threads their lines, both named by metadata events; arguments are the
events' stats as text. See `_xla` for what they mean. Devices are not described: name the GPU with ``--platform``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from rooftrace.trace.formats import _xla
from rooftrace.trace.formats._chrome import Lanes, arguments, lanes_of, translated
from rooftrace.trace.rawevents import ExactEvent

if TYPE_CHECKING:
    from collections.abc import Callable

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Trace

NAME = "XLA Chrome trace"
_PLANES = (b'"/device:GPU:', b'"/device:TPU:', b'"/host:CPU"')


def recognises(head: bytes) -> bool:
    """A Chrome trace with a process that is named as a plane."""
    return b'"traceEvents"' in head and b'"process_name"' in head and any(plane in head for plane in _PLANES)


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events, each by the lane it lies in."""
    lanes = lanes_of(source)
    streams = _planes_with_streams(lanes)

    def translate(event: ExactEvent) -> ExactEvent | None:
        if event.ph != "X":
            return event if event.ph in ("s", "t", "f") else None
        plane, line = lanes.of(event)
        stats = arguments(event)
        name = event.name if isinstance(event.name, str) else str(event.name)
        found = _xla.meaning((plane, line), name, stats, has_streams=plane in streams)
        event.cat, event.name = found.category, found.name
        event.args = msgspec.Raw(msgspec.json.encode({k: v for k, v in found.args.items() if v is not None}))
        return event

    return translated(source, translate, NAME, progress)


def _planes_with_streams(lanes: Lanes) -> set[str]:
    return {lanes.processes.get(pid, "") for (pid, _), name in lanes.threads.items() if _xla.is_stream(name)}
