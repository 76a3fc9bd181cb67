"""Facts that names spell. Every expectation lists all facts; what is not listed must not be claimed."""

# ruff: noqa: E501 - kernel names are as long as they are

from __future__ import annotations

import pytest
from msgspec.structs import fields

from rooftrace.kernelnames import KernelFacts, describe

BF16, F16, F32, TF32 = "bfloat16", "float16", "float32", "tfloat32"

FACTS: list[tuple[str, dict[str, object]]] = [
    # Tensile: Ailk = A as stored, Alik = transposed; Bljk = B as stored, Bjlk = transposed
    (
        "Cijk_Ailk_Bjlk_BBS_BH_Bias_HAS_SAV_UserArgs_MT128x64x32_MI32x32x1_SN_GSUAMB_ISA90a_SK0_WS64",
        {"tile": (128, 64, 32), "layout": "NT", "precision": BF16, "accumulate": F32, "architecture": "gfx90a"},
    ),
    (
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32_MI32x32x1_SN_GSU4_GSUASB_ISA942_SK0_WG32",
        {"tile": (128, 128, 32), "split_k": 4, "splits_k": True, "layout": "NN", "precision": F16,
         "accumulate": F32, "architecture": "gfx942"},
    ),
    (
        "Cijk_Alik_Bljk_B_BS_BH_Bias_HA_S_SAV_UserArgs_MT64x288x64_MI16x16x1_SN_GSUAMB_ISA942_SK3_WS64",
        {"tile": (64, 288, 64), "layout": "TN", "precision": BF16, "accumulate": F32, "architecture": "gfx942",
         "stream_k": True},
    ),
    (
        "Cijk_Alik_Bljk_F8BS_BH_Bias_SHB_HAS_SAB_SAV_UserArgs_MT256x256x128_MI16x16x1_SN_ISA942_WS64",
        {"tile": (256, 256, 128), "layout": "TN", "precision": "float8_e4m3fn", "accumulate": F32,
         "architecture": "gfx942"},
    ),
    (
        "Cijk_Alik_Bljk_I8II_BH_MT128x64x64_MI16x16x1_SN_GSU1_WG32",
        {"tile": (128, 64, 64), "split_k": 1, "layout": "TN", "precision": "int8", "accumulate": "int32"},
    ),
    ("Cijk_Ailk_Bljk_SB_MT64x16x32_SN_PK1_WG32", {"tile": (64, 16, 32), "layout": "NN", "precision": F32, "persistent": True}),
    ("Cijk_Ailk_Bjlk_S_MX_B_Bias_HA_S_SAV_UserArgs_MT32x64x64_MI32x32x1", {"tile": (32, 64, 64), "layout": "NT", "precision": TF32}),
    # nvjet: the letters of the types are not documented
    ("nvjet_tst_128x160_64x6_1x2_h_bz_coopA_NNT", {"tile": (128, 160, 64), "stages": 6, "layout": "NN"}),
    ("nvjet_tst_64x8_64x16_4x1_v_bz_splitK_TNT", {"tile": (64, 8, 64), "stages": 16, "layout": "TN", "splits_k": True}),
    (
        "nvjet_sm100_tst_mma_128x192x64_6_32x192x64_tmaAB_bz_TNT",
        {"tile": (128, 192, 64), "stages": 6, "layout": "TN", "architecture": "sm100"},
    ),
    # xmma
    (
        "sm80_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_stage3_warpsize2x2x1_tensor16x8x16_kernel",
        {"tile": (128, 128, 64), "stages": 3, "layout": "TN", "precision": BF16, "accumulate": F32, "architecture": "sm80"},
    ),
    (
        "sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x64x16_stage4_warpsize2x2x1_tensor16x8x8_kernel",
        {"tile": (64, 64, 16), "stages": 4, "layout": "NN", "precision": TF32, "accumulate": F32, "architecture": "sm80"},
    ),
    (
        "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize64x64x8_stage3_warpsize1x4x1_ffma_splitkreduce_kernel",
        {"tile": (64, 64, 8), "stages": 3, "layout": "NN", "precision": F32, "accumulate": F32, "architecture": "sm80",
         "splits_k": True},
    ),
    (
        "sm80_xmma_fprop_implicit_gemm_indexed_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_stage4_warp",
        {"tile": (128, 128, 16), "stages": 4, "layout": "NCHW", "precision": TF32, "accumulate": F32, "architecture": "sm80"},
    ),
    # CUTLASS
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8>(P)",
        {"tile": (256, 128, 32), "stages": 3, "layout": "TN", "precision": BF16, "accumulate": F32, "architecture": "sm80"},
    ),
    (
        "cutlass_80_tensorop_s1688gemm_256x64_16x4_nn_align4",  # no type and 16x8x8: fp32 inputs rounded to tf32
        {"tile": (256, 64, 16), "stages": 4, "layout": "NN", "precision": TF32, "accumulate": F32, "architecture": "sm80"},
    ),
    (
        "cutlass_80_simt_sgemm_128x32_8x5_nn_align1",
        {"tile": (128, 32, 8), "stages": 5, "layout": "NN", "precision": F32, "accumulate": F32, "architecture": "sm80"},
    ),
    (
        "cutlass_75_tensorop_bf16_s1688gemm_bf16_256x128_tn_align1",
        {"tile": (256, 128), "layout": "TN", "precision": BF16, "accumulate": F32, "architecture": "sm75"},
    ),
    (
        "void x::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_64x128_32x3_nhwc_align4>(P)",
        {"tile": (64, 128, 32), "stages": 3, "layout": "NHWC", "precision": TF32, "accumulate": F32},
    ),
    (
        "cutlass3x_sm90_tensorop_s64x128x16gemm_f16_f16_f32_f16_f16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_pingpong",
        {"tile": (128, 128, 64), "layout": "TN", "precision": F16, "accumulate": F32, "architecture": "sm90", "persistent": True},
    ),
    # One assembly kernel per generation
    (
        "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn",
        {"tile": (128, 256, 64), "stages": 3, "layout": "NN", "precision": BF16, "accumulate": F32, "architecture": "ampere"},
    ),
    ("volta_sgemm_128x64_nt", {"tile": (128, 64), "layout": "NT", "precision": F32, "accumulate": F32, "architecture": "volta"}),
    ("volta_h884gemm_64x64_ldg8_nn", {"tile": (64, 64), "layout": "NN", "precision": F16, "accumulate": F16, "architecture": "volta"}),
    ("volta_dgemm_64x64_nn", {"tile": (64, 64), "layout": "NN", "precision": "float64", "accumulate": "float64", "architecture": "volta"}),
    ("ampere_s1688gemm_128x64_nn", {"tile": (128, 64), "layout": "NN", "accumulate": F32, "architecture": "ampere"}),
    (
        "volta_scudnn_128x128_stridedB_splitK_medium_nn_v1",
        {"tile": (128, 128), "splits_k": True, "layout": "NN", "precision": F32, "accumulate": F32, "architecture": "volta"},
    ),
    # Attention
    (
        "void f::flash_fwd_kernel<f::Flash_fwd_kernel_traits<64, 128, 96, 4, false, false, cutlass::bfloat16_t> >(P)",
        {"tile": (128, 96, 64), "precision": BF16},  # head 64, 128 rows of Q, 96 of K
    ),
    (
        "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::M<2, cute::tuple<cute::C<1>, cute::C<1>, "
        "cute::C<1> >, cute::tuple<cute::C<128>, cute::C<176>, cute::C<64> >, 64, cutlass::half_t, float> > > >(P)",
        {"tile": (128, 176, 64), "precision": F16, "architecture": "sm90"},
    ),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80", {"tile": (64, 128), "precision": BF16, "architecture": "sm80"}),
    (
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_kernel0_0",
        {"tile": (64, 128, 128), "architecture": "sm90"},
    ),
    # The others
    (
        "igemm_wrw_gtcx2_nhwc_bf16_bx0_ex1_bt256x128x16_wt32x32x8_ws2x1_wr2x2_gkgs",
        {"tile": (256, 128, 16), "splits_k": True, "layout": "NHWC", "precision": BF16},
    ),
    ("_ZN5aiter35bf16gemm_outf32_tn_96x64_pf3_splitkE", {"tile": (96, 64), "splits_k": True, "layout": "TN", "precision": BF16}),
    (
        "bmm_E4m3_E4m3E4m3_Fp32_t128x16x128_s7_et128x16_m128x16x32_cga1x1x1_TN_transOut",
        {"tile": (128, 16, 128), "stages": 7, "layout": "TN"},
    ),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", {"tile": (16, 128, 256), "split_k": 1}),
    ("void splitKreduce_kernel<32, 16, int, float>(cublasSplitKParams<float>, float const*)", {"splits_k": True}),
    ("void gemmSN_TN_kernel<float, 128, 16, cublasGemvTensorStridedBatched<__half const> >(x)", {"layout": "TN", "precision": F16}),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*)", {"collective": "all_reduce", "precision": BF16}),
    ("ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)", {"collective": "send_recv"}),  # bytes, not int8
    ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", {}),
    # PyTorch: the functor's type, not that of its arithmetic or of an index
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
        "at::native::MulFunctor<float> >, std::array<char*, 3ul> >(int)",
        {"vector_width": 8, "precision": BF16},
    ),
    (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#3}::operator()() const::{lambda(c10::Half)#1}>(x)::{lambda(int)#1}>(int)",
        {"precision": F16},
    ),
    ("void at::native::index_elementwise_kernel<128, 4, at::native::index_kernel_impl<at::native::OpaqueType<2> > >(long)", {}),
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::OpaqueType<2u>, unsigned int, 3, 64, 64>(x)", {}),
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::nan_to_num(x, c10::optional<double>)::{lambda(float)#1}, y>(int)",
        {"vector_width": 4, "precision": F32},
    ),
    # Nothing is read out of a name that only resembles
    ("my_gemm_128x128", {}),
    ("nvjet_tst_128x160", {}),
    ("Cijk_Ailk_Bljk_QQ_MT128x128x32_", {}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "expected"), FACTS, ids=[row[0][:60] for row in FACTS])
def test_facts_are_those_the_name_spells(name, expected):
    facts = describe(name).facts

    stated = {field.name: getattr(facts, field.name) for field in fields(KernelFacts)}
    assert {key: value for key, value in stated.items() if value not in (None, False)} == expected
