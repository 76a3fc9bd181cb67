"""The causes decided so far."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct, field

from rooftrace.causes.model import Cause, Pieces
from rooftrace.sorted_unique import distinct_rows

if TYPE_CHECKING:
    from numpy.typing import NDArray


class Verdict(Struct, kw_only=True):
    """One entry a gap; cause -1 is undecided. Filled in place, each gap once."""

    cause: NDArray[np.int64]
    reason: NDArray[np.int64]
    row: NDArray[np.int64]
    at: NDArray[np.int64]  # time at which to look for the user's frame, ns
    blocked_ns: NDArray[np.int64]
    covered_ns: NDArray[np.int64]
    _pieces: list[tuple[NDArray[np.int64], ...]] = field(default_factory=list)
    _waits: list[tuple[NDArray[np.int64], ...]] = field(default_factory=list)

    @classmethod
    def of(cls, count: int) -> Verdict:
        """Nothing decided yet about ``count`` gaps."""
        none = np.full(count, -1, dtype=np.int64)
        zero = np.zeros(count, dtype=np.int64)
        return cls(
            cause=none,
            reason=zero,
            row=none.copy(),
            at=none.copy(),
            blocked_ns=zero.copy(),
            covered_ns=zero.copy(),
        )

    def settle(
        self, gaps: NDArray[np.int64], cause: Cause, row: NDArray[np.signedinteger[Any]], at: NDArray[np.int64]
    ) -> None:
        """Decide some gaps."""
        self.cause[gaps], self.row[gaps], self.at[gaps] = int(cause), row, at

    def among(self, gaps: NDArray[np.int64]) -> NDArray[np.int64]:
        """Those of the gaps that are still undecided."""
        return gaps[self.cause[gaps] < 0]

    def blame(self, gaps: NDArray[np.int64], *stretch: NDArray[np.signedinteger[Any]]) -> None:
        """Note stretches (row of the event, lane, start, end) of threads that gaps are blamed on."""
        self._pieces.append((gaps, *stretch))

    def drain(self, gaps: NDArray[np.int64], waits: NDArray[np.int64]) -> None:
        """Note blocking calls before the launches that ended gaps; they count where that is the cause."""
        self._waits.append((gaps, waits))

    def pieces(self) -> Pieces:
        """All stretches noted, by gap and start."""
        gap, row, lane, start, end = _joined(self._pieces, 5)
        order = np.lexsort((start, lane, gap))
        return Pieces(gap=gap[order], row=row[order], lane=lane[order], start=start[order], end=end[order])

    def waits(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Pairs of a gap caused by synchronisation and a wait."""
        gap, wait = _joined(self._waits, 2)
        first, _ = distinct_rows(gap, wait)
        first = first[self.cause[gap[first]] == int(Cause.SYNCHRONISATION)]
        return gap[first], wait[first]


def _joined(parts: list[tuple[NDArray[np.int64], ...]], width: int) -> tuple[NDArray[np.int64], ...]:
    empty = tuple(np.empty(0, dtype=np.int64) for _ in range(width))
    return tuple(np.concatenate(column).astype(np.int64) for column in zip(empty, *parts, strict=True))
