"""``analyze``: the whole job."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.names import folder_name
from rooftrace.cli.output import put, put_json_text, say
from rooftrace.cli.progress import progress
from rooftrace.cli.source import is_run, own_models, own_platform
from rooftrace.cli.timings import timed
from rooftrace.contracts import store
from rooftrace.contracts.redaction import Redactor
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.units import format_ns, format_pct
from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow import analyze as analyze_trace
from rooftrace.workflow.folder import place_of

if TYPE_CHECKING:
    import argparse

RUNS = "rooftrace-runs"


def run(options: argparse.Namespace) -> int:
    """Write a run and print where."""
    trace = Path(options.trace)
    if is_run(trace):
        raise InputError(
            f"`{trace}` is a run, analysed already", hint=f"Read `{trace / store.ANALYSIS}`, or give a trace file"
        )
    folder = Path(options.output) if options.output else own_run(default_run(trace, redact=options.redact), trace)
    with timed(options), own_models(options):
        written = analyze_trace(trace, folder, analyze_options(options, trace))
    report = store.read_artifact(folder / store.REPORT, ReportFile)
    say(summary_line(report))
    if options.json:
        put_json_text((folder / store.REPORT).read_text(encoding="utf-8"))
    else:
        put(str(written))
    return 0


def analyze_options(options: argparse.Namespace, trace: Path) -> AnalyzeOptions:
    """The choices of the command line for one trace."""
    return AnalyzeOptions(
        platform=options.platform,
        own_platform=own_platform(options),
        steps=options.steps,
        progress=None if options.quiet else progress(trace),
        redact=options.redact,
        force=options.force,
        max_bytes=options.max_bytes,
    )


def default_run(trace: Path, *, redact: bool = False) -> Path:
    """`./rooftrace-runs/<trace name>`, the name without its endings and unusual characters."""
    name = Redactor().file_name(trace.name) if redact else trace.name
    return Path(RUNS) / folder_name(name)


def own_run(folder: Path, *traces: Path) -> Path:
    """The folder, or one beside it where it holds the run of another file of the same name; tells so."""
    own = place_of(folder, *traces)
    if own != folder:
        what = "other files" if len(traces) > 1 else "another file"
        say(f"note: `{folder}` is the run of {what}; this one goes to `{own}`")
    return own


def summary_line(report: ReportFile) -> str:
    """What was written, in one line."""
    devices = report.ledger.devices
    if not devices:
        return f"wrote report: no GPU activity; health {report.health.verdict}"
    span = sum(device.span_ns for device in devices)
    idle = sum(device.idle_ns for device in devices)
    ranked, listed = len(report.findings), len(report.unranked)
    found = f"{ranked} ranked finding{'' if ranked == 1 else 's'}{f' of {ranked + listed}' if listed else ''}"
    top = f"; first: {report.findings[0].title}" if report.findings else ""
    return (
        f"wrote report: span {format_ns(span)}, idle {format_pct(100 * idle / span if span else 0)}, "
        f"{found}, health {report.health.verdict}{top}"
    )
