"""Parts of a run of calls without a composition that one generated kernel could be."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rooftrace.fusion.flow import components, trace_flow

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.fusion.meaning import Meaning

_REDUCING = frozenset(
    {"sum", "mean", "amax", "amin", "prod", "var", "std", "norm", "softmax", "log_softmax", "any", "all"}
)
_NORMALISING = frozenset({"layer_norm", "rms_norm", "softmax", "log_softmax"})
# Elements that one thread block can reduce to a single result while the others wait for it.
_MOST_TO_ONE = 1 << 16


def pieces_of(calls: Sequence[Meaning], steps: Sequence[Meaning], at: Sequence[int]) -> list[tuple[int, ...]]:
    """Offsets of the members of each part: connected by data, and feasible as one kernel; no two share a call.

    Chains that take turns are parts of their own, each with the other's calls between its own.

    ``at`` gives the steps of the calls. A run that repeats is cut into its repetitions: whether the second goes on with
    the first's result or does the same to another tensor, shapes cannot tell.
    """
    found: list[tuple[int, ...]] = []
    for low, high in _units(calls):
        edges = _edges(steps, at, range(low, high))
        for chain in components(range(low, high), edges):
            for part in _feasible(calls, chain):
                found += [piece for piece in components(part, _inside(edges, part)) if len(piece) > 1]
    return sorted(found)


def _units(calls: Sequence[Meaning]) -> list[tuple[int, int]]:
    """The run, or its repetitions; none where each call only repeats the one before."""
    count = len(calls)
    words = [(call.name, call.reads) for call in calls]
    for period in range(1, count // 2 + 1):
        if all(words[i] == words[i - period] for i in range(period, count)):
            whole = range(0, count - period + 1, period)
            return [] if period == 1 else [(low, low + period) for low in whole]
    return [(0, count)]


def _feasible(calls: Sequence[Meaning], chain: Sequence[int]) -> list[tuple[int, ...]]:
    """Cut where a kernel cannot go on: after a reduction of much to one result, and where the reduced rows change."""
    cuts, rows = [0], None
    for number, at in enumerate(chain):
        call = calls[at]
        if call.word not in _REDUCING and call.word not in _NORMALISING:
            continue
        mine = call.writes[0].numel if call.word not in _NORMALISING else _rows(call)
        if rows is not None and mine != rows and number > cuts[-1]:
            cuts.append(number)
        rows = mine
        if mine == 1 and call.reads and call.reads[0].numel > _MOST_TO_ONE:
            cuts.append(number + 1)
            rows = None
    cuts.append(len(chain))
    return [tuple(chain[a:b]) for a, b in pairwise(cuts) if b - a > 1]


def _rows(call: Meaning) -> int:
    x = call.reads[0]
    return x.numel // x.shape[-1] if x.shape and x.shape[-1] else x.numel


def _edges(steps: Sequence[Meaning], at: Sequence[int], part: range) -> list[tuple[int, int]]:
    """Which of the calls read what which of them make."""
    offset = {at[i]: i for i in part}
    return [(offset[a], offset[b]) for a, b in trace_flow(steps, frozenset(offset)).edges]


def _inside(edges: Sequence[tuple[int, int]], part: Sequence[int]) -> list[tuple[int, int]]:
    members = set(part)
    return [edge for edge in edges if edge[0] in members and edge[1] in members]
