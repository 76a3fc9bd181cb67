"""Which files the repository holds."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = {"__pycache__", ".git", ".venv", "dist", "build", "rooftrace-runs"}
LEFT_OUT |= {".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis"}


def repository_files() -> list[Path]:
    """Tracked and new files, relative and sorted; in a copy without git, all but caches."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    try:
        listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split("\0")
        names = [Path(name) for name in listed if name]
    except (OSError, subprocess.CalledProcessError):
        names = [path.relative_to(ROOT) for path in ROOT.rglob("*") if not path.is_dir()]
    return sorted(name for name in names if not LEFT_OUT & set(name.parts) and (ROOT / name).exists())


def python_files(*folders: str) -> list[Path]:
    """The Python files under some top folders."""
    return [name for name in repository_files() if name.parts[0] in folders and name.suffix == ".py"]


def markdown_files() -> list[Path]:
    """Prose; not what a run wrote for a test, nor templates, whose links are filled in later."""
    return [
        name
        for name in repository_files()
        if name.suffix == ".md" and name.parts[0] not in ("templates", "tests", "examples")
    ]
