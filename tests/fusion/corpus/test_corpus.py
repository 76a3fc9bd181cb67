"""What is planted in small traces is found, and nothing else: the bars of ``benchmarks.fusion_report``."""

from __future__ import annotations

from functools import cache

import pytest

from benchmarks.fusion_report import score
from evals.workshop.fusions.corpus import cases

FAMILIES = frozenset(one.family for one in cases())
NOTHING_PLANTED = ("already fused", "decoy")


@cache
def scores():
    return tuple(score(one) for one in cases())


def total(name, chosen=None):
    return sum(getattr(one, name) for one in (chosen if chosen is not None else scores()))


def test_the_corpus_is_wide_enough_to_mean_something():
    assert len(cases()) >= 120
    assert len(FAMILIES) >= 30
    assert total("planted") >= 240
    assert sum(one.case.family in NOTHING_PLANTED for one in scores()) >= 35
    for kept in (lambda one: one.gpu.vendor == "amd", lambda one: not one.stacks):
        assert sum(kept(one.case) for one in scores()) >= 12


def test_of_what_is_planted_at_least_95_in_100_is_found():
    missing = [f"{one.case.name}: {what}" for one in scores() for what in one.missing]

    assert total("right") >= 0.95 * total("planted"), missing


def test_of_what_is_told_at_least_95_in_100_is_planted():
    wrong = [f"{one.case.name}: {what}" for one in scores() for what in one.wrong]

    assert total("right") >= 0.95 * total("told"), wrong


def test_savings_are_within_a_tenth_of_the_closed_form():
    far = {one.case.name: one.errors_pct for one in scores() if any(abs(error) > 10 for error in one.errors_pct)}

    assert sum(len(one.errors_pct) for one in scores()) >= 200
    assert far == {}


def test_at_least_95_in_100_are_called_what_they_are():
    assert total("same_pattern") >= 0.95 * total("right")


@pytest.mark.parametrize("family", NOTHING_PLANTED)
def test_where_nothing_is_open_nothing_is_told(family):
    chosen = [one for one in scores() if one.case.family == family]

    assert total("planted", chosen) == 0
    assert [(one.case.name, one.wrong) for one in chosen if one.wrong] == []
