"""What fusing the calls of a candidate would take, and what of it was inferred."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from rooftrace.fusion.fused_time import FusedTime, Machine, Work, epilogue_time, fused_time
from rooftrace.opmodels import ITEMSIZE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.fusion.compositions import Composition
    from rooftrace.fusion.flow import Flow
    from rooftrace.fusion.meaning import Meaning

NO_PLATFORM = "GPU unknown: no ceilings"
_INFERRED = "data flow inferred from shapes, types"
# Tensors whose addresses fit one launch of a multi-tensor kernel with two lists (PyTorch, MultiTensorApply.cuh).
_TENSORS_A_LAUNCH = 64
_NONLINEAR = frozenset(
    {
        "relu",
        "gelu",
        "silu",
        "sigmoid",
        "tanh",
        "hardswish",
        "hardsigmoid",
        "leaky_relu",
        "elu",
        "clamp",
        "mish",
    }
)


class Estimate(Struct, frozen=True, kw_only=True):
    """One instance, fused."""

    time: FusedTime
    nbytes: int  # read from and written to memory by the fused kernel; of an epilogue, beside the product's own
    inner_bytes: int  # written and read again today, no longer when fused
    dtype: str
    notes: tuple[str, ...]


def estimate_chain(flow: Flow, calls: Sequence[Meaning], machine: Machine | None) -> Estimate | str:
    """A kernel of its own in place of connected calls."""
    flops = _flops(calls)
    if isinstance(flops, str):
        return flops
    if machine is None:
        return NO_PLATFORM
    nbytes = flow.read_bytes + flow.written_bytes
    time = fused_time(machine, Work(nbytes=nbytes, flops=flops))
    if isinstance(time, str):
        return time
    return Estimate(
        time=time,
        nbytes=nbytes,
        inner_bytes=2 * sum(value.nbytes for value in flow.inner),
        dtype=_dtype(flow),
        notes=(_INFERRED, *dict.fromkeys(flow.forced)),
    )


def estimate_epilogue(
    flow: Flow, calls: Sequence[Meaning], anchor: int, machine: Machine | None, *, training: bool
) -> Estimate | str:
    """Calls that the product before them takes in: its own time stays as measured."""
    flops = _flops(calls)
    if isinstance(flops, str):
        return flops
    if machine is None:
        return NO_PLATFORM
    read = sum(min(v.nbytes, v.read_bytes) for v in flow.external if any(r != anchor for r in v.readers))
    product = sum(v.nbytes for v in (*flow.inner, *flow.written) if v.maker == anchor)
    notes = [
        _INFERRED,
        "the product's measured time stays; counted are the further operands",
        *dict.fromkeys(flow.forced),
    ]
    extra = read + max(0, flow.written_bytes - product)
    if training and any(call.word in _NONLINEAR for call in calls):
        extra += product
        notes.append("the activation's input is written as well: the backward pass reads it")
    time = epilogue_time(machine, Work(nbytes=extra, flops=flops))
    if isinstance(time, str):
        return time
    return Estimate(time=time, nbytes=extra, inner_bytes=2 * product, dtype=_dtype(flow), notes=tuple(notes))


def estimate_loop(calls: Sequence[Meaning], composition: Composition | None, machine: Machine | None) -> Estimate | str:
    """One multi-tensor call in place of equal work on many tensors: no traffic is saved but what states repeat."""
    flops = _flops(calls)
    if isinstance(flops, str):
        return flops
    if machine is None:
        return NO_PLATFORM
    own = sum(call.cost.bytes_total for call in calls if call.cost)
    operands = composition.file.operands if composition else None
    note = "no data is taken to flow between the repetitions; each reads and writes its own tensors"
    nbytes = own
    if operands is not None:
        pivots = [call for call in calls if call.word == operands.pivot]
        if not pivots:
            return f"no `{operands.pivot}` among the calls"
        each = sum(t.stored * ITEMSIZE[t.dtype or "float32"] for call in pivots for t in call.writes[:1])
        nbytes = min(own, (operands.read + operands.written) * each)
        note = f"each parameter is updated once: {operands.read} tensors of its size read, {operands.written} written"
    launches = -(-len(calls) // _TENSORS_A_LAUNCH)
    time = fused_time(replace(machine, latency_ns=launches * machine.latency_ns), Work(nbytes=nbytes, flops=flops))
    if isinstance(time, str):
        return time
    dtype = next((call.writes[0].dtype for call in calls if call.writes and call.writes[0].dtype), "")
    return Estimate(time=time, nbytes=nbytes, inner_bytes=max(0, own - nbytes), dtype=dtype, notes=(note,))


def _flops(calls: Sequence[Meaning]) -> dict[tuple[str, str], int] | str:
    """FLOPs by unit and precision, or which call has no cost."""
    flops: dict[tuple[str, str], int] = defaultdict(int)
    for call in calls:
        if call.cost is None:
            return call.reason or f"no cost of `{call.name}`"
        if call.cost.flops:
            precision = call.precision
            if precision is None:
                return "precision unknown"
            flops[call.cost.unit, precision] += call.cost.flops
    return flops


def _dtype(flow: Flow) -> str:
    """Element type of the largest tensor that is written."""
    written = sorted(flow.written, key=lambda value: -value.nbytes)
    return (written[0].dtype or "") if written else ""
