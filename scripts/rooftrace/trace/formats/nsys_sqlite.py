"""Nsight Systems exports as SQLite (``nsys export --type sqlite``): kernels, copies, CUDA calls, waits, NVTX ranges.

The tables and enumerations are those of the Nsight Systems User Guide, "SQLite Schema Reference": times are ns since
the session's start, names are numbers of `StringIds`, `globalTid` and `globalPid` hold the process in bits 24 to 47
and the thread in the lower 24. Tables and columns differ between versions: what is absent is left out. The file is
opened read-only and immutable; nothing is written beside it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from rooftrace.errors import NotATrace
from rooftrace.trace.formats._cuda import Names, Session
from rooftrace.trace.formats._events import Rows, text_of, whole

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rooftrace.trace.containers import Source
    from rooftrace.trace.events import Tally, Trace

NAME = "Nsight Systems SQLite"
_MAGIC = b"SQLite format 3\x00"
_ACTIVITY = "CUPTI_ACTIVITY_KIND_"
_TELLING = ("StringIds", "NVTX_EVENTS", f"{_ACTIVITY}KERNEL", f"{_ACTIVITY}RUNTIME", "TARGET_INFO_GPU")
# A damaged index may make a query walk in circles: as many steps of its machine are more than any export takes.
_STEPS_BETWEEN_LOOKS = 10_000_000
_MAX_LOOKS = 20_000
# Names of tables and columns need not be UTF-8 either.
_DAMAGE = (sqlite3.Error, UnicodeDecodeError, OverflowError)


def recognises(head: bytes) -> bool:
    """Any SQLite: the names of its tables may stand far behind."""
    return head.startswith(_MAGIC)


def read(source: Source, progress: Callable[[int], None] | None = None) -> Trace:
    """All events of the export; a compressed one is unpacked into a temporary file first."""
    with tempfile.TemporaryDirectory() as folder:
        path = _plain(source, Path(folder) / "export.sqlite", progress)
        address = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
        try:
            with closing(sqlite3.connect(address, uri=True)) as database:
                return _read(database)
        except _DAMAGE:
            raise NotATrace(
                f"`{source.path.name}` is an SQLite database",
                hint="Export the profile as a Chrome trace (JSON)",
            ) from None


def _plain(source: Source, spare: Path, progress: Callable[[int], None] | None) -> Path:
    """Where the database lies uncompressed; the whole file is read in any case, for its digest."""
    chunks = source.chunks()
    first = next(chunks, b"")
    if not source.container:
        for _ in chunks:
            _tell(progress, source)
        return source.path
    with spare.open("wb") as handle:
        handle.write(first)
        for chunk in chunks:
            handle.write(chunk)
            _tell(progress, source)
            if shutil.disk_usage(spare.parent).free < 1 << 26:
                raise NotATrace(
                    f"no room to unpack `{source.path.name}`",
                    hint="Unpack it yourself and give the .sqlite file",
                )
    return spare


def _tell(progress: Callable[[int], None] | None, source: Source) -> None:
    if progress is not None:
        progress(source.content_bytes)


def _read(database: sqlite3.Connection) -> Trace:
    database.text_factory = lambda data: data.decode("utf-8", "replace")
    looks = iter(range(_MAX_LOOKS))
    database.set_progress_handler(lambda: next(looks, None) is None, _STEPS_BETWEEN_LOOKS)
    rows = Rows()
    tables = _Tables(database, rows.dropped)
    names = Names({whole(row.get("id")) or 0: text_of(row.get("value")) for row in tables.rows("StringIds")})
    session = Session(rows=rows, names=names, devices=_cuda_devices(tables))
    for table, take in (
        (f"{_ACTIVITY}RUNTIME", session.call),
        (f"{_ACTIVITY}KERNEL", session.kernel),
        (f"{_ACTIVITY}MEMCPY", session.copy),
        (f"{_ACTIVITY}MEMSET", session.fill),
        (f"{_ACTIVITY}GRAPH_TRACE", session.graph),
        (f"{_ACTIVITY}SYNCHRONIZATION", session.wait),
        ("PROFILER_OVERHEAD", session.overhead),
        ("NVTX_EVENTS", session.range),
    ):
        for row in tables.rows(table):
            take(row)
    return rows.finish({"deviceProperties": _gpus(tables)}, NAME)


class _Tables:
    """The tables of a database, as rows by column name."""

    def __init__(self, database: sqlite3.Connection, dropped: Tally) -> None:
        self._database = database
        self._dropped = dropped
        found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        self._names = {str(name) for (name,) in found.fetchall()}
        if not self._names.intersection(_TELLING):
            raise sqlite3.DatabaseError

    def rows(self, table: str) -> Iterator[dict[str, Any]]:
        """Every row of a table of ours; none where the export has no such table."""
        if table not in self._names:
            return
        try:
            cursor = self._database.execute(f'SELECT * FROM "{table}"')  # noqa: S608 - a name of this module
            columns = [str(column[0]) for column in cursor.description]
            for values in cursor:  # one by one: of several at once, those before the damage would be lost
                yield dict(zip(columns, values, strict=True))
        except _DAMAGE:
            self._dropped.add(f"rest of the damaged table {table}")


def _cuda_devices(tables: _Tables) -> dict[tuple[int, int], int]:
    """The GPU behind each process's CUDA device, where the export tells."""
    found = {}
    for row in tables.rows("TARGET_INFO_CUDA_DEVICE"):
        gpu, device, pid = (whole(row.get(key)) for key in ("gpuId", "cudaId", "pid"))
        if gpu is not None and device is not None and pid is not None:
            found[pid, device] = gpu
    return found


def _gpus(tables: _Tables) -> list[dict[str, Any]]:
    """The GPUs as Kineto's header describes them."""
    found = []
    for row in tables.rows("TARGET_INFO_GPU"):
        device = {
            "id": whole(row.get("id")),
            "name": text_of(row.get("name")),
            "totalGlobalMem": whole(row.get("totalMemory")),
            "numSms": whole(row.get("smCount")),
            "computeMajor": whole(row.get("computeMajor")),
            "computeMinor": whole(row.get("computeMinor")),
        }
        found.append({key: value for key, value in device.items() if value is not None})
    return found
