"""Work that is one kernel already: nothing is planted, and nothing may be found."""

from __future__ import annotations

from evals.workshop.fusions import kernels, ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.norms import attended, one_kernel_rms_norm
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

X = (8, 512, 2048)
FAMILY = "already fused"


def one(r: Recorder, op: str, kernel: str, inputs: tuple[object, ...], out: Tensor, *, flops: float = 0.0) -> Tensor:
    """An op of a library with one kernel."""
    reads = tuple(value for value in inputs if isinstance(value, Tensor))
    with r.op(op, *inputs):
        r.launch(kernel, Work(reads=reads, writes=(out,), flops=flops))
    return out


def between_products(r: Recorder, kind: str, op: str, kernel: str, *more: tuple[int, ...]) -> None:
    """A fused op on a product's result in its module, in three layers."""
    for layer in range(3):
        with r.module(f"Layer_{layer}"):
            with r.module(f"Linear_{2 * layer}"):
                x = ops.linear(r, tensor(X, "bf16"), 2048)
            with r.module(f"{kind}_{layer}"):
                y = one(r, op, kernel, (x, *(tensor(shape, "bf16") for shape in more), "1e-06"), tensor(X, "bf16"))
            with r.module(f"Linear_{2 * layer + 1}"):
                r.need(ops.linear(r, y, 2048))


@case(FAMILY)
def flash_attention_h100(r: Recorder) -> None:
    """``_flash_attention_forward`` under ``scaled_dot_product_attention``."""
    for layer in range(3):
        q, k, v = (tensor((8, 16, 512, 64), "bf16") for _ in range(3))
        out = tensor(q.shape, "bf16")
        with r.module(f"Attention_{layer}"):
            r.need(ops.linear(r, tensor(X, "bf16"), 1024))
            with (
                r.op("aten::scaled_dot_product_attention", q, k, v, None, "0.", "False", None, "False"),
                r.op("aten::_scaled_dot_product_flash_attention", q, k, v, "0.", "False", "False", None),
                r.op("aten::_flash_attention_forward", q, k, v, None, None, "512", "512", "0.", "False", "False", None),
            ):
                kernel = (
                    "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, 128, 4> >"
                )
                r.launch(kernel, Work(reads=(q, k, v), writes=(out,), flops=17e9, unit=("matrix", "bf16")))
            r.need(out)


@case(FAMILY, MI300X)
def flash_attention_mi300x(r: Recorder) -> None:
    """AITER's assembly and composable kernel's."""
    for layer in range(2):
        q = tensor((8, 512, 16, 128), "bf16")
        for op, kernel in (
            ("aiter::fmha_v3_fwd", "aiter::fmha_fwd_hd128_bf16_causal"),
            ("aiter::mha_fwd", "_ZN7ck_tile6kentryILi256ELi2ENS_13FmhaFwdKernelINS_22BlockFmhaPipelineQRKSVS"),
        ):
            with r.module(f"Attention_{layer}"):
                r.need(one(r, op, kernel, (q, q, q, "0."), tensor(q.shape, "bf16"), flops=17e9))


@case(FAMILY)
def attention_of_cudnn_and_cutlass(r: Recorder) -> None:
    """The other fused kernels of ``scaled_dot_product_attention``."""
    q = tensor((8, 16, 512, 64), "bf16")
    for op, kernel in (
        (
            "aten::_cudnn_attention_forward",
            "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_6_64x64x64_4x1x1",
        ),
        (
            "aten::_efficient_attention_forward",
            "fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::Params)",
        ),
    ):
        for _ in range(2):
            r.need(one(r, op, kernel, (q, q, q, None, "0."), tensor(q.shape, "bf16"), flops=17e9))


@case(FAMILY)
def norms_of_the_library_h100(r: Recorder) -> None:
    """Between products, where no add could join them."""
    for layer in range(3):
        with r.module(f"LayerNorm_{layer}"):
            y = ops.layer_norm(r, tensor(X, "bf16"))
        with r.module(f"Linear_{layer}"):
            r.need(ops.linear(r, y, 2048))
        with r.module(f"RMSNorm_{layer}"):
            y = one_kernel_rms_norm(r, tensor(X, "bf16"))
        with r.module(f"Linear_{layer + 9}"):
            r.need(ops.linear(r, y, 2048))


@case(FAMILY)
def norms_of_apex(r: Recorder) -> None:
    """FusedRMSNorm."""
    kernel = "void (anonymous namespace)::cuApplyRMSNorm<c10::BFloat16, float, c10::BFloat16>(c10::BFloat16*, float*)"
    between_products(r, "FusedRMSNorm", "FusedRMSNormAffineFunction", kernel, (2048,))


