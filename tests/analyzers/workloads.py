"""Workloads made from small traces, the whole way from events to ledgers."""

from __future__ import annotations

from rooftrace.workflow import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from tests.support.trace_builder import TraceBuilder

BF16 = "c10::BFloat16"
NVJET = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"
CUTLASS = "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x6_tn_align8"


def workload_of(builder, platform="h100-sxm"):
    return prepare_workload(builder.build(), AnalyzeOptions(platform=platform)).workload


def product(m, n, k, dtype=BF16):
    """Inputs of ``aten::mm``."""
    return {
        "dims": [[m, k], [k, n]],
        "types": [dtype, dtype],
        "strides": [[k, 1], [n, 1]],
        "concrete": ["", ""],
    }


def vectors(count, dtype=BF16):
    """Inputs of ``aten::add``."""
    return {
        "dims": [[count], [count], []],
        "types": [dtype, dtype, "Scalar"],
        "strides": [[1], [1], []],
        "concrete": ["", "", "1"],
    }


class Program(TraceBuilder):
    """Ops one after the other; the device runs each kernel as soon as the last one is done."""

    def __init__(self, first_kernel=0.0):
        super().__init__()
        self.host = 0.0
        self.gpu = first_kernel

    def call(self, name, kernel, dur, *, gap=0.0, stream=7, **inputs):
        """An op of 4 µs that launches one kernel, which starts `gap` µs after the last one ended."""
        self.op(name, self.host, 4, **inputs)
        correlation = self.launch(ts=self.host + 1)
        self.gpu += gap
        self.kernel(kernel, ts=self.gpu, dur=dur, stream=stream, correlation=correlation)
        self.gpu += dur
        self.host += 5
