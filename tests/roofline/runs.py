"""Op groups for the roofline, made from small traces."""

from __future__ import annotations

from rooftrace.calltree import build_context, build_tree, collect_activities, group_ops
from tests.support.trace_builder import TraceBuilder

BF16, FP16, FP32 = "c10::BFloat16", "c10::Half", "float"
GEMM = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"


def product(size, dtype):
    """Inputs of a square ``aten::mm``."""
    return {
        "dims": [[size, size], [size, size]],
        "types": [dtype, dtype],
        "strides": [[size, 1], [size, 1]],
        "concrete": ["", ""],
    }


def addition(count, dtype):
    """Inputs of an ``aten::add`` of two vectors."""
    return {
        "dims": [[count], [count], []],
        "types": [dtype, dtype, "Scalar"],
        "strides": [[1], [1], []],
        "concrete": ["", "", "1"],
    }


def groups_of(builder):
    """Activities and op groups of a trace."""
    trace = builder.build()
    tree = build_tree(trace)
    activities = collect_activities(trace, tree)
    return activities, group_ops(trace, tree, build_context(trace, tree), activities)


def one_group(name, inputs, *durations, kernel=GEMM, launch="cudaLaunchKernel"):
    """Activities and the one group of an op called once per duration (µs), each with one kernel."""
    builder = TraceBuilder()
    at = 0.0
    for dur in durations:
        builder.op(name, at, 10, **inputs)
        builder.kernel(kernel, ts=at + 20, dur=dur, correlation=builder.launch(launch, ts=at + 2))
        at += 40 + dur
    activities, (group,) = groups_of(builder)
    return activities, group
