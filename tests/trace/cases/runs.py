"""Traces of the cases: steps of a small run, and their results."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.trace_builder import TraceBuilder
from tests.trace.formats.reports import Result, analysed
from tests.trace.reading import Folder

if TYPE_CHECKING:
    from collections.abc import Iterable

MATRIX = {"dims": [[64, 32], [32, 16]], "types": ["float", "float"]}


def result(trace: TraceBuilder, steps: str | None = None, name: str = "trace.json") -> Result:
    """What is said of a trace."""
    return result_of(trace.json(), steps, name)


def result_of(content: bytes, steps: str | None = None, name: str = "trace.json") -> Result:
    """What is said of a file with this content."""
    with tempfile.TemporaryDirectory() as folder:
        return analysed(Folder(Path(folder)), content, name, steps)


def run(steps: Iterable[int] = range(3), *, annotated: bool = True, **launched: object) -> TraceBuilder:
    """Steps of 100 µs from 1000 µs on: an op launches a kernel of 40 µs, 20 µs after the step began.

    ::

        step 0       |1000 ................................ 1100|
        aten::mm      [1005 .. 1015]     launch [1006 1009]
        sgemm                [1020 ................ 1060]
    """
    trace = TraceBuilder()
    trace.device()
    for step in steps:
        at = 1000 + 100 * step
        if annotated:
            trace.annotation(f"ProfilerStep#{step}", ts=at, dur=99)
        trace.op("aten::mm", ts=at + 5, dur=10, external_id=step + 1, **MATRIX)
        correlation = trace.launch(ts=at + 6, dur=3)
        args = {"correlation": correlation, "external_id": step + 1} | launched
        trace.kernel("sgemm", ts=at + 20, dur=40, **args)
    return trace
