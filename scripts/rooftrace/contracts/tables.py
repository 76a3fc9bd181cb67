"""CSV artifacts: each a list of typed columns with units, in a fixed order. Cells are plain values or JSON."""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Literal

import orjson
from msgspec import Struct

from rooftrace.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

ColumnType = Literal["int", "float", "str", "json", "bool"]
Cell = int | float | str | bool | None

_MAX_REPORTED = 5
_INT = re.compile(r"-?[0-9]+")
_FLOAT = re.compile(r"-?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


class Column(Struct, frozen=True, kw_only=True):
    """One column of a table."""

    name: str
    type: ColumnType
    description: str
    optional: bool = False


class Table(Struct, frozen=True, kw_only=True):
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
        ("phase", "str", "forward, backward, optimizer or data."),
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
        ("recompute_ns", "int", "Of kernel_ns, forward work run again in backward, ns."),
        ("flops", "int", "FLOPs of one instance.", "optional"),
        ("bytes", "int", "Compulsory traffic of one instance, bytes.", "optional"),
        ("precision", "str", "Precision whose ceiling applies.", "optional"),
        ("unit", "str", "matrix or vector.", "optional"),
        ("bound", "str", "compute, memory or latency.", "optional"),
        ("floor_ns", "int", "Least time of one instance, ns.", "optional"),
        ("efficiency_pct", "float", "Floor over measured time, per cent.", "optional"),
        ("datasheet_efficiency_pct", "float", "The same against datasheet ceilings.", "optional"),
        ("gap_ns", "int", "Time above the floor over all instances, ns.", "optional"),
        ("flag", "str", "cache-resident, above-achievable or inconsistent.", "optional"),
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
    """Rows as dictionaries of text cells, as they stand; `table_problems` tells whether they are a table's."""
    return [dict(zip(row[0], row[1], strict=False)) for row in _rows(text)]


def read_table(table: Table, path: str, text: str) -> list[dict[str, str]]:
    """Rows of a table's file; `CheckFailed` if it is not that table."""
    problems = list(table_problems(table, path, text))
    if problems:
        raise CheckFailed(
            f"`{path}` does not match its table",
            details=problems,
            hint="Run `rooftrace analyze TRACE -o RUN` to make it again; it is generated and not to be edited",
        )
    return read_csv(text)


def table_problems(table: Table, path: str, text: str) -> Iterator[str]:
    """What keeps the text from being the table: its header, or the first five rows and cells that do not fit."""
    names = [column.name for column in table.columns]
    header = text.split("\n", 1)[0].split(",")
    if header != names:
        yield f"{path}: the header is {','.join(header)[:120]}"
        return
    found = 0
    for number, (_, cells) in enumerate(_rows(text), start=2):
        for problem in _row_problems(table, cells):
            found += 1
            if found <= _MAX_REPORTED:
                yield f"{path}, line {number}{problem}"


def _row_problems(table: Table, cells: list[str]) -> Iterator[str]:
    if len(cells) != len(table.columns):
        yield f": {len(cells)} cells under {len(table.columns)} columns"
        return
    for column, cell in zip(table.columns, cells, strict=True):
        if not _fits(column, cell):
            yield f", {column.name}: {cell[:60]!r} is no {column.type}"


def _rows(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Header and cells of each row."""
    csv.field_size_limit(1 << 30)
    reader = csv.reader(io.StringIO(text, newline=""))
    try:
        header = next(reader, [])
        for cells in reader:
            yield header, cells
    except csv.Error as error:
        raise CheckFailed(f"line {reader.line_num} is no CSV: {error}") from None


def _fits(column: Column, cell: str) -> bool:
    if not cell:
        return column.optional or column.type == "str"
    if column.type == "int":
        return _INT.fullmatch(cell) is not None
    if column.type == "float":
        return _FLOAT.fullmatch(cell) is not None
    if column.type == "bool":
        return cell in ("true", "false")
    return column.type == "str" or _is_json(cell)


def _is_json(cell: str) -> bool:
    try:
        orjson.loads(cell)
    except orjson.JSONDecodeError:
        return False
    return True
