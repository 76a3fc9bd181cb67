from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rooftrace.compare import compare_sides
from rooftrace.compare.pair import lay_out
from rooftrace.compare.records import row_records
from tests.compare.sides import ADD, COPY, GEMM, MUL, assert_conserved, side_of
from tests.support.trace_builder import TraceBuilder

NAMES = (GEMM, ADD, MUL, COPY, "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)")
OPS = ("aten::mm", "aten::linear", "aten::add", "aten::mul", "aten::copy_", "aten::rms_norm")
CALL = st.tuples(
    st.integers(0, 3),  # module, 0: none
    st.sampled_from(OPS),
    st.lists(
        st.tuples(
            st.sampled_from(NAMES),
            st.integers(0, 400),
            st.integers(0, 60),
            st.integers(0, 2),
            st.integers(0, 9),
        ),
        max_size=3,
    ),
)
RUN = st.tuples(st.lists(CALL, min_size=1, max_size=8), st.integers(0, 3))


def trace_of(run) -> TraceBuilder:
    """Calls with kernels anywhere on three streams and two devices, some without a launch; steps round some."""
    calls, steps = run
    builder = TraceBuilder()
    host = 0.0
    for module, op, kernels in calls:
        if module:
            builder.python(f"nn.Module: Layer_{module}", host, 20)
        builder.op(op, host + 1, 18, dims=[[module + 1, 4]])
        for number, (name, at, dur, stream, kind) in enumerate(kernels):
            correlation = builder.launch(ts=host + 2 + number) if kind else None
            device = int(kind == 9)
            if kind == 8:
                builder.memcpy("DtoD", 30 + at, dur, stream=stream, correlation=correlation)
            else:
                builder.kernel(name, 30 + at, dur, stream=stream, device=device, correlation=correlation)
        host += 20
    for step in range(steps):
        builder.annotation(f"ProfilerStep#{step}", step * host / steps, host / steps)
    return builder


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUN, RUN)
def test_every_nanosecond_of_both_spans_is_in_exactly_one_row(base, target):
    comparison = lay_out(side_of(trace_of(base)), side_of(trace_of(target)))
    assert_conserved(comparison)
    placed = [
        sorted(at for row in comparison.rows for at in half(row).activities.tolist())
        for half in (lambda row: row.base, lambda row: row.target)
    ]
    for found, measured in zip(placed, (comparison.base, comparison.target), strict=True):
        assert found == list(range(measured.side.activities.row.size))


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(RUN)
def test_a_run_and_itself_differ_nowhere(run):
    comparison = compare_sides(side_of(trace_of(run)), side_of(trace_of(run)))
    assert [row.delta_ns for row in comparison.rows] == [0] * len(comparison.rows)
    assert comparison.findings == []
    assert len(row_records(comparison)) == len(comparison.rows)
