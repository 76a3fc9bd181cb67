"""Planted runs: what a kind costs is the difference of two simulations, and nothing else in the run changes."""

from __future__ import annotations

from collections import Counter

import pytest

from evals.corpus.cases import cases, short
from evals.workshop.plants.kinds import KINDS
from evals.workshop.plants.networks import BASES, POSSIBLE
from evals.workshop.plants.truth import Case, Run


def case(base: str = "decoder", *planted: str, **sizes: int) -> Case:
    return Case(name="t", base=base, machine="h100-sxm", seed="tests", planted=planted, sizes={"steps": 2, **sizes})


@pytest.fixture(scope="module")
def clean():
    return Run(case())


@pytest.mark.parametrize("base", sorted(BASES))
def test_every_kind_that_a_base_can_have_changes_its_run(base):
    sizes = {"steps": 3, "layers": 1}  # some kinds are in the second or the last step only
    plain = Run(case(base, **sizes)).timeline.end_ns

    same = [kind for kind in POSSIBLE[base] if Run(case(base, kind, **sizes)).timeline.end_ns == plain]
    assert same == []


def test_kernels_that_are_not_planted_keep_their_times(clean):
    slow = Run(case("decoder", "slow_gemm"))
    times = [
        [row.end_ns - row.start_ns for row in run.timeline.activities if row.tag != "slow_gemm"]
        for run in (clean, slow)
    ]

    assert times[0] == times[1]
    assert len(times[0]) > 30


def test_the_cost_of_a_slow_product_is_its_time_above_the_floor():
    run = Run(case("decoder", "slow_gemm"))
    mine = [row for row in run.timeline.activities if row.tag == "slow_gemm"]
    rows, width = 8 * 1024, 1024
    # [8192, 4096] @ [4096, 1024]: 2 * 8192 * 4096 * 1024 = 68.7e9 FLOPs at 794.5 TFLOP/s: 86.49 us
    floor = round(2 * rows * 4 * width * width / 794.5e12 * 1e9)
    spent = sum(row.end_ns - row.start_ns for row in mine)

    assert len(mine) == 4  # two layers, two steps
    assert floor == 86_494
    assert run.costs["slow_gemm"] == spent - 4 * floor
    assert run.plain_cost({"slow_gemm"}) < run.costs["slow_gemm"]  # a sound kernel takes longer than its floor


def test_sound_kernels_run_at_70_to_95_per_cent_of_what_is_reached(clean):
    # jitter: 0.86 to 1.08 of the typical time (H100), so 0.70 / 1.081 = 0.65 to 0.95 / 0.857 = 1.11
    named = {
        row.name: activity.floor_ns / activity.duration_ns
        for thread in clean.threads
        for row in thread.instructions
        if hasattr(row, "activities")
        for activity in row.activities
        for row in (activity,)
        if activity.floor_ns > 10_000
    }

    assert len(named) >= 5
    assert all(0.64 < share < 1.12 for share in named.values())


def test_host_time_that_a_full_queue_hides_costs_nothing():
    hidden = Run(case("convolutional", "tokenisation", batch=24, steps=3))
    seen = Run(case("decoder", "tokenisation", steps=3))

    assert hidden.costs["tokenisation"] < 0.003 * hidden.span_ns
    assert seen.costs["tokenisation"] > 0.2 * seen.span_ns


def test_the_bytes_of_a_case_depend_on_its_seed_alone():
    first, again = (Run(case("experts", "tiny_gemms")).trace() for _ in range(2))
    other = Run(Case(name="t", base="experts", machine="h100-sxm", seed="another", planted=("tiny_gemms",)))

    assert first == again != other.trace()


def test_the_corpus_has_every_kind_alone_and_buried_among_three_others():
    listed = cases()
    alone = {one.planted[0] for one in listed if len(one.planted) == 1}
    buried = {kind for one in listed if len(one.planted) == 4 for kind in one.planted}

    assert len(listed) >= 150
    assert len({one.name for one in listed}) == len(listed)
    assert alone == buried == set(KINDS)
    assert {one.planted for one in short() if len(one.planted) == 1} >= {(kind,) for kind in KINDS}
    assert sum(not one.planted for one in listed) >= 10


def test_a_third_of_the_corpus_is_held_out():
    split = Counter(one.split for one in cases())

    assert 0.25 < split["held-out"] / split.total() < 0.45


def test_correlations_say_what_activities_are_there_for():
    run = Run(case("decoder", "unfused_rotary"))
    kinds = Counter(tag for tag in run.tags.values() if tag)

    # queries and keys: mul, neg, cat, mul, add each; two layers, two steps
    assert kinds == {"unfused_rotary": 2 * 5 * 2 * 2}


def test_the_truth_knows_what_tuning_chosen_kernels_gives(clean):
    products = {row.correlation for row in clean.timeline.activities if "nvjet" in row.name}
    spent = sum(row.end_ns - row.start_ns for row in clean.timeline.activities if "nvjet" in row.name)

    assert 0 < clean.tuned(products) < 0.35 * spent  # at 70 % of its ceiling a kernel could lose 30 % of its time
    assert clean.gone(products) == pytest.approx(spent, rel=0.05)
    assert clean.tuned(set()) == 0
