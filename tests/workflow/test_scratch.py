"""What a killed command leaves behind: swept away by the next one at the same place, and by no other."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rooftrace.errors import UsageError
from rooftrace.workflow import locks, scratch
from rooftrace.workflow.cut import Choice, cut
from rooftrace.workflow.folder import clear_away, new_folder, refuse_foreign_folder
from tests.golden_runs.cases import gpu_training

posix = pytest.mark.skipif(os.name != "posix", reason="folders are locked as POSIX does")
HOLDER = """
import pathlib, sys, time
from rooftrace.workflow import scratch
with scratch.folder(pathlib.Path(sys.argv[1]), "run") as path:
    print(path, flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """A living process with a temporary folder for `run`, and that folder."""
    root = Path(__file__).resolve().parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(root / "scripts")},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process:
        yield process, Path(process.stdout.readline().strip())
        process.kill()


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@posix
def test_what_a_living_process_holds_stays_and_is_swept_away_once_it_was_killed(holder, tmp_path) -> None:
    process, path = holder

    clear_away(tmp_path / "run")
    assert path.is_dir()

    process.kill()
    process.wait()
    clear_away(tmp_path / "another")
    assert path.is_dir()
    clear_away(tmp_path / "run")
    assert entries(tmp_path) == []


@posix
@pytest.mark.parametrize(
    "name",
    [
        ".run.settings",  # eight letters, as a random name has them
        ".run.rooftrace-new-notes",
        ".run.rooftrace-new-abcdefgh.bak",
        ".runs.rooftrace-new-abcdefgh",
        "run.rooftrace-new-abcdefgh",
    ],
)
def test_a_folder_that_only_looks_alike_stays(tmp_path, name) -> None:
    (tmp_path / name).mkdir()

    clear_away(tmp_path / "run")

    assert entries(tmp_path) == [name]


