from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rooftrace.contracts.pattern import PatternFile
from rooftrace.pack import KNOWLEDGE
from tests.patterns import fields

PATTERNS = KNOWLEDGE / "patterns"
FILES = sorted(PATTERNS.glob("*/*.json"))
TEXTS = ("title", "insight", "action", "reasoning", "resolution", "verify", "cannot_see")
SYSTEM = {"idle", "multi_kernel"}
ANALYZERS = (
    "gemm",
    "attention",
    "moe",
    "elementwise",
    "reduction",
    "normalization",
    "convolution",
    "triton",
    "generic",
    "idle",
    "multi_kernel",
)
# What a condition on one field says about others: they come together.
TOGETHER = (fields.RATED, fields.COMMUNICATION, fields.COPIES)


def read(path: Path) -> PatternFile:
    return PatternFile.model_validate_json(path.read_bytes())


def known_fields(analyzer: str) -> frozenset[str]:
    if analyzer == "idle":
        return fields.OF_ALL | fields.IDLE | fields.IDLE_OPTIONAL
    if analyzer == "multi_kernel":
        return fields.OF_ALL | fields.COMMUNICATION | fields.COPIES | fields.COPIES_OPTIONAL
    return fields.OF_ALL | fields.COMPUTE | fields.RATED | fields.PRODUCT | fields.UNRATED


def present_fields(pattern: PatternFile) -> frozenset[str]:
    """What is certainly in the evidence when the pattern holds."""
    present = set(fields.OF_ALL)
    present |= {"idle": fields.IDLE, "multi_kernel": frozenset()}.get(pattern.analyzer, fields.COMPUTE)
    if pattern.id == "default" and pattern.analyzer not in SYSTEM:
        present |= fields.RATED  # a finding without a rating is written by `unrated`
    required = {condition.field for condition in pattern.when.all}
    for group in TOGETHER:
        if required & group:
            present |= group
    return frozenset(present | required)


def citations(pattern: PatternFile) -> set[str]:
    texts = [getattr(pattern, name) or "" for name in TEXTS]
    return {match for text in texts for match in re.findall(r"\{\{(.*?)\}\}", text)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
class TestEachPattern:
    def test_names_its_file_and_folder(self, path):
        pattern = read(path)

        assert (pattern.id, pattern.analyzer) == (path.stem, path.parent.name)

    def test_compares_only_fields_that_findings_carry(self, path):
        pattern = read(path)
        compared = {condition.field for condition in (*pattern.when.all, *pattern.when.any)}

        assert compared <= known_fields(pattern.analyzer)

    def test_cites_only_what_its_predicate_guarantees(self, path):
        pattern = read(path)

        assert citations(pattern) <= present_fields(pattern)

    def test_has_no_brace_outside_a_citation(self, path):
        pattern = read(path)
        rest = [re.sub(r"\{\{[a-z0-9_]+\}\}", "", getattr(pattern, name) or "") for name in TEXTS]

        assert not [text for text in rest if "{" in text or "}" in text]

    def test_names_a_source_and_keeps_each_text_to_one_paragraph(self, path):
        pattern = read(path)

        assert pattern.sources
        assert not [name for name in TEXTS if "\n" in (getattr(pattern, name) or "")]

    def test_has_a_predicate_unless_it_is_the_default(self, path):
        pattern = read(path)

        assert bool(pattern.when.all or pattern.when.any) == (pattern.id != "default")


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_every_analyzer_has_a_default_and_words_for_what_cannot_be_rated(analyzer):
    default, unrated = (read(PATTERNS / analyzer / f"{name}.json") for name in ("default", "unrated"))

    assert default.priority == 0
    assert unrated.priority == 50
    assert [condition.model_dump() for condition in unrated.when.all] == [
        {"field": "kind", "op": "eq", "value": "upper_bound"}
    ]


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_two_patterns_of_an_analyzer_never_share_a_title(analyzer):
    titles = [json.loads(path.read_bytes())["title"] for path in sorted((PATTERNS / analyzer).glob("*.json"))]

    assert len(titles) == len(set(titles))
