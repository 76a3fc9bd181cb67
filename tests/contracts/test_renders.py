"""Notes of what has been rendered: any changed byte of a run has none."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from rooftrace.contracts import renders, store
from rooftrace.report.assemble import write
from rooftrace.validators import check_run
from tests.report.sample import gpu_files, write_files


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(renders.CACHE, str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def run(tmp_path: Path, cache: Path) -> Path:
    folder = write_files(tmp_path / "run", gpu_files())
    write(folder)
    return folder


def is_noted(run: Path) -> bool:
    return renders.notes_of(run, lambda path: store.read_bytes(run / path))[0]


def is_sound(run: Path) -> bool:
    return renders.notes_of(run, lambda path: store.read_bytes(run / path))[1]


def test_a_written_report_is_noted_and_stays_so_when_the_run_is_moved(run, tmp_path):
    assert is_noted(run)
    assert is_noted(run.rename(tmp_path / "elsewhere"))


@pytest.mark.parametrize(
    ("summary", "sound"), [("A sum takes {{reduction.time_ms}}.", True), ("It takes 42 ms.", False)]
)
def test_only_a_report_whose_prose_was_not_refused_is_noted_as_sound(run, summary, sound):
    prose = {"analyzer": "reduction", "summary": f"{summary} That is all.", "findings": []}
    (run / "prose").mkdir()
    (run / "prose/reduction.json").write_text(json.dumps(prose), encoding="utf-8")
    write(run)

    assert (is_noted(run), is_sound(run)) == (True, sound)
    assert [problem.code for problem in check_run(run, "prose/reduction.json").problems] == (
        [] if sound else ["GROUND001"]
    )


def appended(path: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        with (run / path).open("a", encoding="utf-8") as out:
            out.write(" ")

    return change


def add_prose(run: Path) -> None:
    (run / "prose").mkdir()
    (run / "prose/gemm.json").write_text("{}", encoding="utf-8")


CHANGES: dict[str, Callable[[Path], None]] = {
    "report": appended("report.json"),
    "analysis": appended("analysis.md"),
    "evidence": appended("evidence/gemm.json"),
    "table": appended("evidence/ops.csv"),
    "page": appended("findings/gemm.md"),
    "plot": appended("plots/ledger.svg"),
    "plot gone": lambda run: (run / "plots/ledger.svg").unlink(),
    "prose": add_prose,
    "state": lambda run: (run / "state.json").write_text("{}", encoding="utf-8"),
    "manifest": lambda run: (run / "manifest.json").write_text(
        (run / "manifest.json").read_text(encoding="utf-8").replace('"dropped": 2', '"dropped": 3'), encoding="utf-8"
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_run_is_not(run, change):
    CHANGES[change](run)

    assert not is_noted(run)


def test_the_list_of_files_in_the_manifest_does_not_count(run):
    text = (run / "manifest.json").read_text(encoding="utf-8")
    (run / "manifest.json").write_text(text.replace('"files": []', '"files": [1]'), encoding="utf-8")

    assert is_noted(run)


def test_without_a_cache_folder_nothing_is_noted(run, monkeypatch):
    monkeypatch.delenv(renders.CACHE)
    renders.note(run, is_sound=True)

    assert not is_noted(run)


def test_a_cache_that_is_a_file_is_no_error(run, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv(renders.CACHE, str(tmp_path / "file"))

    renders.note(run, is_sound=True)
    assert not is_noted(run)


def test_the_oldest_half_of_many_notes_is_forgotten(run, cache, monkeypatch):
    monkeypatch.setattr(renders, "_MOST_NOTES", 5)
    for age, name in enumerate("abc"):
        (cache / "rendered" / name).touch()
        os.utime(cache / "rendered" / name, (age, age))

    renders.note(run, is_sound=True)  # five notes, a and b the oldest
    assert not {"a", "b"} & {path.name for path in (cache / "rendered").iterdir()}
    assert (cache / "rendered/c").exists()
    assert is_sound(run)
