"""Forward operators as PyTorch dispatches them, each with the backward node it records.

``c`` is the context of a pass: the builder of the calling thread and the tape. ``b`` inside a node is the
builder of the autograd thread.
"""

# ruff: noqa: FBT003 - operator inputs are positional, as PyTorch records them
from __future__ import annotations

from dataclasses import dataclass

from evals.workshop import kernels
from evals.workshop.autograd import Tape
from evals.workshop.program import DTYPE_CODES, Gemm, Input, Kernel, Tensor, ThreadBuilder


@dataclass(frozen=True, kw_only=True)
class Context:
    """Where forward operators are emitted and what records their nodes; no tape in inference."""

    b: ThreadBuilder
    tape: Tape | None

    @property
    def sequence(self) -> int | None:
        """The sequence number an operator entered now shows."""
        return None if self.tape is None else self.tape.next_number


def emit(b: ThreadBuilder, name: str, kernel: Kernel, *inputs: Input, sequence: int | None = None) -> None:
    """An operator that does nothing but launch one kernel."""
    with b.op(name, *inputs, sequence=sequence):
        b.launch(kernel)


def empty(b: ThreadBuilder, tensor: Tensor) -> None:
    """``aten::empty`` for a result."""
    b.leaf("aten::empty", list(tensor.shape), DTYPE_CODES[tensor.dtype], 0, None, None, None)


def reshape(b: ThreadBuilder, source: Tensor, shape: tuple[int, ...], sequence: int | None = None) -> Tensor:
    """``aten::reshape`` of a contiguous tensor: a view."""
    with b.op("aten::reshape", source, list(shape), sequence=sequence):
        b.leaf("aten::view", source, list(shape), sequence=sequence)
    return source.view(*shape)


def reshape_back(b: ThreadBuilder, gradient: Tensor, source: Tensor) -> None:
    """The node of a view: the gradient in the shape of what was viewed."""
    reshape(b, gradient, source.shape)


def view(c: Context, source: Tensor, shape: tuple[int, ...]) -> Tensor:
    """``aten::view`` with its node."""
    result = source.view(*shape)
    c.b.leaf("aten::view", source, list(shape), sequence=c.sequence)
    if c.tape is not None:
        c.tape.record(c.b, "ViewBackward0", result, lambda b: reshape_back(b, result, source))
    return result


def transpose_matrix(b: ThreadBuilder, source: Tensor, sequence: int | None = None) -> Tensor:
    """``aten::t`` down to ``as_strided``."""
    turned = source.t()
    with b.op("aten::t", source, sequence=sequence), b.op("aten::transpose", source, 0, 1):
        b.leaf("aten::as_strided", source, list(turned.shape), turned.recorded_strides(), None)
    return turned


def turn_back(b: ThreadBuilder, gradient: Tensor) -> None:
    """The node of ``t``."""
    transpose_matrix(b, gradient)


def swap(c: Context, source: Tensor) -> Tensor:
    """``transpose(1, 2)`` of ``[batch, length, heads, width]`` or back: a view with its node."""
    strides = source.recorded_strides()
    shape = (source.shape[0], source.shape[2], source.shape[1], source.shape[3])
    result = Tensor(shape, source.dtype, (strides[0], strides[2], strides[1], strides[3]))
    swap_leaf(c.b, source, result, c.sequence)
    if c.tape is not None:
        c.tape.record(c.b, "TransposeBackward0", result, lambda b: swap_leaf(b, result, source))
    return result


def swap_leaf(b: ThreadBuilder, source: Tensor, result: Tensor, sequence: int | None = None) -> None:
    """The dispatch of one ``transpose(1, 2)``."""
    with b.op("aten::transpose", source, 1, 2, sequence=sequence):
        b.leaf("aten::as_strided", source, list(result.shape), result.recorded_strides(), None)


def matmul_kernel(
    b: ThreadBuilder, op: str, sizes: tuple[int, int, int], layout: str, *, is_slow: bool = False
) -> None:
    """Launches a product ``(m, n, k)`` and keeps it for the truth."""
    m, n, k = sizes
    b.gemms.append(Gemm(step=b.step, op=op, m=m, n=n, k=k))
    b.launch(kernels.gemm(b.gpu, m, n, k, layout=layout, is_slow=is_slow))


