"""Norms written out, with and without the residual add before them."""

from __future__ import annotations

from evals.workshop.fusions import kernels, ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import H100, MI300X
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

HIDDEN = (8, 512, 2048)


def rms(r: Recorder, x: Tensor, *, offset: bool = False) -> Tensor:
    """RMSNorm in float32 as language models write it, back in the input's type and scaled; no plant of its own."""
    wide = ops.cast(r, x, "f32") if x.dtype != "f32" else x
    variance = ops.reduce(r, "mean", ops.unary(r, "pow", wide, "2"))
    scale = ops.unary(r, "rsqrt", ops.scalar(r, "add", variance))
    weight = tensor((x.shape[-1],), x.dtype)
    normal = ops.binary(r, "mul", wide, scale)
    if offset:  # Gemma: float32 to the end, the weight stored as its distance from one
        weight = ops.scalar(r, "add", ops.cast(r, weight, "f32"))
        return ops.cast(r, ops.binary(r, "mul", normal, weight), x.dtype)
    if x.dtype != "f32":
        normal = ops.cast(r, normal, x.dtype)
    return ops.binary(r, "mul", weight, normal)


def rms_module(r: Recorder, x: Tensor, name: str) -> Tensor:
    """A planted RMSNorm in its module."""
    with r.module(name), r.frame("modeling_llama.py(68): forward"), r.plant("rms_norm"):
        return rms(r, x)


def layers(r: Recorder, count: int, dtype: str = "bf16") -> None:
    """Norms, each before a projection, in decoder layers."""
    with r.module("LlamaModel_0"):
        x = tensor(HIDDEN, dtype)
        for layer in range(count):
            with r.module(f"LlamaDecoderLayer_{layer}"):
                y = rms_module(r, x, f"LlamaRMSNorm_{layer}")
                with r.module(f"Linear_{layer}"):
                    x = ops.linear(r, y, HIDDEN[-1])
        r.need(x)


@case("rms_norm")
def rms_llama_layers_h100(r: Recorder) -> None:
    """Four norms of one shape."""
    layers(r, 4)


@case("rms_norm", MI300X, stacks=False)
def rms_llama_layers_mi300x_without_stacks(r: Recorder) -> None:
    """Ops only: no module says what they are."""
    layers(r, 3)


@case("rms_norm", MI300X)
def rms_half_mi300x(r: Recorder) -> None:
    """In half precision."""
    layers(r, 2, "f16")


@case("rms_norm")
def rms_t5_in_float32(r: Recorder) -> None:
    """Without casts."""
    layers(r, 3, "f32")


@case("rms_norm")
def rms_gemma_with_one_added_to_the_weight(r: Recorder) -> None:
    """The weight's own chain joins the norm."""
    x = tensor(HIDDEN, "bf16")
    for layer in range(2):
        with r.module(f"GemmaRMSNorm_{layer}"), r.plant("rms_norm"):
            y = rms(r, x, offset=True)
        with r.module(f"Linear_{layer}"):
            x = ops.linear(r, y, HIDDEN[-1])
    r.need(x)


@case("rms_norm")
def rms_of_queries_and_keys(r: Recorder) -> None:
    """Two shapes by turns: heads of queries and of keys."""
    hidden = tensor(HIDDEN, "bf16")
    for layer in range(2):
        with r.module(f"Qwen3Attention_{layer}"):
            for number, heads in enumerate((32, 8)):
                with r.module(f"Linear_{layer * 2 + number}"):
                    projected = ops.linear(r, hidden, heads * 128).viewed((8, 512, heads, 128))
                r.view("aten::view", projected, [8, 512, heads, 128])
                r.need(rms_module(r, projected, f"Qwen3RMSNorm_{layer * 2 + number}"))


def layer_norm_by_mean(r: Recorder, x: Tensor) -> Tensor:
    """LayerNorm from means: centre, square, mean, root, divide, scale, shift."""
    weight, bias = tensor((x.shape[-1],), x.dtype), tensor((x.shape[-1],), x.dtype)
    centred = ops.binary(r, "sub", x, ops.reduce(r, "mean", x))
    variance = ops.reduce(r, "mean", ops.unary(r, "pow", centred, "2"))
    root = ops.unary(r, "sqrt", ops.scalar(r, "add", variance))
    return ops.binary(r, "add", ops.binary(r, "mul", weight, ops.binary(r, "div", centred, root)), bias)


