"""What the launcher needs, and whether an interpreter has it."""

from __future__ import annotations

import os
import shutil
import sys
from importlib import metadata
from pathlib import Path
from types import SimpleNamespace

import pytest
from packaging.requirements import Requirement

from rooftrace_launch import building
from tests.launcher.conftest import SCRIPTS, load

environments = load("rooftrace_launch/environment")
LISTS = [("project", "dependencies"), ("dependency-groups", "dev")]


@pytest.mark.parametrize(("table", "key"), LISTS)
def test_the_lists_of_the_project_file_are_read_as_a_toml_parser_reads_them(table: str, key: str) -> None:
    tomllib = pytest.importorskip("tomllib", reason="came with Python 3.11")
    project = tomllib.loads((SCRIPTS.parent / "pyproject.toml").read_text(encoding="utf-8"))

    assert environments.declared(table, key) == project[table][key]


def every_requirement() -> list[str]:
    return [text for table, key in LISTS for text in environments.declared(table, key)]


@pytest.mark.parametrize("text", every_requirement())
def test_every_requirement_is_written_in_the_form_the_launcher_understands(text: str) -> None:
    requirement = Requirement(text)
    name, minimum = environments.name_and_minimum(text)

    assert (name, str(requirement.specifier)) == (requirement.name, f">={minimum}" if minimum else "")
    assert environments.applies_here(text) == (requirement.marker is None or requirement.marker.evaluate())


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("platform_machine == 'no-such-machine'", False),
        (f"platform_machine == 'no-such-machine' or platform_machine == '{os.uname().machine}'", True),
        ("python_version < '3.0'", True),  # not understood, so taken to hold
    ],
)
def test_a_marker_is_evaluated_for_this_machine(marker: str, expected: bool) -> None:
    assert environments.applies_here(f"isal>=1.7; {marker}") is expected


@pytest.mark.parametrize(
    ("folder", "requirement", "expected"),
    [
        ("numpy-2.1.0.dist-info", "numpy>=1.26", True),
        ("numpy-1.9.dist-info", "numpy>=1.26", False),  # 9 < 26 as numbers
        ("numpy-1.26.0rc1.dist-info", "numpy>=1.26", True),
        ("numpy-1.26.4.egg-info", "numpy>=1.26", True),  # as Debian packages it
        ("Jinja2-3.1.2.dist-info", "jinja2>=3.1", True),
        ("itanium_demangler-1.1.dist-info", "itanium-demangler>=1.1", True),
        ("types_jsonschema-4.dist-info", "types-jsonschema", True),
        ("numpy_quaternion-2.0.dist-info", "numpy>=1.26", False),
        ("numpy", "numpy>=1.26", False),  # a folder to import, but of no known version
        ("~umpy-2.1.0.dist-info", "numpy>=1.26", False),  # what pip leaves of a broken uninstall
    ],
)
def test_versions_are_read_from_the_metadata_folders(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, requirement: str, expected: bool
) -> None:
    (tmp_path / folder).mkdir()
    monkeypatch.setattr(sys, "path", [str(tmp_path), str(tmp_path / "absent")])

    assert environments.is_satisfied([requirement]) is expected


def test_the_first_of_two_installed_versions_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "user" / "numpy-1.20.dist-info").mkdir(parents=True)
    (tmp_path / "system" / "numpy-2.1.dist-info").mkdir(parents=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "user"), str(tmp_path / "system")])

    assert environments.is_satisfied(["numpy>=1.26"]) is False


def test_the_metadata_folders_tell_what_importlib_metadata_tells() -> None:
    installed = environments.installed_versions()

    names = [environments.name_and_minimum(text)[0] for text in every_requirement()]
    told = {name: metadata.version(name) for name in names if environments.canonical(name) in installed}
    assert told == {name: installed[environments.canonical(name)] for name in told}
    assert "pytest" in told


