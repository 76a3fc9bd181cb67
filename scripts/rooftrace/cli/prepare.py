"""``prepare``: the analysis, and the tasks for whoever writes its words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.analyze import analyze_options, default_run, own_run, summary_line
from rooftrace.cli.output import put, put_json, say
from rooftrace.cli.source import is_run, own_models
from rooftrace.cli.timings import timed
from rooftrace.contracts import store
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.workflow.agents import prepare
from rooftrace.workflow.next_step import command

if TYPE_CHECKING:
    import argparse

_RECORDED = ("platform", "platform_file", "models", "steps", "redact", "max_bytes")


def run(options: argparse.Namespace) -> int:
    """Write a run with tasks and print its folder."""
    trace = Path(options.trace)
    if is_run(trace):
        raise InputError(f"`{trace}` is a run already", hint=f"Go on with `{command('next', trace)}`")
    folder = Path(options.output) if options.output else own_run(default_run(trace, redact=options.redact), trace)
    given = {name: str(getattr(options, name)) for name in _RECORDED if getattr(options, name) not in (None, False)}
    with timed(options), own_models(options):
        state = prepare(trace, folder, analyze_options(options, trace), given)
    say(summary_line(store.read_artifact(folder / store.REPORT, ReportFile)))
    tasks = [task.analyzer for task in state.tasks]
    if options.json:
        put_json({"run": str(folder), "analysis": str(folder / store.ANALYSIS), "tasks": tasks, "next": _next(folder)})
    else:
        put(str(folder))
    say(f"{len(tasks)} tasks for writers: {', '.join(tasks) or 'none'}\nnext: {_next(folder)}")
    return 0


def _next(folder: Path) -> str:
    return command("next", folder)
