"""Matrix products of PyTorch itself: FLOPs 2·M·N·K (a batch multiplies), bytes of both operands, addend and result.

Scales and bias add bytes, no FLOPs. Two 4-bit values share one stored element, so K doubles. Names from other
libraries, which differ only in where the operands stand, are rows of ``gemm_libraries``; scaled and grouped products
of PyTorch are in ``gemm_scaled``.
"""

from __future__ import annotations

import math

from .op import NoCostError, Op, Tensor
from .parts import bf16, broadcast, dtype_of, f32, itemsize, require, size
from .registry import Cost, Example, op_model

PACKED_PAIR = "float4_e2m1fn_x2"


def product(flops: int, read: int, written: int, a: Tensor, b: Tensor) -> Cost:
    """Cost of a matrix product; the ceiling is that of the operands' common dtype."""
    return Cost(
        flops=flops,
        bytes_read=read,
        bytes_written=written,
        unit="matrix",
        precision=operand_precision(dtype_of(a), dtype_of(b)),
    )


def operand_precision(a: str, b: str) -> str:
    """Dtype whose ceiling holds: that of the wider operand, since a narrower one is converted on the way in."""
    return a if itemsize(a) >= itemsize(b) and (a != PACKED_PAIR or b == PACKED_PAIR) else b


def pair_factor(tensor: Tensor) -> int:
    """Values along K in one stored element."""
    return 2 if tensor.dtype == PACKED_PAIR else 1


def two_dims(tensor: Tensor) -> tuple[int, int]:
    """The sizes of a matrix."""
    require(len(tensor.shape) == 2)
    return tensor.shape[0], tensor.shape[1]


def _addend(op: Op, beta: int) -> int:
    """Bytes of the added operand at 0, which beta = 0 leaves unread.

    Old traces hold no scalars; a vector is then a bias, and read.
    """
    addend = op.tensor(0)
    if op.arg(beta) == "" and len(addend.shape) == 1:
        return size(addend)
    return 0 if op.number(beta, 1.0) == 0 else size(addend)


@op_model(
    "aten::mm",
    "aten::_int_mm",
    "aten::_sparse_mm",
    category="gemm",
    examples=(
        Example(
            args=(bf16(4, 5), bf16(5, 6)),
            flops=240,
            bytes_read=100,
            bytes_written=48,
            why="4*6*5 = 120 multiply-adds = 240; reads (20 + 30)*2; writes 24*2 (as bf16)",
        ),
        Example(
            args=(bf16(4, 5), bf16(5, 6), f32(4, 6)),
            flops=240,
            bytes_read=100,
            bytes_written=96,
            why="as above, into a float32 output: 24*4",
        ),
    ),
)
def mm(op: Op) -> Cost:
    """``[m,k] @ [k,n]``; an output tensor may follow; int8 operands give int32."""
    a, b = op.tensor(0), op.tensor(1)
    (m, k), (k2, n) = two_dims(a), two_dims(b)
    require(k == k2)
    out = op.tensor_or_none(2)
    require(len(op.args) <= 4 and (out is None or not out.numel or out.shape == (m, n)))
    out_dtype = dtype_of(out) if out else "int32" if dtype_of(a) == "int8" else dtype_of(a)
    return product(2 * m * n * k, size(a, b), m * n * itemsize(out_dtype), a, b)


@op_model(
    "aten::addmm",
    "aten::addmm_",
    "aten::_addmm_activation",
    category="gemm",
    examples=(
        Example(
            args=(bf16(6), bf16(4, 5), bf16(5, 6), "1", "1"),
            flops=240,
            bytes_read=112,
            bytes_written=48,
            why="2*4*6*5; reads (20 + 30)*2 and a bias of 6*2; writes 24*2",
        ),
        Example(
            args=(bf16(4, 6), bf16(4, 5), bf16(5, 6), "1", "1"),
            flops=240,
            bytes_read=148,
            bytes_written=48,
            why="an addend of the full 4x6 is read in full: 100 + 24*2",
        ),
        Example(
            args=(bf16(4, 6), bf16(4, 5), bf16(5, 6), "0", "1"),
            flops=240,
            bytes_read=100,
            bytes_written=48,
            why="beta = 0: the addend is not read",
        ),
    ),
)
def addmm(op: Op) -> Cost:
    """``beta * c + alpha * a @ b``."""
    a, b = op.tensor(1), op.tensor(2)
    (m, k), (k2, n) = two_dims(a), two_dims(b)
    require(k == k2)
    require(len(op.args) <= 6)
    out = op.tensor_or_none(5) or op.tensor(0)
    return product(2 * m * n * k, size(a, b) + _addend(op, 3), m * n * itemsize(dtype_of(out)), a, b)


