"""The folder in which a test's contents are read."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.trace.reading import Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)
