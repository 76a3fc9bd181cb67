"""The comparison of two sides, put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.compare.alignment import align_trees
from rooftrace.compare.findings import find, window_ns
from rooftrace.compare.leaves import choose_level, find_slots
from rooftrace.compare.nodes import Labels, build_tree
from rooftrace.compare.sanity import aligned_share, notes, verdict
from rooftrace.compare.shares import activity_shares
from rooftrace.compare.steps import choose_windows, step_lengths
from rooftrace.compare.table import Measured, make_rows
from rooftrace.compare.verdicts import Judge, common_pace

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rooftrace.compare.alignment import Pair
    from rooftrace.compare.findings import Found
    from rooftrace.compare.sanity import Aligned, Note
    from rooftrace.compare.side import Side
    from rooftrace.compare.table import Row


class Comparison(Struct, frozen=True, kw_only=True):
    """What was compared and found; rows and causes are parallel, most difference first."""

    base: Measured
    target: Measured
    level: str
    rows: list[Row]
    causes: list[str]
    findings: list[Found]
    aligned: Aligned
    notes: list[Note]
    verdict: str
    pace: float | None

    @property
    def base_ns(self) -> int:
        """What is compared of the base, ns: its steady steps, or its span."""
        return window_ns(self.base)

    @property
    def target_ns(self) -> int:
        """The same of the target."""
        return window_ns(self.target)


class Layout(Struct, frozen=True, kw_only=True):
    """Two sides aligned, before anything is judged; rows in no order."""

    base: Measured
    target: Measured
    level: str
    pairs: list[Pair]
    rows: list[Row]


def compare_sides(base: Side, target: Side) -> Comparison:
    """Align two runs, make the rows, judge and rank them."""
    laid_out = lay_out(base, target)
    ours, theirs = laid_out.base, laid_out.target
    aligned = aligned_share(ours, theirs, laid_out.pairs)
    found_notes = notes(ours, theirs, aligned, laid_out.level)
    verdict_word = verdict(found_notes)
    pace = common_pace(laid_out.rows) if base.platform == target.platform else None
    judge = Judge(
        base=ours,
        target=theirs,
        span_ns=max(window_ns(ours), window_ns(theirs)),
        pace=pace,
        comparable=verdict_word != "not_comparable",
    )
    rows, causes = _ranked(laid_out.rows, [judge.cause(row) for row in laid_out.rows])
    return Comparison(
        base=ours,
        target=theirs,
        level=laid_out.level,
        rows=rows,
        causes=causes,
        findings=find(rows, causes, ours, theirs),
        aligned=aligned,
        notes=found_notes,
        verdict=verdict_word,
        pace=pace,
    )


def lay_out(base: Side, target: Side) -> Layout:
    """Both sides with their shares, aligned, and the rows that hold every nanosecond of them."""
    (ours, theirs), level = _measure(base, target)
    pairs = _pairs(ours, theirs)
    return Layout(base=ours, target=theirs, level=level, pairs=pairs, rows=make_rows(ours, theirs, pairs))


def _measure(base: Side, target: Side) -> tuple[tuple[Measured, Measured], str]:
    """Both sides with shares, windows and slots, and the level at which they can be aligned."""
    shares = [activity_shares(side.activities) for side in (base, target)]
    lengths = [step_lengths(side, share) for side, share in zip((base, target), shares, strict=True)]
    windows = choose_windows(base, target, (lengths[0], lengths[1]))
    level = choose_level(base, target)
    measured = [
        Measured(
            slots=find_slots(side, level, window.compared[:1]),
            shares=share,
            window=window,
        )
        for side, share, window in zip((base, target), shares, windows, strict=True)
    ]
    return (measured[0], measured[1]), level.name


def _pairs(base: Measured, target: Measured) -> list[Pair]:
    labels = Labels()
    trees = [build_tree(measured.slots.leaves, labels) for measured in (base, target)]
    return align_trees(trees[0], trees[1], labels)


def _ranked(rows: Sequence[Row], causes: Sequence[str]) -> tuple[list[Row], list[str]]:
    """Most difference first; ties by time and path, so that the order is the same in every run."""
    order = sorted(
        range(len(rows)),
        key=lambda at: (-abs(rows[at].delta_ns), -rows[at].base.ns, -rows[at].target.ns, rows[at].path, at),
    )
    return [rows[at] for at in order], [causes[at] for at in order]