@op_model(
    "aten::bmm",
    category="gemm",
    examples=(
        Example(
            args=(f32(2, 4, 5), f32(2, 5, 6)),
            flops=480,
            bytes_read=400,
            bytes_written=192,
            why="2*4*6*5*2; reads (2*20 + 2*30)*4; writes 2*24*4",
        ),
    ),
)
def bmm(op: Op) -> Cost:
    """``[b,m,k] @ [b,k,n]``."""
    a, b = op.tensor(0), op.tensor(1)
    batch, m, k = a.shape
    batch2, k2, n = b.shape
    require((batch, k) == (batch2, k2))
    out = op.tensor_or_none(2) or a
    return product(2 * batch * m * n * k, size(a, b), batch * m * n * itemsize(dtype_of(out)), a, b)


@op_model(
    "aten::baddbmm",
    "aten::baddbmm_",
    category="gemm",
    examples=(
        Example(
            args=(f32(2, 4, 6), f32(2, 4, 5), f32(2, 5, 6), "1", "1"),
            flops=480,
            bytes_read=592,
            bytes_written=192,
            why="2*4*6*5*2; reads (40 + 60)*4 and the addend 48*4; writes 48*4",
        ),
        Example(
            args=(f32(2, 4, 6), f32(2, 4, 5), f32(2, 5, 6), "0.", "0.125"),
            flops=480,
            bytes_read=400,
            bytes_written=192,
            why="beta = 0: the addend is not read",
        ),
    ),
)
def baddbmm(op: Op) -> Cost:
    """``beta * c + alpha * [b,m,k] @ [b,k,n]``."""
    a, b = op.tensor(1), op.tensor(2)
    batch, m, k = a.shape
    batch2, k2, n = b.shape
    require((batch, k) == (batch2, k2))
    written = batch * m * n * itemsize(dtype_of(op.tensor(0)))
    return product(2 * batch * m * n * k, size(a, b) + _addend(op, 3), written, a, b)


@op_model(
    "aten::addbmm",
    "aten::addbmm_",
    category="gemm",
    examples=(
        Example(
            args=(f32(4, 6), f32(2, 4, 5), f32(2, 5, 6), "1", "1"),
            flops=480,
            bytes_read=496,
            bytes_written=96,
            why="2*4*6*5*2, summed over the batch; reads (40 + 60)*4 + 24*4; writes 24*4",
        ),
    ),
)
def addbmm(op: Op) -> Cost:
    """``beta * c + alpha * sum over the batch of a @ b``."""
    a, b = op.tensor(1), op.tensor(2)
    batch, m, k = a.shape
    batch2, k2, n = b.shape
    require((batch, k) == (batch2, k2))
    return product(2 * batch * m * n * k, size(a, b) + _addend(op, 3), m * n * itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::linear",
    category="gemm",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(2, 4, 5), bf16(6, 5), bf16(6)),
            flops=480,
            bytes_read=152,
            bytes_written=96,
            why="rows 2*4: 2*8*6*5; reads (40 + 30 + 6)*2; writes 8*6*2",
        ),
    ),
)
def linear(op: Op) -> Cost:
    """``x @ w.T + bias`` with ``x [..., k]``, ``w [n,k]``."""
    x, w = op.tensor(0), op.tensor(1)
    n, k = w.shape if len(w.shape) == 2 else (1, *w.shape)
    require(len(op.args) <= 3)
    require(bool(x.shape) and x.shape[-1] == k)
    rows = math.prod(x.shape[:-1])
    read = size(x, w, op.tensor_or_none(2))
    return product(2 * rows * n * k, read, rows * n * itemsize(dtype_of(x)), x, w)


