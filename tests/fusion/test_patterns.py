from __future__ import annotations

import re

import pytest

from rooftrace.analyzers.fusion import analyze
from rooftrace.contracts.pattern import PatternFile
from rooftrace.fusion.compositions import load_compositions
from rooftrace.pack import KNOWLEDGE
from rooftrace.patterns import load_patterns, matching_patterns
from tests.analyzers.workloads import workload_of
from tests.fusion.fields import FUSION, FUSION_RATED, FUSION_UNRATED
from tests.fusion.programs import Model, rms_norm

FILES = sorted((KNOWLEDGE / "patterns" / "fusion").glob("*.json"))
TEXTS = ("title", "insight", "action", "reasoning", "resolution", "verify", "cannot_see")
OF_ALL = {"category", "analyzer", "kind", "subject", "score_low_pct", "score_mid_pct", "score_high_pct"}


def read(path):
    return PatternFile.model_validate_json(path.read_bytes())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_pattern_cites_and_compares_only_what_its_findings_carry(path):
    pattern = read(path)
    conditions = {condition.field: condition.value for condition in pattern.when.all}
    kind = conditions.get("kind")
    carried = FUSION | OF_ALL
    carried |= FUSION_RATED if kind == "modelled" else FUSION_UNRATED if kind == "upper_bound" else frozenset()
    cited = {name for text in TEXTS for name in re.findall(r"\{\{(\w+)\}\}", getattr(pattern, text) or "")}

    assert cited <= carried
    assert set(conditions) <= carried


def test_every_composition_has_words_of_its_own_that_come_first():
    for composition in load_compositions():
        known = {"pattern": composition.identity, "kind": "modelled", "source": "", "graph_replayed": False}
        known |= {"epilogue": "operands" if composition.file.kind == "epilogue" else "", "one_move": ""}
        assert matching_patterns("fusion", known)[0] == composition.identity


def test_a_finding_carries_just_the_fields_that_patterns_may_rely_on():
    model = Model()
    rms_norm(model)
    unknown = Model(gpu="")
    rms_norm(unknown)

    assert set(analyze(workload_of(model))[1][0].finding.evidence) == FUSION | FUSION_RATED
    assert set(analyze(workload_of(unknown, None))[1][0].finding.evidence) == FUSION | FUSION_UNRATED


def test_no_two_patterns_share_a_title():
    titles = [pattern.title for pattern in load_patterns("fusion")]

    assert len(titles) == len(set(titles))
