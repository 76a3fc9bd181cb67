from __future__ import annotations

from rooftrace.analyzers.fusion import analyze
from tests.analyzers.workloads import workload_of
from tests.fusion.programs import ADD, BF16, COPY, GEMM, HALF, MUL, OTHER, Model, X, rms_norm


def instances(model):
    return [draft.finding.instance for draft in analyze(workload_of(model))[1]]


def test_the_instance_is_the_median_one_by_kernel_time():
    model = Model()
    for dur in (20, 30, 60, 40, 50):
        with model.module("Act_0"):
            model.call("aten::cos", dur, X)
            model.call("aten::tanh", dur, X)
        model.call("aten::mm", 5, HALF, ([1024, 1024], BF16), kernel=GEMM)
    (found,) = instances(model)

    # 40, 60, 120, 80 and 100 µs; the fourth starts at 1000 + 2 * (20 + 30 + 60) + 3 * 5, the trace at 10
    assert (found.of, found.replaced_ns, found.start_ns) == (5, 80_000, 1_225_000)
    assert (found.device, found.stream) == (0, 7)


def test_a_chain_keeps_the_launch_of_its_first_kernel():
    model = Model()
    rms_norm(model)
    (found,) = instances(model)

    assert [bar.role for bar in found.bars] == ["replaced"] * 8
    assert [bar.launch_stays for bar in found.bars] == [True, *[False] * 7]
    # kernels back to back from 0 on; launches of 3 µs, 10 µs apart, begun long before
    assert found.bars[0].start_ns == 0
    assert [bar.start_ns for bar in found.bars[1:]] == [bar.start_ns + bar.dur_ns for bar in found.bars[:-1]]
    assert {bar.launch_dur_ns for bar in found.bars} == {3_000}
    assert found.bars[1].launch_start_ns - found.bars[0].launch_start_ns == 10_000


def test_the_product_of_an_epilogue_stays_and_all_launches_after_it_fall_away():
    model = Model()
    model.call("aten::mm", 100, HALF, ([1024, 1024], BF16), kernel=GEMM)
    model.call("aten::gelu", 60, HALF, scalars=("none",))
    (found,) = instances(model)

    assert [(bar.role, bar.launch_stays) for bar in found.bars] == [("stays", True), ("replaced", False)]
    assert [bar.category for bar in found.bars] == ["gemm", "elementwise"]
    assert found.replaced_ns == 60_000  # not the product's 100


def test_a_long_instance_has_at_most_64_bars_that_add_up_to_all_its_kernels():
    model = Model()
    with model.module("Loop_0"):
        for size in range(200):
            model.call("aten::add_", 2, ([1024 + size], BF16), ([1024 + size], BF16), kernel=ADD)
    (found,) = instances(model)

    # 200 kernels in bars of 4, of which the first stands alone: 1 + 50
    assert len(found.bars) == 51
    assert sum(bar.kernels for bar in found.bars) == 200
    assert sum(bar.busy_ns for bar in found.bars) == found.replaced_ns == 400_000
    assert (found.bars[1].kernels, found.bars[1].dur_ns, found.bars[1].launch_busy_ns) == (4, 8_000, 12_000)
    # from the first launch to the end of the fourth: 3 * 10 + 3
    assert found.bars[1].launch_dur_ns == 33_000


def test_kernels_of_a_graph_have_no_launches_and_no_estimate():
    model = Model()
    for _ in range(4):
        graph = model.launch("cudaGraphLaunch", ts=model.host, dur=5)
        model.host += 20
        for kernel in (COPY, OTHER.replace("some", "pow_tensor"), OTHER.replace("some", "rsqrt"), MUL, GEMM):
            model.bare(kernel, 5, correlation=graph)
    found = instances(model)[0]

    assert (found.of, found.fused_ns) == (4, None)
    assert {bar.launch_start_ns for bar in found.bars} == {None}
