"""Rotary position embeddings written out."""

from __future__ import annotations

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.norms import attended
from evals.workshop.fusions.recorder import Recorder
from evals.workshop.fusions.tensors import Tensor, tensor

BATCH, LENGTH, WIDTH = 4, 1024, 128


def heads_of(r: Recorder, count: int, dtype: str = "bf16") -> Tensor:
    """Projected heads, transposed as attention wants them."""
    x = tensor((BATCH, LENGTH, 2048), dtype)
    y = ops.linear(r, x, count * WIDTH, bias=True).viewed((BATCH, LENGTH, count, WIDTH))
    r.view("aten::view", y, list(y.shape))
    return ops.transpose(r, y, 1, 2)


def rotate_half(r: Recorder, x: Tensor) -> Tensor:
    """``cat((-x2, x1))``."""
    half = x.shape[-1] // 2
    first, second = ops.part(r, x, 0, half), ops.part(r, x, half, 2 * half)
    return ops.cat(r, [ops.unary(r, "neg", second), first])


def rotated(r: Recorder, x: Tensor, cosine: Tensor, sine: Tensor) -> Tensor:
    """``x * cos + rotate_half(x) * sin``."""
    straight = ops.binary(r, "mul", x, cosine)
    return ops.binary(r, "add", straight, ops.binary(r, "mul", rotate_half(r, x), sine))


def both(r: Recorder, layer: int, counts: tuple[int, int], dtype: str = "bf16") -> None:
    """Queries and keys of a layer with their common tables, then fused attention."""
    tables = tensor((1, 1, LENGTH, WIDTH), dtype), tensor((1, 1, LENGTH, WIDTH), dtype)
    with r.module(f"LlamaAttention_{layer}"):
        q, k = (heads_of(r, count, dtype) for count in counts)
        with r.frame("modeling_llama.py(151): apply_rotary_pos_emb"), r.plant("rope"):
            q, k = rotated(r, q, *tables), rotated(r, k, *tables)
        r.need(q, k)
        attended(r, k)


@case("rope")
def rotary_of_queries_and_keys_h100(r: Recorder) -> None:
    """Equal numbers of heads."""
    for layer in range(3):
        both(r, layer, (16, 16))


@case("rope")
def rotary_with_fewer_keys_h100(r: Recorder) -> None:
    """Grouped keys: the second half of the instance has other shapes."""
    for layer in range(2):
        both(r, layer, (32, 8))


@case("rope", MI300X, stacks=False)
def rotary_without_stacks_mi300x(r: Recorder) -> None:
    """Ops only, in half precision."""
    for layer in range(2):
        both(r, layer, (16, 16), "f16")


@case("rope", MI300X)
def rotary_by_halves_mi300x(r: Recorder) -> None:
    """``cat(x1 * cos - x2 * sin, x2 * cos + x1 * sin)``."""
    cosine, sine = tensor((LENGTH, 1, WIDTH // 2), "bf16"), tensor((LENGTH, 1, WIDTH // 2), "bf16")
    for layer in range(2):
        with r.module(f"RotaryEmbedding_{layer}"):
            x = tensor((BATCH, LENGTH, 16, WIDTH), "bf16")
            with r.plant("rope"):
                first, second = ops.halves(r, x)
                left = ops.binary(r, "sub", ops.binary(r, "mul", first, cosine), ops.binary(r, "mul", second, sine))
                right = ops.binary(r, "add", ops.binary(r, "mul", second, cosine), ops.binary(r, "mul", first, sine))
                y = ops.cat(r, [left, right])
            r.need(y)
            attended(r, y)
