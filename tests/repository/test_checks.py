"""``tests/run.py`` runs the checks in order and stops at the first failure."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.launcher.conftest import load
from tests.repository.files import ROOT

environment = load("rooftrace_launch/environment")
NEEDED = environment.runtime_requirements() + environment.declared("dependency-groups", "dev")

pytestmark = pytest.mark.skipif(
    not environment.is_satisfied(NEEDED), reason="this interpreter lacks a development tool"
)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with the script and one well-formatted file."""
    root = tmp_path / "a checkout"
    (root / "tests").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", root)
    shutil.copy(ROOT / "tests" / "run.py", root / "tests")
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "scripts" / "rooftrace_launch", root / "scripts" / "rooftrace_launch", ignore=ignored)
    return root


def run(checkout: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "tests/run.py", *arguments]
    cache = {"ROOFTRACE_CACHE": str(checkout.parent / "cache"), **variables}
    return subprocess.run(command, cwd=checkout, env=cache, capture_output=True, text=True, check=False)


def headings(text: str) -> list[str]:
    return [line.partition(", ")[0] for line in text.splitlines() if line.startswith("== ")]


def test_one_group_runs_alone_and_leaves_no_cache_in_the_checkout(checkout: Path) -> None:
    before = sorted(checkout.rglob("*"))

    done = run(checkout, "--only", "lint")

    assert (done.returncode, headings(done.stdout)) == (
        0,
        ["== format", "== format: ok", "== lint", "== lint: ok"],
    )
    assert sorted(checkout.rglob("*")) == before


def test_the_first_failure_ends_the_run_with_its_exit_code(checkout: Path) -> None:
    (checkout / "scripts" / "ugly.py").write_text('"""Ugly."""\nx = (1 ,2)\n', encoding="utf-8")

    done = run(checkout)

    assert (done.returncode, headings(done.stdout)) == (
        1,
        ["== format", "== format: failed with exit code 1"],
    )


def test_further_arguments_go_to_pytest(checkout: Path) -> None:
    done = run(checkout, "--only", "tests", "--collect-only", "tests")

    assert "== tests: failed with exit code 5" in headings(done.stdout)  # pytest's code for no tests found