def layer_norm_by_std(r: Recorder, x: Tensor) -> Tensor:
    """LayerNorm as a well-known tutorial writes it: ``a * (x - mean) / (std + eps) + b``."""
    weight, bias = tensor((x.shape[-1],), x.dtype), tensor((x.shape[-1],), x.dtype)
    mean, std = ops.reduce(r, "mean", x), ops.reduce(r, "std", x)
    scaled = ops.binary(r, "mul", weight, ops.binary(r, "sub", x, mean))
    return ops.binary(r, "add", ops.binary(r, "div", scaled, ops.scalar(r, "add", std)), bias)


def layer_norm_by_var(r: Recorder, x: Tensor) -> Tensor:
    """LayerNorm from mean and variance."""
    weight, bias = tensor((x.shape[-1],), x.dtype), tensor((x.shape[-1],), x.dtype)
    mean, variance = ops.reduce(r, "mean", x), ops.reduce(r, "var", x)
    centred = ops.binary(r, "sub", x, mean)
    root = ops.unary(r, "rsqrt", ops.scalar(r, "add", variance))
    return ops.binary(r, "add", ops.binary(r, "mul", ops.binary(r, "mul", centred, root), weight), bias)


@case("layer_norm")
def layer_norm_from_means_h100(r: Recorder) -> None:
    """In float32, between projections."""
    x = tensor((16, 256, 1024), "f32")
    for layer in range(3):
        with r.module(f"EncoderLayer_{layer}"):
            with r.module(f"LayerNorm_{layer}"), r.plant("layer_norm"):
                y = layer_norm_by_mean(r, x)
            with r.module(f"Linear_{layer}"):
                x = ops.linear(r, y, 1024, bias=True)
    r.need(x)


@case("layer_norm", MI300X)
def layer_norm_from_std_mi300x(r: Recorder) -> None:
    """The tutorial's."""
    x = tensor((16, 256, 1024), "f32")
    for layer in range(2):
        with r.module(f"LayerNorm_{layer}"), r.plant("layer_norm"):
            y = layer_norm_by_std(r, x)
        with r.module(f"Linear_{layer}"):
            x = ops.linear(r, y, 1024, bias=True)
    r.need(x)


@case("layer_norm", stacks=False)
def layer_norm_from_variance_without_stacks(r: Recorder) -> None:
    """Ops only, in bfloat16."""
    x = tensor((32, 196, 768), "bf16")
    for _ in range(2):
        with r.plant("layer_norm"):
            y = layer_norm_by_var(r, x)
        x = ops.linear(r, y, 768, bias=True)
    r.need(x)


@case("group_norm")
def group_norm_written_out(r: Recorder) -> None:
    """Groups of channels normalised through views."""
    x = tensor((8, 32, 131072), "f32")
    with r.module("ResnetBlock_0"), r.module("GroupNorm_0"), r.plant("group_norm"):
        mean, variance = ops.reduce(r, "mean", x), ops.reduce(r, "var", x)
        centred = ops.binary(r, "sub", x, mean)
        normal = ops.binary(r, "mul", centred, ops.unary(r, "rsqrt", ops.scalar(r, "add", variance)))
        r.view("aten::view", normal, [8, 256, 128, 128])
        channels = normal.viewed((8, 256, 128, 128))
        scaled = ops.binary(r, "mul", channels, tensor((1, 256, 1, 1), "f32"))
        r.need(ops.binary(r, "add", scaled, tensor((1, 256, 1, 1), "f32")))


@case("batch_norm")
def frozen_batch_norm_of_a_detector(r: Recorder) -> None:
    """Four buffers turned into scale and shift each time."""
    for layer in range(2):
        x = tensor((8, 256, 100, 136), "f32")
        weight, bias, mean, variance = (tensor((1, 256, 1, 1), "f32") for _ in range(4))
        with r.module(f"FrozenBatchNorm2d_{layer}"), r.plant("batch_norm"):
            scale = ops.binary(r, "mul", weight, ops.unary(r, "rsqrt", ops.scalar(r, "add", variance)))
            shift = ops.binary(r, "sub", bias, ops.binary(r, "mul", mean, scale))
            r.need(ops.binary(r, "add", ops.binary(r, "mul", x, scale), shift))


def add_layer_norm(r: Recorder, x: Tensor, residual: Tensor) -> Tensor:
    """A planted residual add and the library's norm; the sum goes on as the next residual."""
    with r.plant("add_norm"):
        total = ops.binary(r, "add", residual, x)
        r.need(total)
        return ops.layer_norm(r, total)


