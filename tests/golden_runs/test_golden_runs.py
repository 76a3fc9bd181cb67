"""Whole runs against stored ones; `ROOFTRACE_UPDATE_GOLDEN=1` rewrites them, the difference is read in review."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from rooftrace.workflow import analyze
from tests.golden_runs.cases import CASES

HERE = Path(__file__).parent
COMPARED = (".json", ".csv", ".md")  # plots are held by their digest in manifest.json
LONGEST_PAGE = 1_000  # lines
pytestmark = pytest.mark.parametrize("case", CASES)


@pytest.fixture(autouse=True)
def _pin_the_version(monkeypatch):
    """A release changes no golden run."""
    monkeypatch.setattr("rooftrace.workflow.run.__version__", "0.0.0")


def contents(run: Path) -> dict[str, str]:
    files = sorted(path for path in run.rglob("*") if path.suffix in COMPARED)
    return {path.relative_to(run).as_posix(): path.read_text(encoding="utf-8") for path in files}


def rewrite(case: str, fresh: Path) -> None:
    folder = HERE / case
    shutil.rmtree(folder / "run", ignore_errors=True)
    for name, text in contents(fresh).items():
        (folder / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "run" / name).write_text(text, encoding="utf-8")


def test_the_stored_trace_is_the_one_the_case_describes(case):
    if os.environ.get("ROOFTRACE_UPDATE_GOLDEN"):
        (HERE / case).mkdir(exist_ok=True)
        CASES[case]().write(HERE / case / "trace.json", "plain")

    assert (HERE / case / "trace.json").read_bytes() == CASES[case]().json()


def test_the_run_equals_the_golden_one_file_by_file(case, tmp_path):
    analyze(HERE / case / "trace.json", tmp_path / "run")
    if os.environ.get("ROOFTRACE_UPDATE_GOLDEN"):
        rewrite(case, tmp_path / "run")

    fresh, stored = contents(tmp_path / "run"), contents(HERE / case / "run")
    assert sorted(fresh) == sorted(stored)
    for name, text in stored.items():
        assert fresh[name] == text, f"{case}/{name} differs; ROOFTRACE_UPDATE_GOLDEN=1 rewrites it"


def test_every_golden_file_can_be_read_in_review(case):
    assert {name for name, text in contents(HERE / case).items() if text.count("\n") > LONGEST_PAGE} == set()
