"""Larger forward operators: norms (fused and decomposed), attention, cross entropy, the scalar read."""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them

from __future__ import annotations

from functools import partial

from evals.workshop import kernels
from evals.workshop.aten import Context, emit, empty, reshape, reshape_back, sum_gradients, swap_leaf
from evals.workshop.program import Input, Tensor, ThreadBuilder

EPSILON = 1e-5


def layer_norm(c: Context, x: Tensor, *, residual: bool) -> Tensor:
    """Fused ``aten::layer_norm``; ``residual`` says that its input is used again by a residual sum."""
    b, width = c.b, x.shape[-1]
    weight, rows = Tensor((width,)), x.count // width
    statistics = Tensor((rows,), "float")
    with (
        b.op("aten::layer_norm", x, [width], weight, weight, EPSILON, True, sequence=c.sequence),
        b.op("aten::native_layer_norm", x, [width], weight, weight, EPSILON, sequence=c.sequence),
    ):
        for tensor in (x, statistics, statistics):
            empty(b, tensor)
        b.launch(kernels.row_kernel("layer_norm", rows, width, 2.0 * x.bytes + 8 * rows))
        for _ in range(2):
            b.leaf("aten::view", statistics, [*x.shape[:-1], 1])
    inputs: list[Input] = [x, x, [width], statistics, statistics, weight, weight, [True, True, True]]
    _record_norm(c, x, ("NativeLayerNormBackward0", "aten::native_layer_norm_backward"), inputs, residual=residual)
    return x


def rms_norm(c: Context, x: Tensor, *, residual: bool) -> Tensor:
    """Fused ``aten::rms_norm``: what takes the place of the decomposed one."""
    b, width = c.b, x.shape[-1]
    weight, rows = Tensor((width,)), x.count // width
    statistics = Tensor((rows,), "float")
    with (
        b.op("aten::rms_norm", x, [width], weight, EPSILON, sequence=c.sequence),
        b.op("aten::_fused_rms_norm", x, [width], weight, EPSILON, sequence=c.sequence),
    ):
        empty(b, x)
        empty(b, statistics)
        b.launch(kernels.row_kernel("rms_norm", rows, width, 2.0 * x.bytes + 4 * rows))
        b.leaf("aten::view", statistics, [*x.shape[:-1], 1])
    inputs: list[Input] = [x, x, [width], statistics, weight, [True, True]]
    _record_norm(c, x, ("FusedRmsNormBackward0", "aten::_fused_rms_norm_backward"), inputs, residual=residual)
    return x


