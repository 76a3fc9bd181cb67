"""What the package imports is what the project declares."""

from __future__ import annotations

import ast
import sys

from tests.launcher.conftest import load
from tests.repository.files import ROOT, python_files

environment = load("rooftrace_launch/environment")
OWN = {"rooftrace", "rooftrace_launch"}


def imported(source: str) -> set[str]:
    """Top-level names that a module imports, absolute imports only."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def foreign(prefix: str) -> set[str]:
    """What the Python files under ``scripts`` whose path begins with ``prefix`` import from outside."""
    sources = [
        (ROOT / path).read_text(encoding="utf-8") for path in python_files("scripts") if str(path).startswith(prefix)
    ]
    return {name for source in sources for name in imported(source)} - set(sys.stdlib_module_names) - OWN


def test_the_package_imports_only_what_it_declares() -> None:
    declared = {
        environment.canonical(environment.name_and_minimum(text)[0]) for text in environment.runtime_requirements()
    }

    assert sorted(foreign("scripts/rooftrace/") - declared) == []


def test_the_launcher_imports_the_standard_library_only() -> None:
    assert foreign("scripts/rooftrace.py") | foreign("scripts/rooftrace_launch/") == set()
