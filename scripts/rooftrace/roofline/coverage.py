"""How much of the kernel time has shapes, a cost and a rating, and why the rest has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.calltree import Activities, Link, OpGroup, Work
from rooftrace.contracts.report import Coverage
from rooftrace.roofline.rating import Rating, Unrated

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray


def coverage(activities: Activities, groups: Sequence[OpGroup], ratings: Sequence[Rating | Unrated]) -> Coverage:
    """Sums of durations; the ratable part is linked, and neither communication nor copy."""
    dur = activities.dur
    compute = activities.work == int(Work.COMPUTE)
    communication = activities.work == int(Work.COMMUNICATION)

    def total(mask: NDArray[np.bool_]) -> int:
        return int(dur[mask].sum())

    ratable = shaped = modelled = rated = 0
    reasons: dict[str, int] = {}
    for group, rating in zip(groups, ratings, strict=True):
        if group.link in (Link.CARRY_IN, Link.LOST):
            continue
        time = group.kernel_ns
        ratable += time
        shaped += time if group.inputs is not None else 0
        modelled += time if rating.cost is not None else 0
        if isinstance(rating, Rating):
            rated += time
        elif time:
            reasons[rating.reason] = reasons.get(rating.reason, 0) + time
    return Coverage(
        kernel_ns=total(compute | communication),
        comm_ns=total(communication),
        copy_ns=total(activities.work == int(Work.COPY)),
        carry_in_ns=total(compute & (activities.link == int(Link.CARRY_IN))),
        lost_launch_ns=total(compute & (activities.link == int(Link.LOST))),
        ratable_ns=ratable,
        shaped_ns=shaped,
        modelled_ns=modelled,
        rated_ns=rated,
        reasons=dict(sorted(reasons.items(), key=lambda item: (-item[1], item[0]))),
    )
