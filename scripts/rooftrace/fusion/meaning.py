"""What a distinct call means: its word, what it reads and makes, its cost. Found once for each name and inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct
from msgspec.structs import replace

from rooftrace.calltree.surroundings import record_op
from rooftrace.calltree.units import Call, cost_with_kernels
from rooftrace.fusion.outputs import OVERWRITES, outputs_of, reads_of
from rooftrace.fusion.tokens import BARRIER, OPAQUE, SCALAR_FORMS, base_word, untold
from rooftrace.fusion.views import view_outputs
from rooftrace.kernelnames import describe_copy, inductor_ops
from rooftrace.opmodels import ITEMSIZE, Cost, NoCostError, Op, Tensor, category_of
from rooftrace.opmodels.op import NO_SHAPES
from rooftrace.opmodels.pointwise import is_in_place

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.kernelnames import KernelInfo
    from rooftrace.trace import Trace

# Kinds of work that a generated kernel can take in beside others.
_FUSABLE: Final = frozenset({"elementwise", "reduction", "normalization", "memory", "quantization", "optimizer"})
# Norms with statistics over more than a row: kernels of a library, not of a code generator.
_LIBRARY: Final = frozenset({"batch_norm", "group_norm", "instance_norm"})
_NOT_FUSABLE: Final = _LIBRARY | {"fill", "arange", "index", "repeat"}
_NEVER: Final = frozenset({"attention", "moe", "communication", "ssm"})
# Results that only a backward pass reads: of a norm its statistics, of dropout its mask.
_SAVED_FOR_BACKWARD: Final = frozenset({"layer_norm", "dropout"})
_HOST_COPIES: Final = frozenset({"HtoD", "DtoH", "HtoH"})
# Single ops whose kernel is called fused for what it does at once with its mask.
_FUSED_IN_NAME_ONLY: Final = frozenset({"dropout"})
_TF32: Final = "tfloat32"
_EITHER_HALF: Final = "bfloat16"  # stands for float16, too, where only the width is known


class Meaning(Struct, frozen=True, kw_only=True):
    """A distinct call. ``reads`` and ``writes`` are empty where ``reason`` says why they are not known."""

    name: str
    word: str
    reads: tuple[Tensor, ...] = ()
    writes: tuple[Tensor, ...] = ()
    side_writes: int = 0  # of `writes`, how many at the end only a backward pass reads
    reason: str | None = None
    cost: Cost | None = None
    precision: str | None = None
    fusable: bool = False
    in_place: bool = False
    likely_dtype: str | None = None  # of tensors without one, where nothing that they flow from has one either

    @property
    def text(self) -> str:
        """The call with the shapes it reads, for a reader."""
        shapes = " x ".join(str(list(tensor.shape)) for tensor in self.reads)
        return f"{self.name} {shapes}".rstrip()


def meaning_of_view(trace: Trace, name: int, inputs: int) -> Meaning:
    """A call that launches nothing: the views it gives."""
    op = record_op(trace, name, inputs)
    try:
        return Meaning(name=op.name, word="view", reads=(op.tensor(0),), writes=view_outputs(op))
    except NoCostError as reason:
        return Meaning(name=op.name, word="view", reason=str(reason))


def meaning_of_call(op: Op, infos: Sequence[KernelInfo]) -> Meaning:
    """A call that launches kernels."""
    category = category_of(op.name) or infos[0].category
    barrier = why_barrier(infos, base_word(op.name), category)
    if barrier is not None:
        return Meaning(name=op.name, word=BARRIER, reason=barrier)
    generated = inductor_ops(op.name)
    word = base_word(generated[0]) if generated else base_word(op.name)
    try:
        if generated:
            reads, writes = _generated(op)
        else:
            reads, writes = reads_of(op), outputs_of(op)
    except NoCostError as reason:
        return Meaning(name=op.name, word=untold(word), reason=str(reason))
    cost = cost_with_kernels(Call(op=op), infos)
    known = cost if isinstance(cost, Cost) else None
    likely = _dtype_of_width(writes[0], known) if writes and writes[0].dtype is None else None
    if likely != _EITHER_HALF:  # else the data flow tells which of the two
        writes = tuple(tensor if tensor.dtype else replace(tensor, dtype=likely) for tensor in writes)
        reads = tuple(tensor if tensor.dtype else replace(tensor, dtype=writes[0].dtype) for tensor in reads)
    precision = known.precision if known else None
    if known and known.unit == "matrix" and precision == "float32" and any(i.facts.precision == _TF32 for i in infos):
        precision = _TF32
    return Meaning(
        name=op.name,
        word=_refined(word, op, reads, writes),
        reads=reads,
        writes=writes,
        side_writes=len(writes) - 1 if word in _SAVED_FOR_BACKWARD else 0,
        cost=known,
        precision=precision,
        fusable=category in _FUSABLE and word not in _NOT_FUSABLE,
        in_place=is_in_place(op.name) and base_word(op.name) not in OVERWRITES,
        likely_dtype=likely,
    )


def unknown_call(infos: Sequence[KernelInfo]) -> Meaning:
    """Kernels launched outside any op: nothing of their data is known."""
    barrier = why_barrier(infos)
    word = OPAQUE if barrier is None else BARRIER
    return Meaning(name=infos[0].short, word=word, reason=barrier or "launched outside any op")


def why_barrier(infos: Sequence[KernelInfo], word: str = "", category: str | None = None) -> str | None:
    """Why nothing may be fused across a call: it communicates, copies to or from the host, or is fused already."""
    if category == "communication" or any(info.kind == "communication" for info in infos):
        return "communication"
    if any(describe_copy(info.name).direction in _HOST_COPIES for info in infos):
        return "copy between host and device"
    named_so = word in _FUSED_IN_NAME_ONLY
    if category in _NEVER or any((info.fused and not named_so) or info.category in _NEVER for info in infos):
        return "already fused"
    return None


def _refined(word: str, op: Op, reads: tuple[Tensor, ...], writes: tuple[Tensor, ...]) -> str:
    if word in SCALAR_FORMS:
        return word if len(reads) > 1 and min(tensor.numel for tensor in reads[:2]) > 1 else f"{word}s"
    if word == "copy":
        source = reads[0].dtype if reads else None
        return "cast" if source is not None and writes[0].dtype not in (None, source) else "copy"
    if word in {"amax", "amin"} and len(reads) > 1:
        return "maximum" if word == "amax" else "minimum"
    return "pow" if op.name.endswith("::square") else word


def _generated(op: Op) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    """Operands of a generated kernel: all tensors but the last, which it makes."""
    tensors = op.tensors()
    if not tensors:
        raise NoCostError(NO_SHAPES)
    return (tensors[:-1], tensors[-1:]) if len(tensors) > 1 else (tensors, tensors)


def _dtype_of_width(tensor: Tensor, cost: Cost | None) -> str | None:
    """Where a list's element type is not recorded, one of the width that the cost was found with."""
    if cost is None or not tensor.numel:
        return None
    width = cost.bytes_written // tensor.numel
    return next((name for name in ("float32", _EITHER_HALF, "uint8", "int64") if ITEMSIZE[name] == width), None)
