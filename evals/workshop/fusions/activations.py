"""Activations and gates written out."""

from __future__ import annotations

from collections.abc import Callable

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.norms import attended
from evals.workshop.fusions.products import batch_norm
from evals.workshop.fusions.recorder import Recorder
from evals.workshop.fusions.tensors import Tensor, tensor

WIDE = (8, 512, 4096)
INPUT = (8, 512, 1024)


def gelu_tanh(r: Recorder, x: Tensor) -> Tensor:
    """``0.5 * x * (1 + tanh(c * (x + 0.044715 * x ** 3)))`` from left to right."""
    half = ops.scalar(r, "mul", x)
    cubed = ops.scalar(r, "mul", ops.unary(r, "pow", x, "3"))
    inner = ops.scalar(r, "mul", ops.binary(r, "add", x, cubed))
    return ops.binary(r, "mul", half, ops.scalar(r, "add", ops.unary(r, "tanh", inner)))


def gelu_erf(r: Recorder, x: Tensor) -> Tensor:
    """``x * 0.5 * (1 + erf(x / sqrt(2)))``."""
    half = ops.scalar(r, "mul", x)
    grown = ops.scalar(r, "add", ops.unary(r, "erf", ops.scalar(r, "div", x)))
    return ops.binary(r, "mul", half, grown)


def gelu_fast(r: Recorder, x: Tensor) -> Tensor:
    """``0.5 * x * (1 + tanh(x * 0.79788456 * (1 + 0.044715 * x * x)))``."""
    half, scaled = ops.scalar(r, "mul", x), ops.scalar(r, "mul", x)
    squared = ops.binary(r, "mul", ops.scalar(r, "mul", x), x)
    inner = ops.binary(r, "mul", scaled, ops.scalar(r, "add", squared))
    return ops.binary(r, "mul", half, ops.scalar(r, "add", ops.unary(r, "tanh", inner)))


def gelu_quick(r: Recorder, x: Tensor) -> Tensor:
    """``x * sigmoid(1.702 * x)``."""
    return ops.binary(r, "mul", x, ops.unary(r, "sigmoid", ops.scalar(r, "mul", x)))


def after_products(r: Recorder, name: str, pattern: str, act: Callable[[Recorder, Tensor], Tensor], **how: str) -> None:
    """An activation between two linears in a block of its own, twice."""
    dtype = how.get("dtype", "bf16")
    for layer in range(2):
        with r.module(f"MLP_{layer}"):
            with r.module(f"Linear_{2 * layer}"):
                x = ops.linear(r, tensor(INPUT, dtype), WIDE[-1], bias=True)
            with r.module(f"{name}_{layer}"), r.plant(pattern):
                y = act(r, x)
            with r.module(f"Linear_{2 * layer + 1}"):
                r.need(ops.linear(r, y, INPUT[-1], bias=True))


@case("gelu")
def gelu_by_tanh_h100(r: Recorder) -> None:
    """GPT-2's."""
    after_products(r, "NewGELUActivation", "gelu", gelu_tanh)


@case("gelu", MI300X)
def gelu_by_tanh_in_float32_mi300x(r: Recorder) -> None:
    """The same in float32."""
    after_products(r, "NewGELUActivation", "gelu", gelu_tanh, dtype="f32")


@case("gelu", stacks=False)
def gelu_by_erf_without_stacks(r: Recorder) -> None:
    """BERT's, ops only."""
    after_products(r, "GELU", "gelu", gelu_erf)


@case("gelu", MI300X)
def gelu_by_erf_mi300x(r: Recorder) -> None:
    """The same with modules."""
    after_products(r, "GELU", "gelu", gelu_erf)


@case("gelu")
def gelu_fast_h100(r: Recorder) -> None:
    """With the constants multiplied out."""
    after_products(r, "FastGELUActivation", "gelu", gelu_fast)


@case("quick_gelu", MI300X)
def gelu_quick_mi300x(r: Recorder) -> None:
    """CLIP's."""
    after_products(r, "QuickGELUActivation", "quick_gelu", gelu_quick)


