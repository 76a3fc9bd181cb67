"""Checks of a run as a whole: its manifest, the schemas of its files, its tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.tables import TABLES, table_problems
from rooftrace.errors import RooftraceError
from rooftrace.validators.checks import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.validators.checks import Files


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
                try:
                    files.model(path)
                except RooftraceError as error:
                    yield from error.details or (error.what,)


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
            yield from table_problems(table, path, files.text(path))


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
