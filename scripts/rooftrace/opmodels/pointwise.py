"""The cost of one elementwise op: broadcast the inputs, promote their types, count operations per element."""

from __future__ import annotations

import math

from .op import NO_SCALARS, NO_SHAPES, NoCostError, Op, Tensor
from .parts import as_float, broadcast, dtype_of, f32, itemsize, require, result_dtype, size
from .registry import Cost, Example, op_model


def pointwise(op: Op, *, inputs: int, flops: float, result: str = "promote") -> Cost:
    """Cost of an elementwise op whose first ``inputs`` arguments are operands; a tensor behind them is the output.

    ``result`` is how the output's dtype follows: ``promote``, ``float`` (promoted, integers become float32),
    ``first`` (operand 0), ``value`` (operands 1 …: the first is a condition), or a dtype.
    """
    operands = [arg for arg in op.args[:inputs] if isinstance(arg, Tensor)]
    if not operands:
        raise NoCostError(NO_SHAPES)
    shape = broadcast(tensor.shape for tensor in operands)
    elements = math.prod(shape)
    if is_in_place(op.name):
        first = op.tensor(0)
        elements = first.numel
        written = size(first)
        dtype = dtype_of(first)
    else:
        out = _output(op, inputs, shape)
        dtype = dtype_of(out) if out else _result_dtype(op, inputs, result)
        written = elements * itemsize(dtype)
    return Cost(
        flops=round(flops * elements),
        bytes_read=size(*operands),
        bytes_written=written,
        precision=dtype if dtype != "bool" else dtype_of(operands[0]),
    )


def is_in_place(name: str) -> bool:
    """Whether the op writes its first argument: ``add_``, ``__iadd__``."""
    base = name.rpartition("::")[2]
    return (base.endswith("_") and not base.endswith("__")) or base.startswith("__i")


def _output(op: Op, inputs: int, shape: tuple[int, ...]) -> Tensor | None:
    """The output tensor behind the operands, of the result's shape, or empty before the op sizes it.

    Anything else means that the record holds more than the op's own arguments, as TorchScript's interpreter writes
    it (its whole stack), and positions mean nothing.
    """
    outs = [arg for arg in op.args[inputs:] if isinstance(arg, Tensor)]
    require(len(outs) <= 1 and (not outs or outs[0].shape == shape or not outs[0].numel))
    return outs[0] if outs else None


def _result_dtype(op: Op, inputs: int, result: str) -> str:
    if result == "first":
        return dtype_of(op.tensor(0))
    args = op.args[1 if result == "value" else 0 : inputs]
    tensors = [arg for arg in args if isinstance(arg, Tensor)]
    if result not in {"promote", "float", "value"}:
        return result
    scalars = [arg for arg in args if isinstance(arg, str) and arg]
    require(bool(tensors or scalars), NO_SCALARS)
    dtype = result_dtype(tensors, scalars)
    return as_float(dtype) if result == "float" else dtype


def register(
    names: str, *, inputs: int, flops: float, result: str = "promote", tensors: tuple[int, ...] | None = None
) -> None:
    """Register elementwise ops of ``aten``, each with its form in place; ``tensors`` are the positions of operands."""
    positions = tensors or tuple(range(inputs))
    args = tuple(f32(4, 5) if i in positions else None for i in range(inputs))
    out_width = 1 if result == "bool" else 4
    example = Example(
        args=args,
        flops=round(flops * 20),
        bytes_read=80 * len(positions),
        bytes_written=20 * out_width,
        why=f"{flops} operations on each of 20 elements; reads 80 bytes for each of {len(positions)} operands; "
        f"writes 20 of {out_width}",
    )
    out_of_place = tuple(f"aten::{name}" for name in names.split())
    in_place = tuple(f"aten::{name}_" for name in names.split())

    @op_model(*out_of_place, category="elementwise", examples=(example,))
    def elementwise(op: Op) -> Cost:
        """Cost of an elementwise op that returns a new tensor."""
        return pointwise(op, inputs=inputs, flops=flops, result=result)

    same_width = Example(
        args=args,
        flops=example.flops,
        bytes_read=example.bytes_read,
        bytes_written=80,
        why="as out of place; writes the first operand, 20 of 4",
    )

    @op_model(*in_place, category="elementwise", examples=(same_width,))
    def elementwise_in_place(op: Op) -> Cost:
        """Cost of an elementwise op that overwrites its first operand."""
        return pointwise(op, inputs=inputs, flops=flops, result=result)
