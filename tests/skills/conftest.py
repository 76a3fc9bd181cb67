"""The pack as a user installs it, with the real tools. They are fetched once, into the user's cache folder.

Where a tool cannot be had, the tests that need it are skipped with the reason.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from rooftrace_launch import environment as environments
from tests.repository.files import ROOT, repository_files

# Versions on which the pack was tried; the first works on older Node, too.
NPM = {"skills": "skills@1.5.18", "claude": "@anthropic-ai/claude-code@2.1.332", "codex": "@openai/codex@0.171.0"}
PYPI = {"agentskills": "skills-ref==0.1.1"}
FETCH_S = 300
# Variables that make a tool think it is run by an agent.
OF_AGENTS = ("CLAUDECODE", "AI_AGENT", "CURSOR_TRACE_ID")


def fetched(name: str, install: Callable[[Path], list[str]]) -> Path:
    """The folder of a tool in the cache; made whole or not at all."""
    folder = environments.cache_folder() / "checks" / "tools" / name.strip("@").replace("/", "-")
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as temporary:
        new = Path(temporary) / "new"
        new.mkdir()
        try:
            done = subprocess.run(
                install(new),
                cwd=new,
                capture_output=True,
                text=True,
                check=False,
                timeout=FETCH_S,
                stdin=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            pytest.skip(f"{name} cannot be fetched here: {type(error).__name__}")
        if done.returncode:
            pytest.skip(f"{name} cannot be fetched here: {(done.stderr or done.stdout).strip()[-200:]}")
        if not folder.is_dir():
            new.rename(folder)
    return folder


def npm_tool(command: str) -> Path:
    """The program of an npm package."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("npm is not installed")
    options = ["--no-audit", "--no-fund", "--loglevel=error", "--ignore-scripts"]
    folder = fetched(NPM[command], lambda new: [npm, "install", "--prefix", str(new), *options, NPM[command]])
    return folder / "node_modules" / ".bin" / command


@pytest.fixture(scope="session")
def skills_cli() -> Path:
    """``npx skills``."""
    return npm_tool("skills")


@pytest.fixture(scope="session")
def claude() -> Path:
    """Claude Code; its program lies in a package of its own for each system."""
    link = npm_tool("claude")
    packages = link.parents[1] / "@anthropic-ai"
    program = next((path for path in sorted(packages.glob("claude-code-*/claude*")) if os.access(path, os.X_OK)), None)
    if program is None:
        pytest.skip("Claude Code has no program for this system")
    return program


@pytest.fixture(scope="session")
def codex() -> Path:
    """Codex."""
    return npm_tool("codex")


@pytest.fixture(scope="session")
def validate_skill() -> Callable[[Path], subprocess.CompletedProcess[str]]:
    """``agentskills validate``, the validator of the specification."""
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--target"]
    folder = fetched(PYPI["agentskills"], lambda new: [*pip, str(new), PYPI["agentskills"]])

    def run(path: Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(folder / "bin" / "agentskills"), "validate", str(path)]
        variables = {**os.environ, "PYTHONPATH": str(folder)}
        return subprocess.run(command, env=variables, capture_output=True, text=True, check=False)

    return run


@pytest.fixture(scope="session")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home folder that nobody has used."""
    return tmp_path_factory.mktemp("home")


@pytest.fixture(scope="session")
def variables(home: Path) -> Mapping[str, str]:
    """The environment of a user: this interpreter as python3, an empty home, no telemetry."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return {
        "PATH": path,
        "HOME": str(home),
        "ROOFTRACE_CACHE": str(environments.cache_folder()),
        "DISABLE_TELEMETRY": "1",
        "NO_COLOR": "1",
    }


@pytest.fixture(scope="session")
def pack(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The repository's files in a folder of its own, named like the skill."""
    folder = tmp_path_factory.mktemp("source") / "rooftrace"
    for path in repository_files():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    return folder


@pytest.fixture(scope="session")
def project(
    skills_cli: Path, pack: Path, variables: Mapping[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """A project into which the pack was installed for three harnesses."""
    folder = tmp_path_factory.mktemp("project")
    agents = ["--agent", "claude-code", "--agent", "cursor", "--agent", "codex"]
    done = subprocess.run(
        [str(skills_cli), "add", str(pack), *agents, "-y"],
        cwd=folder,
        env=dict(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder
