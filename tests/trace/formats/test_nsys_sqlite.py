"""Exports of Nsight Systems as SQLite, in the schema of its User Guide."""

from __future__ import annotations

import gzip
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rooftrace.errors import NotATrace
from tests.trace.formats.reports import analysed, events_of
from tests.trace.reading import Folder

PID, TID = 300, 301
GLOBAL_PID = (1 << 48) | (PID << 24)
GLOBAL_TID = GLOBAL_PID | TID
SCHEMA = """
CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, demangledName INTEGER, shortName INTEGER,
  mangledName INTEGER, gridX INTEGER, gridY INTEGER, gridZ INTEGER, graphNodeId INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, bytes INTEGER, copyKind INTEGER, srcKind INTEGER,
  dstKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, value INTEGER, bytes INTEGER, memKind INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER,
  correlationId INTEGER, nameId INTEGER, returnValue INTEGER);
CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER,
  streamId INTEGER, correlationId INTEGER, globalPid INTEGER, syncType INTEGER, eventId INTEGER);
CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, textId INTEGER,
  globalTid INTEGER);
CREATE TABLE TARGET_INFO_GPU (id INTEGER, name TEXT, totalMemory INTEGER, smCount INTEGER, computeMajor INTEGER,
  computeMinor INTEGER);
"""
ROWS = {
    "StringIds": [(1, "sgemm_128x64"), (2, "_Z5sgemm"), (3, "cudaLaunchKernel_v7000"), (4, "cuLaunchKernel")],
    "CUPTI_ACTIVITY_KIND_KERNEL": [
        (10_000, 30_000, 0, 1, 7, 5, GLOBAL_PID, 1, 1, 2, 8, 4, 1, None),
        (30_000, 34_000, 0, 1, 7, 6, GLOBAL_PID, 1, 1, 2, 8, 4, 1, 9),
    ],
    "CUPTI_ACTIVITY_KIND_MEMCPY": [(40_000, 45_000, 0, 1, 7, 7, GLOBAL_PID, 4096, 2, 2, 1)],
    "CUPTI_ACTIVITY_KIND_MEMSET": [(46_000, 47_000, 0, 1, 7, 8, GLOBAL_PID, 0, 512, 2)],
    "CUPTI_ACTIVITY_KIND_RUNTIME": [
        (2_000, 4_000, 1, GLOBAL_TID, 5, 3, 0),
        (5_000, 6_000, 1, GLOBAL_TID, 6, 4, 0),
        (48_000, 60_000, 0, GLOBAL_TID, 9, 3, 0),
    ],
    "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION": [(49_000, 59_000, 0, 1, 7, 9, GLOBAL_PID, 3, 0)],
    "NVTX_EVENTS": [
        (1_000, 7_000, 59, "aten::mm, seq = 3, op_id = 5, sizes = [[4, 5], [5, 6]]", None, GLOBAL_TID),
        (0, 61_000, 59, None, 1, GLOBAL_TID),
        (500, None, 34, "a mark", None, GLOBAL_TID),
        (100, 900, 60, "a range of its own", None, GLOBAL_TID),
    ],
    "TARGET_INFO_GPU": [(0, "NVIDIA H100 80GB HBM3", 85_017_755_648, 132, 9, 0)],
}


def export(path: Path, schema: str = SCHEMA, rows: dict[str, list[tuple[object, ...]]] | None = None) -> bytes:
    with closing(sqlite3.connect(path)) as database:
        database.executescript(schema)
        for table, values in (ROWS if rows is None else rows).items():
            marks = ", ".join("?" * len(values[0]))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", values)  # noqa: S608 - names of this module
        database.commit()
    return path.read_bytes()


def test_activities_are_read_with_their_names_and_links(folder: Folder) -> None:
    content = export(folder.path / "made.sqlite")

    trace, facts = folder.load(content, "export.sqlite")

    assert facts.format == "plain, Nsight Systems SQLite"
    assert events_of(trace) == [
        ("RUNTIME", "cudaLaunchKernel", 2_000, 2_000),
        ("DRIVER", "cuLaunchKernel", 5_000, 1_000),
        ("RUNTIME", "cudaLaunchKernel", 48_000, 12_000),
        ("KERNEL", "_Z5sgemm", 10_000, 20_000),
        ("KERNEL", "_Z5sgemm", 30_000, 4_000),
        ("MEMCPY", "Memcpy DtoH (Device -> Pinned)", 40_000, 5_000),
        ("MEMSET", "Memset (Device)", 46_000, 1_000),
        ("SYNC", "Stream Sync", 49_000, 10_000),
        ("CPU_OP", "aten::mm", 1_000, 6_000),
        ("ANNOTATION", "sgemm_128x64", 0, 61_000),
        ("ANNOTATION", "a range of its own", 100, 800),
    ]
    assert trace.correlation.tolist() == [5, 6, 9, 5, 6, 7, 8, 9, -1, -1, -1]
    assert trace.stream.tolist()[3:8] == [7, 7, 7, 7, 7]
    assert trace.nbytes.tolist()[5:7] == [4096, 512]
    assert trace.lanes[trace.lane[8]] == (PID, TID)
    assert trace.graph_node.tolist()[3:5] == [-1, 9]
    assert trace.grids == [(8, 4, 1)]
    assert (folder.path / "export.sqlite").read_bytes() == content


