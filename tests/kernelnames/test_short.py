"""Names for readers."""

# ruff: noqa: E501 - kernel names are as long as they are

from __future__ import annotations

import pytest

from rooftrace.kernelnames import describe

SHORT: list[tuple[str, str]] = [
    (
        "void at::native::vectorized_elementwise_kernel<8, at::native::BinaryFunctor<c10::BFloat16, c10::BFloat16, c10::BFloat16, "
        "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 3ul> >(int, at::native::X, std::array<char*, 3ul>)",
        "vectorized_elementwise_kernel<8, MulFunctor<float>>",
    ),
    (
        "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::(anonymous namespace)::direct_copy_kernel_cuda("
        "at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(x)::{lambda(int)#1}>(int)",
        "elementwise_kernel<128, 4, direct_copy_kernel_cuda>",
    ),
    (
        "Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN_LDSB1",
        "Cijk_Alik_Bljk_BBS_BH MT256x192x64",
    ),
    ("Cijk_Ailk_Bljk_S_B_Bias_HA_S_SAV_UserArgs_MT16x16x128_MI16x16x1_SN", "Cijk_Ailk_Bljk_S_B MT16x16x128"),
    ("nvjet_tst_128x160_64x6_1x2_h_bz_coopA_NNT", "nvjet_tst_128x160_64x6_1x2_h_bz_coopA_NNT"),
    ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevComm*, unsigned long)", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"),
    (
        "void cutlass::Kernel2<cutlass_80_tensorop_f16_s16816gemm_f16_128x64_64x6_nn_align8>(cutlass_80::Params)",
        "cutlass_80_tensorop_f16_s16816gemm_f16_128x64_64x6_nn_align8",
    ),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, float>(x)", "gemvx::kernel<int, float>"),
    (
        "_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb1ELb0ELb1ELi1EEEvPT0_PT_PfS4_S4_S4_diiiiiiib",
        "add_rmsnorm_quant_kernel<__bf16, __bf16, 256, 16, true, false, true, 1>",
    ),
    # Not understood from the expression on: what was read is kept.
    ("_ZN7sgl_hip10activation18act_and_mul_kernelI14__hip_bfloat16TnPFT_RKS3_EXadL_Z4siluEEEvv", "act_and_mul_kernel<__hip_bfloat16, …>"),
    ("__amd_rocclr_copyBuffer.kd", "__amd_rocclr_copyBuffer"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "short"), SHORT, ids=[row[1] for row in SHORT])
def test_a_short_name_keeps_what_tells_kernels_apart(name, short):
    assert describe(name).short == short


def test_a_long_name_is_cut_at_80_characters():
    short = describe("k" * 81).short

    assert short == "k" * 79 + "…"


def test_inner_template_arguments_go_before_outer_ones():
    name = "void f::kernel_of_some_length<A<B<C<D<int>, wide_name_one, wide_name_two>, wide_name_three>, wide_name_four>, 7>(x)"

    assert describe(name).short == "kernel_of_some_length<A<B<C<…>, wide_name_three>, wide_name_four>, 7>"
