"""Texts of traces, and reading them: shared by the tests of this folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from rooftrace.trace import containers, fast, load, reference

if TYPE_CHECKING:
    from rooftrace.trace import FileFacts, Trace


def kernel(name: str = "k", ts: float | str = 1, dur: float | str = 1, args: str = '{"stream":7}') -> str:
    """The text of a kernel event; every part stands in it as given."""
    return f'{{"ph":"X","cat":"kernel","name":"{name}","pid":0,"tid":7,"ts":{ts},"dur":{dur},"args":{args}}}'


def document(*events: str | bytes) -> bytes:
    """The text of a trace with these events."""
    texts = [event if isinstance(event, bytes) else event.encode() for event in events]
    return b'{"schemaVersion":1,"traceEvents":[' + b",".join(texts) + b'],"traceName":"t"}'


class Folder:
    """A folder of the test, in which contents are read as files."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def write(self, content: bytes, name: str = "trace.json") -> Path:
        """The content as a file."""
        path = self.path / name
        path.write_bytes(content)
        return path

    def load(self, content: bytes, name: str = "trace.json") -> tuple[Trace, FileFacts]:
        """The content as the layer's entrance gives it."""
        return load(self.write(content, name))

    def trace(self, content: bytes, name: str = "trace.json") -> Trace:
        """The trace alone."""
        return self.load(content, name)[0]


def names_of(trace: Trace) -> list[str]:
    """Name of each event, in file order."""
    return [trace.names[code] for code in trace.name.tolist()]


def times_of(trace: Trace) -> list[tuple[int, int]]:
    """Start, as in the file, and duration of each event, ns."""
    return list(zip((trace.start + trace.base_ns).tolist(), trace.dur.tolist(), strict=True))


COLUMNS = (
    "kind",
    "start",
    "dur",
    "correlation",
    "external_id",
    "device",
    "stream",
    "sequence",
    "forward_thread",
    "nbytes",
    "wait_stream",
    "wait_record",
    "graph_node",
)
INTERNED = (("inputs", "signatures"), ("collective", "collectives"), ("grid", "grids"))


def values_of(trace: Trace, column: str, values: str) -> list[Any]:
    """What each event's number in `column` stands for in the list `values`; None for -1."""
    known = getattr(trace, values)
    return [None if code < 0 else known[code] for code in getattr(trace, column).tolist()]


def assert_same(one: Trace, other: Trace) -> None:
    """Equal in every column, however names, lanes and signatures are numbered."""
    assert one.event_count == other.event_count
    for column in COLUMNS:
        np.testing.assert_array_equal(getattr(one, column), getattr(other, column), err_msg=column)
    for column in ("id", "ts", "is_start", "is_fwdbwd"):
        np.testing.assert_array_equal(getattr(one.flows, column), getattr(other.flows, column), err_msg=column)
    assert names_of(one) == names_of(other)
    assert [one.lanes[code] for code in one.lane.tolist()] == [other.lanes[code] for code in other.lane.tolist()]
    assert [one.lanes[c] for c in one.flows.lane.tolist()] == [other.lanes[c] for c in other.flows.lane.tolist()]
    for column, values in INTERNED:
        assert values_of(one, column, values) == values_of(other, column, values)
    assert one.header == other.header
    assert one.layout == other.layout


def read_both(path: Path) -> tuple[Trace, Trace]:
    """The file as the fast and as the reference reader give it."""
    return fast.read(containers.open_source(path)), reference.read(containers.open_source(path))


def cut_often(monkeypatch: pytest.MonkeyPatch, block: int, chunk: int) -> None:
    """Make pieces and chunks small, so that they are cut within any event."""
    from rooftrace.trace import blocks

    monkeypatch.setattr(blocks, "BLOCK", block)
    monkeypatch.setattr(containers, "CHUNK", chunk)
