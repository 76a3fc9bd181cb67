"""One of two runs that are compared: what `analyzers.Workload` holds, without the ledgers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.calltree import Activities, CallTree, Context, OpGroup, Steps
    from rooftrace.causes import IdleCauses
    from rooftrace.platforms import Platform
    from rooftrace.roofline import Rating, Unrated
    from rooftrace.schedule import Schedule
    from rooftrace.trace import Trace


class Side(Struct, frozen=True, kw_only=True):
    """A run ready to be compared; groups and ratings are parallel."""

    trace: Trace
    tree: CallTree
    context: Context
    activities: Activities
    steps: Steps
    groups: Sequence[OpGroup]
    ratings: Sequence[Rating | Unrated]
    platform: Platform | None
    schedule: Schedule
    causes: IdleCauses

    @property
    def span_ns(self) -> int:
        """First start to last end of GPU activity, summed over devices."""
        activities = self.activities
        return sum(
            int(activities.end[mine].max() - activities.start[mine].min())
            for device in sorted_unique(activities.device).tolist()
            for mine in (activities.device == device,)
        )

    @property
    def group_of(self) -> NDArray[np.int64]:
        """Op group of each activity; -1 for communication and copies."""
        number = np.full(self.activities.row.size, -1, dtype=np.int64)
        for at, group in enumerate(self.groups):
            number[group.activities] = at
        return number
