"""Lookups, gathers and scatters: bytes of the rows touched, at most those of the table, plus the indices.

Repeated indices may hit a cache: a table smaller than what is looked up is read once.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from .op import Op, Tensor
from .parts import bf16, dtype_of, f32, fresh, i64, itemsize, require, size
from .registry import Cost, Example, categorise, op_model

_INDEX_SHAPES = "index shapes not recorded"
_NO_INDICES = "lower bound: indices not recorded"


def _rows(table: Tensor, elements: int) -> int:
    """Bytes read of ``table`` when ``elements`` of it are looked up."""
    return min(elements, table.stored) * itemsize(dtype_of(table))


def _gathered(table: Tensor, elements: int, indices: int, written: int) -> Cost:
    return Cost(flops=0, bytes_read=_rows(table, elements) + indices, bytes_written=written, precision=dtype_of(table))


@op_model(
    "aten::index_select",
    category="embedding",
    examples=(
        Example(
            args=(bf16(100, 8), "0", i64(4)),
            bytes_read=96,
            bytes_written=64,
            why="4 rows of 8*2 and 4 indices of 8; writes 4*8*2",
        ),
        Example(
            args=(bf16(2, 8), "0", i64(4)),
            bytes_read=64,
            bytes_written=64,
            why="a table of 2 rows is read once: 2*8*2 + 4*8",
        ),
    ),
)
def index_select(op: Op) -> Cost:
    """(table, axis, indices)."""
    table, index = op.tensor(0), op.tensor(2)
    rank = len(table.shape)
    axis = op.integer(1) if rank != 1 else 0  # a vector has one axis, recorded or not
    require(-rank <= axis < rank)
    kept = math.prod(n for i, n in enumerate(table.shape) if i != axis % rank)
    elements = kept * index.numel
    return _gathered(table, elements, size(index), elements * itemsize(dtype_of(table)))


@op_model(
    "aten::embedding",
    category="embedding",
    claims_subtree=False,
    examples=(
        Example(
            args=(bf16(100, 8), i64(2, 2), "0", "False", "False"),
            bytes_read=96,
            bytes_written=64,
            why="4 rows of 8*2 and 4 indices of 8; writes 4*8*2",
        ),
    ),
)
def embedding(op: Op) -> Cost:
    """(table, indices): the lookup below it has the time."""
    table, index = op.tensor(0), op.tensor(1)
    require(len(table.shape) == 2)
    elements = index.numel * table.shape[1]
    return _gathered(table, elements, size(index), elements * itemsize(dtype_of(table)))


@op_model(
    "aten::gather",
    category="embedding",
    examples=(
        Example(
            args=(f32(100, 8), "0", i64(4, 8), "False"),
            bytes_read=384,
            bytes_written=128,
            why="32 elements of 4 and 32 indices of 8; writes 32*4",
        ),
    ),
)
def gather(op: Op) -> Cost:
    """(input, axis, index): one element for each index, expanded indices counted as stored."""
    table, index = op.tensor(0), op.tensor(2)
    return _gathered(table, index.numel, size(index), index.numel * itemsize(dtype_of(table)))


@op_model(
    "fb::fast_gather",
    "aten::take",
    category="embedding",
    examples=(
        Example(
            args=(f32(100), i64(4)),
            bytes_read=48,
            bytes_written=16,
            why="4 elements of 4 and 4 indices of 8; writes 4*4",
        ),
    ),
)
def take(op: Op) -> Cost:
    """(input, index)."""
    table, index = op.tensor(0), op.tensor(1)
    return _gathered(table, index.numel, size(index), index.numel * itemsize(dtype_of(table)))


@op_model(
    "aten::index",
    "aten::_unsafe_index",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), (i64(4),)),
            bytes_read=160,
            bytes_written=128,
            why="one index on the first axis: 4 rows of 8*4 and 4 indices of 8; writes 4*8*4",
        ),
        Example(args=(f32(10, 8), None), unmodelled=_INDEX_SHAPES, why="an optional tensor list is not recorded"),
    ),
)
def index(op: Op) -> Cost:
    """(input, indices): leading axes are replaced by the broadcast shape of the indices, int64 if not recorded."""
    table, indices = op.tensor(0), op.tensor_list(1) if op.arg(1) != "" else ()
    if not indices and op.output is not None:
        elements = op.output.numel
        return replace(_gathered(table, elements, 0, elements * itemsize(dtype_of(table))), notes=(_NO_INDICES,))
    require(bool(indices), _INDEX_SHAPES)
    require(len(indices) <= len(table.shape) and all(i.dtype != "bool" for i in indices), _INDEX_SHAPES)
    picked = max(i.numel for i in indices)
    elements = picked * math.prod(table.shape[len(indices) :])
    read = sum(i.stored * itemsize(i.dtype or "int64") for i in indices)
    return _gathered(table, elements, read, elements * itemsize(dtype_of(table)))


@op_model(
    "aten::index_put_",
    "aten::_index_put_impl_",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), (i64(4),), f32(4, 8), "False"),
            bytes_read=160,
            bytes_written=128,
            why="reads values 32*4 and 4 indices of 8; writes the places, 32*4",
        ),
        Example(
            args=(f32(10, 8), None, f32(4, 8), "True"),
            flops=32,
            bytes_read=256,
            bytes_written=128,
            why="accumulating reads the places too: 2*32*4; one add each; the indices are not recorded",
        ),
        Example(
            args=(f32(10, 8), None, f32(), "False"),
            unmodelled=_INDEX_SHAPES,
            why="one value for places of unknown number",
        ),
    ),
)
def index_put(op: Op) -> Cost:
    """(self, indices, values, accumulate): as many places as values."""
    table, indices, values = op.tensor(0), op.arg(1), op.tensor(2)
    listed = indices if isinstance(indices, tuple) else ()
    require(bool(values.shape) and values.numel > 1, _INDEX_SHAPES)
    accumulate = op.boolean(3)
    places = min(values.numel, table.stored) * itemsize(dtype_of(table))
    read = size(values) + sum(i.stored * itemsize(i.dtype or "int64") for i in listed)
    return Cost(
        flops=values.numel if accumulate else 0,
        bytes_read=read + (places if accumulate else 0),
        bytes_written=places,
        precision=dtype_of(table),
        notes=() if listed else (_NO_INDICES,),
    )


def _scatter(op: Op, *, adds: bool) -> Cost:
    """Cost of writing places of argument 0, (self, axis, index, source); out of place, the rest is copied."""
    table, index, source = op.tensor(0), op.tensor(2), op.tensor_or_none(3)
    by_rows = op.name in {"aten::index_add_", "aten::index_copy_", "aten::index_reduce_"}
    count = source.numel if source is not None and by_rows else index.numel
    in_place = op.name.endswith("_")
    touched = min(count, table.stored) * itemsize(dtype_of(table))
    source_bytes = min(size(source), count * itemsize(dtype_of(source))) if source is not None else 0
    read_table = touched if adds else 0
    return Cost(
        flops=count if adds else 0,
        bytes_read=(read_table if in_place else size(table)) + size(index) + source_bytes,
        bytes_written=touched if in_place else fresh(table),
        precision=dtype_of(table),
    )


@op_model(
    "aten::scatter_",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), "1", i64(10, 2), f32(10, 2)),
            bytes_read=240,
            bytes_written=80,
            why="reads 20 indices of 8 and 20 values of 4; writes 20 places",
        ),
        Example(
            args=(f32(10, 8), "1", i64(10, 2), "1"),
            bytes_read=160,
            bytes_written=80,
            why="a number instead of values",
        ),
    ),
)
def scatter_(op: Op) -> Cost:
    """(self, axis, index, values or a number)."""
    return _scatter(op, adds=False)


@op_model(
    "aten::scatter",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), "1", i64(10, 2), f32(10, 2)),
            bytes_read=560,
            bytes_written=320,
            why="out of place: the table of 80*4 is copied; reads 20 indices of 8 and 20 values of 4",
        ),
    ),
)
def scatter(op: Op) -> Cost:
    """(self, axis, index, values or a number) to a new tensor."""
    return _scatter(op, adds=False)


@op_model(
    "aten::scatter_add_",
    "aten::scatter_reduce_",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), "1", i64(10, 2), f32(10, 2)),
            flops=20,
            bytes_read=320,
            bytes_written=80,
            why="20 adds; reads places 80, indices 160, values 80; writes places",
        ),
    ),
)
def scatter_add_(op: Op) -> Cost:
    """(self, axis, index, values)."""
    return _scatter(op, adds=True)


@op_model(
    "aten::index_add_",
    "aten::index_reduce_",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), "0", i64(4), f32(4, 8), "1"),
            flops=32,
            bytes_read=288,
            bytes_written=128,
            why="32 adds; reads 4 rows of 32, 4 indices of 8, the source 128; writes the rows",
        ),
    ),
)
def index_add_(op: Op) -> Cost:
    """(self, axis, index, source): whole rows."""
    return _scatter(op, adds=True)


@op_model(
    "aten::index_copy_",
    category="embedding",
    examples=(
        Example(
            args=(f32(10, 8), "0", i64(4), f32(4, 8)),
            bytes_read=160,
            bytes_written=128,
            why="reads 4 indices of 8 and the source 32*4; writes 4 rows",
        ),
    ),
)
def index_copy_(op: Op) -> Cost:
    """(self, axis, index, source): whole rows."""
    return _scatter(op, adds=False)


categorise(
    "embedding",
    "aten::index_put", "aten::index_fill_", "aten::index_fill", "aten::scatter_add", "aten::scatter_reduce",
    "aten::index_add", "aten::index_copy", "aten::gather_backward", "aten::embedding_sparse_backward",
    "aten::embedding_backward", "aten::masked_scatter_", "aten::take_along_dim", "aten::put_", "aten::isin",
    "aten::embedding_renorm_",
    module=__name__,
)  # fmt: skip