@pytest.mark.parametrize(
    ("variables", "platform", "expected"),
    [
        ({"ROOFTRACE_CACHE": "/a/b", "XDG_CACHE_HOME": "/x"}, "linux", "/a/b"),
        ({"XDG_CACHE_HOME": "/x"}, "linux", "/x/rooftrace"),
        ({"XDG_CACHE_HOME": "relative"}, "linux", "/home/me/.cache/rooftrace"),
        ({}, "linux", "/home/me/.cache/rooftrace"),
        ({}, "darwin", "/home/me/Library/Caches/rooftrace"),
    ],
)
def test_the_cache_is_where_the_system_keeps_caches(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], platform: str, expected: str
) -> None:
    for name in ("ROOFTRACE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    for name, value in {"HOME": "/home/me", **variables}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys, "platform", platform)

    assert environments.cache_folder() == Path(expected)


@pytest.fixture
def pip_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python with a pip of version 21.2, no ensurepip and no uv; the folder of its packages."""
    (tmp_path / "pip").mkdir()
    (tmp_path / "pip-21.2.dist-info").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    return tmp_path


def site_of(made: Path) -> str:
    return str(made / "lib" / f"python{sys.version_info[0]}.{sys.version_info[1]}" / "site-packages")


def test_where_ensurepip_is_missing_pip_fills_the_environment_from_outside(pip_only: Path) -> None:
    made = pip_only / "made"

    [[make, fill]] = building.ways_to_install(["numpy>=1.26"], made)

    assert make == [sys.executable, "-m", "venv", "--without-pip", str(made)]
    assert fill[0] == sys.executable
    assert fill[-3:] == ["numpy>=1.26", "--target", site_of(made)]


def test_an_old_pip_outside_only_brings_a_newer_one_into_the_environment(pip_only: Path) -> None:
    made = pip_only / "made"
    (pip_only / "pip-21.2.dist-info").rename(pip_only / "pip-20.2.4.dist-info")

    [[_, renew, fill]] = building.ways_to_install(["numpy>=1.26"], made)

    assert (renew[0], renew[-4:]) == (sys.executable, ["--upgrade", "pip>=21.2", "--target", site_of(made)])
    assert (fill[0], fill[-1]) == (str(made / "bin" / "python"), "numpy>=1.26")


@pytest.mark.parametrize(
    ("version", "renewals"), [("20.2", 1), ("20.3.4", 1), ("21.1.3", 1), ("21.2", 0), ("21.2.4", 0), ("26.2", 0)]
)
def test_an_old_pip_of_the_environment_is_upgraded_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, renewals: int
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(building, "pip_version", lambda: version)
    made = tmp_path / "made"

    [[make, *between, fill]] = building.ways_to_install(["numpy>=1.26"], made)

    assert make == [sys.executable, "-m", "venv", str(made)]
    assert [command[-2:] for command in between] == [["--upgrade", "pip>=21.2"]] * renewals
    assert fill[-1] == "numpy>=1.26"


@pytest.mark.parametrize(
    ("pip", "free", "reason", "hint"),
    [
        ("26.2", 10**12, "No matching distribution found for numpy>=1.26", ""),
        ("26.2", 10**6, "Error: Command '[…, 'ensurepip']' returned non-zero exit status 1.", "Free some room"),
        (
            "26.2",
            10**12,
            "Could not install packages due to an OSError: [Errno 28] No space left on device",
            "Free some room",
        ),
        (
            "20.2",
            10**12,
            "IndexError: list index out of range",
            "This Python's pip is 20.2, and 21.2 is needed: upgrade it",
        ),
    ],
)
def test_the_hint_fits_the_installers_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pip: str, free: int, reason: str, hint: str
) -> None:
    monkeypatch.setattr(building, "pip_version", lambda: pip)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=free))

    told = building.hint_for(reason, tmp_path)

    assert told.startswith(hint)
    assert bool(told) == bool(hint)


@pytest.mark.parametrize("home", ["", "relative"])
def test_a_home_that_is_no_place_is_not_written_to(monkeypatch: pytest.MonkeyPatch, home: str) -> None:
    for name in ("ROOFTRACE_CACHE", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", home)

    with pytest.raises(environments.Unavailable, match="there is no home folder to keep the environment in") as told:
        environments.cache_folder()

    assert told.value.hint == "Set ROOFTRACE_CACHE to a folder that can be written"


def test_without_any_installer_there_is_no_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "path", [str(tmp_path)])

    assert list(building.ways_to_install(["numpy>=1.26"], tmp_path / "made")) == []