def gated(r: Recorder, layer: int, act: str, pattern: str, name: str) -> None:
    """Gate, activation, projection, product: the activation joins the product, the projection between stays."""
    x = tensor(INPUT, "bf16")
    with r.module(f"{name}_{layer}"), r.plant(pattern) as plant:
        with r.apart(), r.module(f"Linear_{3 * layer}"):
            gate = ops.linear(r, x, WIDE[-1])
        with r.module(f"Act_{layer}"):
            gate = ops.unary(r, act, gate, *(("none",) if act == "gelu" else ()))
        with r.apart(), r.module(f"Linear_{3 * layer + 1}"):
            up = ops.linear(r, x, WIDE[-1])
        with r.apart(plant):
            y = ops.binary(r, "mul", gate, up)
        with r.apart(), r.module(f"Linear_{3 * layer + 2}"):
            r.need(ops.linear(r, y, INPUT[-1]))


@case("swiglu")
def swiglu_with_a_product_between_h100(r: Recorder) -> None:
    """Llama's."""
    for layer in range(3):
        gated(r, layer, "silu", "swiglu", "LlamaMLP")


@case("swiglu", MI300X, stacks=False)
def swiglu_with_a_product_between_without_stacks_mi300x(r: Recorder) -> None:
    """Ops only."""
    for layer in range(2):
        gated(r, layer, "silu", "swiglu", "LlamaMLP")


@case("geglu", MI300X)
def geglu_with_a_product_between_mi300x(r: Recorder) -> None:
    """Gemma's and T5's."""
    for layer in range(2):
        gated(r, layer, "gelu", "geglu", "GemmaMLP")


def chunked(r: Recorder, layer: int, act: str, pattern: str, *, gate_first: bool) -> None:
    """One product for both, split by views, activated and multiplied."""
    with r.module(f"FeedForward_{layer}"):
        with r.module(f"Linear_{2 * layer}"):
            both = ops.linear(r, tensor(INPUT, "bf16"), 2 * WIDE[-1], bias=True)
        with r.module(f"{pattern.upper()}_{layer}"), r.plant(pattern):
            first, second = ops.halves(r, both)
            gate, up = (first, second) if gate_first else (second, first)
            active = ops.unary(r, act, gate, *(("none",) if act == "gelu" else ()))
            y = ops.binary(r, "mul", up, active)
        with r.module(f"Linear_{2 * layer + 1}"):
            r.need(ops.linear(r, y, INPUT[-1], bias=True))


@case("swiglu", MI300X)
def swiglu_of_one_product_mi300x(r: Recorder) -> None:
    """Phi's and vLLM's layout."""
    for layer in range(2):
        chunked(r, layer, "silu", "swiglu", gate_first=True)


@case("geglu")
def geglu_of_one_product_h100(r: Recorder) -> None:
    """Diffusers' GEGLU."""
    for layer in range(3):
        chunked(r, layer, "gelu", "geglu", gate_first=False)


@case("swiglu")
def swiglu_from_sigmoid_h100(r: Recorder) -> None:
    """``x * sigmoid(x) * up`` written out."""
    for layer in range(2):
        with r.module(f"SwiGLU_{layer}"):
            gate, up = tensor(WIDE, "bf16"), tensor(WIDE, "bf16")
            with r.plant("swiglu"):
                y = ops.binary(r, "mul", ops.binary(r, "mul", gate, ops.unary(r, "sigmoid", gate)), up)
            with r.module(f"Linear_{layer}"):
                r.need(ops.linear(r, y, INPUT[-1]))


@case("silu")
def silu_from_sigmoid_h100(r: Recorder) -> None:
    """A Swish module of convolution nets."""
    for layer in range(3):
        with r.module(f"BatchNorm2d_{layer}"):
            x = batch_norm(r, tensor((8, 256, 64, 64), "f32"))
        with r.module(f"Swish_{layer}"), r.plant("silu"):
            r.need(ops.binary(r, "mul", x, ops.unary(r, "sigmoid", x)))


