"""CSV artifacts: each a list of typed columns with units, in a fixed order. Cells are plain values or JSON."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING, Literal

from rooftrace.contracts.base import Record

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ColumnType = Literal["int", "float", "str", "json", "bool"]
Cell = int | float | str | bool | None


class Column(Record):
    """One column of a table."""

    name: str
    type: ColumnType
    description: str
    optional: bool = False


class Table(Record):
    """A CSV file's columns, in order."""

    name: str
    columns: tuple[Column, ...]


def _columns(
    *rows: tuple[str, ColumnType, str] | tuple[str, ColumnType, str, Literal["optional"]],
) -> tuple[Column, ...]:
    return tuple(Column(name=row[0], type=row[1], description=row[2], optional=len(row) == 4) for row in rows)


OPS = Table(
    name="ops",
    columns=_columns(
        ("id", "str", "Op group id, `op1` having most kernel time."),
        ("name", "str", "Op name; for kernels outside any op, the kernel's short name."),
        ("category", "str", "What the op does."),
        ("phase", "str", "forward, backward, optimizer, communication or data."),
        ("shapes", "json", "Input shapes as recorded."),
        ("dtypes", "json", "Input dtypes as recorded."),
        ("count", "int", "Instances."),
        ("kernel_ns", "int", "Summed kernel durations, ns."),
        ("busy_ns", "int", "Union of each instance's kernels, summed, ns."),
        ("min_ns", "int", "Fastest instance, ns."),
        ("median_ns", "int", "Median instance, ns."),
        ("mean_ns", "float", "Mean instance, ns."),
        ("max_ns", "int", "Slowest instance, ns."),
        ("cov", "float", "Coefficient of variation of the instances."),
        ("kernel_count", "int", "Kernels launched over all instances."),
        ("kernels", "json", "Names, counts, durations and libraries of its kernels."),
        ("modules", "json", "Module paths it was called from, most time first."),
        ("source", "str", "Innermost user frame of the slowest instance.", "optional"),
        ("call_path", "str", "Enclosing ops of the slowest instance, outermost first.", "optional"),
        ("carry_in", "bool", "Launched before the window."),
        ("graph_replayed", "bool", "Launched by a graph."),
        ("flops", "int", "FLOPs of one instance.", "optional"),
        ("bytes", "int", "Compulsory traffic of one instance, bytes.", "optional"),
        ("precision", "str", "Precision whose ceiling applies.", "optional"),
        ("unit", "str", "matrix or vector.", "optional"),
        ("bound", "str", "compute, memory or latency.", "optional"),
        ("floor_ns", "int", "Least time of one instance, ns.", "optional"),
        ("efficiency_pct", "float", "Floor over measured time, per cent.", "optional"),
        ("datasheet_efficiency_pct", "float", "The same against datasheet ceilings.", "optional"),
        ("gap_ns", "int", "Time above the floor over all instances, ns.", "optional"),
        ("flag", "str", "cache-resident or inconsistent.", "optional"),
        ("unmodelled", "str", "Why there is no rating.", "optional"),
        ("notes", "json", "What the cost model assumed."),
    ),
)

KERNELS = Table(
    name="kernels",
    columns=_columns(
        ("device", "int", "Device id."),
        ("stream", "int", "Stream id as the profiler numbers it."),
        ("kernel", "str", "Raw name."),
        ("short", "str", "Readable name."),
        ("kind", "str", "kernel, communication, copy or fill."),
        ("category", "str", "What it does."),
        ("library", "str", "Library, where the name shows it.", "optional"),
        ("owner_op", "str", "Innermost op open at the launch.", "optional"),
        ("op_id", "str", "Op group that counts it.", "optional"),
        ("linked", "str", "How its launch was found: correlation, external_id, flow, carry_in or lost."),
        ("graph_replayed", "bool", "Launched by a graph."),
        ("count", "int", "Launches."),
        ("total_ns", "int", "Summed duration, ns."),
        ("min_ns", "int", "Shortest, ns."),
        ("median_ns", "int", "Median, ns."),
        ("max_ns", "int", "Longest, ns."),
        ("facts", "json", "What the name spells: tile, split-K, stages, layout, precision."),
    ),
)

GAPS = Table(
    name="gaps",
    columns=_columns(
        ("device", "int", "Device id."),
        ("start_ns", "int", "Start of the gap, ns since the trace's first event."),
        ("dur_ns", "int", "Length, ns."),
        ("cause", "str", "Cause, `unattributed` where it is not analysed."),
        ("step", "str", "Step it falls into.", "optional"),
        ("before", "str", "Activity that ended before it."),
        ("after", "str", "Activity that ended it."),
        ("op", "str", "Op that launched the activity after it.", "optional"),
        ("source", "str", "User frame of that launch.", "optional"),
    ),
)

TABLES: dict[str, Table] = {table.name: table for table in (OPS, KERNELS, GAPS)}


def write_csv(table: Table, rows: Iterable[Sequence[Cell]]) -> str:
    r"""CSV text with a header line, `\n` line ends; None is an empty cell, booleans are `true` and `false`."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([column.name for column in table.columns])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _cell(value: Cell) -> str | int | float:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return value


def read_csv(text: str) -> list[dict[str, str]]:
    """Rows as dictionaries of text cells."""
    csv.field_size_limit(1 << 30)
    return list(csv.DictReader(io.StringIO(text, newline="")))
