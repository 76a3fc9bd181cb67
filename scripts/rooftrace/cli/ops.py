"""``ops``: the op groups as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.cli.hiding import hider
from rooftrace.cli.output import put_json, put_table, say
from rooftrace.cli.source import own_models, own_platform, prepare_trace, refuse_choices, run_folder
from rooftrace.contracts import store
from rooftrace.contracts.tables import OPS, read_csv, read_table, write_csv
from rooftrace.units import format_ns

if TYPE_CHECKING:
    import argparse

    from rooftrace.trace import Trace

_HEADER = ("id", "op", "category", "count", "kernel time", "bound", "efficiency", "shapes")


def run(options: argparse.Namespace) -> int:
    """Print the groups with most kernel time."""
    rows, trace = _rows(options)
    shown = hider(options, trace)(rows[: options.limit])
    if options.json:
        put_json(shown)
        return 0
    put_table(_HEADER, [_line(row) for row in shown], right=(3, 4, 6))
    rest = len(rows) - len(shown)
    if rest:
        say(f"{rest} more groups; use --limit")
    return 0


def _rows(options: argparse.Namespace) -> tuple[list[dict[str, str]], Trace | None]:
    """The rows, and the trace that they were made of on the spot."""
    folder = run_folder(options.source)
    if folder is not None:
        refuse_choices(options, "platform", "platform-file", "models", "steps")
        return read_table(OPS, store.OPS, store.read_bytes(folder / store.OPS).decode("utf-8", "replace")), None
    from rooftrace.workflow.rows import op_rows

    with own_models(options):
        own = own_platform(options)
        prepared = prepare_trace(options.source, platform=options.platform, own=own, steps=options.steps)
        return read_csv(write_csv(OPS, op_rows(prepared.workload))), prepared.workload.trace


def _line(row: dict[str, str]) -> list[str]:
    efficiency = f"{float(row['efficiency_pct']):.1f} %" if row["efficiency_pct"] else "-"
    return [
        row["id"],
        row["name"],
        row["category"],
        row["count"],
        format_ns(int(row["kernel_ns"])),
        row["bound"] or "-",
        efficiency,
        row["shapes"] if row["shapes"] != "null" else row["unmodelled"],
    ]
