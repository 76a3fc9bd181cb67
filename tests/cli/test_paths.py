"""Where a trace is given from and a run is written to changes no byte of it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.cli.conftest import EXAMPLE
from tests.golden_runs.cases import gpu_training


def contents(run: Path) -> dict[str, bytes]:
    return {path.relative_to(run).as_posix(): path.read_bytes() for path in run.rglob("*") if path.is_file()}


def test_two_runs_give_identical_bytes(start, tmp_path):
    """In other processes, folders, locales and orders of sets."""
    (tmp_path / "elsewhere").mkdir()
    relative = os.path.relpath(EXAMPLE, tmp_path / "elsewhere")

    first = start("analyze", EXAMPLE, "-o", tmp_path / "one", PYTHONHASHSEED="1", TZ="UTC")
    second = start(
        "analyze",
        relative,
        "-o",
        "a run/two",
        cwd=tmp_path / "elsewhere",
        PYTHONHASHSEED="2",
        LC_ALL="C.UTF-8",
        TZ="Asia/Tokyo",
    )

    assert (first.code, second.code) == (0, 0)
    one, two = contents(tmp_path / "one"), contents(tmp_path / "elsewhere/a run/two")
    assert sorted(one) == sorted(two)
    assert [name for name in one if one[name] != two[name]] == []


def test_no_file_of_a_run_holds_a_path_of_the_machine(call, here):
    gpu_training().write(here / "a.json", "plain")
    call("analyze", here / "a.json", "-o", here / "run")

    assert [name for name, data in contents(here / "run").items() if str(here).encode() in data] == []


@pytest.mark.parametrize(
    ("cwd", "trace", "run"),
    [
        (".", "in here/a.json", "rooftrace-runs/a"),
        ("in here", "a.json", "rooftrace-runs/a"),
        ("other", "../in here/a.json", "rooftrace-runs/a"),
        ("other", "../in here/../in here/a.json", "rooftrace-runs/a"),
    ],
)
def test_the_default_run_lies_in_the_working_folder(call, here, monkeypatch, cwd, trace, run):
    (here / "in here").mkdir()
    (here / "other").mkdir()
    gpu_training().write(here / "in here/a.json", "plain")
    monkeypatch.chdir(here / cwd)

    outcome = call("analyze", trace)

    assert (outcome.out, outcome.code) == (f"{run}/analysis.md\n", 0)
    assert (here / cwd / run / "report.json").is_file()
    assert call("check", run).code == 0


def test_a_run_can_be_moved(call, example_run, tmp_path):
    shutil.copytree(example_run, tmp_path / "moved here")

    assert call("check", tmp_path / "moved here").code == 0


def test_a_second_analysis_replaces_the_first_and_all_its_files(call, here):
    gpu_training().write(here / "a.json", "plain")
    call("analyze", "a.json", "-o", "run")
    before = contents(here / "run")
    (here / "run/findings/moe.md").write_text("of an older analysis", encoding="utf-8")

    assert call("analyze", "a.json", "-o", "run").code == 0
    assert contents(here / "run") == before
    assert sorted(path.name for path in here.iterdir()) == ["a.json", "run"]


def test_a_run_in_which_a_user_put_a_file_is_not_replaced(call, here):
    gpu_training().write(here / "a.json", "plain")
    call("analyze", "a.json", "-o", "run")
    (here / "run/notes.txt").write_text("what I think of it", encoding="utf-8")
    before = contents(here / "run")

    assert call("analyze", "a.json", "-o", "run").code == 2
    assert contents(here / "run") == before


@pytest.mark.parametrize("empty", [True, False], ids=["empty", "a run"])
def test_the_working_folder_itself_can_be_the_run(call, here, monkeypatch, empty):
    trace = gpu_training().write(here / "a.json", "plain")
    (here / "run").mkdir()
    monkeypatch.chdir(here / "run")
    if not empty:
        call("analyze", trace, "-o", ".")

    outcome = call("analyze", trace, "-o", ".")

    assert (outcome.out, outcome.code) == ("analysis.md\n", 0)
    assert Path.cwd().samefile(here / "run")  # a shell in it stays where it was
    assert call("check", ".").code == 0
    assert not [path.name for path in (here / "run").iterdir() if path.name.startswith(".")]


def test_a_link_to_a_folder_stays_a_link(call, here):
    gpu_training().write(here / "a.json", "plain")
    (here / "real").mkdir()
    (here / "link").symlink_to("real")

    assert call("analyze", "a.json", "-o", "link").code == 0
    assert (here / "link").is_symlink()
    assert (here / "real/report.json").is_file()


@pytest.mark.parametrize("command", ["ops", "ledger", "tree", "platforms", "explain"])
def test_reading_commands_write_no_file(call, here, command):
    gpu_training().write(here / "a.json", "plain")

    call(command, *(["a.json"] if command not in ("platforms", "explain") else []))

    assert [path.name for path in here.iterdir()] == ["a.json"]
