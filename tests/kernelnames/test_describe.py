"""Category, library, kind and fusion of kernel names as profilers record them (shortened where long)."""

# ruff: noqa: E501 - kernel names are as long as they are

from __future__ import annotations

import pytest

from rooftrace.kernelnames import describe, inductor_ops

NVIDIA = "cuBLAS/cuBLASLt"
NVJET = "cuBLAS/cuBLASLt (nvjet)"
CUB = "rocPRIM/hipCUB/CUB"
TENSILE = "Tensile/hipBLASLt"
TORCH = "PyTorch native"
SYMM = "PyTorch symmetric memory"
OGS = "Triton (triton_kernels)"

# name, category, library
NAMES: list[tuple[str, str, str | None]] = [
    # Matrix products
    ("nvjet_tst_128x160_64x6_1x2_h_bz_coopA_NNT", "gemm", NVJET),
    ("nvjet_sm100_tst_mma_128x192x64_6_32x192x64_tmaAB_bz_TNT", "gemm", NVJET),
    ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_nn", "gemm", NVIDIA),
    ("volta_sgemm_128x64_nt", "gemm", NVIDIA),
    ("turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "gemm", NVIDIA),
    ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute", "gemm", NVIDIA),
    ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x6_tn_align8>(P)", "gemm", "CUTLASS"),
    ("cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_bf16_bf16_128x128x64_2x1x1_0_ttn_align8", "gemm", "CUTLASS"),
    ("void cublasLt::splitKreduce_kernel<32, 16, int, float>(cublasLt::cublasSplitKParams<float>)", "gemm", NVIDIA),
    ("void gemv2T_kernel_val<int, int, float, float, float, float, 128, 16, 2, 2, false>(int)", "gemm", NVIDIA),
    ("void dot_kernel<float, 128, 0, cublasDotParams<cublasGemvTensorStridedBatched<float const> > >(x)", "gemm", NVIDIA),
    ("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float, float>(x)", "gemm", NVIDIA),
    ("void magma_sgemmEx_kernel<float, float, float, true, false, 6, 4, 6, 3, 4>(int)", "gemm", NVIDIA),
    ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT256x192x64_MI16x16x1_SN", "gemm", TENSILE),
    ("rocblas_gemvn_kernel<64, 16, float>", "gemm", "rocBLAS"),
    ("void wvSplitK_hf_sml_<__hip_bfloat16, 64, 2, 16, 8, 2, 1>(int)", "gemm", "vLLM"),
    ("void marlin::Marlin<__nv_bfloat16, 256, 1, 8, 8, false, 4>(int4 const*)", "gemm", "Marlin"),
    ("void deep_gemm::sm90_fp8_gemm_1d2d_impl<0u, 7168u, 2048u>(float*)", "gemm", "DeepGEMM"),
    ("_w8a8_block_fp8_matmul", "gemm", "Triton"),
    ("bmm_E4m3_E4m3E4m3_Fp32_t128x16x128_s7_et128x16_m128x16x32_TN_transOut", "gemm", "TensorRT-LLM"),
    # Attention
    ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >(P)", "attention", "FlashAttention"),
    ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<128, 64> >(P)", "attention", "FlashAttention"),
    ("void flash::flash_fwd_splitkv_combine_kernel<Flash_fwd_kernel_traits<128, 64> >(P)", "attention", "FlashAttention"),
    ("void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<flash::X<2> > > >(P)", "attention", "FlashAttention"),
    ("fmha_cutlassF_bf16_aligned_64x128_rf_sm80(AttentionKernel<x>::Params)", "attention", "xFormers/CUTLASS attention"),
    ("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x128_4x1x1_k", "attention", "cuDNN"),
    ("void flashinfer::BatchDecodeWithPagedKVCacheKernel<(flashinfer::PosEncodingMode)0, 2u>(P)", "attention", "FlashInfer"),
    ("fmhaSm100fKernel_QkvBfloat16OBfloat16H128PagedKvCausalVarSeqQ128Kv128", "attention", "TensorRT-LLM"),
    ("attn_fwd", "attention", "AOTriton"),
    ("bwd_kernel_dk_dv", "attention", "AOTriton"),
    ("kernel_unified_attention_2d", "attention", "vLLM"),
    ("reduce_segments", "attention", "vLLM"),
    ("void vllm::merge_attn_states_kernel<__nv_bfloat16, 128u>(x)", "attention", "vLLM"),
    ("void paged_attention_ll4mi_QKV_mfma16_kernel<0, __hip_bfloat16, ck_tile::ComposedAttention<0u> >(x)", "attention", "vLLM"),
    ("_fwd_grouped_kernel_stage1", "attention", "SGLang"),
    ("_ZN5aiter37fmha_fwd_hd128_bf16_causal_group_rtneE", "attention", "AITER"),
    ("_ZN7ck_tile6kentryILi2ENS_13FmhaFwdKernelINS_20BlockFmhaPipelineAAAEEEEEvT0_", "attention", "CK"),
    ("micro_sdpa", "attention", "oneDNN"),
    # Mixture of experts
    ("fused_moe_kernel", "moe", "Triton"),
    ("void vllm::moe::topkGatingSoftmax<8, 128, 4, 16, 32, int>(float const*)", "moe", "vLLM"),
    ("void vllm::moe::moe_align_block_size_kernel<int>(int const*)", "moe", "vLLM"),
    ("_matmul_ogs_NNT_bf16xbf16xmxfp4_16x128x256x1_swiglu", "moe", OGS),
    ("_topk_forward", "moe", OGS),
    ("_ZN5aiter47fmoe_bf16_blockscaleFp8_g1u1_vs_silu_1tg_32x256E", "moe", "AITER"),
    ("void ck::kernel_moe_gemm<ck::GridwiseMoeGemm<1> >(int)", "moe", "CK"),
    # Elementwise
    ("void at::native::vectorized_elementwise_kernel<8, at::native::CUDAFunctor_add<c10::BFloat16>, std::array<char*, 3ul> >(int)", "elementwise", TORCH),
    ("void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl<at::native::(anonymous namespace)::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#2}::operator()() const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)", "elementwise", TORCH),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::all_gather_functor<float>, std::array<char*, 2ul> >(int)", "elementwise", TORCH),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, &(c10::BFloat16 vllm::silu_kernel<c10::BFloat16>(c10::BFloat16 const&)), true>(x)", "elementwise", "vLLM"),
    ("void vllm::rotary_embedding_kernel<c10::BFloat16, true>(long const*)", "elementwise", "vLLM"),
    ("SubTensorOpWithCastTensor1d", "elementwise", "MIOpen"),
    ("void cudnn::ops::scalePackedTensor_kernel<float, float>(long, float*, float)", "elementwise", "cuDNN"),
    # Reductions
    ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::NormTwoOps<float, float, float>, unsigned int, float, 4> >(x)", "reduction", TORCH),
    ("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, c10::BFloat16, float, c10::BFloat16>(x)", "reduction", TORCH),
    ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true, false>(float*)", "reduction", TORCH),
    ("void (anonymous namespace)::scaled_upper_triang_masked_softmax_warp_forward<c10::Half, c10::Half, float, 11>(x)", "reduction", "Apex"),
    ("void at::native::(anonymous namespace)::cunn_ClassNLLCriterion_updateOutput_kernel<float, float>(x)", "reduction", TORCH),
    ("void at::native::sbtopk::gatherTopK<float, unsigned int, 2, false>(x)", "reduction", TORCH),
    ("void cub::DeviceScanKernel<cub::DeviceScanPolicy<int>::Policy600, int*>(x)", "reduction", CUB),
    # Normalisation
    ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<c10::BFloat16, float>(int)", "normalization", TORCH),
    ("void at::native::batch_norm_transform_input_kernel<c10::BFloat16, c10::BFloat16, float, true, int>(x)", "normalization", TORCH),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous namespace)::batch_norm_calc_invstd(at::Tensor const&)::{lambda()#1}, x>(int)", "normalization", TORCH),
    ("void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, 512, true, 1>(cudnnTensorStruct)", "normalization", "cuDNN"),
    ("MIOpenBatchNormFwdTrainSpatial", "normalization", "MIOpen"),
    ("void cuApplyLayerNorm<c10::Half, float, c10::Half>(c10::Half*)", "normalization", "Apex"),
    ("void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", "normalization", "vLLM"),
    ("_ZN5aiter24add_rmsnorm_quant_kernelIDF16bDF16bLi256ELi16ELb0ELb0ELb1ELi1EEEvPT0_", "normalization", "AITER"),
    ("_rms_norm_forward_kernel", "normalization", "Triton"),
    # Convolutions
    ("void implicit_convolve_sgemm<float, float, 1024, 6, 7, 3, 3, 5, 1, false, true, true>(int)", "convolution", "cuDNN"),
    ("sm80_xmma_dgrad_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nhwc_tilesize128x128x16_stage4", "convolution", "cuDNN"),
    ("volta_scudnn_128x64_relu_interior_nn_v1", "convolution", "cuDNN"),
    ("void cutlass__5x_cudnn::Kernel<cutlass_tensorop_bf16_s16816fprop_optimized_bf16_256x64_32x4_nhwc_align8>(P)", "convolution", "cuDNN"),
    ("ampere_gcgemm_64x64_nt", "convolution", "cuDNN"),
    ("void fft2d_c2r_32x32<float, false, false, 0u, false, false>(float*)", "convolution", "cuDNN"),
    ("igemm_fwd_gtcx2_nhwc_bf16_bx0_ex1_bt128x128x32_wt32x32x8_ws1x1_gkgs", "convolution", "MIOpen"),
    ("Im2d2Col_v2", "convolution", "MIOpen"),
    ("_ZN2ck16tensor_operation6device12_GLOBAL__N_139kernel_grouped_conv_fwd_xdl_cshuffle_v3INS_1AEEEvv", "convolution", "CK"),
    # Memory, optimizer, quantisation, embedding, sort, state space
    ("void at::native::(anonymous namespace)::CatArrayBatchedCopy<float, unsigned int, 2, 128, 1>(float*)", "memory", TORCH),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, std::array<char*, 1ul> >(int)", "memory", TORCH),
    ("void cudnn::ops::nchwToNhwcKernel<float, float, float, false, true>(x)", "memory", "cuDNN"),
    ("batched_transpose_16x64_pack_1x4_ediv_1x2_half", "memory", "MIOpen"),
    ("void vllm::reshape_and_cache_flash_kernel<__hip_bfloat16, __hip_bfloat16>(x)", "memory", "vLLM"),
    ("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::TensorListMetadata<2>, x>(y)", "optimizer", TORCH),
    ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)", "optimizer", "Apex"),
    ("void vllm::dynamic_per_token_scaled_fp8_quant_kernel<c10::BFloat16, c10::Float8_e4m3fn>(x)", "quantization", "vLLM"),
    ("_per_token_group_quant_fp8", "quantization", "Triton"),
    ("void fbgemm_gpu::(anonymous namespace)::_compute_FP8_quantize_cuda_kernel<float>(x)", "quantization", "FBGEMM"),
    ("void at::native::(anonymous namespace)::indexSelectLargeIndex<c10::BFloat16, long, unsigned int, 2, 2, -2, true>(x)", "embedding", TORCH),
    ("void at::native::index_elementwise_kernel<128, 4, at::native::gpu_index_kernel<x> >(long)", "embedding", TORCH),
    ("void split_embedding_backward_codegen_rowwise_adagrad_unweighted_kernel_cta_per_row_1<float>(x)", "embedding", "FBGEMM"),
    ("void at::native::(anonymous namespace)::compute_grad_weight<float, int>(int*)", "embedding", TORCH),
    ("void cub::DeviceRadixSortOnesweepKernel<cub::DeviceRadixSortPolicy<long, int, int>::Policy800>(x)", "sort", CUB),
    ("void at::native::bitonicSortKVInPlace<2, -1, 16, 16, long, long>(x)", "sort", TORCH),
    ("void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<32, 4> >(SSMParamsBase)", "ssm", "Mamba"),
    ("void causal_conv1d_fwd_kernel<Causal_conv1d_fwd_kernel_traits<128, 4> >(ConvParamsBase)", "ssm", "Mamba"),
    ("_chunk_scan_fwd_kernel", "ssm", "Mamba"),
    ("chunk_gated_delta_rule_fwd_kernel_h_blockdim64", "ssm", "Flash Linear Attention"),
    # Inductor: what the kernel does, bounded by its kind
    ("triton_poi_fused_add_cos_sin_0", "elementwise", "Inductor"),
    ("triton_poi_fused__scaled_dot_product_flash_attention_cat_transpose_view_10", "elementwise", "Inductor"),
    ("triton_poi_fused__unsafe_view_clone_slice_transpose_11", "memory", "Inductor"),
    ("triton_poi_fused_embedding_0", "embedding", "Inductor"),
    ("triton_red_fused__softmax_3", "reduction", "Inductor"),
    ("triton_red_fused_add_mean_mul_pow_rsqrt_0", "normalization", "Inductor"),
    ("triton_red_fused_add_addmm_mul_native_layer_norm_split_unsqueeze_view_16", "normalization", "Inductor"),
    ("triton_tem_fused_addmm_relu_5", "gemm", "Inductor"),
    ("triton_tem_fused_flex_attention_0", "attention", "Inductor"),
    ("triton_tem_fused_something_new_1", "triton", "Inductor"),
    ("triton__0d1d2d3d4de", "triton", "Inductor"),
    ("triton_red_fused__to_copy_add_custom_mean_mul_pow_rsqrt_1", "normalization", "Inductor"),
    ("triton_poi_fused_my_own_op_3", "triton", "Inductor"),
    ("triton_mm", "triton", "Triton"),
    # XLA and SYCL
    ("loop_add_fusion", "elementwise", "XLA"),
    ("triton_softmax_3", "reduction", "XLA"),
    ("_ZTSN2at6native3xpu27VectorizedElementwiseKernelILi4EfEE", "elementwise", TORCH),
    # Nothing to go by
    ("void at::native::(anonymous namespace)::max_pool_forward_nchw<float, float>(int)", "generic", TORCH),
    ("_fwd_kernel", "generic", "Triton"),
    ("Kernel", "generic", None),
]  # fmt: skip