@case(FAMILY)
def norms_of_transformer_engine(r: Recorder) -> None:
    """LayerNorm of Transformer Engine."""
    kernel = (
        "void transformer_engine::normalization::ln_fwd_tuned_kernel<transformer_engine::normalization::Kernel_traits"
        "<__nv_bfloat16, __nv_bfloat16, __nv_bfloat16, float, unsigned int, 2048u, 1u, 4u, 1u, 16u> >"
    )
    between_products(r, "LayerNorm", "tex_ts::layernorm_fwd", kernel, (2048,), (2048,))


@case(FAMILY)
def norms_of_liger(r: Recorder) -> None:
    """A Triton kernel written by hand."""
    between_products(r, "LigerRMSNorm", "LigerRMSNormFunction", "_rms_norm_forward_kernel", (2048,))


@case(FAMILY, MI300X)
def norms_of_aiter(r: Recorder) -> None:
    """AITER's composable-kernel norm."""
    kernel = (
        "void ck_tile::kentry<1, ck_tile::Rmsnorm2dFwd<ck_tile::Rmsnorm2dFwdPipelineOnePass> >(ck_tile::Rmsnorm2dFwd)"
    )
    between_products(r, "RMSNorm", "aiter::rmsnorm2d_fwd", kernel, (2048,))


@case(FAMILY)
def layers_of_vllm(r: Recorder) -> None:
    """Residual and norm, rotary embedding, gate: a kernel each."""
    x, weight = tensor((4096, 4096), "bf16"), tensor((4096,), "bf16")
    t = "c10::BFloat16"
    for layer in range(2):
        with r.module(f"LlamaDecoderLayer_{layer}"):
            y = one(
                r,
                "_C::fused_add_rms_norm",
                f"void vllm::fused_add_rms_norm_kernel<{t}, 8>({t}*)",
                (x, x, weight, "1e-05"),
                x,
            )
            ops.linear(r, y, 6144)
            q = tensor((4096, 32, 128), "bf16")
            one(r, "_C::rotary_embedding", f"void vllm::rotary_embedding_kernel<{t}, true>(long const*)", (q, q), q)
            ops.linear(r, y, 8192)
            wide = tensor((4096, 8192), "bf16")
            kernel = f"void vllm::act_and_mul_kernel<{t}, &vllm::silu_kernel<{t}> >({t}*, {t} const*, int)"
            r.need(one(r, "_C::silu_and_mul", kernel, (x, wide), x))


@case(FAMILY)
def layers_of_inductor(r: Recorder) -> None:
    """Everything in generated kernels with several ops each."""
    x = tensor(X, "bf16")
    for _ in range(2):
        with r.op("Torch-Compiled Region: 0/0"):
            for name in (
                "triton_red_fused__to_copy_add_mean_mul_pow_rsqrt_0",
                "triton_poi_fused_mul_silu_1",
                "triton_per_fused_add_native_layer_norm_2",
                "triton_poi_fused_add_cat_mul_neg_3",
            ):
                out = tensor(X, "bf16")
                with r.op(name, x, x, out, "8388608"):
                    r.launch(name, Work(reads=(x, x), writes=(out,), flops=out.numel), call="cuLaunchKernel")
                r.need(out)
                x = out


@case(FAMILY)
def gates_and_rotary_of_liger(r: Recorder) -> None:
    """Two more Triton kernels written by hand."""
    between_products(r, "LigerSwiGLUMLP", "LigerSiLUMulFunction", "_swiglu_forward_kernel", X)
    between_products(r, "LigerRope", "LigerRopeFunction", "_triton_rope", (512, 128), (512, 128))


@case(FAMILY)
def optimizer_over_many_tensors_at_once_h100(r: Recorder) -> None:
    """``foreach``: a launch an operation for all parameters."""
    weights = [tensor((1024, 1024), "f32") for _ in range(24)]
    with r.span("user_annotation", "Optimizer.step#AdamW.step"):
        for op, functor in (
            ("aten::_foreach_mul_", "BinaryOpScalarFunctor<float, 1, 1, 0>"),
            ("aten::_foreach_lerp_", "TernaryOpScalarFunctor<float, 2, 2, 0>"),
            ("aten::_foreach_addcmul_", "PointwiseOpScalarFunctor<float, 3, 3, 0>"),
            ("aten::_foreach_sqrt", "UnaryOpFunctor<float, 2, 1, 1>"),
            ("aten::_foreach_addcdiv_", "PointwiseOpScalarListFunctor<float, 3, 3, 0>"),
        ):
            with r.op(op, weights, weights, "0.9"):
                r.launch(kernels.multi_tensor(functor), Work(reads=tuple(weights), writes=tuple(weights)))


@case(FAMILY, MI300X)
def optimizer_in_one_kernel_mi300x(r: Recorder) -> None:
    """``fused=True`` and Apex."""
    weights = [tensor((1024, 1024), "f32") for _ in range(24)]
    with r.span("user_annotation", "Optimizer.step#AdamW.step"):
        for op, kernel in (
            (
                "aten::_fused_adamw_",
                kernels.multi_tensor("FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>"),
            ),
            (
                "FusedAdamFunction",
                "void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float, float, int> >(long)",
            ),
        ):
            with r.op(op, weights, weights, weights, weights):
                r.launch(kernel, Work(reads=tuple(weights), writes=tuple(weights)))


