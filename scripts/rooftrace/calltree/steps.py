"""Steps: annotated by profiler or serving engine, else the period of the kernel sequence, else the whole trace."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree.activities import Link
from rooftrace.sorted_unique import sorted_unique
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.calltree.activities import Activities
    from rooftrace.calltree.tree import CallTree
    from rooftrace.trace import Trace

# Grammars of step annotations, most specific first: torch.profiler, vLLM, xDiT, SGLang, ATOM.
_GRAMMARS = (
    re.compile(r"^ProfilerStep(?:#\d+|\*)?$"),
    re.compile(r"^execute_(?:\d+_)?(?:context|diffusion)_"),
    re.compile(r"^step\[(?:EXTEND|DECODE|MIXED|PREFILL|IDLE)\b"),
    re.compile(r"^(?:prefill|decode)\["),
)
_MIN_PERIODS = 3
_MIN_PERIOD_KERNELS = 8
_PERIOD_AGREEMENT = 0.98
_EDGE_KERNELS = 4
_MAX_CANDIDATES = 500  # each costs a comparison of the whole sequence, about 0.5 ms for a million kernels


class Steps(Struct, frozen=True, kw_only=True):
    """Steps in time order; ``of_activity`` gives each activity's step, -1 for work launched before the first."""

    names: tuple[str, ...]
    start: NDArray[np.int64]
    end: NDArray[np.int64]
    of_activity: NDArray[np.int64]
    source: str
    first: int = 0  # position of the first of them in the whole trace

    @property
    def annotated(self) -> bool:
        """Whether the boundaries were written by the run itself."""
        return self.source == "annotation"


def find_steps(trace: Trace, tree: CallTree, activities: Activities) -> Steps:
    """The steps of a trace and the step of every GPU activity, by the time of its launch."""
    annotated = _annotated(trace, tree)
    if annotated is not None:
        names, start, end = annotated
        return Steps(
            names=names,
            start=start,
            end=end,
            of_activity=_step_of_launch(activities, tree, start),
            source="annotation",
        )
    periodic = _periodic(activities)
    if periodic is not None:
        return periodic
    low, high = _window(tree, activities)
    return Steps(
        names=("whole trace",),
        start=np.array([low]),
        end=np.array([high]),
        of_activity=np.zeros(activities.row.size, dtype=np.int64),
        source="whole trace",
    )


def is_step_name(name: str) -> bool:
    """Whether an annotation marks a step."""
    return any(grammar.match(name) for grammar in _GRAMMARS)


def _window(tree: CallTree, activities: Activities) -> tuple[int, int]:
    starts = [int(part.min()) for part in (tree.start, activities.start) if part.size]
    ends = [int(part.max()) for part in (tree.end, activities.end) if part.size]
    return min(starts, default=0), max(ends, default=0)


def _annotated(trace: Trace, tree: CallTree) -> tuple[tuple[str, ...], NDArray[np.int64], NDArray[np.int64]] | None:
    """Annotations of the first grammar that occurs, from the thread that has most of them."""
    nodes = np.flatnonzero((tree.kind == int(Kind.ANNOTATION)) | (tree.kind == int(Kind.CPU_OP)))
    codes = sorted_unique(tree.name[nodes])
    for grammar in _GRAMMARS:
        matching = [code for code in codes.tolist() if grammar.match(trace.names[code])]
        if not matching:
            continue
        found = nodes[np.isin(tree.name[nodes], matching)]
        lanes, counts = np.unique(tree.lane[found], return_counts=True)
        found = found[tree.lane[found] == lanes[np.argmax(counts)]]
        rows = tree.row[found]
        start, end = trace.start[rows], trace.end_of(rows)
        outer = np.r_[True, end[1:] > np.maximum.accumulate(end)[:-1]]  # neither nested nor written twice
        found, start, end = found[outer], start[outer], end[outer]
        return tuple(trace.names[code] for code in tree.name[found].tolist()), start, end
    return None


def _step_of_launch(activities: Activities, tree: CallTree, start: NDArray[np.int64]) -> NDArray[np.int64]:
    """The last step that had begun at the launch; those whose launch is lost, at their own start."""
    step = np.full(activities.row.size, -1, dtype=np.int64)
    linked = activities.linked
    step[linked] = np.searchsorted(start, tree.start[activities.launch[linked]], side="right") - 1
    lost = np.flatnonzero(activities.link == int(Link.LOST))
    step[lost] = np.searchsorted(start, activities.start[lost], side="right") - 1
    return step


def _periodic(activities: Activities) -> Steps | None:
    """Equal stretches of the kernel sequence of the busiest device, if nearly all of it repeats from the first on."""
    if not activities.row.size:
        return None
    devices, counts = np.unique(activities.device, return_counts=True)
    device = devices[np.argmax(counts)]
    members = np.flatnonzero((activities.device == device) & (activities.work == 0))
    names = activities.name[members]
    period = _period(names)
    if period is None:
        return None
    firsts = np.arange(0, names.size - period // 2, period)
    start = activities.start[members[firsts]]
    last = int(activities.end[members].max())
    step = np.searchsorted(start, activities.start, side="right") - 1
    return Steps(
        names=tuple(f"step {number}" for number in range(firsts.size)),
        start=start,
        end=np.r_[start[1:], last],
        of_activity=step,
        source="kernel period",
    )


def _period(names: NDArray[np.int32]) -> int | None:
    """Length of the shortest repeating stretch, in kernels; None if nothing repeats or only a loop within a step does.

    A stack of equal layers repeats, too, but not from its first kernel to its last: the first and last kernels of a
    stretch must recur, which the embedding before and the head after the layers do not.
    """
    count = names.size
    if count < _MIN_PERIODS * _MIN_PERIOD_KERNELS:
        return None
    periods = np.flatnonzero(names == names[0])[1:]
    periods = periods[periods <= count // _MIN_PERIODS]
    for offset in range(_EDGE_KERNELS):
        periods = periods[names[periods + offset] == names[offset]]
        periods = periods[names[count - 1 - offset - periods] == names[count - 1 - offset]]
    for period in periods[:_MAX_CANDIDATES].tolist():
        if (names[:-period] == names[period:]).mean() >= _PERIOD_AGREEMENT:
            return int(period) if period >= _MIN_PERIOD_KERNELS else None
    return None
