"""``prepare``: the analysis, and the tasks for whoever writes its words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.analyze import default_run, progress, summary_line
from rooftrace.cli.output import put, put_json, say
from rooftrace.cli.source import is_run, own_models, own_platform
from rooftrace.contracts import store
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.workflow.agents import prepare
from rooftrace.workflow.next_step import command
from rooftrace.workflow.options import AnalyzeOptions

if TYPE_CHECKING:
    import argparse

_RECORDED = ("platform", "platform_file", "models", "steps")


def run(options: argparse.Namespace) -> int:
    """Write a run with tasks and print its folder."""
    trace = Path(options.trace)
    if is_run(trace):
        raise InputError(f"`{trace}` is a run already", hint=f"Go on with `{command('next', trace)}`")
    folder = Path(options.output) if options.output else default_run(trace)
    given = {name: str(getattr(options, name)) for name in _RECORDED if getattr(options, name) is not None}
    with own_models(options):
        state = prepare(
            trace,
            folder,
            AnalyzeOptions(
                platform=options.platform,
                own_platform=own_platform(options),
                steps=options.steps,
                progress=None if options.quiet else progress(trace.name),
            ),
            given,
        )
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
