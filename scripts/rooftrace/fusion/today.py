"""What the calls of a chain reach today, and what a fused kernel no better than the best of them would take.

The closed form of METHODS (fusion) sets a fused kernel on the GPU's ceilings, where no kernel of the chain is: what it
saves at most. At the least a fused kernel is as far from its floor as the call of the chain that is closest to its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.fusion.fused_time import FusedTime, Work, fused_time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.fusion.calls import Calls
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.fusion.fused_time import Machine
    from rooftrace.fusion.meaning import Meaning

# As of position embeddings or a bias; short, since notes are cited in one line.
NO_RESIDUAL = "some adds broadcast: no residual"
_ADD_NORM = "add_norm"


class Today(Struct, frozen=True, kw_only=True):
    """One candidate: its longest call, the best share of a floor among its calls, and the slow fused kernel, ns."""

    longest_ns: int
    best_share: float
    slow_ns: int


def today(calls: Calls, candidate: Candidate, machine: Machine | None) -> Today:
    """What the replaced calls of a candidate reach, by their mean times over its instances.

    An epilogue launches nothing of its own, and of work that goes whole nothing is left: both stay as estimated.
    """
    offsets = candidate.first[:, None] + np.array(candidate.members)[None, :]
    times = calls.time_ns[offsets].mean(axis=0).tolist()
    shares = [_share(call, took, machine) for call, took in zip(candidate.replaced, times, strict=True)]
    best = max(shares, default=0.0) or 1.0
    slow = candidate.fused_ns
    if candidate.estimate is not None and not candidate.anchor and not candidate.is_undone:
        slow = max(slow, round(candidate.estimate.time.floor_ns / best))
    return Today(longest_ns=round(max(times, default=0.0)), best_share=best, slow_ns=slow)


def least_saving_ns(candidate: Candidate, slow_ns: int) -> int:
    """What all instances save with a fused kernel of that time."""
    return int(np.maximum(0, candidate.time_ns - slow_ns).sum())


def caveats(candidates: Sequence[Candidate]) -> list[str]:
    """What a reader has to know of the candidates of one finding."""
    return [NO_RESIDUAL] if any(_adds_broadcast(candidate) for candidate in candidates) else []


def _adds_broadcast(candidate: Candidate) -> bool:
    """Whether the add before a norm takes tensors of different shapes."""
    if candidate.composition is None or candidate.composition.identity != _ADD_NORM:
        return False
    added = next((call for call in candidate.replaced if call.word == "add"), None)
    return added is not None and len({tuple(tensor.shape) for tensor in added.reads}) > 1


def _share(call: Meaning, took_ns: float, machine: Machine | None) -> float:
    """Floor over time of a call as a kernel of its own, 1 at most; 0 where it has no floor."""
    if call.cost is None or machine is None or took_ns <= 0:
        return 0.0
    flops: dict[tuple[str, str], int] = {}
    if call.cost.flops and call.precision:
        flops[call.cost.unit, call.precision] = call.cost.flops
    floor = fused_time(machine, Work(nbytes=call.cost.bytes_total, flops=flops))
    return min(floor.floor_ns / took_ns, 1.0) if isinstance(floor, FusedTime) else 0.0