def test_an_export_is_analysed_with_its_gpu_and_ops(folder: Folder) -> None:
    result = analysed(folder, gzip.compress(export(folder.path / "made.sqlite")), "export.sqlite.gz")

    # 10 to 47 µs: kernels of 20 and 4 and a fill of 1, a copy of 5, waits of 6 and 1
    assert result.parts() == {
        "span_ns": 37_000,
        "compute_ns": 25_000,
        "exposed_copy_ns": 5_000,
        "idle_ns": 7_000,
    }
    assert result.platform == "h100-sxm"
    assert result.ops["aten::mm"] == 24_000


def test_ids_and_streams_of_several_processes_are_told_apart(folder: Folder) -> None:
    other_pid = (1 << 48) | (900 << 24)
    rows = {
        "StringIds": ROWS["StringIds"],
        "CUPTI_ACTIVITY_KIND_RUNTIME": [
            (1, 2, 1, GLOBAL_TID, 5, 3, 0),
            (1, 2, 1, other_pid | 901, 5, 3, 0),
        ],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            (10, 30, 0, 1, 7, 5, GLOBAL_PID, 1, 1, 2, 8, 4, 1, None),
            (20, 40, 0, 1, 7, 5, other_pid, 1, 1, 2, 8, 4, 1, None),
        ],
    }

    trace = folder.trace(export(folder.path / "made.sqlite", rows=rows), "export.sqlite")

    assert trace.correlation.tolist() == [5, (1 << 32) + 5, 5, (1 << 32) + 5]
    assert trace.stream.tolist()[2:] == [7, (1 << 32) + 7]


def test_tables_and_columns_may_be_missing_and_hold_anything(folder: Folder) -> None:
    schema = "CREATE TABLE StringIds (id, value); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, shortName);"
    rows = {
        "StringIds": [(1, "k"), ("x", None), (b"\xff", b"\xff")],
        "CUPTI_ACTIVITY_KIND_KERNEL": [
            (10, 30, 1),
            (b"\x00", "x", None),
            (40, 50, "named"),
            (60, 2.5e300, 7),
        ],
    }

    trace = folder.trace(export(folder.path / "made.sqlite", schema, rows), "export.sqlite")

    assert events_of(trace) == [
        ("KERNEL", "k", 0, 20),
        ("KERNEL", "named", 30, 10),
        ("KERNEL", "unnamed kernel", 50, 0),
    ]
    assert trace.dropped.counts == {"event without a time": 1}
    assert trace.repaired.counts == {"event without a duration": 1}


def test_a_damaged_page_costs_the_rest_of_its_table_alone(folder: Folder) -> None:
    rows = {
        "StringIds": ROWS["StringIds"],
        "CUPTI_ACTIVITY_KIND_RUNTIME": ROWS["CUPTI_ACTIVITY_KIND_RUNTIME"],
    }
    rows["CUPTI_ACTIVITY_KIND_KERNEL"] = [
        (n, n + 1, 0, 1, 7, n, GLOBAL_PID, 1, 1, 2, 8, 4, 1, None) for n in range(1, 2000)
    ]
    content = bytearray(export(folder.path / "made.sqlite", rows=rows))
    last = len(content) // 4096 - 1
    content[last * 4096 : (last + 1) * 4096] = b"\xee" * 4096

    trace = folder.trace(bytes(content), "export.sqlite")

    assert 3 < len(trace.kind) < 2002
    assert trace.dropped.counts == {"rest of the damaged table CUPTI_ACTIVITY_KIND_KERNEL": 1}


def test_a_database_of_something_else_is_refused(folder: Folder) -> None:
    content = export(folder.path / "made.db", "CREATE TABLE notes (text);", {"notes": [("hello",)]})

    with pytest.raises(NotATrace) as caught:
        folder.load(content, "t.db")

    assert str(caught.value) == (
        "error: `t.db` is an SQLite database\n\nhint: Export the profile as a Chrome trace (JSON)"
    )
    assert caught.value.exit_code == 4


def test_an_export_without_events_holds_none(folder: Folder) -> None:
    with pytest.raises(NotATrace, match=r"`t\.sqlite` holds no events"):
        folder.load(export(folder.path / "made.sqlite", rows={"StringIds": [(1, "x")]}), "t.sqlite")


def test_a_path_with_signs_of_an_address_is_read(folder: Folder) -> None:
    (folder.path / "a?mode=rwc#%41 b").mkdir()

    trace = folder.trace(export(folder.path / "made.sqlite"), "a?mode=rwc#%41 b/t.sqlite")

    assert len(trace.kind) == 11


def test_a_table_of_names_without_its_columns_names_nothing(folder: Folder) -> None:
    schema = "CREATE TABLE StringIds (x); CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start, end, shortName);"
    rows = {"StringIds": [(1,)], "CUPTI_ACTIVITY_KIND_KERNEL": [(10, 30, 1)]}

    trace = folder.trace(export(folder.path / "made.sqlite", schema, rows), "export.sqlite")

    assert events_of(trace) == [("KERNEL", "unnamed kernel", 0, 20)]
