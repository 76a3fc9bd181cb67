"""Checks of a run as a whole: its manifest, the schemas of its files, its tables."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from rooftrace.contracts import store
from rooftrace.contracts.tables import TABLES, Column
from rooftrace.validators.checks import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.validators.checks import Files

_MAX_REPORTED = 5
_INT = re.compile(r"-?\d+")
_FLOAT = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


class RUN001(Check):
    """The manifest must be there and match its schema; without it a folder is no run."""

    file = store.MANIFEST

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Read the manifest."""
        files.manifest()
        yield from ()


class RUN002(Check):
    """Every file of the manifest must be there with the content that was written; files are generated, not edited."""

    file = store.MANIFEST
    requires = ("RUN001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare digests."""
        for entry in files.manifest().files:
            if not files.exists(entry.path):
                yield f"{entry.path} is missing"
            elif store.sha256(files.raw(entry.path)) != entry.sha256:
                yield f"{entry.path} was changed"


class RUN003(Check):
    """A JSON artifact must match its schema."""

    requires = ("RUN001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Read every JSON artifact through its model."""
        for path in files.paths():
            if path.endswith(".json") and files.exists(path) and store.schema_name_of(path):
                files.model(path)
        yield from ()


class RUN004(Check):
    """A table must have its columns in order, and cells of their types."""

    requires = ("RUN001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Check header and cells of every CSV."""
        for path in files.paths():
            table = TABLES.get(store.schema_name_of(path) or "")
            if table is None or not files.exists(path):
                continue
            header = files.raw(path).decode("utf-8", "replace").split("\n", 1)[0].split(",")
            if header != [column.name for column in table.columns]:
                yield f"{path}: the header is {','.join(header)[:120]}"
                continue
            yield from _bad_cells(path, table.columns, files.table(path))


def _bad_cells(path: str, columns: tuple[Column, ...], rows: list[dict[str, str]]) -> Iterator[str]:
    found = 0
    for number, row in enumerate(rows, start=2):
        for column in columns:
            if not _fits(column, row.get(column.name)):
                found += 1
                if found <= _MAX_REPORTED:
                    cell = str(row.get(column.name))[:60]
                    yield f"{path}, line {number}, {column.name}: {cell!r} is no {column.type}"


def _fits(column: Column, cell: str | None) -> bool:
    if not cell:
        return column.optional or (cell == "" and column.type == "str")
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


class RUN005(Check):
    """All files of a run must come from one trace."""

    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the digests of the source."""
        source = files.manifest().source_sha256
        for path in files.paths():
            if path.endswith(".json") and files.exists(path) and store.schema_name_of(path):
                found = getattr(files.model(path), "source_sha256", source)
                if found != source:
                    yield f"{path} comes from another trace"
