"""Sorting and selection: bytes only. A sort reads and writes once here, whatever passes an algorithm takes."""

from __future__ import annotations

from .op import Op
from .parts import b8, bf16, dtype_of, f32, itemsize, require, size
from .registry import Cost, Example, categorise, op_model


@op_model(
    "aten::sort",
    category="sort",
    examples=(
        Example(
            args=(bf16(4, 5), "-1", "False"),
            bytes_read=40,
            bytes_written=200,
            why="reads 20*2; writes 20 values of 2 and 20 positions of 8",
        ),
    ),
)
def sort(op: Op) -> Cost:
    """Values and int64 positions."""
    x = op.tensor(0)
    written = x.numel * (itemsize(dtype_of(x)) + 8)
    return Cost(flops=0, bytes_read=size(x), bytes_written=written, precision=dtype_of(x))


@op_model(
    "aten::argsort",
    category="sort",
    claims_subtree=False,
    examples=(Example(args=(bf16(4, 5),), bytes_read=40, bytes_written=160, why="20*2 in, 20*8 out"),),
)
def argsort(op: Op) -> Cost:
    """Positions alone; the sort below it has the time."""
    x = op.tensor(0)
    return Cost(flops=0, bytes_read=size(x), bytes_written=8 * x.numel, precision=dtype_of(x))


@op_model(
    "aten::topk",
    "aten::kthvalue",
    category="sort",
    examples=(
        Example(
            only="aten::topk",
            args=(f32(4, 50), "3", "-1", "True", "True"),
            bytes_read=800,
            bytes_written=144,
            why="reads 200*4; writes 4 rows of 3 values of 4 and 3 positions of 8",
        ),
        Example(
            only="aten::kthvalue",
            args=(f32(4, 50), "3", "-1", "False"),
            bytes_read=800,
            bytes_written=48,
            why="one value and position a row: 4*(4 + 8)",
        ),
    ),
)
def topk(op: Op) -> Cost:
    """(x, k, axis, …): k values and int64 positions a row."""
    x, k, axis = op.tensor(0), op.integer(1), op.integer(2, -1)
    rank = len(x.shape)
    require(rank == 0 or -rank <= axis < rank)
    along = x.shape[axis] if rank else 1
    rows = x.numel // along if along else 0
    kept = 1 if op.name == "aten::kthvalue" else k
    written = rows * kept * (itemsize(dtype_of(x)) + 8)
    return Cost(flops=0, bytes_read=size(x), bytes_written=written, precision=dtype_of(x))


@op_model(
    "aten::nonzero", "aten::_unique2", "aten::unique_dim", "aten::unique_consecutive", "aten::masked_select",
    "aten::bincount", "aten::histc",
    category="sort",
    examples=(
        Example(args=(b8(4, 5),), bytes_read=20, why="reads 20; how many results there are is data"),
    ),
)  # fmt: skip
def data_dependent(op: Op) -> Cost:
    """Ops whose result has a size that only the data tell."""
    x, mask = op.tensor(0), op.tensor_or_none(1)
    return Cost(
        flops=0,
        bytes_read=size(x, mask),
        bytes_written=0,
        precision=dtype_of(x),
        notes=("lower bound: the size of the result is data, so it is not counted",),
    )


@op_model(
    "aten::multinomial",
    category="sort",
    examples=(
        Example(
            args=(f32(4, 50), "1", "False", None),
            bytes_read=800,
            bytes_written=32,
            why="reads 200*4; writes 4 positions of 8",
        ),
    ),
)
def multinomial(op: Op) -> Cost:
    """(weights, samples): positions a row."""
    x = op.tensor(0)
    rows = x.shape[0] if len(x.shape) == 2 else 1
    return Cost(flops=0, bytes_read=size(x), bytes_written=8 * rows * op.integer(1), precision=dtype_of(x))


categorise("sort", "aten::msort", "aten::randperm", "aten::top_k_top_p", module=__name__)
categorise(
    "sort",
    patterns=(r"(?i)sampling_from|top_?k_top_?p|min_p_sampling|radix_?sort|^sgl_kernel::fast_topk",),
    module=__name__,
)
