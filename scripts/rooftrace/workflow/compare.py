"""Two traces in, a folder with `compare.json`, `compare.md` and evidence out; on request with a writer's task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace import __version__, compare, platforms
from rooftrace.compare import gate, records
from rooftrace.compare.table import names_left_out
from rooftrace.contracts.compare import ComparedSide, CompareEvidence
from rooftrace.contracts.report import LedgerBlock
from rooftrace.workflow import compare_files, compare_tasks, health
from rooftrace.workflow import facts as trace_facts
from rooftrace.workflow.agents import accepted_prose
from rooftrace.workflow.folder import new_folder, refuse_foreign_folder
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload
from rooftrace.workflow.reading import read_traces
from rooftrace.workflow.redact import private_paths

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from rooftrace.compare import Comparison, Side
    from rooftrace.compare.table import Measured
    from rooftrace.trace import FileFacts
    from rooftrace.workflow.prepare import Prepared
    from rooftrace.workflow.redact import Read


class Limit(Struct, frozen=True, kw_only=True):
    """What `--fail-above` asks: the largest growth of each metric, and the steps needed to tell noise."""

    limit_pct: float
    metrics: Sequence[gate.Metric]
    min_steps: int


class CompareOptions(Struct, frozen=True, kw_only=True):
    """Choices of a comparison; a platform is detected where none is given."""

    base_platform: str | None = None
    target_platform: str | None = None
    steps: str | None = None
    limit: Limit | None = None
    redact: bool = False
    force: bool = False
    max_bytes: int | None = None
    given: Mapping[str, str] | None = None  # with a task for a writer: the options as given, for whoever resumes
    progress: dict[str, Callable[[int], None]] = field(default_factory=dict)  # by "base" and "target"


class _Read(Struct, frozen=True, kw_only=True):
    prepared: Prepared
    facts: FileFacts

    @property
    def side(self) -> Side:
        workload = self.prepared.workload
        return compare.Side(**{name: getattr(workload, name) for name in compare.Side.__struct_fields__})


def compare_traces(base: Path, target: Path, run: Path, options: CompareOptions) -> CompareEvidence:
    """Compare two traces and write the run's folder, which appears whole or not at all."""
    refuse_foreign_folder(run, force=options.force)
    for slug in (options.base_platform, options.target_platform):
        if slug is not None:
            platforms.load_platform(slug)  # an unknown one is told before long files are read
    asked = [
        AnalyzeOptions(progress=options.progress.get(side), redact=options.redact, max_bytes=options.max_bytes)
        for side in ("base", "target")
    ]
    (of_base, of_target), redactor = read_traces([base, target], asked)
    reads = (
        _prepared(of_base, options.base_platform, options.steps),
        _prepared(of_target, options.target_platform, options.steps),
    )
    comparison = compare.compare_sides(reads[0].side, reads[1].side)
    result = _record(comparison, reads, options)
    earlier = accepted_prose(run)
    paths = {"base": str(base.resolve()), "target": str(target.resolve()), **(options.given or {})}
    with new_folder(run, force=options.force) as folder:
        compare_files.write_evidence(folder, result)
        if options.given is not None:
            told = private_paths(paths, redactor) if options.redact else paths
            compare_tasks.write_task(folder, result, told, earlier, redactor)
        compare_files.write_deliverables(folder)
    return result


def _prepared(read: Read, platform: str | None, steps: str | None) -> _Read:
    columns, facts = read
    return _Read(prepared=prepare_workload(columns, AnalyzeOptions(platform=platform, steps=steps)), facts=facts)


def _record(comparison: Comparison, reads: tuple[_Read, _Read], options: CompareOptions) -> CompareEvidence:
    limit = options.limit
    base, target = (
        _side(reads[0], comparison.base, comparison.base_ns),
        _side(reads[1], comparison.target, comparison.target_ns),
    )
    return CompareEvidence(
        tool_version=__version__,
        source_sha256=reads[1].facts.sha256,
        base=base,
        target=target,
        delta_ns=target.span_ns - base.span_ns,
        alignment=records.alignment_record(comparison),
        sanity=records.sanity_record(comparison),
        rows=records.row_records(comparison),
        findings=records.finding_records(comparison),
        gate=None if limit is None else gate.check(comparison, limit.metrics, limit.limit_pct, limit.min_steps),
    )


def _side(read: _Read, measured: Measured, compared_ns: int) -> ComparedSide:
    workload, steps = read.prepared.workload, measured.side.steps
    return ComparedSide(
        trace=trace_facts.trace_info(workload, read.facts),
        health=health.assess(read.prepared, read.facts),
        platform=trace_facts.platform_info(workload, read.prepared.choice),
        ledger=LedgerBlock(devices=workload.ledgers),
        span_ns=workload.span_ns,
        compared_ns=compared_ns,
        compared_steps=[steps.names[at] for at in measured.window.compared],
        steady_steps=[steps.names[at] for at in measured.window.kept],
        left_out=names_left_out(measured),
    )