@op_model(
    "aten::matmul",
    category="gemm",
    claims_subtree=False,
    examples=(
        Example(
            args=(f32(3, 1, 4, 5), f32(2, 5, 6)),
            flops=1440,
            bytes_read=480,
            bytes_written=576,
            why="batches 3x1 and 2 broadcast to 3x2: 6*2*4*6*5; reads (60 + 60)*4; writes 6*24*4",
        ),
        Example(
            args=(f32(4, 5), f32(5)),
            flops=40,
            bytes_read=100,
            bytes_written=16,
            why="matrix by vector: 2*4*5; reads (20 + 5)*4; writes 4*4",
        ),
    ),
)
def matmul(op: Op) -> Cost:
    """``a @ b`` with broadcast batches; a vector counts as one row or one column."""
    a, b = op.tensor(0), op.tensor(1)
    require(bool(a.shape) and bool(b.shape) and len(op.args) <= 3)
    m, k = (1, *a.shape)[-2:]
    k2, n = b.shape[-2:] if len(b.shape) > 1 else (b.shape[0], 1)
    require(k == k2)
    batch = math.prod(broadcast((a.shape[:-2], b.shape[:-2])))
    return product(2 * batch * m * n * k, size(a, b), batch * m * n * itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::mv",
    category="gemm",
    examples=(
        Example(
            args=(f32(4, 5), f32(5)),
            flops=40,
            bytes_read=100,
            bytes_written=16,
            why="2*4*5; reads (20 + 5)*4; writes 4*4",
        ),
    ),
)
def mv(op: Op) -> Cost:
    """``[m,k] @ [k]``."""
    a, b = op.tensor(0), op.tensor(1)
    m, k = two_dims(a)
    require(b.shape == (k,))
    return product(2 * m * k, size(a, b), m * itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::addmv",
    "aten::addmv_",
    category="gemm",
    examples=(
        Example(
            args=(f32(4), f32(4, 5), f32(5), "1", "1"),
            flops=40,
            bytes_read=116,
            bytes_written=16,
            why="2*4*5; reads (20 + 5)*4 and the addend 4*4; writes 4*4",
        ),
    ),
)
def addmv(op: Op) -> Cost:
    """``beta * c + alpha * [m,k] @ [k]``."""
    a, b = op.tensor(1), op.tensor(2)
    m, k = two_dims(a)
    require(b.shape == (k,))
    return product(2 * m * k, size(a, b) + _addend(op, 3), m * itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::dot",
    "aten::vdot",
    category="gemm",
    examples=(
        Example(
            args=(f32(5), f32(5)),
            flops=10,
            bytes_read=40,
            bytes_written=4,
            why="5 multiply-adds; reads 2*5*4; writes one element",
        ),
    ),
)
def dot(op: Op) -> Cost:
    """Product of two vectors."""
    a, b = op.tensor(0), op.tensor(1)
    require(len(a.shape) == 1 and a.shape == b.shape)
    return product(2 * a.numel, size(a, b), itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::addr",
    "aten::addr_",
    category="gemm",
    examples=(
        Example(
            args=(f32(4, 6), f32(4), f32(6), "1", "1"),
            flops=48,
            bytes_read=136,
            bytes_written=96,
            why="K = 1: 2*4*6; reads 24*4 + (4 + 6)*4; writes 24*4",
        ),
    ),
)
def addr(op: Op) -> Cost:
    """``beta * c + alpha * outer(a, b)``."""
    a, b = op.tensor(1), op.tensor(2)
    m, n = a.numel, b.numel
    return product(2 * m * n, size(a, b) + _addend(op, 3), m * n * itemsize(dtype_of(a)), a, b)


@op_model(
    "aten::einsum",
    "aten::tensordot",
    category="gemm",
    claims_subtree=False,
    examples=(Example(args=(f32(2, 3), f32(3, 4)), unmodelled="cost lies in its matrix products", why="a wrapper"),),
)
def wrapper(_op: Op) -> Cost:
    """None: what is computed stands in a string or in index lists; the matrix products below it have the cost."""
    raise NoCostError("cost lies in its matrix products")
