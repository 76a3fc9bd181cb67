"""``report``: the report of a run, with whatever prose is sound."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.analyze import summary_line
from rooftrace.cli.output import put, put_json, say
from rooftrace.cli.source import run_folder
from rooftrace.cli.timings import timed
from rooftrace.contracts import store
from rooftrace.contracts.kinds import is_comparison, page_of
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.workflow.agents import report

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print the path of the report; 1 if the run does not pass its checks."""
    folder = run_folder(options.folder, takes_comparisons=True)
    if folder is None:
        what = "is a file, not a folder" if Path(options.folder).exists() else "does not exist"
        raise InputError(f"`{options.folder}` {what}", hint="Give the folder that `prepare` or `analyze` wrote")
    with timed(options):
        problems = report(folder)
    say(_summary(folder))
    path = folder / page_of(folder)
    if options.json:
        put_json({"analysis": str(path), "problems": problems})
    else:
        put(str(path))
        for problem in problems:
            put(problem)
    if problems:
        say("error: the run does not pass its checks\n\nhint: Run `rooftrace explain CODE` for a code's meaning")
        return 1
    say("the run passes its checks")
    return 0


def _summary(folder: Path) -> str:
    if not is_comparison(folder):
        return summary_line(store.read_artifact(folder / store.REPORT, ReportFile))
    from rooftrace.cli.compare import summary_line as of_comparison
    from rooftrace.contracts.compare import CompareEvidence

    return of_comparison(store.read_artifact(folder / store.COMPARE_EVIDENCE, CompareEvidence))
