"""Other sizes, layouts and precisions of one call, where the finding's patterns suggest them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rooftrace.repro.calls import op_name
from rooftrace.repro.program import Option

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.contracts.chains import ChainArgument, ChainStep
    from rooftrace.repro.program import Program

_MISALIGNED: Final = frozenset({"misaligned", "misaligned_rows"})
_BYTES_OF_A_LOAD: Final = 16  # matrix units are fed 16 bytes at a time
_BYTE_TYPES: Final = frozenset({"int8", "uint8"})
# Axes of the operands that the product's sizes lie on.
_PADDED: Final = {
    "mm": ("-2, -1", "-2, -1"),
    "bmm": ("-2, -1", "-2, -1"),
    "addmm": ("-2, -1", "-2, -1", "-2, -1"),
    "linear": ("-2, -1", "-2, -1", "-1"),
}
_PRECISIONS: Final = {"fp32_on_bf16_units": "bfloat16", "fp32_on_fp16_units": "float16"}


def variants(program: Program, patterns: Sequence[str]) -> list[Option]:
    """Options for a chain of one call."""
    steps = program.chain.steps
    if len(steps) != 1:
        return []
    step, found = steps[0], []
    if _MISALIGNED & set(patterns) and op_name(step) in _PADDED:
        found += _padded(program, step)
    for pattern, dtype in _PRECISIONS.items():
        if pattern in patterns and _is_float32(step):
            found.append(_option(f"in {dtype}", f"prepare=each(lambda x: x.to(torch.{dtype})), like=torch.{dtype}"))
    if "fp32_without_tf32" in patterns and _is_float32(step):
        text = 'option("with TF32", with_tf32(traced), like=torch.float16)'
        found.append(Option(name="with TF32", lines=(), text=text))
    if "layout_changes" in patterns:
        found.append(_option("in channels_last", "prepare=each(channels_last)"))
    return found


def _option(name: str, more: str) -> Option:
    return Option(name=name, lines=(), text=f'option("{name}", traced, {more})')


def _padded(program: Program, step: ChainStep) -> list[Option]:
    """Sizes rounded up to what the matrix units are fed at once; the padding is not part of the time."""
    operands = [argument for argument in step.arguments if argument.kind == "tensor"]
    rules = _PADDED[op_name(step)][: len(operands)]
    dtype = operands[0].tensors[0].dtype or ""
    to = _BYTES_OF_A_LOAD if dtype in _BYTE_TYPES or dtype.startswith("float8") else _BYTES_OF_A_LOAD // 2
    name = f"sizes padded to multiples of {to}"
    parts = [
        f"padded({program.value(operand.tensors[0])}, {_axes_of(operand, axes)}, to={to})"
        for axes, operand in zip(rules, operands, strict=True)
    ]
    lines = (
        f"def pad({program.parameters}):",
        f"    return [{', '.join(parts)}]",
        "",
        "def cut(result):",
        f"    return [result[..., : sized({_rows(step, operands)}), : sized({_columns(step, operands)})]]",
    )
    return [Option(name=name, lines=lines, text=f'option("{name}", traced, prepare=pad, finish=cut)')]


def _axes_of(operand: ChainArgument, axes: str) -> str:
    return "-1" if len(operand.tensors[0].shape) == 1 else axes


def _rows(step: ChainStep, operands: Sequence[ChainArgument]) -> int:
    first = operands[1 if op_name(step) == "addmm" else 0]
    return first.tensors[0].shape[-2]


def _columns(step: ChainStep, operands: Sequence[ChainArgument]) -> int:
    name = op_name(step)
    second = operands[2 if name == "addmm" else 1].tensors[0].shape
    return second[0] if name == "linear" else second[-1]


def _is_float32(step: ChainStep) -> bool:
    return any(t.dtype == "float32" for argument in step.arguments for t in argument.tensors)
