"""Rows and findings as they are written."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, cast

from rooftrace.calltree import kernel_totals
from rooftrace.compare.noise import is_beyond_noise, median_and_spread
from rooftrace.contracts.compare import (
    Alignment,
    CompareFinding,
    CompareRow,
    RowCause,
    RowSide,
    Sanity,
    SanityCode,
    SanityNote,
    Verdict,
)
from rooftrace.contracts.report import KernelUse
from rooftrace.roofline import Rating
from rooftrace.sorted_unique import sorted_unique
from rooftrace.units import ns_to_ms, pct

if TYPE_CHECKING:
    from rooftrace.compare.findings import Found
    from rooftrace.compare.pair import Comparison
    from rooftrace.compare.table import Half, Measured, Row
    from rooftrace.contracts.base import EvidenceValue

_MOST_KERNELS = 8
_MOST_TEXT = 400


def row_id(number: int) -> str:
    """Id of the row at a place of the table."""
    return f"r{number + 1}"


def row_records(comparison: Comparison) -> list[CompareRow]:
    """All rows, most difference first."""
    return [
        _row(number, row, cause, comparison)
        for number, (row, cause) in enumerate(zip(comparison.rows, comparison.causes, strict=True))
    ]


def _row(number: int, row: Row, cause: str, comparison: Comparison) -> CompareRow:
    return CompareRow(
        id=row_id(number),
        path=list(row.path),
        kind=cast("Literal['op', 'block', 'idle', 'left_out']", row.kind),
        category=category_of(row),
        cause=cast("RowCause", cause),
        base_ns=row.base.ns,
        target_ns=row.target.ns,
        delta_ns=row.delta_ns,
        beyond_noise=is_beyond_noise(row.base.steps_ns, row.target.steps_ns) if row.kind != "left_out" else None,
        base=_half(row, row.base, comparison.base),
        target=_half(row, row.target, comparison.target),
    )


def category_of(row: Row) -> str:
    """What the work of a row is: of the side that has it, the target first."""
    if row.kind in ("idle", "left_out"):
        return row.path[0]
    leaf = row.target.leaf or row.base.leaf
    if row.kind == "block":  # what several calls make up is best told by the side that needs fewer
        leaf = min((row.target, row.base), key=lambda half: sum(len(one.kernels) for one in half.leaves)).leaf
    return leaf.category if leaf is not None else "generic"


def _half(row: Row, half: Half, measured: Measured) -> RowSide | None:
    if row.kind == "left_out":
        return None
    if not half.activities.size and not half.gaps.size:
        return None
    median, spread = median_and_spread(half.steps_ns)
    by_step = measured.window.by_step
    leaf = half.leaf
    return RowSide(
        op=_ops(half) if leaf is not None else None,
        shapes=leaf.shapes[:_MOST_TEXT] if leaf is not None else "",
        dtypes=leaf.dtypes[:_MOST_TEXT] if leaf is not None else "",
        calls=half.calls,
        launches=half.launches,
        raw_ns=half.raw_ns,
        kernel=_heaviest(half, measured),
        kernels=_kernels(half, measured),
        median_step_ns=median if by_step else None,
        spread_step_ns=spread if by_step else None,
        efficiency_pct=_efficiency(half, measured),
    )


def _ops(half: Half) -> str | None:
    names = dict.fromkeys(leaf.op for leaf in half.leaves if leaf.op is not None)
    return " + ".join(names) or None


def _kernels(half: Half, measured: Measured) -> list[KernelUse]:
    if not half.activities.size:
        return []
    activities, names = measured.side.activities, measured.side.trace.names
    totals = kernel_totals(activities.name[half.activities], activities.dur[half.activities])
    return [
        KernelUse(name=names[code], count=count, ns=ns, library=activities.infos[code].library)
        for code, count, ns in totals[:_MOST_KERNELS]
    ]


def _heaviest(half: Half, measured: Measured) -> str:
    activities = measured.side.activities
    totals = kernel_totals(activities.name[half.activities], activities.dur[half.activities])
    return activities.infos[totals[0][0]].short if totals else ""


def _efficiency(half: Half, measured: Measured) -> float | None:
    """Floors over measured times of the rated calls, per cent; None where less than half of the time is rated."""
    numbers = measured.slots.calls.group[half.call_numbers]
    floor = busy = 0
    for group in sorted_unique(numbers[numbers >= 0]).tolist():
        rating = measured.side.ratings[group]
        if isinstance(rating, Rating):
            count = int((numbers == group).sum())
            floor += count * rating.floor_ns
            busy += round(count * measured.side.groups[group].busy_ns / measured.side.groups[group].count)
    whole = int(measured.side.activities.dur[half.activities].sum())
    return min(100.0, pct(floor, busy)) if busy and 2 * busy >= whole else None


def finding_records(comparison: Comparison) -> list[CompareFinding]:
    """All findings in rank order."""
    return [_finding(number, found, comparison) for number, found in enumerate(comparison.findings, start=1)]


def _finding(number: int, found: Found, comparison: Comparison) -> CompareFinding:
    rows = [comparison.rows[at] for at in found.numbers]
    category = category_of(rows[0])
    is_kernel = category not in ("idle", "communication", "copy")
    slower = comparison.target_ns if found.is_regression else comparison.base_ns
    return CompareFinding(
        id=f"compare.F{number}",
        rank=number,
        tier="compute" if is_kernel else "system",
        category=category,
        subject=found.subject[:_MOST_TEXT],
        score=found.score,
        score_basis="replay" if found.basis == "replay" else "gap_share",
        gpu_time_score=pct(abs(found.delta_ns), slower),
        kind="measured",
        members=[row_id(at) for at in found.numbers],
        evidence=_evidence(found, rows, comparison),
        patterns=[],
        direction="regression" if found.is_regression else "improvement",
        cause=cast("RowCause", found.cause),
        delta_ns=found.delta_ns,
        beyond_noise=found.beyond_noise,
    )


def _evidence(found: Found, rows: list[Row], comparison: Comparison) -> dict[str, EvidenceValue]:
    evidence: dict[str, EvidenceValue] = {
        "delta_ms": ns_to_ms(found.delta_ns),
        "base_ms": ns_to_ms(sum(row.base.ns for row in rows)),
        "target_ms": ns_to_ms(sum(row.target.ns for row in rows)),
        "base_calls_count": sum(row.base.calls for row in rows),
        "target_calls_count": sum(row.target.calls for row in rows),
        "rows_count": len(rows),
        "path": " > ".join(_common_path(rows)),
    }
    if rows[0].idle is None:
        evidence["base_launches_count"] = sum(row.base.launches for row in rows)
        evidence["target_launches_count"] = sum(row.target.launches for row in rows)
    for name, measured, halves in (
        ("base", comparison.base, [row.base for row in rows]),
        ("target", comparison.target, [row.target for row in rows]),
    ):
        heaviest = max(halves, key=lambda half: half.raw_ns)
        if heaviest.leaf is not None:
            evidence[f"{name}_kernel"] = (_heaviest(heaviest, measured) or heaviest.leaf.kernels[0])[:_MOST_TEXT]
            evidence[f"{name}_op"] = heaviest.leaf.op or ""
            efficiency = _efficiency(heaviest, measured)
            if efficiency is not None:
                evidence[f"{name}_efficiency_pct"] = efficiency
    if found.at_floor:
        evidence["floor_limited"] = True
    if comparison.pace is not None and found.cause == "clock_or_power":
        evidence["pace_pct"] = round(100.0 * (comparison.pace - 1), 2)
    return evidence


def _common_path(rows: list[Row]) -> list[str]:
    """What the paths of all rows begin with."""
    first = list(rows[0].path)
    for row in rows[1:]:
        same = 0
        while same < min(len(first), len(row.path)) and first[same] == row.path[same]:
            same += 1
        first = first[:same]
    return first


def alignment_record(comparison: Comparison) -> Alignment:
    """How the runs were matched."""
    return Alignment(
        level=cast("Literal['modules', 'ops', 'kernels']", comparison.level),
        basis="steps" if comparison.base.window.by_step else "span",
        base_pct=comparison.aligned.base_pct,
        target_pct=comparison.aligned.target_pct,
        block_pct=comparison.aligned.block_pct,
        pace=None if comparison.pace is None else round(comparison.pace, 4),
    )


def sanity_record(comparison: Comparison) -> Sanity:
    """Whether they can be compared."""
    return Sanity(
        verdict=cast("Verdict", comparison.verdict),
        notes=[
            SanityNote(
                code=cast("SanityCode", note.code),
                text=note.text,
                severity=cast("Literal['info', 'limit', 'severe']", note.severity),
            )
            for note in comparison.notes
        ],
    )
