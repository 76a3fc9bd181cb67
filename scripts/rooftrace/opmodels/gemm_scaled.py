"""Scaled, grouped and weight-only quantised matrix products of PyTorch; conventions as in ``gemm``."""

from __future__ import annotations

from msgspec.structs import replace

from .gemm import pair_factor, product, two_dims
from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fp8, i8, i32, itemsize, require, size
from .registry import Cost, Example, op_model


@op_model(
    "aten::_scaled_mm",
    category="gemm",
    examples=(
        Example(
            args=(fp8(4, 32), fp8(32, 6), f32(), f32(), bf16(6), None, "15", "True"),
            flops=1536,
            bytes_read=340,
            bytes_written=48,
            why="2*4*6*32; reads (128 + 192)*1, two scales of 4, a bias of 6*2; writes 24*2 (bf16)",
        ),
        Example(
            args=(fp8(4, 32), fp8(32, 6), None, "15", f32(4, 1), f32(1, 6)),
            flops=1536,
            bytes_read=360,
            bytes_written=48,
            why="the argument order of torch 2.1: reads 320 + 16 + 24 of row scales; writes 24*2",
        ),
    ),
)
def scaled_mm(op: Op) -> Cost:
    """``scale_a * scale_b * (a @ b) + bias``: fp8, fp4 (two values an element) or int8 operands."""
    small = sum(size(arg) for arg in op.args[2:8] if isinstance(arg, Tensor))
    return _scaled_product(op, small, scaled_output_dtype(op, 3), ())


@op_model(
    "aten::_scaled_mm_v2",
    category="gemm",
    examples=(
        Example(
            args=(
                fp8(4, 32),
                fp8(32, 6),
                (f32(),),
                "[0]",
                "[]",
                (f32(),),
                "[0]",
                "[]",
                bf16(6),
                "15",
                "[]",
                "True",
            ),
            flops=1536,
            bytes_read=340,
            bytes_written=48,
            why="2*4*6*32; reads (128 + 192)*1, two scales of 4, a bias of 6*2; writes 24*2 (bf16)",
        ),
    ),
)
def scaled_mm_v2(op: Op) -> Cost:
    """As ``_scaled_mm``, with lists of scales, whose dtypes a trace may not hold."""
    scales = (*op.tensor_list(2), *op.tensor_list(5))
    untyped = any(scale.dtype is None for scale in scales)
    small = size(op.tensor_or_none(8)) + (0 if untyped else size(*scales))
    notes = ("lower bound: scales not counted, their dtype is not recorded",) if untyped else ()
    return _scaled_product(op, small, op.dtype(9) or dtype_of(op.tensor(0)), notes)


def _scaled_product(op: Op, small: int, out_dtype: str, notes: tuple[str, ...]) -> Cost:
    a, b = op.tensor(0), op.tensor(1)
    (m, k), (k2, n) = two_dims(a), two_dims(b)
    require(k == k2)
    cost = product(2 * m * n * k * pair_factor(a), size(a, b) + small, m * n * itemsize(out_dtype), a, b)
    return replace(cost, notes=notes)


def scaled_output_dtype(op: Op, first: int) -> str:
    """Dtype of the result: that of the dtype argument, which stands at ``first`` or later, else of operand 0."""
    for index in range(first, len(op.args)):
        arg = op.args[index]
        if isinstance(arg, str) and arg not in {"True", "False"} and "[" not in arg:
            return op.dtype(index) or dtype_of(op.tensor(0))
    return dtype_of(op.tensor(0))


