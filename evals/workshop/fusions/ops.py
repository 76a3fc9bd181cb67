"""Operators as PyTorch dispatches them, from elementwise ops to products: one kernel and one tensor each."""

from __future__ import annotations

import math
from collections.abc import Sequence

from evals.workshop.fusions import kernels
from evals.workshop.fusions.recorder import WRAPPED, Recorder, Work
from evals.workshop.fusions.tensors import Tensor, dense, tensor

DTYPE_CODE = {"f32": 6, "bf16": 15, "f16": 5, "i64": 4, "f8": 24, "i8": 1, "u8": 0, "bool": 11}
FLOPS = {"tanh": 8, "erf": 8, "exp": 4, "log": 4, "sigmoid": 6, "silu": 7, "gelu": 10, "cos": 4, "sin": 4, "pow": 1}
"""Per element, where it is not one (rule of thumb: instructions of the library's routine)."""
_WITH_SCALAR = frozenset({"add", "sub", "mul", "div", "rsub"})
_PLAIN_SCALARS = frozenset({"pow", "clamp", "clamp_min", "clamp_max", "leaky_relu"})


def unary(r: Recorder, word: str, x: Tensor, *scalars: object, dtype: str | None = None) -> Tensor:
    """An elementwise op of one tensor, with numbers as the op defines them; ends in ``_``: in place."""
    base, place = word.rstrip("_"), word.endswith("_")
    out = x if place else tensor(x.shape, dtype or x.dtype)
    with r.op(f"aten::{word}", x, *scalars):
        r.launch(
            kernels.pointwise(base, out, 1, scalar=base in _WITH_SCALAR, dense=x.is_dense),
            Work(reads=(x,), writes=(out,), flops=FLOPS.get(base, 1) * x.numel, unit=("vector", x.dtype)),
        )
    return out


def scalar(r: Recorder, word: str, x: Tensor, value: str = "") -> Tensor:
    """Arithmetic with a number: ``add`` and ``sub`` record an alpha too."""
    base = word.rstrip("_")
    given: object = value or WRAPPED
    return unary(r, word, x, given, *(("1",) if base in {"add", "sub", "rsub"} else ()))


def binary(r: Recorder, word: str, a: Tensor, b: Tensor, *, alpha: str = "1") -> Tensor:
    """An elementwise op of two tensors, broadcast; ends in ``_``: in place."""
    base, place = word.rstrip("_"), word.endswith("_")
    shape = broadcast(a.shape, b.shape)
    wider = a if (a.numel, a.dtype == "f32") >= (b.numel, b.dtype == "f32") else b
    dtype = "f32" if "f32" in (a.dtype, b.dtype) else wider.dtype
    out = a if place else tensor(shape, dtype)
    same = a.shape == b.shape and a.is_dense and b.is_dense and a.dtype == b.dtype
    with r.op(f"aten::{word}", a, b, *((alpha,) if base in {"add", "sub"} else ())):
        r.launch(
            kernels.pointwise(base, out, 2, dense=same),
            Work(reads=(a, b), writes=(out,), flops=out.numel, unit=("vector", dtype)),
        )
    return out


def ternary(r: Recorder, word: str, x: Tensor, a: Tensor, b: Tensor, value: str) -> Tensor:
    """``addcmul_`` and ``addcdiv_``."""
    with r.op(f"aten::{word}", x, a, b, value):
        r.launch(
            kernels.pointwise(word.rstrip("_"), x, 3),
            Work(reads=(x, a, b), writes=(x,), flops=3 * x.numel, unit=("vector", x.dtype)),
        )
    return x


def masked_fill(r: Recorder, x: Tensor, mask: Tensor) -> Tensor:
    """``masked_fill``: a copy on the device and the op in place under it."""
    out = tensor(x.shape, x.dtype)
    value = "-3.4028234663852886e+38"
    with r.op("aten::masked_fill", x, mask, value):
        with r.op("aten::clone", x, "0"), r.op("aten::copy_", out, x, "False"):
            r.copy_on_device(x, out)
        with r.op("aten::masked_fill_", out, mask, value):
            r.launch(
                kernels.pointwise("masked_fill", out, 2, dense=False),
                Work(reads=(out, mask), writes=(out,), flops=x.numel, unit=("vector", x.dtype)),
            )
    return out


def cast(r: Recorder, x: Tensor, dtype: str) -> Tensor:
    """``to(dtype)``."""
    out = Tensor(x.shape, dtype, dense(x.shape), tensor(x.shape, dtype).storage)
    code = str(DTYPE_CODE[dtype])
    with (
        r.op("aten::to", x, code, "False", "False", None),
        r.op("aten::_to_copy", x, code, None, None, None, "False", None),
    ):
        r.view("aten::empty_strided", list(x.shape), list(out.strides), code, None, None, None)
        with r.op("aten::copy_", out, x, "False"):
            r.launch(kernels.copy(x, out), Work(reads=(x,), writes=(out,)))
    return out


