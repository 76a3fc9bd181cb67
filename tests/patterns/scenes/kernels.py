"""Traces whose kernels show a pattern. What a kernel should take is worked out beside it."""

from __future__ import annotations

from tests.patterns.scenes.stage import BF16, F32, H100, MI210, V100, Input, Stage, scene

FLASH = "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4>>"
FLASH_BACK = "void pytorch_flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64>>"


def heads(tokens: int, dtype: str = BF16, batch: int = 8) -> Input:
    """A tensor of 16 heads of width 64."""
    return ((batch, 16, tokens, 64), dtype)


@scene("attention", "decode_memory_bound")
def decoding() -> Stage:
    """Keys and values of 8 x 16 x 8,192 x 64 in bf16 twice are 268 MB: 84 µs at 3.2 TB/s."""
    stage = Stage()
    inputs = (heads(1), heads(8192), heads(8192), "0.", "False", "False", "")
    for _ in range(8):
        stage.call("aten::_scaled_dot_product_flash_attention", [("flash_fwd_splitkv_kernel<Flash_fwd>", 160)], inputs)
    return stage


@scene("attention", "fp32_attention")
def attention_in_fp32() -> Stage:
    """The memory-efficient kernels take fp32, the flash kernels do not."""
    stage = Stage()
    q = heads(1024, F32)
    for _ in range(4):
        stage.call(
            "aten::_scaled_dot_product_efficient_attention",
            [("fmha_cutlassF_f32_aligned_64x64_rf_sm80", 2000)],
            (q, q, q, "", "False", "0.", "False"),
        )
    return stage


@scene("attention", "fp32_on_fp16_units")
def attention_in_fp32_on_volta() -> Stage:
    """A GPU without bf16 and without TF32."""
    stage = Stage(V100)
    q = heads(1024, F32)
    for _ in range(4):
        stage.call(
            "aten::_scaled_dot_product_efficient_attention",
            [("fmha_cutlassF_f32_aligned_64x64_sm70", 9000)],
            (q, q, q, "", "False", "0.", "False"),
        )
    return stage


@scene("attention", "memory_efficient_backend")
def attention_with_a_mask() -> Stage:
    """A mask tensor keeps flash away."""
    stage = Stage()
    q = heads(2048)
    for _ in range(4):
        stage.call(
            "aten::_scaled_dot_product_efficient_attention",
            [("fmha_cutlassF_bf16_aligned_64x64_rf_sm80", 1500)],
            (q, q, q, ((8, 16, 2048, 2048), BF16), "False", "0.", "False"),
        )
    return stage


@scene("attention", "fused_backward")
def attention_backward() -> Stage:
    """Ten products of 8 x 16 heads, 2,048 x 2,048 x 64: 344 GFLOP, 0.43 ms at 795 TFLOP/s."""
    stage = Stage()
    q = heads(2048)
    inputs = (q, q, q, q, q, ((8, 16, 2048), F32), "", "", "2048", "2048", "0.", "False")
    stage.call("aten::mm", [("nvjet_tst_128x256", 500)], (((4096, 4096), BF16), ((4096, 4096), BF16)), sequence=7)
    for _ in range(4):
        begin = stage.host
        stage.host += 1
        stage.call("aten::_scaled_dot_product_flash_attention_backward", [(FLASH_BACK, 1400)], inputs)
        name = "autograd::engine::evaluate_function: ScaledDotProductFlashAttentionBackward0"
        stage.op(name, begin, stage.host - begin, sequence=3, forward_thread=1)
    return stage


@scene("attention", "layout_copies")
def attention_between_copies() -> Stage:
    """The op of a package that stacks its inputs first."""
    stage = Stage()
    q = heads(2048)
    copy = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::OpaqueType<2>>"
    for _ in range(6):
        stage.call(
            "aten::_scaled_dot_product_flash_attention",
            [(copy, 60), (copy, 60), (FLASH, 500)],
            (q, q, q, "0.", "False", "False", ""),
        )
    return stage


@scene("attention", "unfused_math")
def attention_in_pieces() -> Stage:
    """The math fallback: products, softmax and copies in one op."""
    stage = Stage()
    q = heads(1024, F32)
    kernels = [
        ("void at::native::vectorized_elementwise_kernel<4, MulFunctor>", 60),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n", 900),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10>", 400),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_nn_n", 900),
    ]
    for _ in range(4):
        stage.call("aten::_scaled_dot_product_attention_math", kernels, (q, q, q, "", "0.", "False"))
    return stage


