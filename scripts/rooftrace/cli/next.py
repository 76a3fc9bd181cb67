"""``next``: what to do now in a prepared run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooftrace.cli.output import put, put_json, say
from rooftrace.contracts.kinds import page_of
from rooftrace.workflow.next_step import next_step

if TYPE_CHECKING:
    import argparse

_TOLD = {
    "write_prose": "write prose: have each brief followed by its own sub-agent, or follow them one after another",
    "report": "write the report",
    "check": "check the run",
    "done": "done",
}
_HOW = (
    "The text goes in on stdin, as each brief shows (submit … <<'PROSE'), or as a file (submit … FILE).\n"
    "Ask again when all of these have been handed in or given up."
)


def run(options: argparse.Namespace) -> int:
    """Print the next step."""
    folder = Path(options.folder)
    step: dict[str, Any] = next_step(folder, is_resumed=options.resume)
    if options.json:
        put_json(step)
        return 0
    put(_TOLD[step["action"]])
    for task in step["tasks"]:
        put(f"\n{task['analyzer']}\n  brief:  {folder.resolve() / task['brief']}\n  submit: {task['submit']}")
        for problem in task["problems"]:
            put(f"  refused before: {problem}")
    if step["tasks"]:
        put(f"\n{_HOW}")
    if step["command"]:
        put(f"  {step['command']}")
    if step["action"] == "done":
        put(f"  {folder.resolve() / page_of(folder)}")
    if step["note"]:
        say(step["note"])
    return 0
