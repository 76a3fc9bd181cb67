"""``analyze``: the whole job."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import put, put_json_text, say
from rooftrace.cli.source import is_run, own_models, own_platform
from rooftrace.contracts import store
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.units import format_ns, format_pct
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow import analyze as analyze_trace

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

RUNS = "rooftrace-runs"
_SUFFIXES = re.compile(r"(?:\.pt)?(?:\.trace)?(?:\.json)?(?:\.(?:gz|zst|zip|tar|tgz))*$", re.IGNORECASE)
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_MAX_NAME = 100
_PROGRESS_EVERY_S = 2.0


def run(options: argparse.Namespace) -> int:
    """Write a run and print where."""
    trace = Path(options.trace)
    if is_run(trace):
        raise InputError(
            f"`{trace}` is a run, analysed already", hint=f"Read `{trace / store.ANALYSIS}`, or give a trace file"
        )
    folder = Path(options.output) if options.output else default_run(trace)
    with own_models(options):
        written = analyze_trace(
            trace,
            folder,
            AnalyzeOptions(
                platform=options.platform,
                own_platform=own_platform(options),
                steps=options.steps,
                progress=None if options.quiet else progress(trace.name),
            ),
        )
    report = store.read_artifact(folder / store.REPORT, ReportFile)
    say(summary_line(report))
    if options.json:
        put_json_text((folder / store.REPORT).read_text(encoding="utf-8"))
    else:
        put(str(written))
    return 0


def default_run(trace: Path) -> Path:
    """`./rooftrace-runs/<trace name>`, the name without its endings and unusual characters."""
    name = _UNSAFE.sub("_", _SUFFIXES.sub("", trace.name)).strip("._")[:_MAX_NAME] or "trace"
    return Path(RUNS) / name


def summary_line(report: ReportFile) -> str:
    """What was written, in one line."""
    devices = report.ledger.devices
    if not devices:
        return f"wrote report: no GPU activity; health {report.health.verdict}"
    span = sum(device.span_ns for device in devices)
    idle = sum(device.idle_ns for device in devices)
    top = f"; first: {report.findings[0].title}" if report.findings else ""
    return (
        f"wrote report: span {format_ns(span)}, idle {format_pct(100 * idle / span if span else 0)}, "
        f"{len(report.findings)} findings, health {report.health.verdict}{top}"
    )


def progress(name: str) -> Callable[[int], None]:
    """A reporter that tells every two seconds how far a long file is read."""
    started = last = time.monotonic()

    def tell(content_bytes: int) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= _PROGRESS_EVERY_S:
            last = now
            say(f"reading {name}: {content_bytes / 1e6:.0f} MB, {content_bytes / 1e6 / (now - started):.0f} MB/s")

    return tell
