"""Prose handed in as text."""

from __future__ import annotations

import json

import pytest

from rooftrace.errors import CheckFailed
from rooftrace.pack import TEMPLATES
from rooftrace.workflow.slottext import to_json

TEXT = """summary: Two findings: one matters.

gemm.F1
insight: It says "slow", the GPU's {{gemm.F1.time_ms}}
  and goes on here.
action: Use `torch.compile(mode="max")`.
resolution: First this.

Then that: with a colon.
gemm.F12
insight: Another.
"""


def parsed(text, analyzer="gemm"):
    return json.loads(to_json(analyzer, text))


def test_slots_and_findings_become_fields():
    assert parsed(TEXT) == {
        "schema_version": "1.0",
        "analyzer": "gemm",
        "summary": "Two findings: one matters.",
        "findings": [
            {
                "id": "gemm.F1",
                "insight": 'It says "slow", the GPU\'s {{gemm.F1.time_ms}} and goes on here.',
                "action": 'Use `torch.compile(mode="max")`.',
                "resolution": "First this.\n\nThen that: with a colon.",
            },
            {"id": "gemm.F12", "insight": "Another."},
        ],
    }


@pytest.mark.parametrize("line", ["gemm.F1", "gemm.F1:", "## gemm.F1", "[gemm.F1]", "`gemm.F1`", "**gemm.F1**"])
def test_an_id_may_be_dressed_up(line):
    assert parsed(f"summary: A.\n{line}\n**Insight**: B.")["findings"] == [{"id": "gemm.F1", "insight": "B."}]


def test_a_code_fence_round_it_is_taken_off():
    assert parsed("```text\nsummary: A.\n```")["summary"] == "A."
    assert parsed('```json\n{"summary": "A."}\n```') == {"summary": "A."}


def test_json_is_left_to_the_checks():
    assert to_json("gemm", ' {"anything": [1, 2') == b'{"anything": [1, 2'


def test_the_models_slots_stand_in_the_file_itself():
    text = "name: BERT small\nfamily: encoder\nconfidence: high\nreasoning: Names say so.\nsummary: It ran."

    assert parsed(text, "model") == {
        "schema_version": "1.0",
        "analyzer": "model",
        "name": "BERT small",
        "family": "encoder",
        "confidence": "high",
        "reasoning": "Names say so.",
        "summary": "It ran.",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "no prose was handed in"),
        (" \n\t\n", "no prose was handed in"),
        ("Here is the prose:\nsummary: A.", "`Here is the prose:` belongs to no slot"),
        ("insight: A.", "`insight: A.` stands before the id of its finding"),
        ("summary: A.\nsummary: B.", "`summary` comes twice: `summary: B.`"),
        ("gemm.F1\ninsight: A.\ninsight: B.", "`insight` comes twice: `insight: B.`"),
    ],
)
def test_what_cannot_be_placed_is_told_with_the_form(text, message):
    with pytest.raises(CheckFailed) as error:
        to_json("gemm", text)

    assert error.value.what == message
    assert "`summary: …`" in error.value.hint


@pytest.mark.parametrize("path", sorted((TEMPLATES / "briefs").glob("example_*.txt")), ids=lambda path: path.stem)
def test_every_filled_example_fits_the_schema_and_cites_what_it_says(path):
    from rooftrace.contracts.prose import parse_prose

    is_model = path.stem == "example_model"
    name = "model" if is_model else parsed(path.read_text(encoding="utf-8"))["findings"][0]["id"].partition(".")[0]

    prose = parse_prose(f"prose/{name}.json", to_json(name, path.read_text(encoding="utf-8")))

    assert f"{{{{{name}." in prose.summary
