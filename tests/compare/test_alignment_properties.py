"""Whatever was dropped, added, moved or renamed: time is conserved, and what is the same is found to be."""

from __future__ import annotations

import time
import tracemalloc

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooftrace.compare import compare_sides
from rooftrace.compare.pair import lay_out
from tests.compare.sides import ADD, COPY, GEMM, MUL, Call, assert_conserved, side_of, trace_of

KERNELS = {"aten::mm": GEMM, "aten::add": ADD, "aten::mul": MUL, "aten::clone": COPY}
OPS = st.lists(
    st.tuples(st.sampled_from(sorted(KERNELS)), st.integers(1, 6), st.integers(1, 90)), min_size=1, max_size=6
)
MODEL = st.lists(OPS, min_size=1, max_size=4)  # distinct blocks, which are repeated


def calls_of(blocks, repeats: int, name: str = "Block", root: str = "Net_0") -> list[Call]:
    found = []
    for number in range(repeats):
        for kind, block in enumerate(blocks):
            modules = (root, f"{name}{kind}_{number}")
            found += [
                Call(op=op, kernels=[(KERNELS[op], dur)], modules=modules, dims=[[size, 8]]) for op, size, dur in block
            ]
    return found


def sides(base: list[Call], target: list[Call]):
    return side_of(trace_of(base)), side_of(trace_of(target))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MODEL, st.integers(1, 4))
def test_a_copy_under_other_names_aligns_and_differs_nowhere(blocks, repeats):
    renamed = calls_of(blocks, repeats, name="Layer", root="Wrapped_0")
    comparison = compare_sides(*sides(calls_of(blocks, repeats), renamed))
    assert_conserved(comparison)
    assert comparison.aligned.least_pct >= 99
    assert sum(abs(row.delta_ns) for row in comparison.rows) == 0


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MODEL, st.integers(1, 3), st.randoms(use_true_random=False))
def test_time_is_conserved_whatever_is_dropped_added_or_moved(blocks, repeats, random):
    base = calls_of(blocks, repeats)
    target = [call for call in base if random.random() > 0.2]
    for _ in range(random.randrange(4)):
        target.insert(random.randrange(len(target) + 1), random.choice(base))
    if random.random() < 0.5:
        cut = random.randrange(len(target) + 1)
        target = target[cut:] + target[:cut]
    if not target:
        target = base[:1]
    assert_conserved(lay_out(*sides(base, target)))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(MODEL, st.integers(1, 3), st.integers(1, 3))
def test_layers_more_leave_the_others_where_they_are(blocks, repeats, more):
    comparison = compare_sides(*sides(calls_of(blocks, repeats), calls_of(blocks, repeats + more)))
    assert_conserved(comparison)
    assert comparison.aligned.base_pct == 100
    gained = sum(dur * 1000 for block in blocks for _, _, dur in block) * more
    assert sum(row.delta_ns for row in comparison.rows) == gained


def test_ten_times_the_layers_take_about_ten_times_as_long():
    block = [[("aten::mm", 1, 40), ("aten::add", 2, 5), ("aten::mul", 3, 9), ("aten::clone", 4, 6)] * 4]
    spent, peak = {}, {}
    for layers in (30, 300):
        base, target = sides(calls_of(block, layers), calls_of(block, layers + 3, name="Layer"))
        tracemalloc.start()
        began = time.process_time()
        laid_out = lay_out(base, target)
        spent[layers] = time.process_time() - began
        peak[layers] = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert_conserved(laid_out)
    # ten times the work; a quadratic step would make it a hundred times
    assert spent[300] < 30 * spent[30] + 1
    assert peak[300] < 30 * peak[30]
