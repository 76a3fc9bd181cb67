"""Loops of equal small products: what is one, and what one batched product in its place saves. Times are µs.

Floors on the H100: bf16 794.5 TFLOP/s, 3,180 GB/s, latency 2 µs.
"""

from __future__ import annotations

import numpy as np
import pytest

from rooftrace.analyzers import compute
from rooftrace.analyzers.loops import find_loops
from tests.analyzers.workloads import BF16, NVJET, Program, product, vectors, workload_of


def loops_of(builder, claimed=()):
    workload = workload_of(builder)
    free = np.ones(workload.activities.row.size, dtype=bool)
    free[list(claimed)] = False
    return find_loops(workload, free)


def loop(calls=8, **inputs):
    """Products of 3 µs, 1 µs apart on the GPU, called every 5 µs; enough work before them to queue all."""
    program = Program(first_kernel=5.0)
    program.call("aten::mm", NVJET, 200, **product(4096, 4096, 4096))  # floor: 173
    for _ in range(calls):
        program.call("aten::mm", NVJET, 3, gap=1, **(inputs or product(128, 128, 1024)))
    return program


def test_calls_one_after_another_are_a_loop_that_one_batched_product_replaces():
    found = loops_of(loop())

    # 8 x (2 x 128 x 1024 + 128 x 128) x 2 bytes = 4,456,448 at 3,180 GB/s: 1.4 µs, below a kernel's latency of 2
    assert (found.evidence["loops_count"], found.evidence["calls_per_loop"]) == (1, 8)
    assert (found.evidence["batched_us"], found.evidence["launches_removed_count"]) == (2.0, 7)
    assert found.gap_ns == 29_000  # 8 x 3 + 7 x 1 - 2
    # the first of 3 µs stands for it, a microsecond shorter
    assert (found.edit.saved_ns.tolist(), found.edit.removed.size) == ([1000], 7)
    (cut,) = found.edit.host
    assert (cut.end - cut.start).tolist() == [4000] * 7  # each call but the first; the time between them stays


def test_a_batched_product_that_takes_longer_than_one_call_is_as_many_as_take_its_time():
    # [512, 1024] @ [1024, 256]: 1,835,008 bytes each, 16 of them at 3,180 GB/s: 9,233 ns; 3 + 1 + 3 + 1 + 3 = 11,000
    found = loops_of(loop(16, **product(512, 256, 1024)))

    assert found.evidence["batched_us"] == 9.233
    assert (found.edit.saved_ns.tolist(), found.edit.removed.size) == ([1767], 13)


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param(product(128, 1024, 1024), id="the result could be the next one's first factor"),
        pytest.param(product(1024, 128, 1024), id="or its second"),
        pytest.param(product(1024, 2048, 1000), id="the result fills more than half of the GPU"),
    ],
)
def test_products_that_may_depend_on_each_other_or_fill_the_gpu_are_no_loop(inputs):
    assert loops_of(loop(**inputs)) is None


def test_three_calls_are_no_loop():
    assert loops_of(loop(3)) is None
    assert loops_of(loop(4)) is not None


def test_what_stands_between_two_calls_ends_a_loop():
    program = loop(4)
    program.call("aten::add", "vectorized_elementwise_kernel", 3, gap=1, **vectors(1000))
    for _ in range(5):
        program.call("aten::mm", NVJET, 3, gap=1, **product(128, 128, 1024))
    found = loops_of(program)

    assert (found.evidence["loops_count"], found.evidence["launches_removed_count"]) == (2, 7)  # 3 + 4


def test_a_value_read_on_the_host_ends_a_loop():
    program = loop(4)
    program.launch("cudaStreamSynchronize", ts=program.host, dur=program.gpu - program.host + 5)
    program.host = program.gpu + 10
    program.gpu = program.host + 10
    for _ in range(3):
        program.call("aten::mm", NVJET, 3, gap=1, **product(128, 128, 1024))
        program.gpu = max(program.gpu, program.host + 5)

    assert loops_of(program).evidence["calls_per_loop"] == 4


def test_a_sum_into_a_whole_matrix_is_no_loop():
    adding = {
        "dims": [[128, 128], [128, 1024], [1024, 128], [], []],
        "types": [BF16, BF16, BF16, "Scalar", "Scalar"],
        "strides": [[128, 1], [1024, 1], [128, 1], [], []],
        "concrete": ["", "", "", "1", "1"],
    }
    with_bias = {**adding, "dims": [[128], *adding["dims"][1:]], "strides": [[1], *adding["strides"][1:]]}
    found = []
    for inputs in (adding, with_bias):
        program = Program(first_kernel=5.0)
        for _ in range(6):
            program.call("aten::addmm", NVJET, 3, gap=1, **inputs)
        found.append(loops_of(program))

    assert found[0] is None
    assert found[1].evidence["calls_per_loop"] == 6


def test_calls_that_a_fusion_holds_are_left_to_it():
    workload = workload_of(loop())
    last = int(np.argmax(workload.activities.start))

    assert loops_of(loop(), claimed=[last]) is None


def test_the_finding_names_the_loop_and_leaves_the_other_products_their_own():
    drafts = compute.analyze(workload_of(loop()))["gemm"][1]
    by_pattern = {draft.finding.patterns[0]: draft for draft in drafts}
    looped = by_pattern["looped_products"]

    assert (looped.finding.evidence["kernels_count"], looped.finding.evidence["part"]) == (8, "loop")
    assert (looped.finding.evidence["time_ms"], looped.finding.evidence["gap_ms"]) == (0.024, 0.029)
    assert [looped.finding.evidence[name] for name in "mnk"] == [128, 128, 1024]
    assert looped.finding.patterns == ["looped_products"]
    assert looped.most_ns == 35_000  # on the host, from the end of the first call to that of the last: 7 x 5
    others = [draft for draft in drafts if draft is not looped]
    assert sum(draft.finding.evidence["kernels_count"] for draft in others) == 1
