"""Every moment of a command is charged to one stage, and none where nobody asks."""

from __future__ import annotations

import json
import time
from contextlib import suppress

import pytest

from rooftrace.cli import main
from rooftrace.workflow.timing import Clock, clock, stage
from tests.golden_runs.cases import gpu_training


@pytest.fixture
def ticking(monkeypatch):
    """Clocks that stand still but for what a test adds: wall time, and half of it as CPU time."""
    now = [0]
    monkeypatch.setattr(time, "perf_counter_ns", lambda: now[0])
    monkeypatch.setattr(time, "process_time_ns", lambda: now[0] // 2)

    def wait(ms: int) -> None:
        now[0] += ms * 1_000_000

    return wait


def test_time_goes_to_the_innermost_stage_and_the_rest_to_other(ticking) -> None:
    #             0    5    15   20   50   60 ms
    # tree             [---------------]
    # schedule              [--]
    # other       [---]                [---]
    with clock() as running:
        ticking(5)
        with stage("tree"):
            ticking(10)
            with stage("schedule"):
                ticking(5)
            ticking(30)
        ticking(10)

    assert running.rows() == [
        {"stage": "tree", "wall_ms": 40.0, "cpu_ms": 20.0, "count": 1},
        {"stage": "schedule", "wall_ms": 5.0, "cpu_ms": 2.5, "count": 1},
        {"stage": "other", "wall_ms": 15.0, "cpu_ms": 7.5, "count": 1},
        {"stage": "total", "wall_ms": 60.0, "cpu_ms": 30.0, "count": 1},
    ]


def test_a_stage_entered_twice_is_one_row_and_an_error_ends_it(ticking) -> None:
    with clock() as running:
        for _ in range(2):
            with suppress(ZeroDivisionError), stage("read"):
                ticking(3)
                raise ZeroDivisionError
        ticking(1)

    assert [(row["stage"], row["wall_ms"], row["count"]) for row in running.rows()] == [
        ("read", 6.0, 2),
        ("other", 1.0, 1),
        ("total", 7.0, 1),
    ]


def test_without_a_clock_a_stage_looks_at_no_time(monkeypatch) -> None:
    monkeypatch.setattr(Clock, "enter", lambda *_: pytest.fail("a clock ran"))

    with stage("tree"), stage("schedule"):
        pass


def contents(run):
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_timings_are_told_on_stderr_and_change_no_byte_of_a_run(tmp_path, capsys) -> None:
    trace = str(gpu_training().write(tmp_path / "a.json", "plain"))
    main(["analyze", trace, "-o", str(tmp_path / "plain"), "-q"])
    capsys.readouterr()

    assert main(["analyze", trace, "-o", str(tmp_path / "timed"), "-q", "--timings"]) == 0

    printed = capsys.readouterr()
    assert printed.out == f"{tmp_path / 'timed/analysis.md'}\n"
    lines = printed.err.splitlines()
    assert lines[0].split() == ["stage", "wall", "ms", "CPU", "ms", "count"]
    assert lines[1].split()[0] == "read"
    assert [line.split()[0] for line in lines[-3:-1]] == ["other", "total"]
    assert contents(tmp_path / "timed") == contents(tmp_path / "plain")


def test_with_json_the_timings_are_one_line_of_it(tmp_path, capsys) -> None:
    trace = str(gpu_training().write(tmp_path / "a.json", "plain"))

    main(["prepare", trace, "-o", str(tmp_path / "run"), "-q", "--timings", "--json"])

    printed = capsys.readouterr()
    assert json.loads(printed.out)["run"] == str(tmp_path / "run")
    rows = json.loads(printed.err.splitlines()[0])["timings"]
    assert rows[0]["stage"] == "read"
    assert rows[-1]["wall_ms"] == pytest.approx(sum(row["wall_ms"] for row in rows[:-1]), abs=0.01)


def test_stages_of_another_process_add_cpu_time_and_no_wall_time(ticking) -> None:
    with clock() as there:
        ticking(1)
        with stage("fusion"):
            ticking(8)
    with clock() as running:
        with stage("causes"):
            ticking(10)
        running.add_elsewhere(there.spent)

    # Half of all time is CPU time: 8 ms of fusion and 1 ms of others there, 10 ms of causes here.
    assert running.rows() == [
        {"stage": "causes", "wall_ms": 10.0, "cpu_ms": 5.0, "count": 1},
        {"stage": "fusion", "wall_ms": 0.0, "cpu_ms": 4.0, "count": 1},
        {"stage": "other", "wall_ms": 0.0, "cpu_ms": 0.5, "count": 2},
        {"stage": "total", "wall_ms": 10.0, "cpu_ms": 9.5, "count": 1},
    ]
