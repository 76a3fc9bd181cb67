"""The GPUs of planted runs: `hardware` with the rates that are reached in practice.

A sound kernel runs at 70 to 95 % of these. Stated here on purpose, as in `fusions.machines`, with the same sources:

* H100 SXM5: 3,180 GB/s (Azure AI benchmarking guide); bf16 794.5 TFLOP/s (Bekman, Machine Learning Engineering); TF32
  and fp32 dense datasheet figures (none published).
* A100 SXM4 80 GB: 1,750 GB/s (Azure guide); bf16 271.2 TFLOP/s (Bekman).
* MI300X: 4,260 GB/s (Azure guide); bf16 708 TFLOP/s (AMD ROCm blogs, Max-Achievable FLOPs).

Host links: pageable copies at the rates that `hardware` measured; pinned ones at 85 % of PCIe (rule of thumb).
"""

from __future__ import annotations

from dataclasses import replace

from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X, Gpu

H100 = replace(
    H100_SXM,
    matrix_flops={"bf16": 794.5e12, "fp16": 989.4e12, "tf32": 494.7e12, "fp32": 66.9e12},
    dram_bytes_per_s=3180e9,
)
A100 = replace(
    A100_SXM_80,
    matrix_flops={"bf16": 271.2e12, "fp16": 311.9e12, "tf32": 155.9e12, "fp32": 19.5e12},
    dram_bytes_per_s=1750e9,
)
MI300 = replace(
    MI300X,
    matrix_flops={"bf16": 708e12, "fp16": 654e12, "tf32": 653.7e12, "fp32": 163.4e12},
    dram_bytes_per_s=4260e9,
)
MACHINES: dict[str, Gpu] = {gpu.slug: gpu for gpu in (H100, A100, MI300)}
PINNED_BYTES_PER_S = {"h100-sxm": 53.5e9, "a100-sxm-80": 26.8e9, "mi300x": 53.5e9}
PAGEABLE_BYTES_PER_S = {"h100-sxm": 11.0e9, "a100-sxm-80": 6.0e9, "mi300x": 11.0e9}
"""Copies through a staging buffer (rule of thumb: a memcpy of one core)."""
LINK_BYTES_PER_S = {"h100-sxm": 360e9, "a100-sxm-80": 240e9, "mi300x": 330e9}
"""Bus bandwidth of a large all-reduce among eight GPUs (rule of thumb: 80 % of NVLink or xGMI one way)."""
