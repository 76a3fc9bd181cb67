"""The branches for Windows, run here by giving the modules an ``os`` that says so."""

from __future__ import annotations

import os
import sys
from pathlib import Path, PurePosixPath
from types import ModuleType, SimpleNamespace

import pytest

from tests.launcher.conftest import Pack, load


@pytest.fixture
def environments(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The environment module; a signal to a process, which would end it there, fails the test."""
    module = load("rooftrace_launch/environment")
    variables = {"LOCALAPPDATA": "/users/me/local", "PROCESSOR_ARCHITECTURE": "AMD64"}
    windows = SimpleNamespace(name="nt", environ=variables, kill=lambda *_: pytest.fail("a process was signalled"))
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


def test_no_process_is_signalled_to_see_whether_it_lives(environments: ModuleType) -> None:
    assert environments.is_alive(4) is True


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
    hint = "hint: Run `py -3 /pack/scripts/rooftrace.py setup` once outside the sandbox, with a network\n"
    assert capsys.readouterr().err.endswith(f"\n\n{hint}")
