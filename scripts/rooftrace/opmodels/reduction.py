"""Reductions: every input once, one result for each kept position; the reduced axes stand in the scalars.

Operations per input element: sum, max, comparison 1; norm 2 (absolute value or square, add); variance 4 (mean, then
difference, square, add); logsumexp 4 (max, difference, exp, add).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from .dtypes import kind
from .op import Op, Tensor
from .parts import as_float, bf16, dtype_of, f32, i64, itemsize, require, size
from .pointwise import pointwise
from .registry import Cost, Example, categorise, op_model


class Form(NamedTuple):
    """Position of the axes and of the dtype; operations an element; what is written."""

    dim: int = 1
    dtype: int | None = None
    flops: int = 1
    result: str = "same"  # or: sum (integers widen), float, bool, int64, indexed (values and int64 positions)
    outputs: int = 1


def reduced(op: Op, form: Form) -> Cost:
    """Cost of a reduction."""
    x = op.tensor(0)
    notes: tuple[str, ...] = ()
    if op.arg(form.dim) != "":
        n_out = kept_elements(op, form.dim, x.shape)
    elif op.output is not None:
        n_out = op.output.numel
    else:
        n_out, notes = 1, ("lower bound: reduced axes not recorded, one result",)
    recorded = form.dtype is not None and op.arg(form.dtype) != ""
    named = op.dtype(form.dtype) if form.dtype is not None and recorded else None
    width = itemsize(named or _result(form.result, dtype_of(x)))
    if form.result == "indexed" and _has_axis(op, form.dim):
        width += 8
    return Cost(
        flops=form.flops * x.numel,
        bytes_read=size(x),
        bytes_written=n_out * width * form.outputs,
        precision=dtype_of(x),
        notes=notes,
    )


def _result(rule: str, dtype: str) -> str:
    if rule == "sum":
        return "int64" if kind(dtype) < 2 else dtype
    if rule == "float":
        return as_float(dtype)
    return dtype if rule in {"same", "indexed"} else rule


def _has_axis(op: Op, index: int) -> bool:
    arg = op.arg(index)
    return isinstance(arg, str) and arg not in {"True", "False", "[]"}


def kept_elements(op: Op, index: int, shape: tuple[int, ...]) -> int:
    """Elements of the result: axes stand at ``index``; none, or an empty list, is all of them."""
    if not _has_axis(op, index) and op.arg(index) != "":
        return 1
    axes = op.integers(index)
    rank = len(shape)
    require(all(-max(rank, 1) <= axis < max(rank, 1) for axis in axes))
    gone = {axis % rank for axis in axes} if rank else set()
    return math.prod(n for axis, n in enumerate(shape) if axis not in gone)


# (self, dim, keepdim, dtype) unless said otherwise.
_FORMS: dict[str, Form] = {
    "sum": Form(dtype=3, result="sum"),
    "nansum": Form(dtype=3, result="sum"),
    "mean": Form(dtype=3, result="float"),
    "nanmean": Form(dtype=3, result="float"),
    "prod": Form(dtype=3, result="sum"),
    "amax": Form(),
    "amin": Form(),
    "aminmax": Form(outputs=2, flops=2),
    "argmax": Form(result="int64"),
    "argmin": Form(result="int64"),
    "any": Form(result="bool"),
    "all": Form(result="bool"),
    "count_nonzero": Form(result="int64"),
    "var": Form(flops=4),
    "std": Form(flops=4),
    "var_mean": Form(flops=4, outputs=2),
    "std_mean": Form(flops=4, outputs=2),
    "logsumexp": Form(flops=4, result="float"),
    "norm": Form(dim=2, flops=2),
    "linalg_vector_norm": Form(dim=2, flops=2),
    "median": Form(result="indexed"),
    "nanmedian": Form(result="indexed"),
    "mode": Form(result="indexed"),
}


def _register(name: str, form: Form) -> None:
    args: tuple[Tensor | str, ...] = (f32(4, 5), "2", "[-1]") if form.dim == 2 else (f32(4, 5), "[-1]", "False")
    width = {"bool": 1, "int64": 8, "indexed": 12}.get(form.result, 4) * form.outputs
    along = Example(
        args=args,
        flops=form.flops * 20,
        bytes_read=80,
        bytes_written=4 * width,
        why=f"{form.flops} operations on each of 20; reads 20*4; writes 4 rows of {width} bytes",
    )

    @op_model(f"aten::{name}", category="reduction", examples=(along,))
    def reduction(op: Op) -> Cost:
        """Cost of a reduction."""
        return reduced(op, form)


for _name, _form in _FORMS.items():
    _register(_name, _form)


@op_model(
    "aten::max",
    "aten::min",
    category="reduction",
    examples=(
        Example(
            args=(bf16(4, 5), "1", "False"),
            flops=20,
            bytes_read=40,
            bytes_written=40,
            why="along an axis: reads 20*2; writes 4 values of 2 and 4 positions of 8",
        ),
        Example(args=(bf16(4, 5),), flops=20, bytes_read=40, bytes_written=2, why="of everything: one bf16"),
        Example(
            args=(i64(4, 5), i64(4, 5)),
            flops=20,
            bytes_read=320,
            bytes_written=160,
            why="of two tensors: elementwise; reads 2*20*8; writes 20*8",
        ),
    ),
)
def extremum(op: Op) -> Cost:
    """Of one tensor, of an axis (with positions), or of two tensors element by element."""
    if op.has_tensor(1) and op.tensor(1).numel and len(op.args) == 2 and op.tensor(1).dtype == op.tensor(0).dtype:
        return pointwise(op, inputs=2, flops=1)
    return reduced(op, Form(result="indexed"))


@op_model(
    "aten::cumsum", "aten::cumprod", "aten::cumsum_", "aten::cumprod_", "aten::logcumsumexp",
    "fbgemm::asynchronous_complete_cumsum", "fbgemm::asynchronous_inclusive_cumsum",
    "fbgemm::asynchronous_exclusive_cumsum", "fb::asynchronous_complete_cumsum",
    category="reduction",
    examples=(
        Example(args=(i64(4, 5), "0"), flops=20, bytes_read=160, bytes_written=160, why="20 adds; 20*8 each way"),
    ),
)  # fmt: skip
def scan(op: Op) -> Cost:
    """Running sums: as many results as inputs; integers widen to int64 in PyTorch's own."""
    x = op.tensor(0)
    named = op.dtype(2) if op.name.startswith("aten::cum") and op.name.rstrip("_").endswith(("sum", "prod")) else None
    widens = op.name in {"aten::cumsum", "aten::cumprod"} and kind(dtype_of(x)) < 2
    dtype = named or ("int64" if widens else dtype_of(x))
    return Cost(
        flops=x.numel,
        bytes_read=size(x),
        bytes_written=x.numel * itemsize(dtype),
        precision=dtype_of(x),
    )


categorise(
    "reduction",
    "aten::linalg_norm", "aten::frobenius_norm",
    "aten::value_selecting_reduction_backward", "aten::trace",
    module=__name__,
)  # fmt: skip