def _record_norm(c: Context, x: Tensor, names: tuple[str, str], inputs: list[Input], *, residual: bool) -> None:
    if c.tape is None:
        return
    rows, width = x.count // x.shape[-1], x.shape[-1]

    def body(b: ThreadBuilder) -> None:
        with b.op(names[1], *inputs):
            empty(b, x)
            b.launch(kernels.row_kernel("norm_grad_input", rows, width, 3.0 * x.bytes))
            b.launch(kernels.row_kernel("norm_grad_weight", max(1, width // 32), 32, 2.0 * x.bytes))

    after = partial(sum_gradients, x) if residual else None
    count = 2 if names[0].startswith("NativeLayer") else 1
    c.tape.record(c.b, names[0], x, body, after=after, parameters=(Tensor((width,)),) * count)


def decomposed_rms_norm(c: Context, x: Tensor) -> Tensor:
    """``weight * (x.float() * rsqrt(mean(x.float()**2) + eps)).to(x.dtype)``: eight kernels forward."""
    b = c.b
    wide, column = Tensor(x.shape, "float"), Tensor((*x.shape[:-1], 1), "float")
    weight = Tensor((x.shape[-1],))
    cast(c, x, wide, after=partial(sum_gradients, x))
    _pointwise(c, "aten::pow", ("square", wide, wide), (wide, 2), "PowBackward0", _pow_backward)
    emit(b, "aten::mean", kernels.reduction("mean", wide, column), wide, [-1], True, None, sequence=c.sequence)
    if c.tape is not None:
        c.tape.record(b, "MeanBackward1", column, partial(_mean_backward, wide, column))
    _pointwise(c, "aten::add", ("add scalar", column, column), (column, EPSILON, 1), "AddBackward0", None)
    _pointwise(c, "aten::rsqrt", ("rsqrt", column, column), (column,), "RsqrtBackward0", _rsqrt_backward)
    _pointwise(c, "aten::mul", ("mul float", wide, wide, column), (wide, column), "MulBackward0", _scale_backward)
    cast(c, wide, x)
    kernel = kernels.elementwise("mul", x, weight, x)
    emit(b, "aten::mul", kernel, weight, x, sequence=c.sequence)
    if c.tape is not None:
        c.tape.record(b, "MulBackward0", x, partial(_weight_backward, x, weight), parameters=(weight,))
    return x


def _pointwise(
    c: Context,
    op: str,
    kernel: tuple[str, Tensor] | tuple[str, Tensor, Tensor] | tuple[str, Tensor, Tensor, Tensor],
    inputs: tuple[Input, ...],
    node: str,
    backward: object,
) -> None:
    functor, output, *operands = kernel
    launched = kernels.elementwise(functor, output, *operands)
    emit(c.b, op, launched, *inputs, sequence=c.sequence)
    if c.tape is not None:
        body = partial(backward, output) if callable(backward) else None
        c.tape.record(c.b, node, output, body)


def cast(c: Context, source: Tensor, target: Tensor, after: partial[None] | None = None) -> None:
    """``aten::to`` with another dtype, and back in its node."""
    cast_leaf(c.b, source, target, c.sequence)
    if c.tape is not None:
        c.tape.record(c.b, "ToCopyBackward0", target, lambda b: cast_leaf(b, target, source), after=after)


def cast_leaf(b: ThreadBuilder, source: Tensor, target: Tensor, sequence: int | None = None) -> None:
    """The dispatch of one ``to``."""
    code = 6 if target.dtype == "float" else 15
    narrow = source.dtype == "float"
    kernel = kernels.elementwise("to bf16", target, source) if narrow else kernels.cast_to_float(source)
    with (
        b.op("aten::to", source, code, False, False, None, sequence=sequence),
        b.op("aten::_to_copy", source, code, None, None, None, False, None, sequence=sequence),
    ):
        b.leaf("aten::empty_strided", list(target.shape), target.recorded_strides(), code, 0, None, None)
        emit(b, "aten::copy_", kernel, target, source, False)


def _pow_backward(wide: Tensor, b: ThreadBuilder) -> None:
    emit(b, "aten::mul", kernels.elementwise("mul scalar", wide, wide), wide, 2)
    emit(b, "aten::mul", kernels.elementwise("mul float", wide, wide, wide), wide, wide)
    emit(b, "aten::add", kernels.elementwise("add float", wide, wide, wide), wide, wide, 1)


def _mean_backward(wide: Tensor, column: Tensor, b: ThreadBuilder) -> None:
    strides = [*column.recorded_strides()[:-1], 0]
    with b.op("aten::expand", column, list(wide.shape), False):
        b.leaf("aten::as_strided", column, list(wide.shape), strides, None)
    expanded = Tensor(wide.shape, "float", tuple(strides))
    kernel = kernels.elementwise("div scalar", wide, column)
    emit(b, "aten::div", kernel, expanded, float(wide.shape[-1]))


def _rsqrt_backward(column: Tensor, b: ThreadBuilder) -> None:
    emit(b, "aten::pow", kernels.elementwise("cube", column, column), column, 3)
    emit(b, "aten::mul", kernels.elementwise("mul scalar", column, column), column, -0.5)
    emit(b, "aten::mul", kernels.elementwise("mul float", column, column, column), column, column)


def _scale_backward(wide: Tensor, b: ThreadBuilder) -> None:
    column = Tensor((*wide.shape[:-1], 1), "float")
    emit(b, "aten::mul", kernels.elementwise("mul float", wide, wide, column), wide, column)
    emit(b, "aten::mul", kernels.elementwise("mul float", wide, wide, wide), wide, wide)
    emit(b, "aten::sum", kernels.reduction("sum", wide, column), wide, [2], True, None)


def _weight_backward(x: Tensor, weight: Tensor, b: ThreadBuilder) -> None:
    emit(b, "aten::mul", kernels.elementwise("mul", x, x, x), x, x)
    emit(b, "aten::sum", kernels.reduction("sum", x, weight), x, [0, 1], False, None)
    emit(b, "aten::mul", kernels.elementwise("mul", x, x, weight), x, weight)


def attention(c: Context, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal ``scaled_dot_product_attention`` on the flash path; the result is shaped like the query."""
    b = c.b
    batch, heads, length, width = query.shape
    scale, out = width**-0.5, Tensor((batch, length, heads, width))
    log_sum = Tensor((batch, heads, length), "float")
    turned = [swapped(tensor) for tensor in (query, key, value)]
    sdpa: tuple[Input, ...] = (query, key, value, None, 0.0, True, None, False)
    flash: list[Input] = [
        *turned,
        None,
        None,
        length,
        length,
        0.0,
        True,
        False,
        scale,
        None,
        None,
        None,
        None,
    ]
    with (
        b.op("aten::scaled_dot_product_attention", *sdpa, sequence=c.sequence),
        b.op(
            "aten::_scaled_dot_product_flash_attention",
            *(query, key, value, 0.0, True, False, scale),
            sequence=c.sequence,
        ),
    ):
        for source, result in zip((query, key, value), turned, strict=True):
            swap_leaf(b, source, result)
        with b.op("aten::_flash_attention_forward", *flash):
            with b.op("aten::empty_like", turned[0], None, None, None, None, None):
                b.leaf("aten::empty_strided", list(out.shape), out.recorded_strides(), 15, 0, None, None)
            empty(b, log_sum)
            b.launch(kernels.attention(b.gpu, query.shape, products=2, part="forward"))
        swap_leaf(b, out, swapped(out))
    if c.tape is not None:
        c.tape.record(
            b,
            "ScaledDotProductFlashAttentionBackward0",
            swapped(out),
            partial(_attention_backward, (query, key, value, out, log_sum)),
        )
    return swapped(out)


def swapped(tensor: Tensor) -> Tensor:
    """The view that ``transpose(1, 2)`` gives of a tensor of four dimensions."""
    first, second, third, last = tensor.shape
    strides = tensor.recorded_strides()
    return Tensor((first, third, second, last), tensor.dtype, (strides[0], strides[2], strides[1], strides[3]))


def _attention_backward(saved: tuple[Tensor, ...], b: ThreadBuilder) -> None:
    query, key, value, out, log_sum = saved
    length, scale, grad = query.shape[2], query.shape[3] ** -0.5, swapped(out)
    seed = Tensor((), "long int")
    outer: list[Input] = [grad, query, key, value, grad, log_sum, None, None, length, length, 0.0, True]
    turned = [swapped(tensor) for tensor in (grad, query, key, value, grad)]
    inner: list[Input] = [
        *turned,
        log_sum,
        None,
        None,
        length,
        length,
        0.0,
        True,
        seed,
        seed,
        scale,
        None,
        None,
    ]
    with b.op("aten::_scaled_dot_product_flash_attention_backward", *outer, seed, seed, scale):
        for tensor, result in zip((grad, query, key, value, grad), turned, strict=True):
            swap_leaf(b, tensor, result)
        with b.op("aten::_flash_attention_backward", *inner):
            for _ in range(3):
                empty(b, turned[1])
            b.launch(kernels.flash_helper("dot_do_o", out))
            b.launch(kernels.attention(b.gpu, query.shape, products=5, part="backward"))
            b.launch(kernels.flash_helper("convert_dq", out))
        for tensor in turned[1:4]:
            swap_leaf(b, tensor, swapped(tensor))


def cross_entropy(c: Context, logits: Tensor, targets: Tensor) -> Tensor:
    """``aten::cross_entropy_loss`` over ``[rows, classes]``: log-softmax, then the mean of the picks."""
    b, loss = c.b, Tensor(())
    rows, classes = logits.shape
    softmax: tuple[Input, ...] = (logits, 1, None)
    nll: tuple[Input, ...] = (logits, targets, None, 1, -100)
    with b.op("aten::cross_entropy_loss", logits, targets, None, 1, -100, 0.0, sequence=c.sequence):
        with (
            b.op("aten::log_softmax", *softmax, sequence=c.sequence),
            b.op("aten::_log_softmax", logits, 1, False, sequence=c.sequence),
        ):
            b.launch(kernels.row_kernel("log_softmax", rows, classes, 2.0 * logits.bytes))
        if c.tape is not None:
            kernel = kernels.row_kernel("log_softmax_backward", rows, classes, 3.0 * logits.bytes)
            saved: tuple[Input, ...] = (logits, logits, 1, 15)
            name = "aten::_log_softmax_backward_data"
            c.tape.record(b, "LogSoftmaxBackward0", logits, lambda inner: emit(inner, name, kernel, *saved))
        with (
            b.op("aten::nll_loss_nd", *nll, sequence=c.sequence),
            b.op("aten::nll_loss", *nll, sequence=c.sequence),
        ):
            kernel = kernels.row_kernel("nll_loss", rows, 1, 32.0 * rows + targets.bytes)
            emit(b, "aten::nll_loss_forward", kernel, *nll, sequence=c.sequence)
        if c.tape is not None:
            c.tape.record(b, "NllLossBackward0", loss, partial(_nll_backward, logits, targets))
    return loss


def _nll_backward(logits: Tensor, targets: Tensor, b: ThreadBuilder) -> None:
    scalar = Tensor(())
    with b.op("aten::nll_loss_backward", scalar, logits, targets, None, 1, -100, scalar):
        with b.op("aten::zero_", logits):
            emit(b, "aten::fill_", kernels.elementwise("fill", logits), logits, 0)
        b.launch(kernels.row_kernel("nll_loss_backward", logits.shape[0], 1, 34.0 * logits.shape[0]))


def read_scalar(b: ThreadBuilder, value: Tensor) -> None:
    """``.item()``: copies the scalar to the host and waits for everything before it on the stream."""
    with b.op("aten::item", value), b.op("aten::_local_scalar_dense", value):
        if b.gpu.vendor == "amd":
            b.copy("DtoH (Device -> Pinned)", value.bytes, is_blocking=True)
            return
        b.copy("DtoH (Device -> Pinned)", value.bytes)
        b.synchronize()


def flat_rows(c: Context, x: Tensor) -> Tensor:
    """``[batch, length, n]`` as ``[batch * length, n]`` by a view with its node."""
    rows = x.view(x.count // x.shape[-1], x.shape[-1])
    reshape(c.b, x, rows.shape, c.sequence)
    if c.tape is not None:
        c.tape.record(c.b, "ViewBackward0", rows, lambda b: reshape_back(b, rows, x))
    return rows
