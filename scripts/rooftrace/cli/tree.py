"""``tree``: the call tree, equal siblings merged, with the GPU time launched below each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import prepare_trace, run_folder
from rooftrace.errors import UsageError
from rooftrace.units import format_ns

if TYPE_CHECKING:
    import argparse

_HEADER = ("call", "count", "host time", "GPU time", "GPU events")


def run(options: argparse.Namespace) -> int:
    """Print the merged tree, heaviest branches first."""
    from rooftrace.workflow.outline import outline

    if run_folder(options.source) is not None:
        raise UsageError("a run keeps no call tree", hint="Give the trace file: `rooftrace tree TRACE`")
    workload = prepare_trace(options.source, steps=options.steps).workload
    rows = outline(workload, depth=options.depth, python=options.python)
    shown = rows[: options.limit]
    hide = hider(options, workload.trace)
    if options.json:
        put_json(hide([row.as_dict() for row in shown]))
        return 0
    table = [
        [
            "  " * row.depth + row.name,
            str(row.count),
            format_ns(row.host_ns),
            format_ns(row.gpu_ns),
            str(row.gpu_events),
        ]
        for row in shown
    ]
    put_table(_HEADER, hide(table), right=(1, 2, 3, 4))
    if len(rows) > len(shown):
        say(f"{len(rows) - len(shown)} more rows; use --limit")
    return 0
