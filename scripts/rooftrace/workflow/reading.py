"""A trace read as a command's options ask: within a limit of bytes, and without identifying texts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.trace import load
from rooftrace.workflow.redact import redacted, redactor_of
from rooftrace.workflow.timing import stage

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from rooftrace.contracts.redaction import Redactor
    from rooftrace.workflow.options import AnalyzeOptions
    from rooftrace.workflow.redact import Read


def read_trace(path: Path, options: AnalyzeOptions) -> Read:
    """One trace, and the facts of its file."""
    return read_traces([path], [options])[0][0] if options.redact else _read(path, options)


def read_traces(paths: Sequence[Path], options: Sequence[AnalyzeOptions]) -> tuple[list[Read], Redactor]:
    """Traces that are reported together, so that a value has one placeholder in all; and what they tell of people."""
    read = [_read(path, asked) for path, asked in zip(paths, options, strict=True)]
    with stage("redact"):
        redactor = redactor_of(*read)
        hidden = [redacted(*one, redactor) if asked.redact else one for one, asked in zip(read, options, strict=True)]
        return hidden, redactor


def _read(path: Path, options: AnalyzeOptions) -> Read:
    with stage("read"):
        return load(path, options.progress, max_bytes=options.max_bytes)
