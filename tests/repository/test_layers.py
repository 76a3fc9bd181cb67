"""Imports point downward."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.repository.files import ROOT, python_files
from tests.repository.layers import broken_rules, is_analyzer

PACKAGE = Path("scripts/rooftrace")


def test_imports_point_downward() -> None:
    paths = [path for path in python_files("scripts") if path.is_relative_to(PACKAGE)]
    sources = {path.relative_to(PACKAGE): (ROOT / path).read_text(encoding="utf-8") for path in paths}
    analyzers = frozenset(
        path.stem for path, source in sources.items() if path.parts[0] == "analyzers" and is_analyzer(source)
    )

    broken = [problem for path, source in sources.items() for problem in broken_rules(path, source, analyzers)]
    assert broken == []


@pytest.mark.parametrize(
    ("path", "source", "expected"),
    [
        ("ledger/parts.py", "from rooftrace.units import pct", []),
        ("ledger/parts.py", "from rooftrace import __version__", []),
        ("ledger/parts.py", "from rooftrace.ledger.gaps import gaps", []),
        ("ledger/parts.py", "import numpy", []),
        ("report/render.py", "from rooftrace.contracts import store", []),
        ("analyzers/gemm.py", "from rooftrace.analyzers.shared import share", []),
        (
            "trace/load.py",
            "from rooftrace.ledger import gaps",
            ["trace/load.py:1: `trace` imports `ledger`, which is not below it"],
        ),
        (
            "calltree/tree.py",
            "from rooftrace import ledger",
            ["calltree/tree.py:1: `calltree` imports `ledger`, which is not below it"],
        ),
        (
            "units.py",
            "def f():\n    import rooftrace.errors",
            ["units.py:2: `units` imports `errors`, which is not below it"],
        ),
        (
            "report/render.py",
            "from ..analyzers import gemm",
            ["report/render.py:1: `report` imports `analyzers`, but may read files only"],
        ),
        (
            "analyzers/gemm.py",
            "from rooftrace.analyzers.attention import analyze",
            ["analyzers/gemm.py:1: one analyzer imports another, `attention`"],
        ),
        (
            "analyzers/gemm.py",
            "from . import attention",
            ["analyzers/gemm.py:1: one analyzer imports another, `attention`"],
        ),
        ("helpers.py", "", ["helpers.py: `helpers` has no place in the layers"]),
        (
            "cli/main.py",
            "from rooftrace.helpers import x",
            ["cli/main.py:1: imports `helpers`, which has no place in the layers"],
        ),
    ],
)
def test_the_rule_sees_what_breaks_it(path: str, source: str, expected: list[str]) -> None:
    assert broken_rules(Path(path), source, frozenset({"gemm", "attention"})) == expected


def test_an_analyzer_is_a_module_that_analyzes() -> None:
    assert is_analyzer("def analyze(workload):\n    return None\n")
    assert not is_analyzer("def share(part, whole):\n    return part / whole\n")
