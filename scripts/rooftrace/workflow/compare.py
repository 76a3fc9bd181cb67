"""Two traces in, a folder with `compare.json` and `compare.md` out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rooftrace import __version__, compare, platforms
from rooftrace.compare import gate, records
from rooftrace.compare.table import names_left_out
from rooftrace.contracts import store
from rooftrace.contracts.compare import ComparedSide, CompareFile
from rooftrace.contracts.report import LedgerBlock
from rooftrace.errors import RooftraceError, UsageError
from rooftrace.trace import load
from rooftrace.workflow import facts as trace_facts
from rooftrace.workflow import health
from rooftrace.workflow.compare_page import render_compare
from rooftrace.workflow.folder import new_folder, refuse_foreign_folder
from rooftrace.workflow.options import AnalyzeOptions
from rooftrace.workflow.prepare import prepare_workload

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from rooftrace.compare import Comparison, Side
    from rooftrace.compare.table import Measured
    from rooftrace.trace import FileFacts
    from rooftrace.workflow.prepare import Prepared

COMPARE = "compare.json"
PAGE = "compare.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """What `--fail-above` asks: the largest growth of each metric, and the steps needed to tell noise."""

    limit_pct: float
    metrics: Sequence[gate.Metric]
    min_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareOptions:
    """Choices of a comparison; a platform is detected where none is given."""

    base_platform: str | None = None
    target_platform: str | None = None
    steps: str | None = None
    limit: Limit | None = None
    progress: dict[str, Callable[[int], None]] = field(default_factory=dict)  # by "base" and "target"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Read:
    prepared: Prepared
    facts: FileFacts

    @property
    def side(self) -> Side:
        workload = self.prepared.workload
        return compare.Side(**{name: getattr(workload, name) for name in compare.Side.__slots__})


def compare_traces(base: Path, target: Path, run: Path, options: CompareOptions) -> CompareFile:
    """Compare two traces and write the run's folder, which appears whole or not at all."""
    _refuse_foreign_folder(run)
    for slug in (options.base_platform, options.target_platform):
        if slug is not None:
            platforms.load_platform(slug)  # an unknown one is told before long files are read
    reads = (
        _read(base, options.base_platform, options.steps, options.progress.get("base")),
        _read(target, options.target_platform, options.steps, options.progress.get("target")),
    )
    comparison = compare.compare_sides(reads[0].side, reads[1].side)
    result = _record(comparison, reads, options)
    with new_folder(run) as folder:
        store.write_bytes(folder / store.COMPARE, store.to_json(result))
        store.write_bytes(folder / PAGE, render_compare(result).encode())
    return result


def _read(path: Path, platform: str | None, steps: str | None, progress: Callable[[int], None] | None) -> _Read:
    columns, facts = load(path, progress)
    return _Read(prepared=prepare_workload(columns, AnalyzeOptions(platform=platform, steps=steps)), facts=facts)


def _record(comparison: Comparison, reads: tuple[_Read, _Read], options: CompareOptions) -> CompareFile:
    limit = options.limit
    base, target = (
        _side(reads[0], comparison.base, comparison.base_ns),
        _side(reads[1], comparison.target, comparison.target_ns),
    )
    return CompareFile(
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


def _refuse_foreign_folder(run: Path) -> None:
    """As for a run of `analyze`, but a comparison may take the place of another one."""
    if run.is_dir() and {entry.name for entry in run.iterdir()} == {store.COMPARE, PAGE}:
        try:
            store.read_artifact(run / store.COMPARE, CompareFile)
        except RooftraceError:
            raise UsageError(
                f"`{run}` exists and is not a run of rooftrace; nothing was written",
                hint="Give an empty or new folder with -o",
            ) from None
        return
    refuse_foreign_folder(run)
