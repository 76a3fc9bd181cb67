"""Attention by separate products, forward and backward."""

from __future__ import annotations

from evals.workshop.fusions import kernels, ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.recorder import Recorder, Work
from evals.workshop.fusions.tensors import Tensor, tensor

HEADS = (8, 16, 512, 64)


def projected(r: Recorder, x: Tensor, heads: tuple[int, ...] = HEADS) -> Tensor:
    """A projection seen as heads: ``[batch, heads, length, width]`` with the strides of ``[batch, length, …]``."""
    batch, count, length, width = heads
    y = ops.linear(r, x, count * width, bias=True).viewed((batch, length, count, width))
    r.view("aten::view", y, [batch, length, count, width])
    return ops.transpose(r, y, 1, 2)


def core(
    r: Recorder, heads: tuple[Tensor, Tensor, Tensor], *, mask: str = "", divide: bool = False, wide: bool = False
) -> Tensor:
    """Scores, scale, mask, softmax, values: a planted instance."""
    q, k, v = heads
    length, keys = q.shape[-2], k.shape[-2]
    with r.plant("attention_core"):
        scores = ops.matmul(r, q, ops.transpose(r, k, 2, 3))
        scores = ops.scalar(r, "div" if divide else "mul", scores)
        if mask == "add":
            scores = ops.binary(r, "add", scores, tensor((q.shape[0], 1, length, keys), q.dtype))
        if mask == "fill":
            scores = ops.masked_fill(r, scores, tensor((1, 1, length, keys), "bool"))
        weights = ops.softmax(r, scores, widen=wide)
        if wide:
            weights = ops.cast(r, weights, q.dtype)
        if r.trains:
            weights = ops.dropout(r, weights, keeps_mask=False)
        return ops.matmul(r, weights, v)


def block(r: Recorder, layer: int, dtype: str = "bf16", **how: bool | str) -> None:
    """Three projections, the core, the output's layout and projection."""
    x = tensor((HEADS[0], HEADS[2], HEADS[1] * HEADS[3]), dtype)
    with r.module(f"SelfAttention_{layer}"):
        q, k, v = (projected(r, x) for _ in range(3))
        out = core(r, (q, k, v), **how)  # type: ignore[arg-type]
        turned = ops.transpose(r, out, 1, 2)
        flat = ops.contiguous(r, turned).viewed(x.shape)
        r.view("aten::view", flat, list(x.shape))
        with r.module(f"Linear_{layer}"):
            r.need(ops.linear(r, flat, x.shape[-1], bias=True))


@case("attention_core")
def attention_scaled_h100(r: Recorder) -> None:
    """No mask; three layers."""
    for layer in range(3):
        block(r, layer)


@case("attention_core", MI300X)
def attention_with_added_mask_and_wide_softmax_mi300x(r: Recorder) -> None:
    """As language models write it: softmax in float32, then back."""
    for layer in range(2):
        block(r, layer, mask="add", wide=True)


@case("attention_core")
def attention_in_float32_divided_and_filled(r: Recorder) -> None:
    """A causal mask filled in."""
    for layer in range(2):
        block(r, layer, "f32", mask="fill", divide=True)


@case("attention_core", MI300X, stacks=False)
def attention_without_stacks_mi300x(r: Recorder) -> None:
    """Ops only, in half precision."""
    for layer in range(2):
        block(r, layer, "f16", mask="add", divide=True)


@case("attention_core")
def attention_in_training_with_dropout(r: Recorder) -> None:
    """Dropout between softmax and values."""
    r.trains = True
    for layer in range(2):
        block(r, layer, mask="add")
    with r.on(tid=2), r.op("autograd::engine::evaluate_function: BmmBackward0"):
        pass


@case("attention_core")
def attention_to_another_sequence(r: Recorder) -> None:
    """Queries of one length, keys of another."""
    heads = (4, 16, 1024, 64)
    for layer in range(2):
        with r.module(f"CrossAttention_{layer}"):
            q = projected(r, tensor((4, 1024, 1024), "bf16"), heads)
            k, v = (projected(r, tensor((4, 77, 1024), "bf16"), (4, 16, 77, 64)) for _ in range(2))
            r.need(core(r, (q, k, v)))


