"""Embedding gradients, pooled lookups (EmbeddingBag), and ops on sparse features."""

from __future__ import annotations

import math

from .op import Op
from .parts import bf16, by_roles, dtype_of, f32, fresh, i32, i64, itemsize, require, size
from .registry import Cost, Example, categorise, op_model


@op_model(
    "aten::embedding_dense_backward",
    category="embedding",
    examples=(
        Example(
            args=(bf16(4, 8), i64(4), "100", "0", "False"),
            flops=32,
            bytes_read=96,
            bytes_written=1600,
            why="one add each of 32; reads the gradient 64 and 4 indices of 8; writes all 100 rows of 8*2",
        ),
    ),
)
def embedding_dense_backward(op: Op) -> Cost:
    """(grad, indices, number of rows, …): a dense gradient of the table."""
    grad, index = op.tensor(0), op.tensor(1)
    require(bool(grad.shape))
    return Cost(
        flops=grad.numel,
        bytes_read=size(grad, index),
        bytes_written=op.integer(2) * grad.shape[-1] * itemsize(dtype_of(grad)),
        precision=dtype_of(grad),
    )


@op_model(
    "aten::_embedding_bag",
    "aten::_embedding_bag_forward_only",
    category="embedding",
    examples=(
        Example(
            args=(f32(100, 8), i64(6), i64(2), "False", "0", "False", None, "False", "-1"),
            flops=48,
            bytes_read=256,
            bytes_written=64,
            why="6 rows of 8 summed into 2 bags: 48 adds; reads 48*4, 6 and 2 indices of 8; writes 16*4",
        ),
    ),
)
def embedding_bag(op: Op) -> Cost:
    """(table, indices, offsets, …, include the last offset at 7): rows summed bag by bag."""
    table, index, offsets = op.tensor(0), op.tensor(1), op.tensor(2)
    width = table.shape[1]
    bags = offsets.numel - (1 if op.boolean(7, default=False) else 0)
    weights = op.tensor_or_none(6)
    element = itemsize(dtype_of(table))
    return Cost(
        flops=index.numel * width * (1 if weights is None else 2),
        bytes_read=min(index.numel * width, table.stored) * element + size(index, offsets, weights),
        bytes_written=bags * width * element,
        precision=dtype_of(table),
    )


@op_model(
    "aten::_embedding_bag_dense_backward",
    category="embedding",
    examples=(
        Example(
            args=(f32(2, 8), i64(6), i64(6), i64(2), i64(0), "100", "False", "0", None, "-1"),
            flops=48,
            bytes_read=160,
            bytes_written=3200,
            why="6 rows of 8 added; reads the bags' gradient 64, 6 + 6 indices of 8; writes 100 rows of 8*4",
        ),
    ),
)
def embedding_bag_backward(op: Op) -> Cost:
    """(grad, indices, bag of each, bag sizes, maxima, number of rows, …)."""
    grad, index, bag_of = op.tensor(0), op.tensor(1), op.tensor(2)
    width = grad.shape[1]
    return Cost(
        flops=index.numel * width,
        bytes_read=size(grad, index, bag_of),
        bytes_written=op.integer(5) * width * itemsize(dtype_of(grad)),
        precision=dtype_of(grad),
    )


@op_model(
    "fbgemm::bounds_check_indices",
    category="embedding",
    examples=(
        Example(
            args=(i64(2), i64(12), i64(9)),
            flops=12,
            bytes_read=184,
            why="a test for each of 12; reads 2 + 12 + 9 of 8",
        ),
    ),
)
def bounds_check(op: Op) -> Cost:
    """(rows a table, indices, offsets): reads all, writes what is out of bounds: nothing."""
    return by_roles(op, "iii", main=1, flops_per_element=1)


@op_model(
    "fbgemm::permute_2D_sparse_data",
    "fbgemm::permute_sparse_features",
    "fbgemm::permute_sparse_data",
    category="embedding",
    examples=(
        Example(
            args=(i32(3), i32(3, 4), i64(20), None),
            bytes_read=220,
            bytes_written=208,
            why="reads 3*4, lengths 12*4, values 20*8; writes lengths and values",
        ),
    ),
)
def permute_sparse(op: Op) -> Cost:
    """(permutation, lengths, values, weights): the last three in another order."""
    permutation, lengths, values = op.tensor(0), op.tensor(1), op.tensor(2)
    weights = op.tensor_or_none(3)
    return Cost(
        flops=0,
        bytes_read=size(permutation, lengths, values, weights),
        bytes_written=fresh(lengths) + fresh(values) + (fresh(weights) if weights else 0),
        precision=dtype_of(values),
    )


@op_model(
    "fb::offsets_range",
    "fbgemm::offsets_range",
    category="embedding",
    examples=(Example(args=(i64(9), i32(40)), bytes_read=72, bytes_written=160, why="reads 9*8; writes 40*4"),),
)
def offsets_range(op: Op) -> Cost:
    """(offsets, output)."""
    return by_roles(op, "io", main=0, flops_per_element=0)


@op_model(
    "aten::bucketize",
    "aten::searchsorted",
    category="sort",
    examples=(
        Example(
            only="aten::bucketize",
            args=(f32(8), f32(16), "False", "False"),
            flops=40,
            bytes_read=96,
            bytes_written=64,
            why="5 comparisons find one of 17 places for 8; reads 8*4 + 16*4; writes 8 positions of 8",
        ),
        Example(
            only="aten::searchsorted",
            args=(f32(16), f32(8), "False", "False"),
            flops=40,
            bytes_read=96,
            bytes_written=64,
            why="as bucketize with the boundaries first",
        ),
    ),
)
def bucketize(op: Op) -> Cost:
    """Binary search of each value among boundaries; int32 positions if asked for at 2."""
    values, boundaries = op.tensor(0), op.tensor(1)
    if op.name == "aten::searchsorted":
        values, boundaries = boundaries, values
    width = 4 if op.boolean(2, default=False) else 8
    steps = math.ceil(math.log2(boundaries.shape[-1] + 1)) if boundaries.shape else 0
    return Cost(
        flops=values.numel * steps,
        bytes_read=size(values, boundaries),
        bytes_written=values.numel * width,
        precision=dtype_of(values),
    )


categorise(
    "embedding",
    "aten::embedding_bag", "aten::_embedding_bag_backward", "aten::_embedding_bag_sparse_backward",
    "aten::_embedding_bag_per_sample_weights_backward",
    patterns=(
        r"SplitLookupFunction", r"^fbgemm::\w*(embedding|lookup|sparse|jagged|bounds)", r"^fb::",
        r"^torchrec::", r"^fbgemm::",
    ),
    module=__name__,
)  # fmt: skip