def convolved(stage: Stage, kernel: str, us: float, shape: tuple[int, int, int], dtype: str, groups: int = 1) -> None:
    """A 3 x 3 convolution of 32 images; ``shape`` is channels and image."""
    channels, height, width = shape
    image: Input = ((32, channels, height, width), dtype)
    weight: Input = ((channels, channels // groups, 3, 3), dtype)
    inputs = (image, weight, "", "[1, 1]", "[1, 1]", "[1, 1]", "False", "[0, 0]", str(groups))
    stage.call("aten::convolution", [(kernel, us)], inputs)


@scene("convolution", "depthwise")
def depthwise() -> Stage:
    """One filter a channel."""
    stage = Stage()
    for _ in range(6):
        kernel = "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, c10::BFloat16, int>"
        convolved(stage, kernel, 260, (256, 56, 56), BF16, groups=256)
    return stage


@scene("convolution", "fp32_without_tf32")
def convolution_in_fp32() -> Stage:
    """32 x 56 x 56 x 256 x 256 x 9 x 2 = 118 GFLOP, 1.8 ms at 66.9 TFLOP/s."""
    stage = Stage(H100)
    for _ in range(4):
        convolved(stage, "implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, 3, 1>", 2600, (256, 56, 56), F32)
    return stage


@scene("convolution", "fp32_on_bf16_units")
def convolution_in_fp32_on_cdna2() -> Stage:
    """118 GFLOP, 2.6 ms at 45.3 TFLOP/s."""
    stage = Stage(MI210)
    for _ in range(4):
        convolved(stage, "igemm_fwd_gtcx2_nchw_fp32_bx0_ex1", 4200, (256, 56, 56), F32)
    return stage


@scene("elementwise", "cache_growth")
def growing_cache() -> Stage:
    """`torch.cat` of what is there already with one token, in each layer and step."""
    stage = Stage()
    kernel = "void at::native::(anonymous namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::OpaqueType<2>>"
    for _ in range(20):
        with stage.frame("transformers/cache_utils.py(120): update"):
            stage.call("aten::cat", [(kernel, 60)])
    return stage


@scene("gemm", "fp32_on_bf16_units")
def product_in_fp32_on_cdna2() -> Stage:
    """4,096 cubed is 137 GFLOP, 3.0 ms at 45.3 TFLOP/s."""
    stage = Stage(MI210)
    for _ in range(4):
        inputs = (((4096, 4096), F32), ((4096, 4096), F32))
        stage.call("aten::mm", [("Cijk_Ailk_Bljk_SB_MT128x128x16_SN", 4500)], inputs)
    return stage


@scene("gemm", "misaligned_rows")
def transposed_odd_rows() -> Stage:
    """A weight gradient: the first operand is stored transposed, and M is no multiple of 8."""
    stage = Stage()
    for _ in range(4):
        stage.call(
            "aten::mm", [("cutlass_80_tensorop_bf16_s16816gemm_bf16_128x128_64x4_nn_align1", 900)], (), **odd_rows()
        )
    return stage


def odd_rows() -> dict[str, list[object]]:
    """``[2,047, 8,192] @ [8,192, 4,096]`` with the first operand transposed."""
    return {
        "dims": [[2047, 8192], [8192, 4096]],
        "types": [BF16, BF16],
        "strides": [[1, 2047], [4096, 1]],
        "concrete": ["", ""],
    }


@scene("generic", "state_space")
def selective_scan() -> Stage:
    """Mamba's sequential scan."""
    stage = Stage()
    for _ in range(6):
        stage.call(
            "SelectiveScanFn", [("void selective_scan_fwd_kernel<Selective_Scan_fwd_kernel_traits<128, 16>>", 400)]
        )
    return stage


@scene("normalization", "sync_batch_norm")
def batch_norm_over_ranks() -> Stage:
    """The parts of SyncBatchNorm's forward pass."""
    stage = Stage()
    x: Input = ((32, 256, 56, 56), BF16)
    for _ in range(6):
        stage.call(
            "aten::batch_norm_stats", [("void at::native::batch_norm_collect_statistics_kernel<Var>", 90)], (x, "1e-05")
        )
        stage.call("aten::batch_norm_elemt", [("void at::native::batch_norm_transform_input_kernel", 110)], (x,))
    return stage


@scene("reduction", "generated_reductions")
def compiled_sums() -> Stage:
    """Kernels of the compiler that reduce and are no norm."""
    stage = Stage()
    for number in range(12):
        x: Input = ((8192, 4096), BF16)
        name = f"triton_red_fused_mul_sum_{number % 2}"
        stage.call(name, [(name, 60)], (x, ((8192,), BF16), "8192", "4096"))
    return stage
