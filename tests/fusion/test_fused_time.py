from __future__ import annotations

from rooftrace import platforms
from rooftrace.fusion.fused_time import FusedTime, Machine, Work, epilogue_time, fused_time

H100 = Machine(platform=platforms.load_platform("h100-sxm"), latency_ns=2000)


def test_memory_bound_work_adds_fifteen_per_cent_of_the_other_terms():
    # 318 MB / 3.18 TB/s = 100,000 ns; 66.9 GFLOP / 66.9 TFLOP/s = 1,000,000 ns would be more, so 0.669 GFLOP: 10,000 ns
    time = fused_time(H100, Work(nbytes=318_000_000, flops={("vector", "float32"): 669_000_000}))

    assert time == FusedTime(ns=101_800, floor_ns=100_000, bound="memory")  # 100,000 + 0.15*(10,000 + 2,000)


def test_matrix_work_is_bound_by_its_own_ceiling():
    # 794.5 GFLOP / 794.5 TFLOP/s = 1,000,000 ns; 31.8 MB / 3.18 TB/s = 10,000 ns
    time = fused_time(H100, Work(nbytes=31_800_000, flops={("matrix", "bfloat16"): 794_500_000_000}))

    assert time == FusedTime(ns=1_001_800, floor_ns=1_000_000, bound="compute")  # + 0.15*(10,000 + 2,000)


def test_tiny_work_takes_the_latency_of_a_kernel():
    # 3,180 B / 3.18 TB/s = 1 ns
    assert fused_time(H100, Work(nbytes=3180, flops={})) == FusedTime(ns=2000, floor_ns=2000, bound="latency")


def test_an_epilogue_launches_nothing_and_has_no_latency():
    assert epilogue_time(H100, Work(nbytes=0, flops={})) == FusedTime(ns=0, floor_ns=0, bound="memory")


def test_a_precision_without_a_ceiling_is_named():
    v100 = Machine(platform=platforms.load_platform("v100-sxm2-32"), latency_ns=2000)
    work = Work(nbytes=1000, flops={("matrix", "float8_e4m3fn"): 1000})

    assert fused_time(v100, work) == "no float8_e4m3fn matrix ceiling for this GPU"
