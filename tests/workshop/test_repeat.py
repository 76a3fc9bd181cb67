"""The benchmark tool on a trace small enough to see."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from evals.workshop.repeat import NotRepeatable, repeat_trace

TRACE = """{
  "schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "GPU"}],
  "traceEvents": [
    {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#3", "pid": 1, "tid": 1,
     "ts": 100.250, "dur": 50.500, "args": {"External id": 1, "Ev Idx": 0}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1,
     "ts": 110.000, "dur": 5, "args": {"correlation": 40, "External id": 2}},
    {"ph": "s", "id": 40, "pid": 1, "tid": 1, "ts": 110.000, "cat": "ac2g", "name": "ac2g"},
    {"ph": "X", "cat": "kernel", "name": "k \\"ts\\": 5 100 %d", "pid": 0, "tid": 7,
     "ts": 120.125, "dur": 30.000, "args": {"correlation": 40, "est. achieved occupancy %": 27}},
    {"ph": "X", "cat": "cpu_op", "name": "no id", "pid": 1, "tid": 1, "ts": 130, "dur": 1,
     "args": {"correlation": 0, "Python parent id": null}},
    {"name": "process_name", "ph": "M", "ts": 100, "pid": 1, "tid": 0, "args": {"name": "python3"}},
    {"ph": "X", "cat": "Trace", "ts": 90.5, "dur": 70.5, "pid": "Spans", "tid": "P", "name": "P"},
    {"name": "Record Window End", "ph": "i", "s": "g", "pid": "", "tid": "", "ts": 170.000}
  ],
  "displayTimeUnit": "ms", "baseTimeNanoseconds": 5
}"""


@pytest.fixture
def repeated(tmp_path: Path) -> dict[str, Any]:
    source = tmp_path / "one.json"
    source.write_text(TRACE, encoding="utf-8")
    assert repeat_trace(source, 3, tmp_path / "three.json") == 18  # 3 x 5, and 3 written once
    return json.loads((tmp_path / "three.json").read_text(encoding="utf-8"))


def rows(document: dict[str, Any], category: str) -> list[dict[str, Any]]:
    return [row for row in document["traceEvents"] if row.get("cat") == category]


def test_copies_follow_one_another_with_their_fractions_kept(repeated: dict[str, Any]):
    # The copy spans 100.250 to 150.750: 50 whole microseconds, and 1000 of pause.
    assert [row["ts"] for row in rows(repeated, "kernel")] == [120.125, 1170.125, 2220.125]
    assert [row["dur"] for row in rows(repeated, "kernel")] == [30.0, 30.0, 30.0]


def test_ids_are_shifted_by_one_stride_so_that_equal_ids_stay_equal(repeated: dict[str, Any]):
    expected = [40, 81, 122]  # the largest id is 40, so the stride is 41

    assert [row["args"]["correlation"] for row in rows(repeated, "kernel")] == expected
    assert [row["args"]["correlation"] for row in rows(repeated, "cuda_runtime")] == expected
    assert [row["id"] for row in rows(repeated, "ac2g")] == expected
    assert [row["args"]["External id"] for row in rows(repeated, "cuda_runtime")] == [2, 43, 84]


def test_steps_go_on_counting(repeated: dict[str, Any]):
    names = [row["name"] for row in rows(repeated, "user_annotation")]

    assert names == ["ProfilerStep#3", "ProfilerStep#4", "ProfilerStep#5"]


def test_what_is_no_id_and_what_only_looks_like_one_stays(repeated: dict[str, Any]):
    assert {row["name"] for row in rows(repeated, "kernel")} == {'k "ts": 5 100 %d'}
    assert [row["args"] for row in rows(repeated, "cpu_op")] == 3 * [{"correlation": 0, "Python parent id": None}]
    assert repeated["deviceProperties"] == [{"id": 0, "name": "GPU"}]
    assert repeated["baseTimeNanoseconds"] == 5


def test_metadata_comes_once_and_the_profilers_own_marks_frame_the_whole(repeated: dict[str, Any]):
    events = repeated["traceEvents"]

    assert [row["ph"] for row in events].count("M") == 1
    assert [row["dur"] for row in rows(repeated, "Trace")] == [2170.5]  # 70.5 + 2 x 1050
    assert (events[-1]["name"], events[-1]["ts"]) == ("Record Window End", 2270.0)  # 170 + 2 x 1050


def test_compressed_input_and_output_hold_the_same_events(tmp_path: Path):
    source, plain = tmp_path / "one.json.gz", tmp_path / "two.json"
    source.write_bytes(gzip.compress(TRACE.encode()))
    repeat_trace(source, 2, plain)
    repeat_trace(source, 2, tmp_path / "two.json.gz")

    assert gzip.decompress((tmp_path / "two.json.gz").read_bytes()) == plain.read_bytes()


def test_a_file_without_events_is_refused(tmp_path: Path):
    source = tmp_path / "x.json"
    source.write_text("{}", encoding="utf-8")

    with pytest.raises(NotRepeatable, match=r"`x\.json` is not an object with traceEvents"):
        repeat_trace(source, 2, tmp_path / "y.json")
