"""``check``: the files of a run against their schemas and each other."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import put, put_json, say
from rooftrace.errors import InputError

if TYPE_CHECKING:
    import argparse


def run(options: argparse.Namespace) -> int:
    """Print one line a problem; 1 if there is any."""
    from rooftrace.workflow.passed import note_passed, passed_before

    known = None if options.file else passed_before(Path(options.folder))
    if known is not None:
        return _tell_passed(Path(options.folder), known, as_json=options.json)
    from rooftrace.cli.source import run_folder
    from rooftrace.validators import check_run

    folder = run_folder(options.folder, takes_comparisons=True)
    if folder is None:
        what = "is a file, not a folder" if Path(options.folder).exists() else "does not exist"
        raise InputError(f"`{options.folder}` {what}", hint="Give the folder that `analyze` wrote")
    only = Path(options.file).as_posix() if options.file else None
    result = check_run(folder, only)
    if not result.problems:
        if only is None:
            note_passed(folder, result.checks)
        return _tell_passed(folder, result.checks, as_json=options.json)
    if options.json:
        put_json({"checks": result.checks, "problems": [problem.as_dict() for problem in result.problems]})
    else:
        for problem in result.problems:
            put(str(problem))
    count = len(result.problems)
    say(
        f"error: {count} problem{'s' if count > 1 else ''} in {folder}\n\n"
        "hint: Run `rooftrace explain CODE` for a code's meaning"
    )
    return 1


def _tell_passed(folder: Path, checks: int, *, as_json: bool) -> int:
    if as_json:
        put_json({"checks": checks, "problems": []})
    say(f"checked {folder}: {checks} checks passed")
    return 0
