"""Sides of comparisons from small traces, and a run of ops with kernels whose times can be read off the call."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rooftrace.compare import Comparison, Side, compare_sides
from rooftrace.trace import load
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from tests.support.trace_builder import TraceBuilder

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from evals.workshop.pairs.runs import PairCase
    from rooftrace.compare.pair import Layout
    from rooftrace.compare.table import Row
    from rooftrace.trace import Trace

TRACES = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>, Array>(int)"
MUL = "void at::native::vectorized_elementwise_kernel<4, at::native::MulFunctor<float>, Array>(int)"
GEMM = "ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_64x3_tn"
CUTLASS = "cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x3_tn_align8"
HIP_GEMM = "Cijk_Alik_Bljk_BBS_BH_Bias_HAS_SAV_UserArgs_MT256x256x64_MI16x16x1_SN_LDSB1_WG64_4_1"
COPY = (
    "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda"
    "(at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)>(int)"
)


@dataclass(frozen=True, kw_only=True)
class Call:
    """An op and the kernels it launches (name, µs), in modules."""

    op: str
    kernels: Sequence[tuple[str, float]]
    modules: Sequence[str] = ()
    dims: Any = None
    types: Any = None
    strides: Any = None
    stream: int = 7


def trace_of(
    calls: Sequence[Call],
    *,
    steps: int = 1,
    gap: float = 0.0,
    scale: Sequence[float] = (),
    gpu: str | None = None,
) -> TraceBuilder:
    """A trace: calls one after the other on the host, all before the GPU begins; kernels back to back after a gap.

    ``scale`` is a factor on the kernels' times for each step.
    """
    builder = TraceBuilder()
    builder.device(gpu)
    host = 0.0
    work: list[tuple[str, float, int, int, int]] = []
    for step in range(steps):
        began = host
        for call in calls:
            at, depth = host, len(call.modules)
            length = 10.0 + 2 * len(call.kernels) + 2 * depth
            for level, module in enumerate(call.modules):
                builder.python(f"nn.Module: {module}", at + level, length - 2 * level)
            shaped = {"dims": call.dims, "types": call.types, "strides": call.strides}
            builder.op(call.op, at + depth, length - 2 * depth, **shaped)
            for number, (name, dur) in enumerate(call.kernels):
                correlation = builder.launch(ts=at + depth + 1 + 2 * number)
                work.append((name, dur, correlation, step, call.stream))
            host += length
        if steps > 1:
            builder.annotation(f"ProfilerStep#{step}", began, host - began)
    now = host + 100
    for name, dur, correlation, step, stream in work:
        length = round(dur * (scale[step] if scale else 1.0), 3)
        builder.kernel(name, now, length, stream=stream, correlation=correlation)
        now = round(now + length + gap, 3)
    return builder


def side_of(source: TraceBuilder | Trace | Path) -> Side:
    """A trace as one side of a comparison."""
    trace = source.build() if isinstance(source, TraceBuilder) else source
    if not hasattr(trace, "names"):
        trace = load(trace)[0]
    workload = prepare_workload(trace, AnalyzeOptions()).workload
    return Side(**{name: getattr(workload, name) for name in Side.__slots__})


def compared(base: Sequence[Call], target: Sequence[Call], **options: Any) -> Comparison:
    """The comparison of two runs."""
    return compare_sides(side_of(trace_of(base, **options)), side_of(trace_of(target, **options)))


def cause_of(comparison: Comparison, label: str) -> str:
    """The cause of the only row with this last part of its path."""
    found = [
        cause
        for row, cause in zip(comparison.rows, comparison.causes, strict=True)
        if row.kind != "idle" and row.path[-1] == label
    ]
    assert len(found) == 1, [row.path for row in comparison.rows]
    return found[0]


def row_of(comparison: Comparison, *tail: str) -> Row:
    """The only row whose path ends so."""
    found = [row for row in comparison.rows if row.path[-len(tail) :] == tail]
    assert len(found) == 1, [row.path for row in comparison.rows]
    return found[0]


def assert_conserved(comparison: Comparison | Layout) -> None:
    """Every nanosecond of both spans is in exactly one row."""
    base, target = comparison.base.side.span_ns, comparison.target.side.span_ns
    assert sum(row.base.ns for row in comparison.rows) == base
    assert sum(row.target.ns for row in comparison.rows) == target
    assert sum(row.delta_ns for row in comparison.rows) == target - base


def real_trace(name: str) -> Path:
    """A trace of the shared folder; the test is skipped where that is absent."""
    path = TRACES / name
    if not path.is_file():
        pytest.skip(f"no {name} under {TRACES} (set ROOFTRACE_TRACES)")
    return path


def sides_of(case: PairCase, folder: Path) -> Iterator[Side]:
    """Both sides of a planted pair."""
    for number, text in enumerate(case.traces()):
        path = folder / f"{number}.json"
        path.write_text(text, encoding="utf-8")
        yield side_of(path)
