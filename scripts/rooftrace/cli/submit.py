"""``submit``: prose from a writer, checked before it is stored."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from rooftrace.cli.output import put, put_json, say
from rooftrace.errors import InputError
from rooftrace.workflow.agents import submit
from rooftrace.workflow.state import repairs_left

if TYPE_CHECKING:
    import argparse

    from rooftrace.workflow.state import Task

_MOST_BYTES = 262_144  # four times what a file of prose may have


def run(options: argparse.Namespace) -> int:
    """Print the path written, or one line a problem and 1; the last line on stdout is what a writer answers."""
    text = _text(options.file)
    task, problems = submit(Path(options.folder), options.analyzer, text, options.writer)
    if options.json:
        put_json({"accepted": not problems, "status": task.status, "problems": problems})
    else:
        for line in problems or [task.prose]:
            put(line)
        put(f"refused {task.analyzer}" if problems else f"accepted {task.analyzer}: its words are in the report")
    if not problems:
        return 0
    say(f"error: refused {task.analyzer}\n\nhint: {_remedy(task)}")
    return 1


def _remedy(task: Task) -> str:
    left = repairs_left(task)
    if left:
        times = "once more" if left == 1 else f"up to {left} times"
        return f"Mend what stdout names, by rule and place, and submit the whole text again ({times})"
    if task.status == "accepted":
        return "What was accepted before is kept"
    return (
        f"Stop here and answer `refused {task.analyzer}`: the report keeps the pack's own words unless another writer "
        "does better"
    )


def _text(path: str | None) -> str:
    if path is None and sys.stdin is None:
        raise InputError("stdin is closed", hint="Give the prose on stdin, or the file that holds it")
    try:
        data = Path(path).read_bytes() if path else sys.stdin.buffer.read(_MOST_BYTES)
    except OSError as error:
        raise InputError(f"cannot read `{path}`: {error.strerror}", hint="Give the prose on stdin") from None
    return data.decode("utf-8", "replace")