def linear(c: Context, x: Tensor, features: int, *, has_bias: bool = True, is_slow: bool = False) -> Tensor:
    """``aten::linear`` over ``[batch, length, width]``: addmm with a bias, matmul without."""
    b, width = c.b, x.shape[-1]
    weight, bias = Tensor((features, width)), Tensor((features,))
    flat, out = x.view(x.count // width, width), Tensor((x.count // width, features))
    shaped = out.view(*x.shape[:-1], features)
    with b.op("aten::linear", x, weight, bias if has_bias else None, sequence=c.sequence):
        if has_bias:
            _flatten(c, x, flat)
            _weight_t(c, weight)
            with b.op("aten::addmm", bias, flat, weight.t(), 1, 1, sequence=c.sequence):
                matmul_kernel(b, "aten::addmm", (flat.shape[0], features, width), "TNN", is_slow=is_slow)
            _record_product(c, "AddmmBackward0", (flat, weight, out), bias)
            view(c, out, shaped.shape)
        else:
            _weight_t(c, weight)
            with b.op("aten::matmul", x, weight.t(), sequence=c.sequence):
                _flatten(c, x, flat)
                with b.op("aten::mm", flat, weight.t(), sequence=c.sequence):
                    matmul_kernel(b, "aten::mm", (flat.shape[0], features, width), "TNT", is_slow=is_slow)
                _record_product(c, "MmBackward0", (flat, weight, out), None)
                b.leaf("aten::_unsafe_view", out, list(shaped.shape), sequence=c.sequence)
                _record_reshape(c, "UnsafeViewBackward0", shaped, out)
    return shaped


def _flatten(c: Context, x: Tensor, flat: Tensor) -> None:
    reshape(c.b, x, flat.shape, c.sequence)
    _record_reshape(c, "ViewBackward0", flat, x)


def _record_reshape(c: Context, name: str, gradient: Tensor, back_to: Tensor) -> None:
    if c.tape is not None:
        c.tape.record(c.b, name, gradient, lambda b: reshape_back(b, gradient, back_to))


def _weight_t(c: Context, weight: Tensor) -> None:
    transpose_matrix(c.b, weight, c.sequence)
    if c.tape is not None:
        gradient = weight.t()
        c.tape.record(
            c.b,
            "TBackward0",
            gradient,
            lambda b: turn_back(b, gradient),
            parameters=(weight,),
        )


def _record_product(c: Context, name: str, tensors: tuple[Tensor, Tensor, Tensor], bias: Tensor | None) -> None:
    """Records the node of ``x @ w.T``: gradient of x, gradient of w, and for a bias a sum over rows."""
    x, weight, gradient = tensors
    if c.tape is None:
        return

    def body(b: ThreadBuilder) -> None:
        transpose_matrix(b, weight.t())
        with b.op("aten::mm", gradient, weight):
            matmul_kernel(b, "aten::mm", (gradient.shape[0], weight.shape[1], weight.shape[0]), "NNT")
        transpose_matrix(b, gradient)
        with b.op("aten::mm", gradient.t(), x):
            matmul_kernel(b, "aten::mm", (gradient.shape[1], x.shape[1], gradient.shape[0]), "NTN")
        transpose_matrix(b, weight)

    def sum_rows(b: ThreadBuilder) -> None:
        row = Tensor((1, gradient.shape[1]))
        emit(b, "aten::sum", kernels.reduction("sum", gradient, row), gradient, [0], True, None)
        b.leaf("aten::view", row, [gradient.shape[1]])

    c.tape.record(c.b, name, gradient, body, after=sum_rows if bias else None, parameters=(bias,) if bias else ())


def add(c: Context, x: Tensor, y: Tensor) -> Tensor:
    """The residual sum; its node only passes gradients on."""
    kernel = kernels.elementwise("add", x, x, y)
    emit(c.b, "aten::add", kernel, x, y, 1, sequence=c.sequence)
    if c.tape is not None:
        c.tape.record(c.b, "AddBackward0", x)
    return x


def sum_gradients(gradient: Tensor, b: ThreadBuilder) -> None:
    """What the engine does where a tensor was used twice."""
    emit(b, "aten::add", kernels.elementwise("add", gradient, gradient, gradient), gradient, gradient, 1)


def gelu(c: Context, x: Tensor) -> Tensor:
    """``aten::gelu`` with the tanh approximation off."""
    emit(c.b, "aten::gelu", kernels.elementwise("gelu", x, x), x, None, sequence=c.sequence)
    if c.tape is not None:
        kernel = kernels.elementwise("gelu backward", x, x, x)
        c.tape.record(c.b, "GeluBackward0", x, lambda b: emit(b, "aten::gelu_backward", kernel, x, x, None))
    return x


def embedding(c: Context, tokens: Tensor, table: Tensor) -> Tensor:
    """``aten::embedding``; its gradient sorts the tokens and sums rows."""
    b, rows, width = c.b, tokens.count, table.shape[1]
    flat, result = Tensor((rows,), "long int"), Tensor((*tokens.shape, width))
    with b.op("aten::embedding", table, tokens, -1, False, False, sequence=c.sequence):
        reshape(b, tokens, (-1,))
        with b.op("aten::index_select", table, 0, flat):
            empty(b, Tensor((0,)))
            b.leaf("aten::resize_", Tensor((0,)), [rows, width], None)
            b.launch(kernels.row_kernel("gather", rows, width, 2.0 * result.bytes + tokens.bytes))
        b.leaf("aten::view", Tensor((rows, width)), list(result.shape))
    if c.tape is not None:
        c.tape.record(
            c.b,
            "EmbeddingBackward0",
            result,
            lambda inner: _embedding_backward(inner, result, tokens, table),
            parameters=(table,),
        )
    return result


def _embedding_backward(b: ThreadBuilder, gradient: Tensor, tokens: Tensor, table: Tensor) -> None:
    keys, vocabulary = tokens.count, table.shape[0]
    with (
        b.op("aten::embedding_backward", gradient, tokens, vocabulary, -1, False, False),
        b.op("aten::embedding_dense_backward", gradient, tokens, vocabulary, -1, False),
    ):
        reshape(b, tokens, (-1,))
        empty(b, table)
        emit(b, "aten::zero_", kernels.elementwise("fill", table), table)
        for part in ("Histogram", "ExclusiveSum", "Onesweep", "Onesweep"):
            b.launch(kernels.sort_pass(part, keys))
        b.launch(kernels.row_kernel("embedding_grad", keys, table.shape[1], 2.0 * gradient.bytes))