@case("silu")
def gate_by_sigmoid_h100(r: Recorder) -> None:
    """Attention's result times the sigmoid of another projection: two tensors."""
    for layer in range(2):
        x = tensor(INPUT, "bf16")
        with r.module(f"GatedAttention_{layer}"):
            y = attended(r, x)
            with r.module(f"Linear_{2 * layer}"):
                gate = ops.linear(r, x, INPUT[-1])
            with r.plant("silu"):
                y = ops.binary(r, "mul", y, ops.unary(r, "sigmoid", gate))
            with r.module(f"Linear_{2 * layer + 1}"):
                r.need(ops.linear(r, y, INPUT[-1]))


@case("silu", MI300X, stacks=False)
def silu_from_sigmoid_in_half_mi300x(r: Recorder) -> None:
    """Ops only."""
    for _ in range(2):
        x = batch_norm(r, tensor((8, 256, 64, 64), "f16"))
        with r.plant("silu"):
            y = ops.binary(r, "mul", x, ops.unary(r, "sigmoid", x))
        ops.linear(r, y, 64)


@case("softmax")
def softmax_written_out_h100(r: Recorder) -> None:
    """Largest, difference, exponential, sum, quotient."""
    for layer in range(2):
        x = tensor((32, 512, 1000), "f32")
        with r.module(f"StableSoftmax_{layer}"), r.plant("softmax"):
            grown = ops.unary(r, "exp", ops.binary(r, "sub", x, ops.reduce(r, "amax", x)))
            r.need(ops.binary(r, "div", grown, ops.reduce(r, "sum", grown)))


@case("softmax", MI300X, stacks=False)
def softmax_without_the_largest_mi300x(r: Recorder) -> None:
    """Exponential, sum, quotient."""
    for _ in range(2):
        x = tensor((32, 512, 1000), "f32")
        with r.plant("softmax"):
            grown = ops.unary(r, "exp", x)
            y = ops.binary(r, "div", grown, ops.reduce(r, "sum", grown))
        ops.linear(r, y, 1000)


@case("novel")
def mish_written_out(r: Recorder) -> None:
    """``x * tanh(softplus(x))``: no composition of its own."""
    for layer in range(2):
        with r.module(f"BatchNorm2d_{layer}"):
            x = batch_norm(r, tensor((8, 256, 64, 64), "f32"))
        with r.module(f"Mish_{layer}"), r.plant("novel"):
            r.need(ops.binary(r, "mul", x, ops.unary(r, "tanh", ops.unary(r, "softplus", x, "1", "20"))))


@case("novel", MI300X)
def snake_activation_mi300x(r: Recorder) -> None:
    """``x + sin(a * x) ** 2 / a`` of audio codecs."""
    for layer in range(2):
        x, alpha = tensor((8, 512, 4096), "f32"), tensor((1, 512, 1), "f32")
        with r.module(f"Snake1d_{layer}"), r.plant("novel"):
            wave = ops.unary(r, "pow", ops.unary(r, "sin", ops.binary(r, "mul", alpha, x)), "2")
            r.need(ops.binary(r, "add", x, ops.binary(r, "mul", wave, tensor((1, 512, 1), "f32"))))


@case("novel")
def modulation_of_a_diffusion_block(r: Recorder) -> None:
    """``norm(x) * (1 + scale) + shift`` behind a library's norm, which joins it."""
    for layer in range(2):
        x, scale, shift = tensor((4, 1024, 1152), "bf16"), tensor((4, 1, 1152), "bf16"), tensor((4, 1, 1152), "bf16")
        with r.module(f"DiTBlock_{layer}"), r.plant("novel"):
            normal = ops.layer_norm(r, x)
            y = ops.binary(r, "mul", normal, ops.scalar(r, "add", scale))
            r.need(ops.binary(r, "add", y, shift))