def attended(r: Recorder, x: Tensor) -> Tensor:
    """Something that is no product in front of the add: fused attention with its projection."""
    out = tensor(x.shape, x.dtype)
    with r.op("flash_attn::_flash_attn_forward", x, x, x, "0.0"):
        work = Work(reads=(x,), writes=(out,), flops=4.0 * x.numel * x.shape[-2], unit=("matrix", "bf16"))
        r.launch("void flash_fwd_kernel<Flash_fwd_kernel_traits<64, 128, 128, 4, cutlass::bfloat16_t> >", work)
    return out


@case("add_norm")
def residual_and_layer_norm_h100(r: Recorder) -> None:
    """After fused attention."""
    x = tensor((16, 512, 1024), "bf16")
    for layer in range(3):
        with r.module(f"Block_{layer}"):
            y = attended(r, x)
            with r.module(f"AddNorm_{layer}"):
                x = add_layer_norm(r, y, x)
    r.need(x)


@case("add_norm", MI300X, stacks=False)
def residual_and_layer_norm_mi300x(r: Recorder) -> None:
    """Ops only."""
    x = tensor((16, 512, 1024), "bf16")
    for _ in range(2):
        x = add_layer_norm(r, attended(r, x), x)
    r.need(x)


@case("add_norm")
def residual_and_the_librarys_rms_norm(r: Recorder) -> None:
    """``aten::_fused_rms_norm`` is one kernel; the add before it is another."""
    x = tensor(HIDDEN, "bf16")
    for layer in range(2):
        with r.module(f"Block_{layer}"):
            y = attended(r, x)
            with r.plant("add_norm"):
                total = ops.binary(r, "add", x, y)
                r.need(total)
                x = one_kernel_rms_norm(r, total)
    r.need(x)


def one_kernel_rms_norm(r: Recorder, x: Tensor) -> Tensor:
    """PyTorch's own RMSNorm."""
    weight, out, rstd = tensor((x.shape[-1],), x.dtype), tensor(x.shape, x.dtype), tensor((*x.shape[:-1], 1), "f32")
    kernel = kernels.layer_norm(x).replace("layer_norm_kernel", "rms_norm_kernel")
    with (
        r.op("aten::rms_norm", x, [x.shape[-1]], weight, "1e-06"),
        r.op("aten::_fused_rms_norm", x, [x.shape[-1]], weight, "1e-06"),
    ):
        r.launch(kernel, Work(reads=(x, weight), writes=(out,), saved=(rstd,), flops=4 * x.numel))
    return out


@case("add_norm", H100)
def dropout_residual_and_layer_norm_in_training(r: Recorder) -> None:
    """All three at once; the mask is kept for the backward pass."""
    r.trains = True
    x = tensor((16, 512, 1024), "bf16")
    for layer in range(2):
        with r.module(f"BertSelfOutput_{layer}"):
            with r.module(f"Linear_{layer}"):
                y = ops.linear(r, x, 1024, bias=True)
            with r.plant("add_norm"):
                with r.module(f"Dropout_{layer}"):
                    dropped = ops.dropout(r, y)
                total = ops.binary(r, "add", dropped, x)
                r.need(total)
                with r.module(f"LayerNorm_{layer}"):
                    x = ops.layer_norm(r, total)
    r.need(x)
    with r.on(tid=2), r.op("autograd::engine::evaluate_function: NativeLayerNormBackward0"):
        pass


@case("add_norm")
def residual_and_rms_norm_written_out_after_a_collective(r: Recorder) -> None:
    """Tensor parallel: the sum of all ranks comes first, then add and norm are one chain of nine."""
    x = tensor(HIDDEN, "bf16")
    for layer in range(2):
        with r.module(f"LlamaDecoderLayer_{layer}"):
            with r.module(f"RowParallelLinear_{layer}"):
                y = ops.linear(r, tensor((8, 512, 1024), "bf16"), HIDDEN[-1])
                with r.op("c10d::allreduce_", [y], None):
                    r.launch(kernels.COLLECTIVE[r.gpu.vendor], Work(reads=(y,), writes=(y,), ns=60_000))
            with r.plant("add_norm"):
                x = ops.binary(r, "add", x, y)
                r.need(x)
                with r.module(f"LlamaRMSNorm_{layer}"):
                    z = rms(r, x)
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, z, 2048))