COMMUNICATION: list[tuple[str, str]] = [
    ("ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)", "NCCL"),
    ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
    ("ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "NCCL"),
    ("ncclSymkDevKernel_AllReduce_AGxLLMC_R_sum_bf16(ncclSymkDevWorkArgs4K)", "NCCL"),
    ("mscclKernel_Sum_half_Simple_true", "RCCL"),
    ("oneccl_allreduce_small_kernel", "oneCCL"),
    ("msccl_kernel", "RCCL"),
    ("hccl_AllReduce", "HCCL"),
    ("hcom_allReduce__123_1", "HCCL"),
    ("void vllm::cross_device_reduce_1stage<__nv_bfloat16, 4>(vllm::RankData*)", "vLLM"),
    ("void sglang::cross_device_reduce_2stage<__nv_bfloat16, 8>(sglang::RankData*)", "SGLang"),
    ("_ZN5aiter26cross_device_reduce_1stageI14__hip_bfloat16Li8EEEvPNS_8RankDataE", "AITER"),
    ("void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<x>(P)", "FlashInfer"),
    ("void tensorrt_llm::kernels::oneShotAllReduceKernel<__nv_bfloat16, 8>(P)", "TensorRT-LLM"),
    ("void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 8>(x)", SYMM),
    ("void (anonymous namespace)::multimem_one_shot_all_reduce_kernel<c10::BFloat16, 16>(x)", SYMM),
    ("userbuffers_fp16_sum_inplace_gpu_mc_rs_oop", "Transformer Engine"),
    ("void deep_ep::internode_ll::dispatch<true, false, 7168>(void*)", "DeepEP"),
    ("void deep_ep::intranode::combine<__nv_bfloat16, 8, 768, 4096>(x)", "DeepEP"),
    ("barrier_on_stream_kernel_threadgroup", "NVSHMEM"),
]  # fmt: skip

COPIES_AND_FILLS: list[tuple[str, str]] = [
    ("__amd_rocclr_copyBuffer", "copy"),
    ("__amd_rocclr_copyBufferAligned.kd", "copy"),
    ("MEMORY_COPY_DEVICE_TO_HOST", "copy"),
    ("CopyHostToDevice", "copy"),
    ("FillBuffer", "fill"),
    ("__amd_rocclr_fillBufferAligned", "fill"),
]

FUSED: list[tuple[str, bool]] = [
    ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4> >(P)", True),
    ("void vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(x)", True),
    ("void vllm::rms_norm_kernel<c10::BFloat16>(c10::BFloat16*)", False),
    ("void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(x)", True),
    ("void vllm::act_and_mul_kernel<c10::BFloat16, x>(y)", True),
    ("fused_moe_kernel", True),
    ("triton_poi_fused_add_cos_sin_0", True),
    ("triton_poi_fused__to_copy_1", False),  # one op
    ("triton_poi_fused_0", True),  # fused, but does not say what
    ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>, float>(int)", True),
    # `relu` is part of the name of every such CUTLASS instance, whatever its epilogue does.
    ("cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_256x128_32x3_tn_align8", False),
    ("void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float> >(int)", False),
    ("void at::native::(anonymous namespace)::ComputeFusedParamsCUDAKernel<float>(long)", False),
]


@pytest.mark.parametrize(("name", "category", "library"), NAMES, ids=[row[0][:60] for row in NAMES])
def test_a_kernel_is_told_by_its_name(name, category, library):
    info = describe(name)

    assert (info.category, info.library, info.kind) == (category, library, "kernel")


@pytest.mark.parametrize(("name", "library"), COMMUNICATION, ids=[row[0][:60] for row in COMMUNICATION])
def test_transfers_between_devices_are_communication(name, library):
    info = describe(name)

    assert (info.category, info.library, info.kind) == ("communication", library, "communication")


@pytest.mark.parametrize(("name", "kind"), COPIES_AND_FILLS)
def test_copies_that_rocm_records_as_kernels_are_not_kernels(name, kind):
    info = describe(name)

    assert (info.category, info.library, info.kind) == ("memory", "ROCm runtime", kind)


@pytest.mark.parametrize(("name", "fused"), FUSED, ids=[row[0][:60] for row in FUSED])
def test_a_fused_kernel_says_so(name, fused):
    assert describe(name).fused is fused


def test_the_name_as_recorded_stays_the_key():
    name = "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<int> >(int)\n"

    assert describe(name).name == name


def test_inductor_names_are_read_as_the_longest_known_ops():
    # _to_copy | cat | slice: not `_to_copy_cat`, nor `to` and `copy`
    assert inductor_ops("triton_poi_fused__to_copy_cat_slice_1") == ("_to_copy", "cat", "slice")
    assert inductor_ops("triton_red_fused_native_layer_norm_view_16") == ("native_layer_norm", "view")
    assert inductor_ops("triton_poi_fused_my_own_op_3") is None
    assert inductor_ops("triton_poi_fused_0") == ()
    assert inductor_ops("volta_sgemm_128x64_nt") is None
