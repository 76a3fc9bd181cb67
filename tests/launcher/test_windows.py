"""The branches for Windows, run here by giving the modules an ``os`` that says so."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace

import pytest

from rooftrace_launch import building, claims
from tests.launcher.conftest import Pack, load


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The environment module."""
    module = load("rooftrace_launch/environment")
    variables = {"LOCALAPPDATA": "/users/me/local", "PROCESSOR_ARCHITECTURE": "AMD64"}
    windows = SimpleNamespace(name="nt", environ=variables)
    monkeypatch.setattr(module, "os", windows)
    return module


@pytest.fixture
def launcher(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    module = load("rooftrace")
    monkeypatch.setattr(module, "os", SimpleNamespace(name="nt", environ=os.environ))
    return module


def test_the_interpreter_lies_in_the_scripts_folder(environments: ModuleType) -> None:
    python = environments.python_of(PurePosixPath("/cache/environment"))

    assert str(python) == "/cache/environment/Scripts/python.exe"


def test_the_cache_lies_in_the_local_application_data(environments: ModuleType) -> None:
    assert environments.cache_folder() == Path("/users/me/local/rooftrace")


def test_the_machine_is_spelt_as_markers_spell_it(environments: ModuleType) -> None:
    assert environments.applies_here("isal>=1.7; platform_machine == 'AMD64'") is True
    assert environments.applies_here("isal>=1.7; platform_machine == 'x86_64'") is False


@pytest.mark.parametrize(("silent_s", "stale"), [(59, False), (62, True)], ids=["a minute ago", "longer ago"])
def test_a_lock_is_stale_by_its_silence_and_no_process_is_signalled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, silent_s: int, stale: bool
) -> None:
    monkeypatch.setattr(claims, "is_alive", lambda _: pytest.fail("a process was signalled"))
    (tmp_path / "owner").write_text(claims.owner_line(), encoding="utf-8")
    then = time.time() - silent_s
    os.utime(tmp_path, (then, then))
    monkeypatch.setattr(claims, "os", SimpleNamespace(name="nt", getpid=os.getpid))

    assert claims.is_stale(tmp_path) is stale


@pytest.mark.parametrize(
    ("config", "expected"),
    [("home = {here}\nversion = 3.12.1\n", True), ("version = 3\nhome={here}/gone\n", False), ("", False)],
    ids=["there", "gone", "damaged"],
)
def test_an_environment_whose_python_was_uninstalled_is_not_used(
    environments: ModuleType, tmp_path: Path, config: str, expected: bool
) -> None:
    (tmp_path / "pyvenv.cfg").write_text(config.format(here=tmp_path), encoding="utf-8")

    assert environments.has_base(tmp_path) is expected


def test_a_folder_that_a_scanner_holds_is_renamed_once_it_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "made").mkdir()
    rename, tries = Path.rename, []

    def held_twice(self: Path, target: Path) -> Path:
        tries.append(self.name)
        if len(tries) < 3:
            raise PermissionError
        return rename(self, target)

    monkeypatch.setattr(building, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(building, "POLL_S", 0)
    monkeypatch.setattr(Path, "rename", held_twice)

    building.rename(tmp_path / "made", tmp_path / "target")

    assert tries == ["made"] * 3
    assert (tmp_path / "target").is_dir()


def test_the_command_is_waited_for_though_ctrl_c_reaches_this_process_too(
    launcher: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[int] = []

    class Child:
        def wait(self) -> int:
            waits.append(1)
            if len(waits) == 1:
                raise KeyboardInterrupt
            return 130

    monkeypatch.setattr(subprocess, "Popen", lambda *_, **__: Child())

    assert launcher.hand_over(Path(sys.executable), ["analyze"]) == 130
    assert len(waits) == 2


def test_the_command_runs_in_a_child_whose_exit_code_is_passed_on(
    pack: Pack, launcher: ModuleType, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(launcher, "LAUNCHER", pack.launcher)

    code = launcher.hand_over(Path(sys.executable), ["analyze", "a b.json"])

    assert code == 7
    assert '"arguments": ["analyze", "a b.json"]' in capfd.readouterr().out


def test_the_hint_names_the_python_launcher_of_windows(
    launcher: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setattr(launcher, "LAUNCHER", PurePosixPath("/pack/scripts/rooftrace.py"))
    monkeypatch.setenv("ROOFTRACE_CACHE", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(sys, "argv", ["rooftrace.py", "setup"])

    assert launcher.main() == 69
    hint = "or run `py -3 /pack/scripts/rooftrace.py setup` once outside the sandbox, with a network\n"
    assert capsys.readouterr().err.endswith(hint)


@pytest.mark.parametrize(("folder", "found"), [(".", False), ("tools", True)], ids=["working folder", "of the path"])
def test_a_uv_of_the_working_folder_is_not_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folder: str, found: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(building, "os", SimpleNamespace(name="nt"))
    monkeypatch.setattr(shutil, "which", lambda _: str(Path(folder) / "uv.exe"))

    assert (building.find_uv() is not None) is found
