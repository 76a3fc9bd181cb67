"""Ways to call the command line: here, which is quick, or in a process of its own where streams and signals matter."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from rooftrace.cli import main

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "transformer_training_h100.json.gz"
LAUNCHER = ROOT / "scripts" / "rooftrace.py"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a command left on its streams, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def call(capsys: pytest.CaptureFixture[str]) -> Callable[..., Outcome]:
    """Run a command in this process."""

    def run(*arguments: str | Path) -> Outcome:
        capsys.readouterr()
        try:
            code = main([str(argument) for argument in arguments])
        finally:
            gc.enable()  # a command turns it off for its short life
        out, err = capsys.readouterr()
        return Outcome(code=code, out=out, err=err)

    return run


@pytest.fixture(scope="session")
def variables(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, str]:
    """The environment of a process: the package from this checkout, compiled once, nothing of the caller's."""
    cache = tmp_path_factory.mktemp("cache")
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "PYTHONPATH": str(ROOT / "scripts"),
        "PYTHONPYCACHEPREFIX": str(cache / "bytecode"),
        "ROOFTRACE_CACHE": str(cache),
        "LC_ALL": "C",
    }


@pytest.fixture(scope="session")
def start(variables: Mapping[str, str]) -> Callable[..., Outcome]:
    """Run a command in a process of its own, from the folder given."""

    def run(*arguments: str | Path, cwd: Path = ROOT, program: tuple[str, ...] = ("-m", "rooftrace"), **more: str):
        command = [sys.executable, *program, *map(str, arguments)]
        done = subprocess.run(command, cwd=cwd, env={**variables, **more}, capture_output=True, check=False)
        return Outcome(code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode())

    return run


@pytest.fixture(scope="session")
def example_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of the example, made once; not to be changed."""
    from rooftrace.workflow import analyze

    folder = tmp_path_factory.mktemp("example") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ROOFTRACE_COMPILED_TEMPLATES", str(folder.parent / "cache"))
        analyze(EXAMPLE, folder)
    return folder


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working folder, so that messages name files as they were given."""
    monkeypatch.chdir(tmp_path)
    return tmp_path
