"""From the files of a run to its deliverables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.contracts.report import Finding, LedgerBlock, ReportFile
from rooftrace.report.files import RunFiles, read_run
from rooftrace.report.prose import Knowledge, write_finding

if TYPE_CHECKING:
    from pathlib import Path


def assemble(run: Path) -> ReportFile:
    """The complete report of a run, from its manifest, tables and evidence."""
    return _assembled(read_run(run))


def _assembled(files: RunFiles) -> ReportFile:
    findings = _findings(files)
    ranked = [finding for finding in findings if finding.score.mid >= RANKING_LIMIT_PCT]
    manifest = files.manifest
    return ReportFile(
        tool_version=manifest.tool_version,
        source_sha256=manifest.source_sha256,
        trace=manifest.trace,
        health=manifest.health,
        platform=manifest.platform,
        ledger=LedgerBlock(devices=files.ledger.devices),
        coverage=manifest.coverage,
        replay=None,
        ops=files.ops,
        cpu_ops=manifest.cpu_ops,
        findings=ranked,
        unranked=findings[len(ranked) :],
        together=None,
    )


def _findings(files: RunFiles) -> list[Finding]:
    """All findings in one list, best mid score first, ties by id; ranks count through."""
    found = [(part.analyzer, finding) for part in files.evidence for finding in part.findings]
    found.sort(key=lambda pair: (-pair[1].score.mid, pair[1].id))
    knowledge = Knowledge()
    return [
        write_finding(finding, analyzer=analyzer, rank=rank, knowledge=knowledge)
        for rank, (analyzer, finding) in enumerate(found, start=1)
    ]


def render(run: Path, report: ReportFile) -> str:
    """``analysis.md`` of a report; `run` supplies the tables that ``report.json`` does not repeat.

    jinja2 is loaded here and no earlier: most commands render nothing.
    """
    from rooftrace.report.render import render_analysis
    from rooftrace.report.view import open_view

    return render_analysis(open_view(run, report))


def write(run: Path) -> list[str]:
    """Write ``report.json``, ``analysis.md``, plots and findings; returns their relative paths, sorted."""
    from rooftrace.report.plots import draw_plots
    from rooftrace.report.render import render_analysis, render_findings
    from rooftrace.report.view import open_view

    report = assemble(run)
    view = open_view(run, report)
    written: dict[str, bytes] = {store.REPORT: store.to_json(report)}
    plots = draw_plots(view)
    written.update({path: text.encode() for path, text in plots.items()})
    written[store.ANALYSIS] = render_analysis(view).encode()
    written.update({path: text.encode() for path, text in render_findings(view).items()})
    for path, data in sorted(written.items()):
        store.write_bytes(run / path, data)
    return sorted(written)
