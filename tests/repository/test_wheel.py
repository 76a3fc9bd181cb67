"""``pip install .`` gives the package, its data and the command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from tests.repository.files import ROOT

pytest.importorskip("hatchling", reason="the build backend is a development tool")


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The contents of the wheel, as pip would lay them out."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-B", "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, capture_output=True, check=True)
    [wheel] = folder.glob("*.whl")
    with ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    return folder / "site"


def test_the_wheel_holds_the_data_of_the_pack(installed: Path) -> None:
    pack = installed / "rooftrace" / "_pack"

    for folder in ("knowledge/platforms", "schemas", "templates"):
        files = sorted(path.name for path in (ROOT / folder).iterdir() if path.is_file())
        assert sorted(path.name for path in (pack / folder).iterdir() if path.is_file()) == files


def test_the_installed_package_finds_its_data(installed: Path) -> None:
    program = "from rooftrace import pack; print(pack.SCHEMAS, pack.SCHEMAS.is_dir())"

    done = subprocess.run(
        [sys.executable, "-B", "-c", program], cwd=installed, capture_output=True, text=True, check=True
    )

    assert done.stdout == f"{installed / 'rooftrace' / '_pack' / 'schemas'} True\n"


def test_the_wheel_gives_the_command(installed: Path) -> None:
    [entry_points] = installed.glob("rooftrace-*.dist-info/entry_points.txt")

    assert "rooftrace = rooftrace.cli:main" in entry_points.read_text(encoding="utf-8").splitlines()
