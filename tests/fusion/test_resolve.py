"""Overlapping candidates: the set that saves most, against trying every set."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.fusion.resolve import Claim, choose

CLAIMS = st.builds(
    lambda first, length, saving: Claim(first, first + length, saving),
    st.integers(0, 12),
    st.integers(0, 6),
    st.integers(-3, 40),
)


def apart(claims):
    return all(a.last < b.first or b.last < a.first for a, b in combinations(claims, 2))


@given(st.lists(CLAIMS, max_size=9))
@settings(max_examples=300, deadline=None)
def test_the_chosen_set_is_free_of_overlaps_and_saves_as_much_as_the_best_of_all_sets(claims):
    chosen = [claims[index] for index in choose(claims)]

    best = max(
        sum(claim.saving for claim in subset)
        for size in range(len(claims) + 1)
        for subset in combinations(claims, size)
        if apart(subset)
    )
    assert apart(chosen)
    assert sum(claim.saving for claim in chosen) == best


def test_of_nested_claims_that_save_the_same_the_deepest_is_taken():
    assert choose([Claim(0, 9, 50), Claim(3, 6, 50)]) == [1]


def test_a_larger_claim_is_taken_where_it_saves_more_than_all_inside_it():
    assert choose([Claim(0, 9, 51), Claim(0, 3, 25), Claim(4, 9, 25)]) == [0]


def test_claims_that_save_nothing_are_never_taken():
    assert choose([Claim(0, 3, 0), Claim(5, 6, -2)]) == []
