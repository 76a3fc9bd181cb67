"""The GPUs the workshop simulates: dense ceilings, device properties, and timing distributions.

The ceilings are stated here on purpose and not read from the product's own platform files: what checks a
program must not share its numbers. Each is the vendor's dense datasheet figure and the product it must
equal:

* H100 SXM5: 132 SM x 4096 FLOP/clock (bf16, dense) x 1.830 GHz = 989.4 TFLOP/s; HBM3 5120 bit x 5.234 Gb/s
  / 8 = 3350 GB/s.
* A100 SXM4 80 GB: 108 SM x 2048 x 1.410 GHz = 311.9 TFLOP/s; HBM2e 5120 bit x 3.186 Gb/s / 8 = 2039 GB/s.
* MI300X: 304 CU x 2048 x 2.100 GHz = 1307.4 TFLOP/s; HBM3 8192 bit x 5.175 Gb/s / 8 = 5300 GB/s.

The distributions are quantiles at 5, 25, 50, 75 and 95 % as ``fit.py`` prints them; each states its samples
and what kind of trace they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

LEVELS = (0.05, 0.25, 0.50, 0.75, 0.95)
Vendor = Literal["nvidia", "amd"]


@dataclass(frozen=True, kw_only=True)
class Quantiles:
    """A distribution as five quantiles, drawn from by linear interpolation between the 5 % and the 95 % one.

    Linear arithmetic only, so that a draw is the same number on every machine.
    """

    values: tuple[int, int, int, int, int]

    def at(self, level: float) -> int:
        """The value at ``level`` (0 to 1), clamped to the outermost quantiles."""
        if level <= LEVELS[0]:
            return self.values[0]
        for place in range(1, len(LEVELS)):
            if level <= LEVELS[place]:
                low, high = self.values[place - 1], self.values[place]
                share = (level - LEVELS[place - 1]) / (LEVELS[place] - LEVELS[place - 1])
                return low + round((high - low) * share)
        return self.values[-1]


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One simulated GPU; rates are dense datasheet figures, times are nanoseconds."""

    slug: str
    vendor: Vendor
    matrix_flops: Mapping[str, float]
    vector_flops: float
    dram_bytes_per_s: float
    pcie_bytes_per_s: float
    compute_units: int
    threads_per_unit: int
    warp: int
    registers_per_unit: int
    shared_per_unit: int
    properties: Mapping[str, int | str]
    least_kernel_ns: int
    launch_latency: Quantiles
    launch_call: Quantiles
    queued_gap: Quantiles
    sync_tail: Quantiles
    view_op: Quantiles
    jitter_ppm: Quantiles


H100_SXM = Gpu(
    slug="h100-sxm",
    vendor="nvidia",
    matrix_flops={"bf16": 989.4e12, "fp16": 989.4e12, "tf32": 494.7e12},
    vector_flops=66.9e12,  # 132 SM x 128 lanes x 2 x 1.980 GHz (boost clock of the vector figure)
    dram_bytes_per_s=3350e9,
    pcie_bytes_per_s=23.0e9,  # median of 15 device-to-host copies of 64 KiB and more, inference traces
    compute_units=132,
    threads_per_unit=2048,
    warp=32,
    registers_per_unit=65536,
    shared_per_unit=233472,
    properties={
        "name": "NVIDIA H100 80GB HBM3",
        "totalGlobalMem": 85018279936,
        "computeMajor": 9,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "numSms": 132,
        "regsPerMultiprocessor": 65536,
        "sharedMemPerBlockOptin": 232448,
        "sharedMemPerMultiprocessor": 233472,
    },
    least_kernel_ns=1120,  # the shortest of 4,990 kernels
    # Four inference traces of this GPU (eager PyTorch 2.6, bf16, stacks and shapes recorded).
    launch_latency=Quantiles(values=(5532, 6081, 6496, 7442, 10233)),  # 264 launches that found an empty queue
    launch_call=Quantiles(values=(3410, 4150, 4710, 5660, 7090)),  # 4,990 launch calls
    queued_gap=Quantiles(values=(864, 960, 1088, 1632, 2208)),  # 4,687 kernels queued 40 us ahead and more
    sync_tail=Quantiles(values=(3490, 3785, 4028, 7009, 17089)),  # 21 synchronisations that had to wait
    view_op=Quantiles(values=(210, 350, 550, 1640, 4370)),  # 12,241 view, transpose, as_strided, t
    jitter_ppm=Quantiles(values=(857442, 987805, 1000000, 1015724, 1081250)),  # 3,473 kernels over their median
)

