"""Casts, copies, permutations and quantisation in steps."""

from __future__ import annotations

from evals.workshop.fusions import ops
from evals.workshop.fusions.corpus import case
from evals.workshop.fusions.machines import MI300X
from evals.workshop.fusions.recorder import Recorder
from evals.workshop.fusions.tensors import tensor

SIZE = (8, 512, 4096)


@case("repeated_casts")
def casts_up_and_down_h100(r: Recorder) -> None:
    """bfloat16 to float32 to float16."""
    for layer in range(2):
        with r.module(f"Adapter_{layer}"):
            with r.plant("repeated_casts"):
                x = ops.cast(r, ops.cast(r, tensor(SIZE, "bf16"), "f32"), "f16")
            r.need(ops.linear(r, x, 1024))


@case("repeated_casts", MI300X, stacks=False)
def layout_and_type_in_two_copies_mi300x(r: Recorder) -> None:
    """Made dense, then cast."""
    for _ in range(2):
        turned = ops.transpose(r, tensor(SIZE, "f32"), 1, 2)
        with r.plant("repeated_casts"):
            x = ops.cast(r, ops.contiguous(r, turned), "bf16")
        r.need(ops.linear(r, x, 1024))


@case("repeated_casts")
def casts_there_and_back_h100(r: Recorder) -> None:
    """bfloat16 to float32 and back: nothing is left to do."""
    for layer in range(3):
        with r.module(f"Gate_{layer}"):
            x = ops.linear(r, tensor(SIZE, "bf16"), 4096)
            with r.plant("repeated_casts", undone=True):
                x = ops.cast(r, ops.cast(r, x, "f32"), "bf16")
            r.need(ops.linear(r, x, 1024))


@case("repeated_casts", MI300X)
def casts_that_round_mi300x(r: Recorder) -> None:
    """float32 to bfloat16 and back: the rounding stays."""
    for layer in range(2):
        with r.module(f"Rounded_{layer}"):
            x = ops.linear(r, tensor(SIZE, "f32"), 4096)
            with r.plant("repeated_casts"):
                x = ops.cast(r, ops.cast(r, x, "bf16"), "f32")
            r.need(ops.linear(r, x, 1024))


@case("permute_pair")
def there_and_back_h100(r: Recorder) -> None:
    """Length and channels exchanged and exchanged again, a copy each time."""
    for layer in range(2):
        with r.module(f"Mixer_{layer}"):
            x = ops.linear(r, tensor((16, 1024, 512), "bf16"), 512)
            with r.plant("permute_pair"):
                y = ops.contiguous(r, ops.transpose(r, x, 1, 2))
                z = ops.contiguous(r, ops.transpose(r, y, 1, 2))
            r.need(ops.linear(r, z, 512))


@case("permute_pair", MI300X)
def channels_last_and_first_mi300x(r: Recorder) -> None:
    """A norm over channels wants them last; nothing runs between the two copies."""
    for layer in range(2):
        with r.module(f"Permute_{layer}"):
            x = tensor((16, 256, 64, 64), "f32")
            with r.plant("permute_pair"):
                with r.op("aten::permute", x, [0, 2, 3, 1]):
                    r.view("aten::as_strided", x, [16, 64, 64, 256], list(x.permuted(0, 2, 3, 1).strides), None)
                y = ops.contiguous(r, x.permuted(0, 2, 3, 1))
                with r.op("aten::permute", y, [0, 3, 1, 2]):
                    r.view("aten::as_strided", y, [16, 256, 64, 64], list(y.permuted(0, 3, 1, 2).strides), None)
                r.need(ops.contiguous(r, y.permuted(0, 3, 1, 2)))


@case("quantise")
def rows_to_int8_h100(r: Recorder) -> None:
    """Largest magnitude of each row, scale, quotient, rounded, clamped, cast; the scale is an output too."""
    for layer in range(2):
        with r.module(f"DynamicQuantLinear_{layer}"):
            x = tensor(SIZE, "bf16")
            with r.plant("quantise"):
                scale = ops.scalar(r, "div", ops.reduce(r, "amax", ops.unary(r, "abs", x)))
                r.need(scale)
                y = ops.unary(r, "round", ops.binary(r, "div", x, scale))
                r.need(ops.cast(r, ops.unary(r, "clamp", y, "-128", "127"), "i8"))


@case("quantise", MI300X)
def rows_to_float8_mi300x(r: Recorder) -> None:
    """Without rounding; the largest magnitude is kept above zero."""
    for layer in range(2):
        with r.module(f"Fp8Quant_{layer}"):
            x = tensor(SIZE, "bf16")
            with r.plant("quantise"):
                most = ops.unary(r, "clamp", ops.reduce(r, "amax", ops.unary(r, "abs", x)), "1e-12", None)
                scale = ops.scalar(r, "div", most)
                r.need(scale)
                y = ops.unary(r, "clamp", ops.binary(r, "div", x, scale), "-448", "448")
                r.need(ops.cast(r, y, "f8"))


@case("quantise", stacks=False)
def simulated_quantisation_without_stacks(r: Recorder) -> None:
    """Quantised and back in float32, as in quantisation-aware training."""
    for _ in range(2):
        x = tensor(SIZE, "f32")
        with r.plant("quantise"):
            y = ops.unary(r, "round", ops.scalar(r, "div", x))
            y = ops.scalar(r, "mul", ops.unary(r, "clamp", y, "-128", "127"))
        r.need(ops.linear(r, y, 1024))


@case("quantise")
def weights_from_int8_h100(r: Recorder) -> None:
    """Cast, less the zero point, times the scale, before the product."""
    for layer in range(2):
        with r.module(f"Int8Linear_{layer}"):
            stored = tensor((4096, 4096), "u8")
            zero, scale = tensor((4096, 1), "f16"), tensor((4096, 1), "f16")
            with r.plant("quantise"):
                wide = ops.cast(r, stored, "f16")
                r.need(ops.binary(r, "mul", ops.binary(r, "sub", wide, zero), scale))
