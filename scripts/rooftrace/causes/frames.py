"""Python frames of the user, and the thread on which a gap's are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from rooftrace.calltree import is_user_frame
from rooftrace.sorted_unique import distinct_codes
from rooftrace.trace import Kind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from rooftrace.trace import Trace


def user_frames(trace: Trace) -> NDArray[np.int64]:
    """Rows of all frames outside the framework; each distinct name is looked at once."""
    rows = trace.of_kind(Kind.PYTHON)
    codes = distinct_codes(trace.name[rows])
    verdicts = np.zeros(len(trace.names), dtype=bool)
    verdicts[codes] = [is_user_frame(trace.names[code]) for code in codes]
    chosen: NDArray[np.int64] = rows[verdicts[trace.name[rows]]]
    return chosen


def thread_looked_at(trace: Trace, row: NDArray[np.int64], lane: NDArray[np.int64]) -> NDArray[np.int64]:
    """The thread of each responsible event, or the given one where there is none or it has no thread."""
    threaded = (row >= 0) & (trace.kind[row] != int(Kind.OVERHEAD)) if trace.kind.size else row >= 0
    return np.where(threaded, trace.lane[row] if trace.lane.size else lane, lane).astype(np.int64)
