"""Names and heads that the sample's files share."""

from __future__ import annotations

HASH = "ab" * 32
HEAD = {"schema_version": "1.0", "tool_version": "0.1.0", "source_sha256": HASH}
GEMM_KERNEL = "nvjet_tst_128x256_64x4_1x2_h_bz_TNT"
SKINNY_KERNEL = "cutlass_80_tensorop_bf16_s16816gemm_bf16_64x64_64x6_tn_align8"
ADD_KERNEL = (
    "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<c10::BFloat16>, "
    "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul>)"
)
