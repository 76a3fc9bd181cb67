"""Functions and modules stay small."""

from __future__ import annotations

import ast

from tests.repository.files import ROOT, python_files

FUNCTION_LINES = 50
MODULE_LINES = 400
EXCEPTIONS: dict[str, str] = {}  # "path" or "path::function": the reason


def long_functions(source: str, limit: int) -> list[tuple[str, int]]:
    """Name and length of each function over the limit, from its ``def`` to its last line."""
    functions = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    sizes = ((f.name, (f.end_lineno or f.lineno) - f.lineno + 1) for f in functions)
    return sorted((name, size) for name, size in sizes if size > limit)


def over_budget() -> dict[str, int]:
    """Lines of everything over its budget, by path or by path and function."""
    found: dict[str, int] = {}
    for path in python_files("scripts", "evals"):
        source = (ROOT / path).read_text(encoding="utf-8")
        lines = len(source.splitlines())
        if lines > MODULE_LINES:
            found[str(path)] = lines
        found |= {f"{path}::{name}": size for name, size in long_functions(source, FUNCTION_LINES)}
    return found


def test_no_function_is_over_50_lines_and_no_module_over_400() -> None:
    assert {what: lines for what, lines in over_budget().items() if what not in EXCEPTIONS} == {}


def test_every_exception_is_still_needed() -> None:
    assert sorted(set(EXCEPTIONS) - set(over_budget())) == []


def test_a_function_is_measured_with_its_nested_ones() -> None:
    source = "def outer():\n    def inner():\n        return 1\n    return inner\n\n\ndef short(): pass\n"

    assert long_functions(source, 2) == [("outer", 4)]  # lines 1 to 4; `inner` has 2 lines
