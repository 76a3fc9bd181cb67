"""Pooled lookups in several tables at once (FBGEMM), forward and backward with the optimizer fused in.

Rows are taken as of the tables' mean width and no index as repeated, up to the size of the tables: which rows are
looked up is data. Positions of FBGEMM's ``split_embedding_codegen_lookup_<optimizer>_function`` (device, managed and
cached weights 1 to 3; one more D offset than tables at 6; total width 7; indices 11; offsets, samples times tables
plus one, 12; weights of the indices 14) and ``dense_embedding_codegen_lookup_function`` (weights 0, D offsets 2, total
width 3, indices 7, offsets 8, weights of the indices 10).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from .op import NO_SCALARS, NoCostError, Op, Tensor
from .parts import dtype_of, f32, i32, i64, itemsize, require, size
from .registry import Cost, Example, op_model

_ESTIMATE: Final = "estimate: rows taken as of the tables' mean width, each index as another row"
NEEDS_FORWARD: Final = "needs the forward lookup: tables and indices are no arguments"


_OPTIMIZER = re.compile(r"SplitLookupFunction_(\w+)_Op")
_LOOKUP = re.compile(r"^fbgemm::(?:split|dense)_embedding_codegen_lookup_\w*function")


class Form(NamedTuple):
    """Where a lookup holds its arguments."""

    tables: tuple[int, ...]
    d_offsets: int
    width: int
    indices: int
    offsets: int
    weighting: int


_SPLIT: Final = Form(tables=(1, 2, 3), d_offsets=6, width=7, indices=11, offsets=12, weighting=14)
_DENSE: Final = Form(tables=(0,), d_offsets=2, width=3, indices=7, offsets=8, weighting=10)
# Bytes and operations of the optimizer's state: a factor on the row's own elements, and float32 numbers a row.
# Adagrad: square and add 2, root, sum, quotient, product, difference 5; row-wise, one number a row is kept.
_STATE: Final = {"adagrad": (1, 0, 7), "rowwise_adagrad": (0, 1, 4), "adam": (2, 0, 13), "sgd": (0, 0, 2)}


class Lookup(NamedTuple):
    """Sizes of a lookup in several tables."""

    table: Tensor
    samples: int
    width: int  # of all tables together
    elements: int  # looked up
    rows: int
    stored: int  # elements of all tables
    index_bytes: int


def _form(name: str) -> Form:
    return _DENSE if name.startswith("fbgemm::dense_") else _SPLIT


def lookup_sizes(op: Op) -> Lookup:
    """The sizes of a forward lookup; its total width may stand in the result that a neighbour tells."""
    form = _form(op.name)
    held = [tensor for i in form.tables if (tensor := op.tensor_or_none(i)) is not None]
    d_offsets, index, offsets = op.tensor(form.d_offsets), op.tensor(form.indices), op.tensor(form.offsets)
    count = d_offsets.numel - 1
    require(bool(held) and count > 0)
    width = op.integer(form.width) if op.output is None else op.output.shape[-1]
    weighting = op.tensor_or_none(form.weighting)
    return Lookup(
        table=max(held, key=lambda tensor: tensor.numel),
        samples=(offsets.numel - 1) // count,
        width=width,
        elements=index.numel * width // count,
        rows=index.numel,
        stored=sum(tensor.numel for tensor in held),
        index_bytes=size(index, offsets, weighting),
    )


def lookup_shape(op: Op) -> tuple[int, int, int] | None:
    """Samples, tables and indices of a forward lookup, which its total width is not needed for."""
    form = _form(op.name)
    d_offsets, index, offsets = (op.tensor_or_none(i) for i in (form.d_offsets, form.indices, form.offsets))
    if d_offsets is None or index is None or offsets is None or d_offsets.numel < 2:
        return None
    tables = d_offsets.numel - 1
    return (offsets.numel - 1) // tables, tables, index.numel


def stored_bytes(op: Op) -> int | None:
    """Bytes of all tables of a forward lookup; None where their type is not recorded."""
    held = [tensor for i in _form(op.name).tables if (tensor := op.tensor_or_none(i)) is not None]
    sizes = [tensor.nbytes for tensor in held if tensor.nbytes is not None]
    return sum(sizes) if held and len(sizes) == len(held) else None


def is_table_lookup(name: str) -> bool:
    """Whether a name is a lookup in several tables, or the update of their rows."""
    return _LOOKUP.search(name) is not None or _OPTIMIZER.search(name) is not None


def index_count(op: Op) -> int:
    """Indices of a lookup or update; 0 where they are no arguments of it."""
    index = op.tensor_or_none(_index_positions(op)[0])
    return index.numel if index is not None else 0


def without_index_count(op: Op) -> Op:
    """The same call with as many indices as any other: how many rows are looked up is data, and varies by step."""
    varying = _index_positions(op)
    args = tuple(
        Tensor(shape=(0,), dtype=arg.dtype) if at in varying and isinstance(arg, Tensor) else arg
        for at, arg in enumerate(op.args)
    )
    return Op(name=op.name, args=args)


def _index_positions(op: Op) -> tuple[int, int]:
    """Where the indices and their weights stand: in an update behind the gradient."""
    update = _OPTIMIZER.search(op.name)
    form = _DENSE if op.name.startswith("fbgemm::dense_") or (update and update.group(1) == "Dense") else _SPLIT
    shift = 1 if update else 0
    return form.indices + shift, form.weighting + shift


_ARGS = (f32(0), f32(3200), f32(0), f32(0), i32(2), i64(2), i32(3), "16", "8", i64(3), "7", i64(12), i64(9))


@op_model(
    category="embedding",
    patterns=(r"^fbgemm::split_embedding_codegen_lookup_\w+_function",),
    examples=(
        Example(
            args=_ARGS,
            flops=96,
            bytes_read=552,
            bytes_written=256,
            why="2 tables, 4 samples, 12 rows of 16/2 = 8: 96 adds; reads 96*4, 12 + 9 indices of 8; writes 4*16*4",
        ),
        Example(
            args=(*_ARGS[:7], "", "", *_ARGS[9:]),
            unmodelled=NO_SCALARS,
            why="the width of the rows is a scalar",
        ),
    ),
)
def split_lookup(op: Op) -> Cost:
    """A pooled lookup whose backward pass has the optimizer fused in."""
    return _looked_up(op)


@op_model(
    "fbgemm::dense_embedding_codegen_lookup_function",
    category="embedding",
    examples=(
        Example(
            args=(f32(112), i64(2), i32(3), "16", "8", i64(3), "7", i64(12), i64(9)),
            flops=96,
            bytes_read=552,
            bytes_written=256,
            why="as above with the arguments elsewhere: 12 rows of 8, 96 of 112 elements, and 21 indices of 8",
        ),
    ),
)
def dense_lookup(op: Op) -> Cost:
    """A pooled lookup whose backward pass gives a dense gradient."""
    return _looked_up(op)


def _looked_up(op: Op) -> Cost:
    call = lookup_sizes(op)
    read = min(call.elements, max(call.stored, 1)) * itemsize(dtype_of(call.table))
    return Cost(
        flops=call.elements,
        bytes_read=read + call.index_bytes,
        bytes_written=call.samples * call.width * 4,
        precision=dtype_of(call.table),
        notes=(_ESTIMATE,),
    )


_UPDATE = "torch::autograd::CppNode<SplitLookupFunction_rowwise_adagrad_Op>"


@op_model(
    _UPDATE,
    category="embedding",
    patterns=(r"^torch::autograd::CppNode<(?:\w+::)?SplitLookupFunction_\w+_Op>",),
    examples=(
        Example(args=(f32(4, 16),), unmodelled=NEEDS_FORWARD, why="only the gradient is handed over"),
        Example(
            args=(f32(4, 16), *_ARGS),
            flops=480,
            bytes_read=856,
            bytes_written=432,
            why="12 rows of 8: 96 adds and 4 operations on each; reads the gradient 64*4, 12 + 9 indices of 8, rows "
            "96*4 and a number each, 12*4; writes rows and numbers",
        ),
    ),
)
def table_update(op: Op) -> Cost:
    """(gradient, then the forward lookup's arguments): gradients summed a row, each row and its state updated.

    The gradient alone is what the call is handed; a caller who finds the forward lookup adds its arguments. ``Dense``
    writes a gradient of the whole table. The sort that brings equal indices together counts in time, not in cost.
    """
    match = _OPTIMIZER.search(op.name)
    require(match is not None)
    optimizer = match.group(1) if match else ""
    if len(op.args) == 1:
        raise NoCostError(NEEDS_FORWARD)
    name = "fbgemm::dense_" if optimizer == "Dense" else "fbgemm::split_"
    grad = op.tensor(0)
    call = lookup_sizes(Op(name=name, args=op.args[1:], output=grad))
    require(grad.numel == call.samples * call.width)
    read = size(grad) + call.index_bytes
    element = itemsize(dtype_of(call.table))
    if optimizer == "Dense":
        return _updated(call, call.elements, read, call.stored * element)
    if optimizer not in _STATE:
        raise NoCostError("optimizer of the table update not modelled")
    factor, numbers, operations = _STATE[optimizer]
    touched = min(call.elements, call.stored)
    rows = touched * call.rows // call.elements if call.elements else 0
    updated = touched * (element + 4 * factor) + 4 * numbers * rows
    return _updated(call, call.elements + operations * touched, read + updated, updated)


def _updated(call: Lookup, flops: int, read: int, written: int) -> Cost:
    return Cost(flops=flops, bytes_read=read, bytes_written=written, precision=dtype_of(call.table), notes=(_ESTIMATE,))
