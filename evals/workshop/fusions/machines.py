"""GPUs of the planted traces, and the time of a fused kernel on them in closed form.

The figures are stated here on purpose. Bandwidth is what a stream benchmark reaches, rates are measured matrix
products where the source has them, else the dense datasheet figure:

* H100 SXM5: 3,180 GB/s (Azure AI benchmarking guide, best BabelStream kernel); bf16 794.5 TFLOP/s (Bekman, Machine
  Learning Engineering, fastest matmul found); vector float32 132 SM x 128 lanes x 2 x 1.980 GHz = 66.9 TFLOP/s, 16-bit
  types twice that; TF32 132 x 2,048 x 1.830 GHz = 494.7 TFLOP/s.
* MI300X: 4,260 GB/s (Azure guide); bf16 708 TFLOP/s (AMD ROCm blogs, Max-Achievable FLOPs part 2); vector float32
  304 CU x 256 x 2.1 GHz = 163.4 TFLOP/s, which stands for 16-bit types too (none published), matrix float32 the same.
* Shortest kernel: 1 us (rule of thumb: launch and drain of an empty grid).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SHARE_OF_OTHERS = 0.15
"""What of the terms that do not dominate is not hidden behind the one that does."""
LATENCY_NS = 1000


@dataclass(frozen=True, kw_only=True)
class Gpu:
    """One GPU; ``rates`` by (unit, element type) in FLOP/s."""

    vendor: str
    name: str
    slug: str
    bytes_per_s: float
    rates: Mapping[tuple[str, str], float]


H100 = Gpu(
    vendor="nvidia",
    name="NVIDIA H100 80GB HBM3",
    slug="h100-sxm",
    bytes_per_s=3180e9,
    rates={
        ("matrix", "bf16"): 794.5e12,
        ("matrix", "f16"): 989.4e12,
        ("matrix", "f32"): 494.7e12,
        ("vector", "f32"): 66.9e12,
        ("vector", "bf16"): 133.8e12,
        ("vector", "f16"): 133.8e12,
    },
)
MI300X = Gpu(
    vendor="amd",
    name="AMD Instinct MI300X",
    slug="mi300x",
    bytes_per_s=4260e9,
    rates={
        ("matrix", "bf16"): 708e12,
        ("matrix", "f16"): 654e12,
        ("matrix", "f32"): 163.4e12,
        ("vector", "f32"): 163.4e12,
        ("vector", "bf16"): 163.4e12,
        ("vector", "f16"): 163.4e12,
    },
)


def rate(gpu: Gpu, unit: str, dtype: str) -> float:
    """FLOP/s; types without a rate of their own run at that of float32."""
    return gpu.rates.get((unit, dtype), gpu.rates[unit, "f32"])


def fused_ns(gpu: Gpu, nbytes: int, flops: Mapping[tuple[str, str], float], latency_ns: int) -> int:
    """The largest of memory, matrix, vector and latency terms, and 15 % of the others."""
    terms = {"memory": nbytes / gpu.bytes_per_s * 1e9, "latency": float(latency_ns)}
    for (unit, dtype), count in sorted(flops.items()):
        terms[unit] = terms.get(unit, 0.0) + count / rate(gpu, unit, dtype) * 1e9
    largest = max(terms.values())
    return round(largest + SHARE_OF_OTHERS * (sum(terms.values()) - largest))
