"""Planted changes: found, with the right cause, and nothing else. `benchmarks.compare_report` runs all of them."""

from __future__ import annotations

import pytest

from evals.workshop.pairs.cases import corpus
from evals.workshop.pairs.runs import planted_ns
from rooftrace.compare import compare_sides
from tests.compare.sides import assert_conserved, real_trace, side_of, sides_of

CASES = corpus()
SPURIOUS_PCT = 1.0
EVERY = 4  # of the corpus, which takes a minute as a whole


def test_the_corpus_is_large_and_every_name_its_own():
    assert len(CASES) >= 40
    assert len({case.name for case in CASES}) == len(CASES)


@pytest.mark.parametrize("case", CASES[::EVERY], ids=lambda case: case.name)
def test_a_planted_change_is_found_and_nothing_else(case, tmp_path):
    comparison = compare_sides(*sides_of(case, tmp_path))
    assert_conserved(comparison)
    meant = [
        item
        for item in comparison.findings
        if item.cause in case.causes and item.is_regression == case.is_regression and case.subject in item.subject
    ]
    assert bool(meant) is bool(case.causes)
    assert comparison.aligned.least_pct >= 95 or case.causes
    assert not [item for item in comparison.findings if item not in meant and item.score.high > SPURIOUS_PCT]
    planted = planted_ns(case)
    if planted is not None:
        rows = zip(comparison.rows, comparison.causes, strict=True)
        assert sum(row.delta_ns for row, cause in rows if cause in case.causes) == pytest.approx(planted, rel=0.01)


REAL = {
    "two vendors": (
        "h100/gaunernst_bert-small-uncased__1016001.json.gz",
        "mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    ),
    "two ranks": ("ranks/megatron_tp8/rank0.json.gz", "ranks/megatron_tp8/rank3.json.gz"),
}


@pytest.mark.real_traces
@pytest.mark.parametrize("pair", REAL.values(), ids=REAL)
def test_real_pairs_of_one_model_align(pair):
    comparison = compare_sides(*(side_of(real_trace(name)) for name in pair))
    assert_conserved(comparison)
    assert comparison.aligned.least_pct >= 95
    assert comparison.verdict == "comparable"
