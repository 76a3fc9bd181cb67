"""Sides of which one does not say what op launched a kernel: kernels align, however a graph ordered them."""

from __future__ import annotations

from rooftrace.compare import compare_sides
from tests.compare.sides import ADD, COPY, GEMM, MUL, Call, assert_conserved, row_of, side_of
from tests.support.trace_builder import TraceBuilder

SUM = (
    "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, at::native::func_wrapper_t<float, "
    "at::native::sum_functor<float, float, float> >, unsigned int, float, 4> >(at::native::ReduceOp<float>)"
)
SPLIT = "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, true, false, false>(int)"
GRAPH = "cudaGraphLaunch"


def eager(calls: list[Call]) -> TraceBuilder:
    builder = TraceBuilder()
    host, now = 0.0, 1000.0
    for call in calls:
        builder.op(call.op, host, 20)
        for number, (name, dur) in enumerate(call.kernels):
            correlation = builder.launch(ts=host + 1 + 2 * number)
            builder.kernel(name, now, dur, correlation=correlation)
            now += dur
        host += 20
    return builder


def replayed(kernels: list[tuple[str, float]], before: list[tuple[str, float]] = ()) -> TraceBuilder:
    """Kernels of one graph launch, after kernels of an op each."""
    builder = TraceBuilder()
    host, now = 0.0, 1000.0
    for name, dur in before:
        builder.op("aten::clone", host, 20)
        builder.kernel(name, now, dur, correlation=builder.launch(ts=host + 1))
        host, now = host + 20, now + dur
    correlation = builder.launch(ts=host + 1, name=GRAPH)
    for name, dur in kernels:
        builder.kernel(name, now, dur, correlation=correlation)
        now += dur
    return builder


def compared(base: TraceBuilder, target: TraceBuilder):
    comparison = compare_sides(side_of(base), side_of(target))
    assert_conserved(comparison)
    return comparison


CALLS = [
    Call(op="aten::mm", kernels=[(GEMM, 40), (SPLIT, 5)]),
    Call(op="aten::add", kernels=[(ADD, 7)]),
    Call(op="aten::sum", kernels=[(SUM, 11)]),
    Call(op="aten::mul", kernels=[(MUL, 9)]),
]
ORDER = [(GEMM, 40), (SPLIT, 5), (ADD, 7), (SUM, 11), (MUL, 9)]


def test_an_op_meets_all_its_kernels_in_a_graph():
    comparison = compared(eager(CALLS), replayed(ORDER))
    assert comparison.aligned.least_pct == 100
    row = row_of(comparison, "aten::mm")
    assert (row.base.ns, row.target.ns) == (45_000, 45_000)  # 40 of the product and 5 of its sum
    assert comparison.findings == []


def test_a_kernel_that_finishes_a_product_goes_with_it():
    calls = [Call(op="aten::mm", kernels=[(GEMM, 40)]), *CALLS[1:]]
    comparison = compared(eager(calls), replayed(ORDER))
    assert comparison.aligned.least_pct == 100
    row = row_of(comparison, "aten::mm")
    assert (row.base.ns, row.target.ns) == (40_000, 45_000)


def test_a_graph_that_runs_its_branches_in_another_order_aligns():
    comparison = compared(eager(CALLS), replayed([*ORDER[2:], *ORDER[:2]]))
    assert comparison.aligned.least_pct == 100
    assert {row.path[-1]: row.target.ns for row in comparison.rows if row.kind != "idle"} == {
        "aten::mm": 45_000,
        "aten::add": 7_000,
        "aten::sum": 11_000,
        "aten::mul": 9_000,
    }


def test_copies_into_the_buffers_of_a_graph_are_copies_and_no_counterparts():
    comparison = compared(eager(CALLS), replayed(ORDER, before=[(COPY, 6), (COPY, 2)]))
    aligned = comparison.aligned
    assert aligned.base_pct == 100
    # 40 + 5 + 7 + 11 + 9 = 72 of 72 + 6 + 2 = 80 µs
    assert aligned.target_pct == 90
    assert aligned.target_copies_pct == 10
    assert aligned.least_but_copies_pct == 100
    assert row_of(comparison, "aten::clone").target.ns == 8_000
    alone = [cause for row, cause in zip(comparison.rows, comparison.causes, strict=True) if not row.base.calls]
    assert set(alone) - {"unchanged"} == {"layout_or_copy"}
