from __future__ import annotations

import time

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.compare import sequence
from rooftrace.compare.sequence import align


def aligned(base: str, target: str) -> list[tuple[str, str]]:
    """Letters by themselves, and letters of either case as a weaker agreement."""
    rows = [
        np.array([[ord(c) for c in text], [ord(c.lower()) + 1000 for c in text]], dtype=np.int64).reshape(2, len(text))
        for text in (base, target)
    ]
    return [(base[at], target[other]) for at, other in align(rows[0], rows[1], (3, 1))]


def test_equal_sequences_pair_item_by_item():
    assert aligned("abc", "abc") == [("a", "a"), ("b", "b"), ("c", "c")]


def test_what_only_one_side_has_stays_alone():
    assert aligned("abxcd", "abcyd") == [("a", "a"), ("b", "b"), ("c", "c"), ("d", "d")]


def test_a_weaker_agreement_pairs_what_is_left():
    assert aligned("aBc", "abc") == [("a", "a"), ("B", "b"), ("c", "c")]


def test_a_strong_agreement_outweighs_weak_ones():
    # c-c weighs 3; pairing a-A and b-B instead would weigh 2 and cross it
    assert aligned("abc", "cAB") == [("c", "c")]


def test_of_equal_layers_the_first_are_paired():
    base, target = (np.array([[5] * count]) for count in (6, 3))
    assert align(base, target, (3,)) == [(0, 0), (1, 1), (2, 2)]


def test_an_unknown_label_equals_nothing():
    nothing = np.full((1, 2), -1)
    assert align(nothing, nothing, (3,)) == []


def test_one_empty_side_pairs_nothing():
    assert align(np.empty((1, 0), dtype=np.int64), np.array([[1, 2]]), (3,)) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, 3), max_size=12), st.lists(st.integers(0, 3), max_size=12))
def test_as_many_are_paired_as_any_order_allows(base, target):
    def longest(left: tuple[int, ...], right: tuple[int, ...]) -> int:
        if not left or not right:
            return 0
        if left[0] == right[0]:
            return 1 + longest(left[1:], right[1:])
        return max(longest(left[1:], right), longest(left, right[1:]))

    pairs = align(np.array([base], dtype=np.int64), np.array([target], dtype=np.int64), (1,))
    assert len(pairs) == longest(tuple(base), tuple(target))
    assert all(base[at] == target[other] for at, other in pairs)
    assert pairs == sorted(pairs)
    assert len({at for at, _ in pairs}) == len({other for _, other in pairs}) == len(pairs)


def test_sequences_of_a_hundred_thousand_take_seconds_not_hours():
    random = np.random.default_rng(3)
    base = random.integers(0, 40, 100_000)
    keep = random.random(base.size) > 0.01
    target = np.insert(base[keep], np.sort(random.integers(0, 90_000, 500)), 99)
    began = time.process_time()
    pairs = align(base[None, :], target[None, :], (1,))
    assert time.process_time() - began < 20
    assert len(pairs) > 0.97 * keep.sum()  # 1 % was dropped, 500 were added: nearly all of the rest must pair


def test_without_anchors_equal_shares_are_aligned(monkeypatch):
    monkeypatch.setattr(sequence, "MOST_CELLS", 100)
    labels = np.array([[1, 2] * 50])
    assert (
        len(align(labels, np.array([[2, 1] * 50]), (1,))) >= 80
    )  # ten boxes of ten, of which each loses an item or two


def test_a_part_that_moved_the_rest_far_is_found_by_weak_labels_alone():
    random = np.random.default_rng(5)
    base = random.integers(0, 40, 20_000)
    keep = np.ones(base.size, dtype=bool)
    keep[1_000:4_000] = False  # gone near the beginning, so that the diagonal is 3,000 items off
    target = base[keep]
    nothing = [np.full(side.size, -1) for side in (base, target)]
    rows = [np.stack([none, side]) for none, side in zip(nothing, (base, target), strict=True)]
    pairs = align(rows[0], rows[1], (2, 1))
    assert len(pairs) > 0.99 * target.size
    assert sum(at - other == 3_000 for at, other in pairs) > 0.9 * (base.size - 4_000)


def test_a_long_sequence_that_recurs_pairs_nearly_all_of_its_items():
    random = np.random.default_rng(6)
    base = np.tile(random.integers(0, 40, 30), 1_000)
    keep = random.random(base.size) > 0.01
    pairs = align(base[None, :], base[keep][None, :], (1,))
    assert len(pairs) > 0.97 * keep.sum()
