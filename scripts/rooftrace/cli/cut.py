"""``cut``: a smaller trace from a larger one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import put, put_json, say
from rooftrace.cli.progress import progress
from rooftrace.errors import UsageError
from rooftrace.units import NS_PER_MS, NS_PER_S, NS_PER_US, format_count

if TYPE_CHECKING:
    import argparse

_UNITS = {"ns": 1, "us": NS_PER_US, "ms": NS_PER_MS, "": NS_PER_MS, "s": NS_PER_S}
_TIME = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,9})?)(ns|us|ms|s|)")


def run(options: argparse.Namespace) -> int:
    """Write the chosen part and print its path."""
    from rooftrace.workflow.cut import Choice, cut

    if options.output is None:
        raise UsageError("no place to write to", hint="Give the path of the smaller trace with -o")
    if options.steps is not None and options.window is not None:
        raise UsageError("--steps and --window cannot be given together", hint="Give one of them")
    choice = Choice(
        steps=options.steps, window=window(options.window), python=not options.no_python, redact=options.redact
    )
    trace = Path(options.trace)
    tell = None if options.quiet else progress(trace)
    written = cut(trace, Path(options.output), choice, tell, max_bytes=options.max_bytes)
    say(f"wrote {written.path.name}: {format_count(written.kept)} of {format_count(written.events)} events")
    if options.json:
        put_json({"path": str(written.path), "kept": written.kept, "events": written.events})
    else:
        put(str(written.path))
    return 0


def window(text: str | None) -> tuple[int | None, int | None] | None:
    """Start and end in ns after the first event: `12:40.5` (ms), `100us:2s`, `5:` to the end."""
    if text is None:
        return None
    parts = text.split(":")
    if len(parts) != 2 or not any(parts):
        raise _no_window(text)
    low, high = (_time(part, text) if part else None for part in parts)
    if low is not None and high is not None and low >= high:
        raise _no_window(text)
    return low, high


def _time(part: str, text: str) -> int:
    match = _TIME.fullmatch(part.strip())
    if match is None:
        raise _no_window(text)
    whole, _, fraction = match.group(1).partition(".")
    unit = _UNITS[match.group(2)]
    return int(whole) * unit + int(f"{fraction:0<9}") * unit // NS_PER_S


def _no_window(text: str) -> UsageError:
    return UsageError(
        f"no window: `{text}`",
        hint="Give its start and end after the first event, in ms or with a unit: `12:40.5`, `100us:2s`, `5:`",
    )
