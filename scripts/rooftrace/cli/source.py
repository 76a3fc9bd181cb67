"""A command's input: a trace, prepared on the spot, or the folder of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.errors import InputError

if TYPE_CHECKING:
    from rooftrace.workflow.prepare import Prepared


def run_folder(source: str) -> Path | None:
    """The folder if the source is one; `InputError` if it is a folder but no run."""
    path = Path(source)
    if not path.is_dir():
        return None
    if not (path / store.MANIFEST).is_file():
        raise InputError(
            f"`{path}` is a directory and not a run",
            hint="Give a trace file, or a folder that `analyze` wrote",
        )
    return path


def prepare_trace(source: str, *, platform: str | None = None, steps: str | None = None) -> Prepared:
    """A trace, read and analysed as far as the tables need."""
    from rooftrace.trace import load
    from rooftrace.workflow.options import AnalyzeOptions
    from rooftrace.workflow.prepare import prepare_workload

    trace, _ = load(Path(source))
    return prepare_workload(trace, AnalyzeOptions(platform=platform, steps=steps))
