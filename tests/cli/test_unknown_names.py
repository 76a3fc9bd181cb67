"""Names outside a closed list, and the hint that goes with each."""

from __future__ import annotations

import pytest

from rooftrace.errors import unknown_name


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("gem.F1", ["gemm.F1", "idle.F1"], "Did you mean `gemm.F1`? Known: gemm.F1, idle.F1"),
        ("x", ["gemm.F1"], "Known: gemm.F1"),
        ("gemm.F1", [], "None is known here"),
    ],
)
def test_the_hint_names_what_there_is(name, known, hint):
    error = unknown_name("finding", name, known)

    assert str(error) == f"error: unknown finding: `{name}`\n\nhint: {hint}"
