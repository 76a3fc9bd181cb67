"""Every quantity of a run that prose may cite, by its id.

Ids: ``<finding>.<name>`` (``gemm.F1.time_ms``), ``<finding>.m<k>.<name>`` for its k-th member, ``<analyzer>.<name>``
for its summary, ``ledger.<part>_ms`` and ``_pct`` (all devices together; ``ledger.d<id>.…`` for one of several),
``steps.…``, ``coverage.…``, ``trace.…``, ``replay.…`` and ``together.after<n>_…``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.base import BEFORE_FIRST_STEP
from rooftrace.report.values import format_value, measures
from rooftrace.report.view import PARTS, View, part_ns, repeats_text, shapes_text
from rooftrace.units import ns_to_ms, ns_to_us, pct

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.ledger import LedgerParts
    from rooftrace.contracts.report import Finding, OpGroup, ReportFile

    Pairs = Iterator[tuple[str, EvidenceValue]]

# Members of a finding with ids of their own, heaviest first.
MEMBERS_CITED = 10


class Quantity(Struct, frozen=True, kw_only=True):
    """A citable quantity: what it measures, and the text that the report puts in its place."""

    id: str
    value: EvidenceValue
    measures: str
    text: str


def quantities(values: Mapping[str, EvidenceValue]) -> list[Quantity]:
    """The table of ids for a reader, in the table's order."""
    return [
        Quantity(id=name, value=value, measures=measures(name, value), text=format_value(name, value))
        for name, value in values.items()
    ]


def evidence_values(
    report: ReportFile, summaries: Mapping[str, Mapping[str, EvidenceValue]]
) -> dict[str, EvidenceValue]:
    """Values by id, findings first in rank order. `summaries` are those of the analyzers' evidence, by analyzer."""
    view = View(report, kernels=[], gaps=[])
    found: dict[str, EvidenceValue] = {}
    for finding in view.all_findings:
        found.update(_finding(finding))
        for number, member in enumerate(finding.members[:MEMBERS_CITED], start=1):
            if member in view.ops:
                prefix = f"{finding.id}.m{number}"
                found.update((f"{prefix}.{name}", value) for name, value in _member(view.ops[member]))
    for analyzer, summary in sorted(summaries.items()):
        found.update((f"{analyzer}.{name}", value) for name, value in summary.items())
    found.update(_ledger(view))
    found.update(_steps(view))
    found.update(_whole(report))
    found.update(_replay(report))
    return found


def _finding(finding: Finding) -> Pairs:
    numbers: dict[str, EvidenceValue] = {
        "score_low_pct": finding.score.low,
        "score_mid_pct": finding.score.mid,
        "score_high_pct": finding.score.high,
        "gpu_time_score_pct": finding.gpu_time_score,
        "rank": finding.rank,
        "category": finding.category,
        "kind": finding.kind,
    }
    for name, value in {**finding.evidence, **numbers}.items():
        yield f"{finding.id}.{name}", value


def _member(op: OpGroup) -> Pairs:
    quantities: dict[str, EvidenceValue | None] = {
        "op": op.name,
        "op_id": op.id,
        "shapes": repeats_text(shapes_text(op.shapes)) or None,
        "time_ms": ns_to_ms(op.kernel_ns),
        "instances_count": op.count,
        "median_us": ns_to_us(op.median_ns),
        "kernel": op.kernels[0].name if op.kernels else None,
        "library": op.kernels[0].library if op.kernels else None,
        "module": op.modules[0] if op.modules else None,
        "bound": op.bound,
        "precision": op.precision,
        "efficiency_pct": op.efficiency_pct,
        "floor_us": None if op.floor_ns is None else ns_to_us(op.floor_ns),
        "gap_ms": None if op.gap_ns is None else ns_to_ms(op.gap_ns),
        "work_flops": op.flops,
        "moved_bytes": op.bytes,
    }
    yield from ((name, value) for name, value in quantities.items() if value is not None)


def _ledger(view: View) -> Pairs:
    devices = view.report.ledger.devices
    if not devices:
        return
    totals = view.totals
    times = {"span": totals.span_ns, **totals.parts}
    times |= {
        "total_comm": totals.total_comm_ns,
        "total_copy": totals.total_copy_ns,
        "carry_in": totals.carry_in_ns,
    }
    times |= {f"compute_{name}": ns for name, ns in sorted(totals.compute_by_category.items())}
    times |= {f"idle_{name}": ns for name, ns in sorted(totals.idle_by_cause.items())}
    for name, ns in times.items():
        yield f"ledger.{name}_ms", ns_to_ms(ns)
        if name != "span":
            yield f"ledger.{name}_pct", pct(ns, totals.span_ns)
    yield "ledger.devices_count", len(devices)
    if len(devices) > 1:
        for device in devices:
            yield from _parts(f"ledger.d{device.device}", device)


def _parts(prefix: str, ledger: LedgerParts) -> Pairs:
    yield f"{prefix}.span_ms", ns_to_ms(ledger.span_ns)
    for part in PARTS:
        yield f"{prefix}.{part}_ms", ns_to_ms(part_ns(ledger, part))
        yield f"{prefix}.{part}_pct", pct(part_ns(ledger, part), ledger.span_ns)


def _steps(view: View) -> Pairs:
    steps = view.steps
    if steps is None:
        return
    rows = [row for row in steps.rows if row.name != BEFORE_FIRST_STEP]
    yield "steps.steps_count", len(rows)
    yield "steps.mean_ms", ns_to_ms(steps.mean_ns)
    yield "steps.shortest_ms", ns_to_ms(steps.shortest.span_ns)
    yield "steps.longest_ms", ns_to_ms(steps.longest.span_ns)
    yield "steps.variation_pct", round(steps.cov_pct, 2)
    yield "steps.first_over_rest_pct", round(steps.first_over_rest_pct, 2)


def _whole(report: ReportFile) -> Pairs:
    trace, coverage, health = report.trace, report.coverage, report.health
    yield "trace.events_count", trace.events
    yield "trace.gpu_events_count", trace.gpu_events
    yield "trace.workload", trace.workload
    yield "health.verdict", health.verdict
    if coverage.kernel_ns:
        yield "coverage.kernel_ms", ns_to_ms(coverage.kernel_ns)
        for name in ("ratable", "shaped", "modelled", "rated", "carry_in", "lost_launch"):
            yield f"coverage.{name}_pct", pct(getattr(coverage, f"{name}_ns"), coverage.kernel_ns)
    if report.platform:
        yield "platform.gpu_name", report.platform.product


def _replay(report: ReportFile) -> Pairs:
    if report.replay:
        yield "replay.baseline_ms", ns_to_ms(report.replay.baseline_ns)
        yield "replay.measured_ms", ns_to_ms(report.replay.measured_ns)
        yield "replay.error_pct", report.replay.error_pct
        yield "replay.explained_pct", report.replay.explained_pct
        yield "replay.bound_by", report.replay.bound_by
        yield "replay.half_host_ms", ns_to_ms(report.replay.half_host_ns)
        for resource, span in sorted(report.replay.if_free.items()):
            yield f"replay.{resource}_free_ms", ns_to_ms(span)
        whole = sum(path.span_ns for path in report.replay.paths)
        for on in sorted({name for path in report.replay.paths for name in path.by_resource}):
            spent = sum(path.by_resource.get(on, 0) for path in report.replay.paths)
            yield f"replay.path_{on}_pct", pct(spent, whole)
    for remaining in report.together or []:
        yield f"together.after{remaining.after}_ms", ns_to_ms(remaining.span_ns)
