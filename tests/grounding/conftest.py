"""The small run written by hand, as what prose is held against."""

from __future__ import annotations

import pytest

from rooftrace.report.assemble import open_grounds
from rooftrace.report.grounding.grounds import Grounds
from tests.report.sample import gpu_files, write_files


@pytest.fixture(scope="session")
def grounds(tmp_path_factory: pytest.TempPathFactory) -> Grounds:
    return open_grounds(write_files(tmp_path_factory.mktemp("grounds") / "run", gpu_files()))
