"""Runs that passed all checks are told at once, until a byte of them changes."""

from __future__ import annotations

import shutil

import pytest

from rooftrace.workflow import passed
from rooftrace.workflow.agents import report
from rooftrace.workflow.next_step import next_step
from tests.workflow.prose import prepared_run


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    return prepared_run(tmp_path_factory.mktemp("prepared"))


@pytest.fixture
def run(prepared, tmp_path, monkeypatch):
    monkeypatch.setenv(passed.CACHE, str(tmp_path / "cache"))
    run = shutil.copytree(prepared, tmp_path / "run")
    assert report(run) == []
    return run


def test_a_report_that_passed_is_known_wherever_it_lies_and_whatever_is_handed_out(run, tmp_path):
    checks = passed.passed_before(run)
    next_step(run)
    moved = shutil.move(run, tmp_path / "elsewhere")

    assert checks > 20
    assert passed.passed_before(moved) == checks


@pytest.mark.parametrize("name", ["analysis.md", "report.json", "evidence/gaps.csv", "tasks/gemm.md", "manifest.json"])
def test_one_byte_more_and_it_is_to_be_checked(run, name):
    with (run / name).open("ab") as file:
        file.write(b"\n")

    assert passed.passed_before(run) is None


def test_a_file_more_or_less_and_it_is_to_be_checked(run):
    more = run / "evidence/more.json"
    more.write_text("{}", encoding="utf-8")
    assert passed.passed_before(run) is None

    more.unlink()
    assert passed.passed_before(run) is not None
    (run / "plots/ledger.svg").unlink()
    assert passed.passed_before(run) is None


def test_a_pack_that_changed_checks_again(run, monkeypatch, tmp_path):
    monkeypatch.setattr(passed, "TEMPLATES", tmp_path)

    assert passed.passed_before(run) is None


def test_without_a_cache_nothing_is_known_and_nothing_written(run, monkeypatch, tmp_path):
    monkeypatch.delenv(passed.CACHE)
    passed.note_passed(run, 3)

    assert passed.passed_before(run) is None
    monkeypatch.setenv(passed.CACHE, str(tmp_path / "file" / "cache"))
    (tmp_path / "file").write_text("", encoding="utf-8")
    passed.note_passed(run, 3)
    assert passed.passed_before(run) is None


def test_of_many_notes_the_oldest_go(run, monkeypatch, tmp_path):
    monkeypatch.setattr(passed, "_MOST_NOTES", 4)
    folder = tmp_path / "cache/passed"
    for number in range(4):
        (folder / f"{number}").write_text("1", encoding="ascii")

    passed.note_passed(run, 25)
    assert len(list(folder.iterdir())) <= 4
    assert passed.passed_before(run) == 25
