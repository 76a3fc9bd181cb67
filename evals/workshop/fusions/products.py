"""What matrix products and convolutions could take in: bias, residual, activation."""

from __future__ import annotations

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

INPUT = (8, 512, 1024)


@case("gemm_epilogue")
def gelu_after_a_product_h100(r: Recorder) -> None:
    """``addmm`` has the bias; GELU is a kernel of its own."""
    for layer in range(3):
        with r.module(f"MLP_{layer}"):
            with r.module(f"Linear_{2 * layer}"):
                x = ops.linear(r, tensor(INPUT, "bf16"), 4096, bias=True)
            with r.module(f"GELU_{layer}"), r.epilogue():
                x = ops.unary(r, "gelu", x, "none")
            with r.module(f"Linear_{2 * layer + 1}"):
                r.need(ops.linear(r, x, 1024, bias=True))


@case("gemm_epilogue", MI300X, stacks=False)
def relu_after_a_product_without_stacks_mi300x(r: Recorder) -> None:
    """Ops only, in half precision."""
    for _ in range(2):
        x = ops.linear(r, tensor(INPUT, "f16"), 4096, bias=True)
        with r.epilogue():
            x = ops.unary(r, "relu", x)
        r.need(ops.linear(r, x, 1024, bias=True))


@case("gemm_epilogue")
def gelu_after_a_product_in_training(r: Recorder) -> None:
    """The backward pass reads the activation's input: the product is written as well."""
    r.trains = True
    for layer in range(2):
        with r.module(f"MLP_{layer}"):
            with r.module(f"Linear_{2 * layer}"):
                x = ops.linear(r, tensor(INPUT, "bf16"), 4096, bias=True)
            r.need(x)
            with r.module(f"GELU_{layer}"), r.epilogue():
                x = ops.unary(r, "gelu", x, "none")
            with r.module(f"Linear_{2 * layer + 1}"):
                r.need(ops.linear(r, x, 1024, bias=True))
    with r.on(tid=2), r.op("autograd::engine::evaluate_function: GeluBackward0"):
        pass


@case("gemm_epilogue")
def residual_after_a_product_h100(r: Recorder) -> None:
    """The residual's bytes have to be read by whoever adds it."""
    for layer in range(3):
        residual = tensor(INPUT, "bf16")
        with r.module(f"Block_{layer}"):
            with r.module(f"Linear_{layer}"):
                x = ops.linear(r, tensor((8, 512, 4096), "bf16"), 1024, bias=True)
            with r.epilogue():
                x = ops.binary(r, "add", residual, x)
        r.need(x)
        with r.op("aten::topk", x, "8", "-1", "True", "True"):
            r.launch("void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>", Work(reads=(x,)))


@case("gemm_epilogue", MI300X)
def bias_and_relu_after_a_product_mi300x(r: Recorder) -> None:
    """A product without bias, the bias added, then the activation: both join."""
    for layer in range(2):
        with r.module(f"Dense_{layer}"):
            with r.module(f"Linear_{layer}"):
                x = ops.linear(r, tensor(INPUT, "bf16"), 4096)
            with r.epilogue():
                x = ops.unary(r, "relu", ops.binary(r, "add", x, tensor((4096,), "bf16")))
            r.need(ops.linear(r, x, 1024, bias=True))


@case("gemm_epilogue")
def scaled_product_and_residual_h100(r: Recorder) -> None:
    """Low-rank adapters: the second product times a number, added to the layer's result."""
    for layer in range(2):
        x, base = tensor(INPUT, "bf16"), tensor((8, 512, 4096), "bf16")
        with r.module(f"LoraLinear_{layer}"):
            low = ops.linear(r, x, 16)
            high = ops.linear(r, low, 4096)
            with r.epilogue():
                r.need(ops.binary(r, "add", base, ops.scalar(r, "mul", high)))
            with r.op("aten::topk", base, "8", "-1", "True", "True"):
                r.launch("void at::native::sbtopk::gatherTopK<c10::BFloat16, unsigned int, 2, false>", Work())


