"""The rows of a comparison summed up: by part of the timeline (T1), by place and cause (T2); and what is ranked."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.contracts.module_names import module_class

if TYPE_CHECKING:
    from rooftrace.contracts.compare import CompareEvidence, CompareFinding, CompareRow

# Rows of T2; what is below differs by less than anybody asks about.
TOP_ROWS = 12
# Findings with words of a writer, and of them at least so many of either direction where there are any.
_ASKED, _ASKED_EACH = 6, 2
_PATH_SHOWN = 3
# Causes whose slug tells a direction, as they are called where the target gains.
_GAINED = {"slower_kernel": "faster kernel", "lost_overlap": "gained overlap"}


def cause_words(cause: str, delta_ns: int) -> str:
    """A cause as words, for a difference of this sign."""
    return _GAINED[cause] if delta_ns < 0 and cause in _GAINED else cause.replace("_", " ")


class Summed(Struct, frozen=True, kw_only=True):
    """Rows summed up: a part of the timeline, or rows alike in place and cause. Times in ns over the whole span."""

    key: str  # `gemm`, `idle_launch_bound`; `w1` for the first row of T2
    where: str
    cause: str
    rows: int
    base_ns: int
    target_ns: int

    @property
    def delta_ns(self) -> int:
        """What the target takes more."""
        return self.target_ns - self.base_ns


def by_part(result: CompareEvidence) -> list[Summed]:
    """T1: both sides by category, idle time by cause; most difference first."""
    sums: dict[str, list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in result.rows:
        _add(sums[_part(row)], row)
    ordered = sorted(sums.items(), key=lambda item: (-abs(item[1][2] - item[1][1]), item[0]))
    return [
        Summed(
            key=name.replace(": ", "_").replace(" ", "_"),
            where=name.replace("_", " "),
            cause="",
            rows=rows,
            base_ns=ours,
            target_ns=theirs,
        )
        for name, (rows, ours, theirs) in ordered
    ]


def _part(row: CompareRow) -> str:
    return f"idle: {row.path[1]}" if row.kind == "idle" else row.category


def rolled_up(result: CompareEvidence) -> list[Summed]:
    """T2: rows that are alike but for the numbers of their modules, as one; most difference first."""
    sums: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for row in result.rows:
        parts = [*(module_class(part, "_*") for part in row.path[:-1]), row.path[-1]]
        _add(sums[" > ".join(parts[-_PATH_SHOWN:]), row.cause], row)
    ordered = sorted(sums.items(), key=lambda item: (-abs(item[1][2] - item[1][1]), item[0]))
    changed = [item for item in ordered if item[1][1] != item[1][2]][:TOP_ROWS]
    return [
        Summed(key=f"w{number}", where=where, cause=cause, rows=rows, base_ns=ours, target_ns=theirs)
        for number, ((where, cause), (rows, ours, theirs)) in enumerate(changed, start=1)
    ]


def _add(entry: list[int], row: CompareRow) -> None:
    entry[0] += 1
    entry[1] += row.base_ns
    entry[2] += row.target_ns


def ranked_findings(result: CompareEvidence) -> list[CompareFinding]:
    """Findings worth telling: regressions, then improvements, each most gain first."""
    return [finding for finding in result.findings if finding.score.high >= RANKING_LIMIT_PCT]


def asked_of_pair(result: CompareEvidence) -> list[CompareFinding]:
    """Findings to be written about, in rank order: most gain first, and of either direction the first ones."""
    ranked = ranked_findings(result)
    kept: list[CompareFinding] = []
    for direction in ("regression", "improvement"):
        kept += [finding for finding in ranked if finding.direction == direction][:_ASKED_EACH]
    rest = sorted(
        (finding for finding in ranked if finding not in kept), key=lambda item: (-item.score.high, item.rank)
    )
    return sorted([*kept, *rest][:_ASKED], key=lambda finding: finding.rank)