@posix
def test_a_link_of_such_a_name_is_not_followed_and_stays(tmp_path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.tex").write_text("years", encoding="utf-8")
    (tmp_path / ".run.rooftrace-new-abcdefgh").symlink_to("mine")

    clear_away(tmp_path / "run")

    assert entries(tmp_path) == [".run.rooftrace-new-abcdefgh", "mine"]
    assert entries(tmp_path / "mine") == ["thesis.tex"]


@posix
@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can give a folder away")
def test_a_folder_of_another_user_stays(tmp_path) -> None:
    (tmp_path / ".run.rooftrace-new-abcdefgh").mkdir()
    os.chown(tmp_path / ".run.rooftrace-new-abcdefgh", 65534, 65534)

    clear_away(tmp_path / "run")

    assert entries(tmp_path) == [".run.rooftrace-new-abcdefgh"]


@pytest.mark.parametrize(("age_s", "left"), [(86_000, 1), (87_000, 0)], ids=["under a day", "over a day"])
def test_where_no_lock_can_tell_a_day_without_change_does(tmp_path, monkeypatch, age_s, left) -> None:
    monkeypatch.setattr(locks, "_opened", lambda _: None)
    path = tmp_path / ".run.rooftrace-new-abcdefgh"
    path.mkdir()
    then = time.time() - age_s
    os.utime(path, (then, then))

    clear_away(tmp_path / "run")

    assert len(entries(tmp_path)) == left


def test_a_file_system_without_locks_is_asked_for_the_age(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(locks, "_try_lock", lambda _: None)
    (tmp_path / ".run.rooftrace-new-abcdefgh").mkdir()

    clear_away(tmp_path / "run")

    assert len(entries(tmp_path)) == 1


@posix
def test_a_run_that_was_moved_aside_when_its_command_was_killed_is_put_back(tmp_path) -> None:
    aside = tmp_path / ".run.rooftrace-old-abcdefgh"
    (aside / "run").mkdir(parents=True)
    (aside / "run/analysis.md").write_text("whole", encoding="utf-8")

    clear_away(tmp_path / "run")

    assert entries(tmp_path) == ["run"]
    assert (tmp_path / "run/analysis.md").read_text(encoding="utf-8") == "whole"


@posix
def test_the_run_that_replaced_it_is_kept(tmp_path) -> None:
    (tmp_path / ".run.rooftrace-old-abcdefgh/run").mkdir(parents=True)
    (tmp_path / "run").mkdir()
    (tmp_path / "run/analysis.md").write_text("new", encoding="utf-8")

    clear_away(tmp_path / "run")

    assert entries(tmp_path) == ["run"]
    assert entries(tmp_path / "run") == ["analysis.md"]


@posix
@pytest.mark.parametrize("arrived", [False, True], ids=["in the midst", "when all had come"])
def test_a_folder_that_was_being_filled_anew_has_all_old_files_or_all_new_ones(tmp_path, arrived) -> None:
    run = tmp_path / "run"
    left = run / ".run.rooftrace-new-abcdefgh"
    (left / ".old").mkdir(parents=True)
    for name in ("analysis.md", "manifest.json"):
        (left / ".old" / name).write_text("old", encoding="utf-8")
    (run / "analysis.md").write_text("new", encoding="utf-8")
    (run if arrived else left).joinpath("manifest.json").write_text("new", encoding="utf-8")

    clear_away(run)

    assert entries(run) == ["analysis.md", "manifest.json"]
    assert {path.read_text(encoding="utf-8") for path in run.iterdir()} == {"new" if arrived else "old"}


@posix
def test_what_was_left_in_a_folder_does_not_make_it_a_users(example_run_copy) -> None:
    (example_run_copy / ".copy.rooftrace-new-abcdefgh").mkdir()
    (example_run_copy / ".report.json.abcdefgh").write_bytes(b"{")
    (example_run_copy / ".new.abcdefgh").mkdir()

    refuse_foreign_folder(example_run_copy)

    (example_run_copy / ".notes.abcdefgh").write_bytes(b"mine")
    with pytest.raises(UsageError, match="is not a run of rooftrace"):
        refuse_foreign_folder(example_run_copy)


@pytest.fixture
def example_run_copy(tmp_path) -> Path:
    from rooftrace.workflow import analyze

    trace = gpu_training().write(tmp_path / "a.json", "plain")
    analyze(trace, tmp_path / "copy")
    return tmp_path / "copy"


@posix
def test_a_folder_swept_away_before_it_could_be_held_is_made_again(tmp_path, monkeypatch) -> None:
    hold, seen = locks.held, []

    def held_too_late(path: Path):
        seen.append(path)
        if len(seen) == 1:
            path.rmdir()
        return hold(path)

    monkeypatch.setattr(locks, "held", held_too_late)
    with new_folder(tmp_path / "run") as folder:
        (folder / "a").write_text("mine", encoding="utf-8")

    assert len(seen) == 2
    assert entries(tmp_path) == ["run"]


@posix
def test_a_smaller_trace_sweeps_away_what_its_killed_command_left(tmp_path) -> None:
    trace = gpu_training().write(tmp_path / "a.json", "plain")
    (tmp_path / ".b.json.rooftrace-new-abcdefgh").write_bytes(b"{")
    (tmp_path / ".c.json.rooftrace-new-abcdefgh").write_bytes(b"{")

    cut(trace, tmp_path / "b.json", Choice(steps="1"))

    assert entries(tmp_path) == [".c.json.rooftrace-new-abcdefgh", "a.json", "b.json"]


def test_a_name_of_255_bytes_has_a_temporary_folder(tmp_path) -> None:
    name = "训" * 85  # 3 bytes each

    with new_folder(tmp_path / name) as folder:
        (folder / "a").write_text("mine", encoding="utf-8")
    shutil.copytree(tmp_path / name, tmp_path / "first")
    with new_folder(tmp_path / name) as folder:
        (folder / "b").write_text("mine", encoding="utf-8")

    assert entries(tmp_path) == ["first", name]
    assert entries(tmp_path / name) == ["b"]
    with scratch.folder(tmp_path, name) as path:
        # 200 of them begin it; 66 signs are 198 bytes
        assert path.name.startswith(f".{'训' * 66}.rooftrace-new-")