@op_model(
    "aten::_grouped_mm",
    "aten::_scaled_grouped_mm",
    category="gemm",
    examples=(
        Example(
            only="aten::_grouped_mm",
            args=(bf16(8, 5), bf16(2, 5, 6), i32(2), None, None),
            flops=480,
            bytes_read=208,
            bytes_written=96,
            why="8 rows, each through one 5x6: 2*8*6*5; reads 40*2 + 60*2 + two offsets of 4; writes 8*6*2",
        ),
        Example(
            only="aten::_grouped_mm",
            args=(bf16(4, 8), bf16(8, 6), i32(2), None, None),
            flops=384,
            bytes_read=168,
            bytes_written=96,
            why="K of 8 split in two groups: 2*4*6*8; reads (32 + 48)*2 + 8; writes two 4x6 of 2 bytes",
        ),
        Example(
            only="aten::_grouped_mm",
            args=(bf16(1, 5), bf16(4, 5, 6), i32(4), None, None),
            flops=60,
            bytes_read=86,
            bytes_written=12,
            why="one row reaches one expert of four: 2*1*6*5; reads 5*2 + 120*2/4 + 16; writes 6*2",
        ),
        Example(
            only="aten::_scaled_grouped_mm",
            args=(fp8(8, 16), fp8(2, 16, 6), f32(8), f32(2, 6), i32(2), None, None, "15", "True"),
            flops=1536,
            bytes_read=408,
            bytes_written=96,
            why="2*8*6*16; reads 128 + 192, scales 32 + 48, offsets 8; writes 48*2",
        ),
    ),
)
def grouped_mm(op: Op) -> Cost:
    """Products of a group each: rows, columns or K are split by offsets.

    How many rows each group has is data. FLOPs do not depend on it; with fewer rows than groups, at most as many
    groups as rows are read.
    """
    a, b = op.tensor(0), op.tensor(1)
    scaled = op.name == "aten::_scaled_grouped_mm"
    offsets = op.tensor_or_none(4 if scaled else 2)
    out = scaled_output_dtype(op, 7) if scaled else op.dtype(4) or dtype_of(a)
    small = sum(size(arg) for arg in op.args[2:] if isinstance(arg, Tensor))
    flops, groups, elements = _grouped(a.shape, b.shape, offsets)
    read_b = size(b) * min(groups, a.shape[0]) // groups if groups else size(b)
    return product(flops * pair_factor(a), size(a) + read_b + small, elements * itemsize(out), a, b)


def _grouped(a: tuple[int, ...], b: tuple[int, ...], offsets: Tensor | None) -> tuple[int, int, int]:
    """FLOPs, number of weights that rows choose among (0: all are used), elements of the result."""
    if len(a) == 2 and len(b) == 3:
        require(a[1] == b[1])
        return 2 * a[0] * b[2] * a[1], b[0], a[0] * b[2]
    if len(a) == 3 and len(b) == 2:
        require(a[2] == b[0])
        return 2 * a[1] * b[1] * a[2], 0, a[1] * b[1]
    if len(a) == 2 and len(b) == 2 and offsets is not None:
        require(a[1] == b[0])
        return 2 * a[0] * b[1] * a[1], 0, offsets.numel * a[0] * b[1]
    require(len(a) == 3 and len(b) == 3 and a[0] == b[0] and a[2] == b[1])
    return 2 * a[0] * a[1] * b[2] * a[2], 0, a[0] * a[1] * b[2]


@op_model(
    "aten::_weight_int4pack_mm",
    "aten::_weight_int8pack_mm",
    category="gemm",
    examples=(
        Example(
            only="aten::_weight_int8pack_mm",
            args=(bf16(4, 32), i8(6, 32), bf16(6)),
            flops=1536,
            bytes_read=460,
            bytes_written=48,
            why="2*4*6*32; reads 128*2 + 192 + 6*2; writes 24*2",
        ),
        Example(
            only="aten::_weight_int4pack_mm",
            args=(bf16(4, 128), i32(1, 1, 32, 4), "32", bf16(4, 8, 2)),
            flops=8192,
            bytes_read=1664,
            bytes_written=64,
            why="2*4*8*128; reads 512*2 + 128*4 (= 8*128/2) + 64*2; writes 32*2",
        ),
    ),
)
def packed_weight_mm(op: Op) -> Cost:
    """``x [m,k]`` by packed weights; the output width is the scales' (int8) or the packed layout's (int4)."""
    x, w = op.tensor(0), op.tensor(1)
    m, k = two_dims(x)
    if op.name.endswith("int8pack_mm"):
        n = two_dims(w)[0]
        scales = op.tensor_or_none(2)
    else:
        # The first axis counts groups of 8 columns: aten/src/ATen/native/cuda/int4mm.cu.
        require(len(w.shape) == 4)
        n, scales = w.shape[0] * 8, op.tensor_or_none(3)
    return Cost(
        flops=2 * m * n * k,
        bytes_read=size(x, w, scales),
        bytes_written=m * n * itemsize(dtype_of(x)),
        unit="matrix",
        precision=dtype_of(x),
    )
