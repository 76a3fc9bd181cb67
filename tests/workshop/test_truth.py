"""The truth's arithmetic on timelines small enough to see; all times in nanoseconds."""

from __future__ import annotations

from evals.workshop.hardware import H100_SXM, Quantiles, occupancy, roofline_ns
from evals.workshop.instructions import ActivityKind, Executed
from evals.workshop.program import Gemm
from evals.workshop.truth import DeviceTime, device_time


def executed(kind: ActivityKind, start: int, end: int, stream: int = 7) -> Executed:
    return Executed(
        correlation=1,
        owner=None,
        kind=kind,
        name=kind,
        stream=stream,
        start_ns=start,
        end_ns=end,
        bound="launch",
        launch_ready_ns=start,
        stream_ready_ns=start,
        event_ready_ns=start,
        args={},
    )


def test_a_copy_counts_only_where_no_kernel_covers_it():
    #           0    5    10   15   20   25   30
    # kernels   [--------]         [----]
    # kernels        [--------]              (stream 8)
    # copies                 [--------]      (stream 9)
    # compute   [-------------]    [----]
    # copy                     [--]
    # idle                              [----]
    rows = [
        executed("kernel", 0, 10),
        executed("kernel", 5, 15, stream=8),
        executed("gpu_memcpy", 13, 22, stream=9),
        executed("kernel", 20, 25),
    ]

    assert device_time(rows, 0, 30) == DeviceTime(span_ns=30, compute_ns=20, exposed_copy_ns=5, idle_ns=5)


def test_a_window_clips_what_crosses_its_edges():
    rows = [executed("kernel", 0, 10), executed("gpu_memset", 18, 40)]

    # kernel 4..10, memset 18..30: 6 + 12 = 18 of 26; a memset is compute
    assert device_time(rows, 4, 30) == DeviceTime(span_ns=26, compute_ns=18, exposed_copy_ns=0, idle_ns=8)


def test_a_product_has_two_flops_a_multiply_add():
    assert Gemm(step=0, op="aten::mm", m=4, n=6, k=5).flops == 240  # 4 * 6 * 5 = 120 multiply-adds


def test_the_roofline_takes_the_slower_of_arithmetic_and_memory():
    # 989.4e12 FLOP at 989.4 TFLOP/s: 1 s; 3350e9 B at 3350 GB/s: 1 s; twice as many: 2 s
    assert roofline_ns(H100_SXM, flops=989.4e12, bytes_moved=0.0, precision="bf16") == 1e9
    assert roofline_ns(H100_SXM, flops=989.4e12, bytes_moved=2 * 3350e9, precision="bf16") == 2e9


def test_a_distribution_is_interpolated_between_its_quantiles_and_clamped_outside():
    drawn = Quantiles(values=(100, 200, 300, 500, 900))

    assert [drawn.at(level) for level in (0.0, 0.05, 0.15, 0.5, 0.625, 0.95, 0.99)] == [
        100,
        100,
        150,  # half way from 5 to 25 %
        300,
        400,  # half way from 50 to 75 %
        900,
        900,
    ]


def test_occupancy_is_what_a_profiler_shows_for_the_same_launch():
    # 564 blocks of 128 threads on 132 SMs: 4.272727 blocks, 17.090909 of 64 warps: 27 %
    assert occupancy(H100_SXM, 564, 128, 32) == (4.272727, 17.090909, 27)
