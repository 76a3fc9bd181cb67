"""What both readers say about a trace: the package's run folder and the independent program's events."""

from __future__ import annotations

import csv
import functools
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.truth import independent
from tests.truth.traces import traces_root


@dataclass(frozen=True, kw_only=True)
class Run:
    """What the package wrote about one trace."""

    report: dict[str, Any]
    kernels: list[dict[str, str]]


def need(record: Any, *path: str | int) -> Any:
    """The value at this path of a parsed artifact; the test fails, naming the path, where there is none."""
    value, seen = record, []
    for key in path:
        seen.append(str(key))
        present = key < len(value) if isinstance(value, list) else isinstance(value, dict) and key in value
        if not present:
            pytest.fail(f"no {'.'.join(seen)}; there is {sorted(value) if isinstance(value, dict) else value!r}")
        value = value[key]
    return value


def read_run(folder: Path) -> Run:
    """The report and the kernel table of a finished run."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    csv.field_size_limit(1 << 24)  # kernel names of several thousand characters
    with (folder / "evidence" / "kernels.csv").open(encoding="utf-8", newline="") as table:
        return Run(report=report, kernels=list(csv.DictReader(table)))


@functools.cache
def loaded(relative: str) -> independent.Trace:
    """The trace as the independent program reads it, once a session."""
    return independent.load(traces_root() / relative)
