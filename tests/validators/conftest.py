"""A small run, made once; each test breaks a copy of it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from rooftrace.workflow import analyze
from tests.golden_runs.cases import gpu_training


@pytest.fixture(scope="session")
def made_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the training case; not to be changed."""
    folder = tmp_path_factory.mktemp("validators")
    analyze(gpu_training().write(folder / "trace.json.gz"), folder / "run")
    return folder / "run"


@pytest.fixture
def run(made_run: Path, tmp_path: Path) -> Path:
    """A copy of it to break."""
    return Path(shutil.copytree(made_run, tmp_path / "run"))