A100_SXM_80 = Gpu(
    slug="a100-sxm-80",
    vendor="nvidia",
    matrix_flops={"bf16": 311.9e12, "fp16": 311.9e12, "tf32": 155.9e12},
    vector_flops=19.5e12,  # 108 SM x 64 lanes x 2 x 1.410 GHz
    dram_bytes_per_s=2039e9,
    pcie_bytes_per_s=10.9e9,  # 2 pinned host-to-device copies, training trace
    compute_units=108,
    threads_per_unit=2048,
    warp=32,
    registers_per_unit=65536,
    shared_per_unit=167936,
    properties={
        "name": "NVIDIA A100-SXM4-80GB",
        "totalGlobalMem": 85174583296,
        "computeMajor": 8,
        "computeMinor": 0,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "regsPerMultiprocessor": 65536,
        "warpSize": 32,
        "sharedMemPerBlock": 49152,
        "sharedMemPerMultiprocessor": 167936,
        "numSms": 108,
        "sharedMemPerBlockOptin": 166912,
    },
    least_kernel_ns=1000,  # the shortest of 3,884 kernels (1 us resolution)
    # Three traces of A100s (tensor-parallel, recommendation, mixture of experts), two at 1 us resolution.
    launch_latency=Quantiles(values=(7000, 10545, 12146, 13009, 23256)),  # 2,139 launches
    launch_call=Quantiles(values=(5000, 7000, 9743, 11080, 12762)),  # 3,884 launch calls
    queued_gap=Quantiles(values=(1000, 1024, 1184, 2000, 2000)),  # 1,168 kernels
    sync_tail=Quantiles(values=(5000, 6000, 6000, 7000, 7000)),  # 13 synchronisations
    # View operators of those traces carry old profilers' overhead (median 22 us); the H100 figures are used.
    view_op=H100_SXM.view_op,
    jitter_ppm=Quantiles(values=(845270, 992639, 1000000, 1007158, 1113503)),  # 2,472 kernels
)

MI300X = Gpu(
    slug="mi300x",
    vendor="amd",
    matrix_flops={"bf16": 1307.4e12, "fp16": 1307.4e12, "tf32": 653.7e12},
    vector_flops=163.4e12,  # 304 CU x 256 FLOP x 2.100 GHz (dual issue)
    dram_bytes_per_s=5300e9,
    pcie_bytes_per_s=47.0e9,  # median of 15 device-to-host copies of 64 KiB and more
    compute_units=304,
    threads_per_unit=2048,
    warp=64,
    registers_per_unit=131072,
    shared_per_unit=65536,
    properties={
        "name": "AMD Instinct MI300X",
        "totalGlobalMem": 206141652992,
        "computeMajor": 9,
        "computeMinor": 4,
        "maxThreadsPerBlock": 1024,
        "maxThreadsPerMultiprocessor": 2048,
        "regsPerBlock": 65536,
        "warpSize": 64,
        "sharedMemPerBlock": 65536,
        "numSms": 304,
        "maxSharedMemoryPerMultiProcessor": 65536,
    },
    least_kernel_ns=639,  # the shortest of 9,006 kernels
    # Six traces of this GPU (inference, normalisation microbenchmark, ResNet training).
    launch_latency=Quantiles(values=(8262, 11841, 19928, 25288, 38933)),  # 258 launches
    launch_call=Quantiles(values=(2790, 3403, 3962, 4729, 6407)),  # 7,753 launch calls
    queued_gap=Quantiles(values=(0, 1, 1, 1, 3361)),  # 7,405 kernels
    sync_tail=Quantiles(values=(5000, 6000, 6000, 7000, 7000)),  # none recorded there; the A100 figures are used
    view_op=Quantiles(values=(250, 350, 519, 1378, 2935)),  # 13,507 operators
    jitter_ppm=Quantiles(values=(868992, 970989, 1000000, 1039164, 1289560)),  # 5,990 kernels
)

GPUS = {gpu.slug: gpu for gpu in (H100_SXM, A100_SXM_80, MI300X)}


def roofline_ns(gpu: Gpu, *, flops: float, bytes_moved: float, precision: str | None = None) -> float:
    """The least time of a kernel in ns, the larger of compute and DRAM time; no precision: vector units."""
    ceiling = gpu.vector_flops if precision is None else gpu.matrix_flops[precision]
    return max(flops / ceiling, bytes_moved / gpu.dram_bytes_per_s) * 1e9


def occupancy(gpu: Gpu, blocks: int, threads: int, registers: int) -> tuple[float, float, int]:
    """Blocks a unit, warps a unit, and the estimated occupancy in per cent, as a profiler derives them."""
    blocks_per_unit = blocks / gpu.compute_units
    warps_per_block = -(-threads // gpu.warp)
    warps_per_unit = blocks_per_unit * warps_per_block
    resident = gpu.threads_per_unit // gpu.warp
    by_registers = gpu.registers_per_unit // max(1, registers * threads) * warps_per_block
    reached = min(warps_per_unit, float(by_registers), float(resident))
    return round(blocks_per_unit, 6), round(warps_per_unit, 6), round(100 * reached / resident)