@case(FAMILY)
def product_with_its_activation(r: Recorder) -> None:
    """``_addmm_activation``: cuBLASLt's epilogue."""
    for _ in range(3):
        x, weight, bias = tensor((4096, 1024), "bf16"), tensor((4096, 1024), "bf16"), tensor((4096,), "bf16")
        out = tensor((4096, 4096), "bf16")
        with r.op("aten::_addmm_activation", bias, x, weight.permuted(1, 0), "1", "1", "True"):
            work = Work(reads=(x, weight, bias), writes=(out,), flops=2.0 * 4096 * 1024 * 4096, unit=("matrix", "bf16"))
            r.launch(kernels.product("nvidia", "bf16"), work)
        r.need(ops.linear(r, out, 1024, bias=True))


@case(FAMILY, MI300X)
def convolution_with_its_activation_mi300x(r: Recorder) -> None:
    """MIOpen's fused convolution."""
    for _ in range(3):
        x, weight, bias = tensor((16, 64, 56, 56), "f32"), tensor((64, 64, 3, 3), "f32"), tensor((64,), "f32")
        out = tensor(x.shape, "f32")
        with r.op("aten::miopen_convolution_relu", x, weight, bias, [1, 1], [1, 1], [1, 1], "1"):
            kernel = "miopenSp3AsmConv_v30_3_1_gfx94x_fp32_f2x3_stride1"
            r.launch(kernel, Work(reads=(x, weight, bias), writes=(out,), flops=3.7e9, unit=("matrix", "f32")))
        r.need(out)


@case(FAMILY)
def masked_softmax_of_megatron(r: Recorder) -> None:
    """Scale, mask and softmax in one, between two products."""
    for layer in range(2):
        q, k, v = tensor((128, 512, 64), "bf16"), tensor((128, 64, 512), "bf16"), tensor((128, 512, 64), "bf16")
        with r.module(f"CoreAttention_{layer}"):
            scores, weights, out = (tensor(s, "bf16") for s in ((128, 512, 512), (128, 512, 512), (128, 512, 64)))
            work = Work(reads=(q, k), writes=(scores,), flops=2.0 * 128 * 512 * 512 * 64, unit=("matrix", "bf16"))
            with r.op("aten::baddbmm", scores, q, k, "0", "1"):
                r.launch(kernels.product("nvidia", "bf16"), work)
            name = "scaled_upper_triang_masked_softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, 9>"
            kernel = f"void (anonymous namespace)::{name}"
            one(r, "ScaledUpperTriangMaskedSoftmax", kernel, (scores, "0.125"), weights)
            with r.op("aten::bmm", weights, v):
                work = Work(reads=(weights, v), writes=(out,), flops=work.flops, unit=("matrix", "bf16"))
                r.launch(kernels.product("nvidia", "bf16"), work)
            r.need(out)


@case(FAMILY)
def loss_of_liger_and_apex(r: Recorder) -> None:
    """Cross entropy in one kernel."""
    logits = tensor((4096, 32000), "bf16")
    for op, kernel in (
        ("LigerCrossEntropyFunction", "liger_cross_entropy_kernel"),
        (
            "SoftmaxCrossEntropyLoss",
            "void cunn_SoftMaxXEntropyForward<8, c10::BFloat16, float, float, Epilogue>(float*)",
        ),
    ):
        for _ in range(2):
            r.need(one(r, op, kernel, (logits, tensor((4096,), "i64")), tensor((4096,), "f32")))


@case(FAMILY)
def gradient_norm_over_many_tensors(r: Recorder) -> None:
    """``clip_grad_norm_`` with ``foreach``."""
    grads = [tensor((1024, 1024), "f32") for _ in range(24)]
    for op, functor in (
        ("aten::_foreach_norm", "LpNormFunctor<float, (at::native::NormType)1, float, 1, 1, 0>"),
        ("aten::_foreach_mul_", "BinaryOpScalarTensorFunctor<float, 1, 1, 0>"),
    ):
        with r.op(op, grads, "2"):
            r.launch(kernels.multi_tensor(functor), Work(reads=tuple(grads), writes=tuple(grads)))


@case(FAMILY)
def activations_and_softmax_of_the_library(r: Recorder) -> None:
    """Single ops that are what compositions are replaced by, with products of other shapes between."""
    for layer in range(2):
        with r.module(f"Head_{layer}"):
            r.need(ops.softmax(r, tensor((8, 512, 1000), "f32")))
            r.need(ops.linear(r, attended(r, tensor(X, "bf16")), 1000))
