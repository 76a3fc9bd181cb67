"""The runs of the three golden cases, made fresh once."""

from __future__ import annotations

from pathlib import Path

import pytest

from rooftrace.workflow import analyze
from tests.golden_runs.cases import CASES


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Run folders by case; not to be changed."""
    folder = tmp_path_factory.mktemp("contracts")
    for name, case in CASES.items():
        analyze(case().write(folder / f"{name}.json", "plain"), folder / name)
    return {name: folder / name for name in CASES}


@pytest.fixture
def training(runs: dict[str, Path]) -> Path:
    """The run with most kinds of content."""
    return runs["gpu_training"]
