"""The generated JSON Schemas: up to date, described, and true of every file that exists."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from rooftrace.contracts import generate, store, tables
from rooftrace.pack import KNOWLEDGE, SCHEMAS
from tests.golden_runs.cases import CASES

SCHEMA_OF_FOLDER = {
    "platforms": "platform",
    "patterns": "pattern",
    "libraries": "library",
    "kernel_categories": "kernel_category",
}
KNOWLEDGE_FILES = [
    path.relative_to(KNOWLEDGE) for folder in SCHEMA_OF_FOLDER for path in sorted((KNOWLEDGE / folder).rglob("*.json"))
]


def stored(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((SCHEMAS / f"{name}.schema.json").read_bytes())
    return content


def problems(name: str, content: object) -> list[str]:
    validator = jsonschema.Draft202012Validator(stored(name))
    return [f"{error.json_path}: {error.message}" for error in validator.iter_errors(content)]


def objects(schema: dict[str, Any], at: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Every object schema with its place, the definitions included."""
    if schema.get("type") == "object" and "properties" in schema:
        yield at, schema
    for name, part in schema.get("$defs", {}).items():
        yield from objects(part, f"{at}/{name}")


def test_the_stored_schemas_are_the_generated_ones():
    """If not, `make gen` writes them."""
    generated = generate.schemas()

    assert sorted(path.name for path in SCHEMAS.iterdir()) == [f"{name}.schema.json" for name in generated]
    for name, schema in generated.items():
        assert schema == stored(name), f"{name}.schema.json differs from the contracts: run `make gen`"


@pytest.mark.parametrize("name", generate.schemas())
def test_a_schema_is_one(name):
    jsonschema.Draft202012Validator.check_schema(stored(name))


@pytest.mark.parametrize("name", generate.schemas())
def test_every_property_is_described_and_no_other_is_allowed(name):
    found = dict(objects(stored(name)))

    assert found
    bare = [
        f"{place}/{field}"
        for place, schema in found.items()
        for field, part in schema["properties"].items()
        if not part.get("description")
    ]
    assert bare == []
    assert [place for place, schema in found.items() if schema.get("additionalProperties") is not False] == []


@pytest.mark.parametrize("case", CASES)
def test_every_artifact_of_a_run_matches_its_schema(runs, case):
    checked = []
    for path in sorted(runs[case].rglob("*")):
        name = store.schema_name_of(path.relative_to(runs[case]).as_posix())
        if name is None:
            continue
        for part in rows_of(path) if name in tables.TABLES else [json.loads(path.read_bytes())]:
            assert problems(name, part) == []
        checked.append(path.suffix)
    assert checked.count(".csv") == 3  # ops, kernels, gaps
    assert checked.count(".json") >= 3  # manifest, report, ledger, and each analyzer's evidence


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


def test_the_schemas_refuse_what_the_models_refuse(training):
    report = json.loads((training / "report.json").read_bytes())
    report["surprise"] = 1
    report["trace"]["events"] = "38"

    assert sorted(problems("report", report)) == [
        "$.trace.events: '38' is not of type 'integer'",
        "$: Additional properties are not allowed ('surprise' was unexpected)",
    ]
    row = rows_of(training / "evidence/gaps.csv")[0] | {"dur_ns": "long"}
    assert problems("gaps", row) == ["$.dur_ns: 'long' does not match '^-?[0-9]+$'"]


@pytest.mark.parametrize("path", KNOWLEDGE_FILES, ids=str)
def test_a_knowledge_file_matches_its_schema(path):
    content = json.loads((KNOWLEDGE / path).read_bytes())

    assert problems(SCHEMA_OF_FOLDER[path.parts[0]], content) == []


def test_the_check_names_a_schema_that_differs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(generate, "SCHEMAS", tmp_path)
    assert generate.main([]) == 0
    assert generate.main(["--check"]) == 0
    (tmp_path / "ops.schema.json").write_text("{}", encoding="utf-8")
    (tmp_path / "old.schema.json").write_text("{}", encoding="utf-8")

    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == (
        "error: schemas differ from the contracts: ops.schema.json, old.schema.json\n\nhint: Run `make gen`\n"
    )
    assert generate.main([]) == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(path.name for path in SCHEMAS.iterdir())
