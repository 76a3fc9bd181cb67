"""The median instance of a candidate with its kernels and launches in time: what its plot is drawn from."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.contracts.instance import Instance, InstanceBar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.fusion.names import NamedRun

# Bars of a long instance: a dozen pixels each in a plot, and some kilobytes in its file.
_MOST_BARS = 64

_Roles = tuple[bool, bool]  # whether a kernel is replaced, and whether its launch stays


def median_instance(run: FusionInputs, calls: Calls, candidate: Candidate) -> Instance:
    """The instance of the median kernel time; of an even number the lower one of the two in the middle."""
    first = int(candidate.first[_median(candidate.time_ns)])
    inside = set(candidate.members)
    stays = candidate.members[0] if candidate.kept_launches else -1
    activities: list[int] = []
    roles: list[_Roles] = []
    for offset in range(candidate.length):
        mine = calls.activities_of(first + offset, first + offset).tolist()
        activities += mine
        # The first launch of the first replaced call is that of the fused kernel.
        roles += [(offset in inside, offset not in inside or (offset == stays and at == 0)) for at in range(len(mine))]
    fused = candidate.fused_ns if candidate.estimate is not None else None
    return _instance(run, activities, roles, (candidate.first.size, fused))


def median_named(run: FusionInputs, calls: Calls, named: NamedRun) -> Instance:
    """The same of kernels without calls. A graph has no launches of its kernels."""
    first = int(named.first[_median(named.time_ns)])
    activities = calls.activities_of(first, first + len(named.kernels) - 1).tolist()
    roles = [(True, at == 0) for at in range(len(activities))]
    return _instance(run, activities, roles, (named.first.size, None))


def _median(times: NDArray[np.int64]) -> int:
    return int(np.argsort(times, kind="stable")[(times.size - 1) // 2])


def _instance(
    run: FusionInputs, activities: Sequence[int], roles: Sequence[_Roles], known: tuple[int, int | None]
) -> Instance:
    times, (count, fused) = run.activities, known
    start = int(times.start[activities[0]])
    return Instance(
        device=int(times.device[activities[0]]),
        stream=int(times.stream[activities[0]]),
        start_ns=start,
        of=count,
        replaced_ns=sum(int(times.dur[at]) for at, (replaced, _) in zip(activities, roles, strict=True) if replaced),
        fused_ns=fused,
        bars=[
            _bar(run, activities[low:high], roles[low], start)
            for low, high in _parts(roles, -(-len(activities) // _MOST_BARS))
        ],
    )


def _parts(roles: Sequence[_Roles], most: int) -> list[tuple[int, int]]:
    """Stretches of kernels of one role, each of ``most`` kernels at most."""
    parts: list[tuple[int, int]] = []
    for at, role in enumerate(roles):
        low, high = parts[-1] if parts else (0, 0)
        if parts and high - low < most and roles[low] == role:
            parts[-1] = (low, at + 1)
        else:
            parts.append((at, at + 1))
    return parts


def _bar(run: FusionInputs, part: Sequence[int], role: _Roles, origin: int) -> InstanceBar:
    activities, tree = run.activities, run.tree
    info = activities.infos[int(activities.name[part[0]])]
    begin = min(int(activities.start[at]) for at in part)
    nodes = {int(activities.launch[at]): None for at in part if activities.linked[at] and not activities.graph[at]}
    launched = [(int(tree.start[node]), int(tree.end[node])) for node in nodes]
    is_launched = len(launched) > 0
    first = min((start for start, _ in launched), default=0)
    return InstanceBar(
        name=info.short,
        category=info.category,  # type: ignore[arg-type]
        role="replaced" if role[0] else "stays",
        kernels=len(part),
        start_ns=begin - origin,
        dur_ns=max(int(activities.end[at]) for at in part) - begin,
        busy_ns=sum(int(activities.dur[at]) for at in part),
        launch_start_ns=first - origin if is_launched else None,
        launch_dur_ns=max(end for _, end in launched) - first if is_launched else None,
        launch_busy_ns=sum(end - start for start, end in launched) if is_launched else None,
        launch_stays=role[1],
    )
