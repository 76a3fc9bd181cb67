"""Every quantity of a comparison that prose may cite, by its id.

Ids: ``compare.<name>`` for the whole, ``compare.T1.<part>.<name>`` and ``compare.T2.w<k>.<name>`` for rows of the two
tables, ``compare.F<k>.<name>`` for a finding and ``compare.F<k>.m<j>.<name>`` for its j-th row. Where there is a
``base_ms`` beside a ``target_ms``, ``difference_ms`` is what lies between them, without a sign.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts.kinds import COMPARE
from rooftrace.report.compare_parts import by_part, cause_words, rolled_up
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import ComparedSide, CompareEvidence, CompareFinding, CompareRow, RowSide
    from rooftrace.report.compare_parts import Summed

    Pairs = Iterator[tuple[str, EvidenceValue]]

# Rows of a finding with ids of their own, most difference first.
ROWS_CITED = 6
_PATH_SHOWN = 3
_NOISE = {True: "beyond noise", False: "within noise", None: "too few steps to tell noise"}


def pair_values(result: CompareEvidence) -> dict[str, EvidenceValue]:
    """Values by id: findings in rank order, the whole, T1, T2."""
    rows = {row.id: row for row in result.rows}
    found: dict[str, EvidenceValue] = {}
    for finding in result.findings:
        found.update((f"{finding.id}.{name}", value) for name, value in _finding(finding))
        for number, member in enumerate(finding.members[:ROWS_CITED], start=1):
            found.update((f"{finding.id}.m{number}.{name}", value) for name, value in _row(rows[member]))
    found.update((f"{COMPARE}.{name}", value) for name, value in pair_summary(result).items())
    for table, summed in (("T1", by_part(result)), ("T2", rolled_up(result))):
        for entry in summed:
            found.update((f"{COMPARE}.{table}.{entry.key}.{name}", value) for name, value in _summed(entry, result))
    return found


def pair_summary(result: CompareEvidence) -> dict[str, EvidenceValue]:
    """Quantities about the whole, by name without ``compare.``."""
    base, target = result.base, result.target
    values: dict[str, EvidenceValue] = {
        "verdict": result.sanity.verdict.replace("_", " "),
        **dict(_times(base.compared_ns, target.compared_ns)),
        "steps_count": len(base.compared_steps),
        "aligned_by": result.alignment.level,
    }
    for name, side, aligned in (
        ("base", base, result.alignment.base_pct),
        ("target", target, result.alignment.target_pct),
    ):
        values |= {f"{name}_{key}": value for key, value in _side(side)}
        values[f"{name}_aligned_pct"] = aligned
    values["regressions_count"] = sum(finding.direction == "regression" for finding in result.findings)
    values["improvements_count"] = len(result.findings) - int(values["regressions_count"])
    return values


def _side(side: ComparedSide) -> Pairs:
    devices = side.trace.devices
    gpu = side.platform.product if side.platform else devices[0].name if devices else ""
    if gpu:
        yield "gpu_name", gpu
    yield "span_ms", ns_to_ms(side.span_ns)
    if side.span_ns:
        yield "idle_pct", pct(sum(device.idle_ns for device in side.ledger.devices), side.span_ns)
    yield "steady_steps_count", len(side.steady_steps)


def _times(ours: int, theirs: int) -> Pairs:
    """Both times, ns, and what lies between them."""
    yield "base_ms", ns_to_ms(ours)
    yield "target_ms", ns_to_ms(theirs)
    yield "difference_ms", ns_to_ms(abs(theirs - ours))
    if ours:
        yield "difference_pct", round(pct(abs(theirs - ours), ours), 2)


def _summed(entry: Summed, result: CompareEvidence) -> Pairs:
    yield "where", entry.where
    if entry.cause:
        yield "cause", cause_words(entry.cause, entry.delta_ns)
    yield from _times(entry.base_ns, entry.target_ns)
    for name, part, side in (("base", entry.base_ns, result.base), ("target", entry.target_ns, result.target)):
        if side.span_ns:
            yield f"{name}_share_pct", pct(part, side.span_ns)
    yield "rows_count", entry.rows


def _finding(finding: CompareFinding) -> Pairs:
    yield from finding.evidence.items()
    yield "difference_ms", ns_to_ms(abs(finding.delta_ns))
    yield "cause", cause_words(finding.cause, finding.delta_ns)
    yield "direction", finding.direction
    yield "noise", _NOISE[finding.beyond_noise]
    yield "subject", finding.subject
    yield "category", finding.category
    yield "rank", finding.rank
    yield "score_low_pct", finding.score.low
    yield "score_mid_pct", finding.score.mid
    yield "score_high_pct", finding.score.high
    yield "gpu_time_score_pct", finding.gpu_time_score


def _row(row: CompareRow) -> Pairs:
    yield "where", " > ".join(row.path[-_PATH_SHOWN:])
    yield from _times(row.base_ns, row.target_ns)
    for name, half in (("base", row.base), ("target", row.target)):
        if half is not None:
            yield from ((f"{name}_{key}", value) for key, value in _half(half) if value not in ("", None))


def _half(half: RowSide) -> Iterator[tuple[str, EvidenceValue]]:
    yield "shapes", half.shapes
    yield "dtypes", half.dtypes
    yield "kernel", half.kernel
    yield "calls_count", half.calls
    yield "launches_count", half.launches
    if half.efficiency_pct is not None:
        yield "efficiency_pct", half.efficiency_pct
