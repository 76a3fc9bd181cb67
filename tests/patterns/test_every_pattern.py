"""Every pattern has evidence on which it fires, and near evidence on which it does not."""

from __future__ import annotations

from typing import Any

import pytest

from rooftrace.contracts.base import COMPUTE_ANALYZERS
from rooftrace.contracts.pattern import PatternFile
from rooftrace.pack import KNOWLEDGE
from rooftrace.patterns import load_patterns, matching_patterns
from tests.analyzers.test_multi_kernel_patterns import CASES as MULTI_KERNEL
from tests.patterns.cases import CASES, RATED, RATING, UNRATED
from tests.patterns.test_idle_patterns import CASES as IDLE

Evidence = dict[str, Any]
# Held by all findings of an analyzer, whatever their evidence.
NO_PREDICATE = "default"
# Fields in which the two of a case may differ; where a copy goes alone decides five.
NEAR = 5
OF_KERNELS = [
    *((*key, {**RATED, **yes}, {**RATED, **yes, **no}) for key, (yes, no) in CASES.items()),
    *((analyzer, "unrated", {**RATED, **UNRATED}, RATED) for analyzer in COMPUTE_ANALYZERS),
]
OF_SYSTEM = [
    *(("idle", pattern, yes, no) for pattern, (yes, no) in IDLE.items()),
    *(("multi_kernel", pattern, {**base, **yes}, {**base, **no}) for pattern, base, yes, no in MULTI_KERNEL),
]
ALL = [*OF_KERNELS, *OF_SYSTEM]
ANALYZERS = (*COMPUTE_ANALYZERS, "idle", "multi_kernel")


def pattern_of(analyzer: str, name: str) -> PatternFile:
    return next(pattern for pattern in load_patterns(analyzer) if pattern.id == name)


@pytest.mark.parametrize(("analyzer", "pattern", "yes", "no"), ALL, ids=[f"{row[0]}/{row[1]}" for row in ALL])
class TestACase:
    def test_makes_its_pattern_fire(self, analyzer: str, pattern: str, yes: Evidence, no: Evidence) -> None:
        assert pattern in matching_patterns(analyzer, yes)
        assert pattern not in matching_patterns(analyzer, no)

    def test_misses_it_by_what_the_evidence_says_and_not_by_saying_nothing(
        self, analyzer: str, pattern: str, yes: Evidence, no: Evidence
    ) -> None:
        compared = {condition.field for condition in pattern_of(analyzer, pattern).when.all}

        assert compared <= set(no)
        assert sum(yes.get(name) != no.get(name) for name in {*yes, *no}) <= NEAR


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_every_pattern_file_has_a_case(analyzer: str) -> None:
    files = {path.stem for path in (KNOWLEDGE / "patterns" / analyzer).glob("*.json")}

    assert files - {name for owner, name, _, _ in ALL if owner == analyzer} == {NO_PREDICATE}


def test_no_case_is_left_of_a_pattern_that_is_gone() -> None:
    assert [
        (analyzer, name) for analyzer, name, _, _ in ALL if name not in {p.id for p in load_patterns(analyzer)}
    ] == []


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_a_category_has_at_least_six_patterns_beside_its_last_resorts(analyzer: str) -> None:
    own = [pattern.id for pattern in load_patterns(analyzer) if pattern.id not in (NO_PREDICATE, "unrated")]

    assert len(own) >= 6


@pytest.mark.parametrize("analyzer", ANALYZERS)
def test_no_two_patterns_of_an_analyzer_fire_on_the_same_predicate(analyzer: str) -> None:
    predicates = [pattern.when.model_dump_json() for pattern in load_patterns(analyzer)]

    assert len(predicates) == len(set(predicates))


def test_what_is_near_its_ceiling_is_told_to_be_left_alone() -> None:
    at_the_ceiling = {**RATED, "bound": "compute", "efficiency_pct": 80.0, "top_efficiency_pct": 80.0}

    assert matching_patterns("gemm", at_the_ceiling) == ["near_ceiling", "default"]
    assert matching_patterns("attention", {**at_the_ceiling, "fused": True}) == ["near_ceiling", "default"]


def test_a_norm_that_has_its_add_inside_is_not_told_to_fuse_it() -> None:
    fused = {**RATED, "category": "normalization", "op_names": "_C::fused_add_rms_norm", "efficiency_pct": 45.0}

    assert matching_patterns("normalization", fused) == ["fused_add_norm", "default"]


def test_experts_that_only_latency_holds_up_are_not_told_to_tune_tiles() -> None:
    tiny = {**RATED, "category": "moe", "top_kernel": "fused_moe_kernel", "bound": "latency"}

    assert matching_patterns("moe", tiny) == ["latency_bound_experts", "default"]


def test_kernels_of_a_graph_are_not_told_to_use_one() -> None:
    of_a_graph = {name: value for name, value in RATED.items() if name not in RATING} | UNRATED
    of_a_graph |= {"library": "Triton", "top_kernel": "triton_mine", "mean_kernel_us": 3.0, "kernels_count": 500}

    assert matching_patterns("triton", of_a_graph | {"graph_replayed": True}) == ["replayed", "unrated", "default"]
    assert matching_patterns("triton", of_a_graph)[0] == "many_small"
