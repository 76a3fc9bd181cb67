"""When the predicate of a pattern holds."""

from __future__ import annotations

import json

import pytest

from rooftrace.contracts.pattern import PatternFile
from rooftrace.errors import InternalError
from rooftrace.patterns import holds, load_patterns, matching_patterns

EVIDENCE = {"bound": "memory", "efficiency_pct": 40.0, "m": 8, "n": 1, "tf32": False, "top_kernel": "Fused_Softmax_Fwd"}
WORDS = dict.fromkeys(("title", "insight", "action", "reasoning", "resolution", "verify"), "words")


def pattern(*, all=(), any=(), name="one", priority=0):  # noqa: A002 - the format's own words
    def conditions(rows):
        return [{"field": field, "op": op, "value": value} for field, op, value in rows]

    return {
        "schema_version": "1.0",
        "id": name,
        "analyzer": "gemm",
        "priority": priority,
        "when": {"all": conditions(all), "any": conditions(any)},
        **WORDS,
    }


def met(*, all=(), any=()):  # noqa: A002 - as above
    return holds(PatternFile.model_validate_json(json.dumps(pattern(all=all, any=any))), EVIDENCE)


@pytest.mark.parametrize(
    ("field", "op", "value", "expected"),
    [
        ("bound", "eq", "memory", True),
        ("bound", "eq", "compute", False),
        ("tf32", "eq", False, True),
        ("tf32", "eq", True, False),
        ("efficiency_pct", "eq", 40, True),
        ("bound", "ne", "compute", True),
        ("bound", "ne", "memory", False),
        ("efficiency_pct", "lt", 40, False),
        ("efficiency_pct", "lt", 40.5, True),
        ("efficiency_pct", "le", 40, True),
        ("efficiency_pct", "gt", 40, False),
        ("efficiency_pct", "gt", 39.5, True),
        ("efficiency_pct", "ge", 40, True),
        ("m", "le", 7, False),
        ("bound", "in", ["latency", "memory"], True),
        ("bound", "in", ["latency", "compute"], False),
        ("m", "in", [4, 8], True),
        ("top_kernel", "contains", "softmax", True),
        ("top_kernel", "contains", "SOFTMAX", True),
        ("top_kernel", "contains", "layernorm", False),
        ("top_kernel", "lacks", "layernorm", True),
        ("top_kernel", "lacks", "SOFTMAX", False),
    ],
)
def test_each_operator_compares_the_field_with_the_value(field, op, value, expected):
    assert met(all=[(field, op, value)]) is expected


@pytest.mark.parametrize("op", ["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "lacks"])
def test_an_absent_field_meets_no_condition(op):
    assert not met(all=[("absent", op, ["x"] if op == "in" else 1)])


@pytest.mark.parametrize(
    ("field", "op", "value"),
    [
        pytest.param("bound", "lt", 5, id="text is not ordered"),
        pytest.param("tf32", "lt", 5, id="nor is a truth value"),
        pytest.param("m", "lt", "9", id="nor a number with text"),
        pytest.param("m", "gt", True, id="nor with a truth value"),
        pytest.param("m", "contains", "8", id="a number contains nothing"),
        pytest.param("m", "lacks", "9", id="and lacks nothing"),
        pytest.param("bound", "contains", 8, id="text contains no number"),
        pytest.param("bound", "in", "memory", id="text is no list"),
        pytest.param("tf32", "eq", 0, id="false is not zero"),
        pytest.param("n", "in", [True], id="nor is a number true"),
    ],
)
def test_values_that_do_not_fit_the_operator_meet_nothing(field, op, value):
    assert not met(all=[(field, op, value)])


YES, NO = ("bound", "eq", "memory"), ("bound", "eq", "compute")


@pytest.mark.parametrize(
    ("all_of", "any_of", "expected"),
    [
        ([], [], True),
        ([YES, YES], [], True),
        ([YES, NO], [], False),
        ([], [NO, YES], True),
        ([], [NO, NO], False),
        ([YES], [NO, YES], True),
        ([YES], [NO], False),
        ([NO], [YES], False),
    ],
)
def test_all_of_all_must_hold_and_one_of_any_if_there_are_any(all_of, any_of, expected):
    assert met(all=all_of, any=any_of) is expected


def write(folder, *patterns):
    (folder / "gemm").mkdir()
    for entry in patterns:
        (folder / "gemm" / f"{entry['id']}.json").write_text(json.dumps(entry), encoding="utf-8")


def test_patterns_are_read_from_the_analyzers_folder_highest_priority_first_then_by_id(tmp_path):
    write(tmp_path, pattern(name="b", priority=5), pattern(name="a", priority=5), pattern(name="c", priority=9))

    assert [entry.id for entry in load_patterns("gemm", tmp_path)] == ["c", "a", "b"]
    assert load_patterns("idle", tmp_path) == ()


def test_a_pattern_that_does_not_match_its_schema_is_named(tmp_path):
    write(tmp_path, {**pattern(name="bad"), "title": " "})

    with pytest.raises(InternalError, match=r"^error: pattern `gemm/bad\.json` does not match its schema: "):
        load_patterns("gemm", tmp_path)


def test_of_the_packs_patterns_those_that_hold_come_best_first():
    evidence = {"bound": "latency", "kind": "modelled", "category": "gemm"}

    assert matching_patterns("gemm", evidence) == ["latency_bound", "default"]  # priorities 72 and 0