@case("attention_core")
def attention_by_the_math_path(r: Recorder) -> None:
    """``scaled_dot_product_attention`` without a fused kernel: queries and keys are scaled before their product."""
    for layer in range(2):
        x = tensor((8, 512, 1024), "bf16")
        with r.module(f"Attention_{layer}"):
            q, k, v = (projected(r, x) for _ in range(3))
            with (
                r.op("aten::scaled_dot_product_attention", q, k, v, None, "0.", "False", None, "False"),
                r.op("aten::_scaled_dot_product_attention_math", q, k, v, None, "0.", "False", None, None, "False"),
                r.plant("attention_core"),
            ):
                q = ops.scalar(r, "mul", q)
                k = ops.scalar(r, "mul", ops.transpose(r, k, 2, 3))
                r.need(ops.matmul(r, ops.softmax(r, ops.matmul(r, q, k)), v))


def softmax_backward(r: Recorder, grad: Tensor, made: Tensor) -> Tensor:
    """The gradient of a softmax from its result."""
    out = tensor(grad.shape, grad.dtype)
    with r.op("aten::_softmax_backward_data", grad, made, "-1", "15"):
        t = "c10::BFloat16"
        r.launch(
            f"void (anonymous namespace)::softmax_warp_backward<{t}, {t}, float, 9, false, false>({t}*, {t} const*)",
            Work(reads=(grad, made), writes=(out,), flops=4 * grad.numel, unit=("vector", grad.dtype)),
        )
    return out


def bmm(r: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """A product of three-dimensional tensors."""
    out = tensor((a.shape[0], a.shape[1], b.shape[2]), a.dtype)
    flops = 2.0 * out.numel * a.shape[2]
    with r.op("aten::bmm", a, b):
        work = Work(reads=(a, b), writes=(out,), flops=flops, unit=("matrix", a.dtype))
        r.launch(kernels.product(r.gpu.vendor, a.dtype), work)
    return out


@case("attention_backward")
def attention_backward_h100(r: Recorder) -> None:
    """The four products of the backward pass with the softmax's gradient between, in the autograd thread."""
    r.trains = True
    count, length, width = 128, 512, 64
    with r.on(tid=2):
        for _ in range(2):
            q, v, grad = (tensor((count, length, width), "bf16") for _ in range(3))
            k = tensor((count, width, length), "bf16")
            weights = tensor((count, length, length), "bf16")
            with r.plant("attention_backward"):
                with r.op("autograd::engine::evaluate_function: BmmBackward0"), r.op("BmmBackward0", grad):
                    r.need(bmm(r, weights.permuted(0, 2, 1), grad))
                    upon = bmm(r, grad, v.permuted(0, 2, 1))
                shape = (8, 16, length, length)
                r.view("aten::view", upon, list(shape))
                with r.op("autograd::engine::evaluate_function: SoftmaxBackward0"), r.op("SoftmaxBackward0", upon):
                    scores = softmax_backward(r, upon.viewed(shape), weights.viewed(shape))
                with r.op("autograd::engine::evaluate_function: MulBackward0"), r.op("MulBackward0", scores):
                    scores = ops.scalar(r, "mul", scores)
                r.view("aten::view", scores, [count, length, length])
                scores = scores.viewed((count, length, length))
                with r.op("autograd::engine::evaluate_function: BmmBackward0"), r.op("BmmBackward0", scores):
                    r.need(bmm(r, q.permuted(0, 2, 1), scores), bmm(r, scores, k.permuted(0, 2, 1)))
            for _ in range(4):  # gradients of the projections
                with r.op("autograd::engine::evaluate_function: MmBackward0"), r.op("MmBackward0"):
                    r.need(ops.linear(r, tensor((4096, 1024), "bf16"), 1024))