def conv(r: Recorder, x: Tensor, channels: int) -> Tensor:
    """A 3 x 3 convolution that keeps height and width."""
    weight = tensor((channels, x.shape[1], 3, 3), x.dtype)
    out = tensor((x.shape[0], channels, *x.shape[2:]), x.dtype)
    flops = 2.0 * out.numel * x.shape[1] * 9
    amd = r.gpu.vendor == "amd"
    kernel = (
        "igemm_fwd_gtcx3_nhwc_bf16_bx0_ex1_bt256x128x32_wt32x32x8_ws1x1_wr4x2_ta1x8x4x1_1x4x1x64_tb1x8x2x1_1x4x1x64"
        if amd
        else "sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_tilesize128x128x64_warpgroupsize1x1x1"
        "_g1_execute_segment_k_off_kernel__5x_cudnn"
    )
    flat = [1, 1]
    inner = "aten::miopen_convolution" if amd else "aten::cudnn_convolution"
    with (
        r.op("aten::conv2d", x, weight, None, flat, flat, flat, "1"),
        r.op("aten::convolution", x, weight, None, flat, flat, flat, "False", [0, 0], "1"),
        r.op(
            "aten::_convolution",
            x,
            weight,
            None,
            flat,
            flat,
            flat,
            "False",
            [0, 0],
            "1",
            "False",
            "False",
            "True",
            "True",
        ),
    ):
        given = (
            (None, flat, flat, flat, "1", "False", "False")
            if amd
            else (flat, flat, flat, "1", "False", "False", "True")
        )
        with r.op(inner, x, weight, *given):
            r.launch(kernel, Work(reads=(x, weight), writes=(out,), flops=flops, unit=("matrix", x.dtype)))
    return out


@case("conv_epilogue")
def relu_after_a_convolution_h100(r: Recorder) -> None:
    """A plain stack of convolutions."""
    for layer in range(3):
        with r.module(f"ConvBlock_{layer}"):
            with r.module(f"Conv2d_{layer}"):
                x = conv(r, tensor((16, 64, 112, 112), "bf16"), 64)
            with r.module(f"ReLU_{layer}"), r.epilogue("conv_epilogue"):
                r.need(ops.unary(r, "relu", x))


@case("conv_epilogue", MI300X)
def residual_and_relu_after_a_convolution_mi300x(r: Recorder) -> None:
    """A residual block with its norms folded away."""
    for layer in range(2):
        shortcut = tensor((16, 64, 112, 112), "bf16")
        with r.module(f"Bottleneck_{layer}"):
            with r.module(f"Conv2d_{layer}"):
                x = conv(r, tensor((16, 64, 112, 112), "bf16"), 64)
            with r.epilogue("conv_epilogue"):
                x = ops.binary(r, "add", x, shortcut)
                with r.module(f"ReLU_{layer}"):
                    r.need(ops.unary(r, "relu", x))


def batch_norm(r: Recorder, x: Tensor) -> Tensor:
    """The library's BatchNorm in evaluation."""
    four = tuple(tensor((x.shape[1],), "f32") for _ in range(4))
    out = tensor(x.shape, x.dtype)
    args = (x, *four, "False", "0.1", "1.0000000000000001e-05")
    kernel = "void at::native::batch_norm_transform_input_kernel<float, float, float, true, int>(float const*)"
    with (
        r.op("aten::batch_norm", *args, "True"),
        r.op("aten::_batch_norm_impl_index", *args, "True"),
        r.op("aten::native_batch_norm", *args),
    ):
        r.launch(kernel, Work(reads=(x, *four), writes=(out,), flops=4 * x.numel))
    return out


@case("add_act")
def residual_add_and_relu_behind_a_batch_norm_h100(r: Recorder) -> None:
    """ResNet: the norm is one kernel of a library, add and activation behind it could be one."""
    for layer in range(3):
        shortcut = tensor((16, 64, 112, 112), "f32")
        with r.module(f"Bottleneck_{layer}"):
            with r.module(f"BatchNorm2d_{layer}"):
                x = batch_norm(r, tensor((16, 64, 112, 112), "f32"))
            with r.plant("add_act"):
                x = ops.binary(r, "add_", x, shortcut)
                with r.module(f"ReLU_{layer}"):
                    r.need(ops.unary(r, "relu_", x))


@case("dropout_add")
def dropout_and_residual_in_training_h100(r: Recorder) -> None:
    """Before a norm of another kind, so that only two can be one."""
    r.trains = True
    for layer in range(2):
        residual = tensor(INPUT, "bf16")
        with r.module(f"GPT2Block_{layer}"):
            with r.module(f"Linear_{layer}"):
                x = ops.linear(r, tensor(INPUT, "bf16"), 1024, bias=True)
            with r.plant("dropout_add"):
                with r.module(f"Dropout_{layer}"):
                    x = ops.dropout(r, x)
                r.need(ops.binary(r, "add", x, residual))
    with r.on(tid=2), r.op("autograd::engine::evaluate_function: AddBackward0"):
        pass


@case("dropout_add", MI300X, stacks=False)
def dropout_and_residual_without_stacks_mi300x(r: Recorder) -> None:
    """In float32, in training."""
    r.trains = True
    for _ in range(2):
        x = ops.linear(r, tensor(INPUT, "f32"), 1024, bias=True)
        with r.plant("dropout_add"):
            r.need(ops.binary(r, "add", ops.dropout(r, x), tensor(INPUT, "f32")))
    with r.on(tid=2), r.op("autograd::engine::evaluate_function: AddBackward0"):
        pass
