"""How much of the kernel time is rated, and why the rest is not. Times are µs in the drawing."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from rooftrace.platforms import load_platform
from rooftrace.roofline import coverage, rate
from tests.roofline.runs import BF16, GEMM, groups_of, product
from tests.support.trace_builder import TraceBuilder


def covered(builder, slug="h100-sxm"):
    activities, groups = groups_of(builder)
    platform = load_platform(slug) if slug else None
    return coverage(activities, groups, [rate(group, activities, platform, 2_000) for group in groups])


def mixed():
    """One of everything: durations are distinct powers of two, so that every sum tells what is in it."""
    builder = TraceBuilder()
    builder.kernel("carried in", ts=0, dur=1)
    at = 10
    for name, inputs, kernel, dur in (
        ("aten::mm", product(64, BF16), GEMM, 2),
        ("aten::mm", {}, GEMM, 4),
        ("mylib::op", product(64, BF16), "mine", 8),
        ("c10d::allreduce_", {}, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL()", 16),
    ):
        builder.op(name, at, 5, **inputs)
        builder.kernel(kernel, ts=at + 10, dur=dur, correlation=builder.launch(ts=at + 1))
        at += 100
    builder.memcpy("HtoD", ts=at, dur=32, correlation=builder.launch("cudaMemcpyAsync", ts=at - 5))
    builder.kernel("outside any op", ts=at + 100, dur=64, correlation=builder.launch(ts=at + 99))
    builder.kernel("lost", ts=at + 200, dur=128)
    builder.op("aten::mm", at + 400, 5, **product(64, BF16))
    graph = builder.launch("cudaGraphLaunch", ts=at + 401)
    builder.kernel(GEMM, ts=at + 500, dur=256, correlation=graph)
    return builder


def test_every_duration_is_in_its_sums_and_in_no_other():
    found = covered(mixed())

    assert found.carry_in_ns == 1_000
    assert found.comm_ns == 16_000
    assert found.copy_ns == 32_000
    assert found.lost_launch_ns == 128_000
    assert found.ratable_ns == 334_000  # 2 + 4 + 8 + 64 + 256
    assert found.kernel_ns == 479_000  # 1 + 16 + 128 + 334
    assert found.shaped_ns == 10_000  # 2 + 8; the shapes of the op around a graph's launch are not its kernels'
    assert found.modelled_ns == 2_000
    assert found.rated_ns == 2_000


def test_the_reasons_add_up_to_what_is_not_rated_largest_first():
    found = covered(mixed())

    assert list(found.reasons.items()) == [
        ("graph replay: no op and no shapes recorded", 256_000),
        ("launched outside any op", 64_000),
        ("no cost model", 8_000),
        ("no input shapes recorded", 4_000),
    ]
    assert sum(found.reasons.values()) == found.ratable_ns - found.rated_ns


def test_on_an_unknown_gpu_costs_are_known_and_nothing_is_rated():
    found = covered(mixed(), slug=None)

    assert (found.modelled_ns, found.rated_ns) == (2_000, 0)
    assert found.reasons["GPU unknown: no ceilings"] == 2_000


def test_a_rating_that_cannot_be_believed_counts_as_modelled_but_not_as_rated():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5, **product(2000, BF16))
    builder.kernel(GEMM, ts=20, dur=10, correlation=builder.launch(ts=1))  # its floor is 20 µs
    found = covered(builder)

    assert (found.modelled_ns, found.rated_ns) == (10_000, 0)
    assert found.reasons == {"inconsistent: faster than its ceiling allows": 10_000}


def test_nothing_is_covered_where_nothing_ran():
    builder = TraceBuilder()
    builder.op("aten::mm", 0, 5)
    found = covered(builder)

    assert (found.kernel_ns, found.ratable_ns, found.reasons) == (0, 0, {})


KERNEL = st.tuples(
    st.sampled_from(("aten::mm", "mylib::op", None)),
    st.sampled_from((GEMM, "k", "ncclKernel_AllReduce()", "__amd_rocclr_copyBuffer", "__amd_rocclr_fillBufferAligned")),
    st.integers(0, 20),
    st.booleans(),  # shapes
    st.sampled_from(("cudaLaunchKernel", "cudaGraphLaunch", None)),
)


@settings(deadline=None)
@given(st.lists(KERNEL, min_size=1, max_size=8))
def test_kernel_time_is_the_sum_of_its_parts(kernels):
    builder = TraceBuilder()
    for number, (op, name, dur, shaped, launch) in enumerate(kernels):
        ts = 100 * number
        if op:
            builder.op(op, ts, 10, **(product(64, BF16) if shaped else {}))
        builder.kernel(name, ts=ts + 50, dur=dur, correlation=launch and builder.launch(launch, ts=ts + 1))
    found = covered(builder)

    assert found.kernel_ns == found.comm_ns + found.carry_in_ns + found.lost_launch_ns + found.ratable_ns
    assert found.kernel_ns + found.copy_ns == 1000 * sum(kernel[2] for kernel in kernels)
    assert found.ratable_ns >= found.shaped_ns >= found.modelled_ns >= found.rated_ns
    assert sum(found.reasons.values()) == found.ratable_ns - found.rated_ns