def contiguous(r: Recorder, x: Tensor) -> Tensor:
    """A dense copy."""
    out = tensor(x.shape, x.dtype)
    with r.op("aten::contiguous", x, "0"), r.op("aten::clone", x, "0"):
        r.view("aten::empty_like", x, "6", "0", None, None, "0")
        with r.op("aten::copy_", out, x, "False"):
            r.launch(kernels.copy(x, out), Work(reads=(x,), writes=(out,)))
    return out


def reduce(
    r: Recorder, word: str, x: Tensor, axes: Sequence[int] = (-1,), *, keep: bool = True, correction: str = "1"
) -> Tensor:
    """``mean``, ``sum``, ``amax``, ``var``, ``std`` over some axes."""
    gone = {axis % len(x.shape) for axis in axes}
    shape = tuple(1 if axis in gone else size for axis, size in enumerate(x.shape) if keep or axis not in gone)
    out = tensor(shape, x.dtype)
    rest: dict[str, tuple[object, ...]] = {
        "mean": (list(axes), str(keep), None),
        "sum": (list(axes), str(keep), None),
        "var": (list(axes), correction, str(keep)),
        "std": (list(axes), correction, str(keep)),
    }
    with r.op(f"aten::{word}", x, *rest.get(word, (list(axes), str(keep)))):
        r.launch(kernels.reduction(word, x), Work(reads=(x,), writes=(out,), flops=x.numel, unit=("vector", x.dtype)))
    return out


def norm(r: Recorder, x: Tensor) -> Tensor:
    """The 2-norm of everything."""
    out = tensor((), x.dtype)
    with r.op("aten::linalg_vector_norm", x, "2", None, "False", None):
        r.launch(kernels.reduction("norm", x), Work(reads=(x,), writes=(out,), flops=2 * x.numel))
    return out


def softmax(r: Recorder, x: Tensor, *, log: bool = False, widen: bool = False) -> Tensor:
    """``softmax`` over the last axis; ``widen``: asked for in float32 from half, in one kernel."""
    out = tensor(x.shape, "f32" if widen else x.dtype)
    word = "log_softmax" if log else "softmax"
    with r.op(f"aten::{word}", x, "-1", "6" if widen else None), r.op(f"aten::_{word}", x, "-1", str(widen)):
        r.launch(
            kernels.softmax(x, out),
            Work(reads=(x,), writes=(out,), flops=8 * x.numel, unit=("vector", x.dtype)),
        )
    return out


def cat(r: Recorder, parts: list[Tensor], axis: int = -1, word: str = "cat") -> Tensor:
    """``cat`` along an axis, or ``stack``."""
    if word == "stack":
        shape: tuple[int, ...] = (len(parts), *parts[0].shape)
        inner = [part.viewed((1, *part.shape)) for part in parts]
        with r.op("aten::stack", parts, "0"):
            return cat(r, inner, 0).viewed(shape)
    place = axis % len(parts[0].shape)
    first = parts[0].shape
    out = tensor((*first[:place], sum(p.shape[place] for p in parts), *first[place + 1 :]), parts[0].dtype)
    with r.op("aten::cat", parts, str(axis)):
        r.launch(kernels.cat(out), Work(reads=tuple(parts), writes=(out,)))
    return out


def linear(r: Recorder, x: Tensor, features: int, *, bias: bool = False) -> Tensor:
    """``linear``: ``addmm`` of the flattened input with a bias, ``mm`` without."""
    width = x.shape[-1]
    weight, offset = tensor((features, width), x.dtype), tensor((features,), x.dtype)
    flat = x.viewed((x.numel // width, width))
    out = tensor((flat.shape[0], features), x.dtype)
    work = Work(
        reads=(flat, weight, *((offset,) if bias else ())),
        writes=(out,),
        flops=2.0 * flat.shape[0] * width * features,
        unit=("matrix", x.dtype),
    )
    kernel = kernels.product(r.gpu.vendor, x.dtype)
    call = "cudaLaunchKernelExC" if r.gpu.vendor == "nvidia" else "hipExtModuleLaunchKernel"
    shape = (*x.shape[:-1], features)
    with r.op("aten::linear", x, weight, offset if bias else None):
        turned = weight.permuted(1, 0)
        with r.op("aten::t", weight), r.op("aten::transpose", weight, "0", "1"):
            r.view("aten::as_strided", weight, list(turned.shape), list(turned.strides), None)
        if bias:
            r.view("aten::view", x, list(flat.shape))
            with r.op("aten::addmm", offset, flat, turned, "1", "1"):
                r.launch(kernel, work, call=call)
            r.view("aten::view", out, list(shape))
        else:
            with r.op("aten::matmul", x, turned):
                r.view("aten::view", x, list(flat.shape))
                with r.op("aten::mm", flat, turned):
                    r.launch(kernel, work, call=call)
                r.view("aten::_unsafe_view", out, list(shape))
    return out.viewed(shape)


def matmul(r: Recorder, a: Tensor, b: Tensor) -> Tensor:
    """A batched product of four-dimensional tensors: expand, reshape to three dimensions, ``bmm``, view back."""
    batch = a.shape[:-2]
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    count = math.prod(batch)
    out = tensor((count, m, n), a.dtype)
    call = "cuLaunchKernel" if r.gpu.vendor == "nvidia" else "hipExtModuleLaunchKernel"
    with r.op("aten::matmul", a, b):
        flat = []
        for side in (a, b):
            three = _flattened(side, count)
            r.view("aten::expand", side, list(side.shape), "False")
            with r.op("aten::reshape", side, list(three.shape)):
                r.view("aten::view", side, list(three.shape))
            flat.append(three)
        with r.op("aten::bmm", *flat):
            work = Work(reads=(a, b), writes=(out,), flops=2.0 * count * m * n * k, unit=("matrix", a.dtype))
            r.launch(kernels.product(r.gpu.vendor, a.dtype), work, call=call)
        r.view("aten::view", out, [*batch, m, n])
    return out.viewed((*batch, m, n))


def _flattened(x: Tensor, count: int) -> Tensor:
    shape = (count, *x.shape[-2:])
    return Tensor(shape, x.dtype, (x.shape[-2] * x.shape[-1], *x.strides[-2:]), x.storage)


def layer_norm(r: Recorder, x: Tensor) -> Tensor:
    """The library's LayerNorm with the statistics it saves."""
    width = x.shape[-1]
    weight, bias = tensor((width,), x.dtype), tensor((width,), x.dtype)
    rows = (*x.shape[:-1], 1)
    out, mean, rstd = tensor(x.shape, x.dtype), tensor(rows, "f32"), tensor(rows, "f32")
    with (
        r.op("aten::layer_norm", x, [width], weight, bias, "1e-05", "True"),
        r.op("aten::native_layer_norm", x, [width], weight, bias, "1e-05"),
    ):
        work = Work(reads=(x, weight, bias), writes=(out,), saved=(mean, rstd), flops=8 * x.numel)
        r.launch(kernels.layer_norm(x), work)
    return out


def dropout(r: Recorder, x: Tensor, *, keeps_mask: bool = True) -> Tensor:
    """Dropout of a training step with its mask; a fused attention draws its mask again and keeps none."""
    out, mask = tensor(x.shape, x.dtype), tensor(x.shape, "bool")
    with r.op("aten::dropout", x, "0.10000000000000001", "True"), r.op("aten::native_dropout", x, "0.1", "True"):
        saved, scratch = ((mask,), ()) if keeps_mask else ((), (mask,))
        work = Work(reads=(x,), writes=(out,), saved=saved, scratch=scratch, flops=2 * x.numel)
        r.launch(kernels.dropout(x), work)
    return out


def transpose(r: Recorder, x: Tensor, a: int, b: int) -> Tensor:
    """``transpose``: a view."""
    axes = list(range(len(x.shape)))
    axes[a], axes[b] = axes[b], axes[a]
    out = x.permuted(*axes)
    with r.op("aten::transpose", x, str(a), str(b)):
        r.view("aten::as_strided", x, list(out.shape), list(out.strides), None)
    return out


def halves(r: Recorder, x: Tensor) -> list[Tensor]:
    """``chunk(2, -1)``: two views."""
    size = x.shape[-1] // 2
    found = [x.narrowed(-1, size), x.narrowed(-1, size)]
    with r.op("aten::chunk", x, "2", "-1"), r.op("aten::split", x, str(size), "-1"):
        for number, half in enumerate(found):
            start = number * size
            with (
                r.op("aten::narrow", x, "-1", str(start), str(size)),
                r.op("aten::slice", x, "-1", str(start), str(start + size), "1"),
            ):
                r.view("aten::as_strided", x, list(half.shape), list(half.strides), str(start))
    return found


def part(r: Recorder, x: Tensor, start: int, end: int) -> Tensor:
    """``x[..., start:end]``."""
    axis = len(x.shape) - 1
    out = x.narrowed(axis, end - start)
    with r.op("aten::slice", x, str(axis), str(start), str(end), "1"):
        r.view("aten::as_strided", x, list(out.shape), list(out.strides), str(start))
    return out


def broadcast(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape of an elementwise result."""
    rank = max(len(a), len(b))
    rows = zip((1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b, strict=True)
    return tuple(max(x, y) for x, y in rows)
