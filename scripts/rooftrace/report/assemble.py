"""From the files of a run to its deliverables."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field

from rooftrace.beside import beside
from rooftrace.contracts import store
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.contracts.renders import note
from rooftrace.contracts.report import Finding, LedgerBlock, ModelGuess, ReportFile
from rooftrace.report.files import RunFiles, read_run
from rooftrace.report.prose import Knowledge, Told, with_prose, write_finding

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.model_evidence import ModelEvidence
    from rooftrace.report.grounding.grounds import Grounds


class Composed(Struct, frozen=True, kw_only=True):
    """A report with its words chosen, and what the sections say beside the findings."""

    report: ReportFile
    told: Told = field(default_factory=Told)


def assemble(run: Path) -> ReportFile:
    """The complete report of a run, from its manifest, tables, evidence and whatever prose holds."""
    return compose(run).report


def compose(run: Path) -> Composed:
    """The report of a run. Prose takes the place of the pack's own words, finding by finding, where it is sound."""
    files = read_run(run)
    report = _assembled(files)
    paths = store.prose_files(run)
    is_asked = (run / store.STATE).is_file()
    if not paths and not is_asked:
        return Composed(report=report)
    from rooftrace.report.grounding.judge import choose, examine

    grounds = _grounds(run, files, report)
    handed = [examine(path, store.read_bytes(run / path), grounds) for path in paths]
    report, told = with_prose(report, choose(handed, grounds, is_asked=is_asked), grounds.values)
    return Composed(report=report, told=told)


def open_grounds(run: Path) -> Grounds:
    """What prose about a run is held against: its report in the pack's own words, its ids, its names."""
    files = read_run(run)
    return _grounds(run, files, _assembled(files))


def _grounds(run: Path, files: RunFiles, report: ReportFile) -> Grounds:
    from rooftrace.report.evidence_ids import evidence_values
    from rooftrace.report.grounding.grounds import Grounds

    summaries: dict[str, Mapping[str, EvidenceValue]] = {part.analyzer: part.summary for part in files.evidence}
    model = files.model
    values = evidence_values(report, {**summaries, **({store.MODEL: model.summary} if model else {})})
    names = tuple(model.names()) if model else ()
    return Grounds(run=run, report=report, values=values, summaries=summaries, more_names=names)


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
        model=_model(files.model),
        ledger=LedgerBlock(devices=files.ledger.devices),
        coverage=manifest.coverage,
        replay=files.replay.replay if files.replay else None,
        ops=files.ops,
        cpu_ops=manifest.cpu_ops,
        findings=ranked,
        unranked=findings[len(ranked) :],
        together=files.replay.together if files.replay else None,
    )


def _model(evidence: ModelEvidence | None) -> ModelGuess | None:
    if evidence is None or not evidence.tells_something:
        return None
    guess = evidence.guess
    return ModelGuess(
        name=guess.name,
        family=guess.family,
        confidence=guess.confidence,
        reasons=guess.reasons,
        facts=evidence.summary,
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


def render(run: Path, report: ReportFile, told: Told | None = None) -> str:
    """``analysis.md`` of a report; `run` supplies the tables that ``report.json`` does not repeat.

    jinja2 is loaded here and no earlier: most commands render nothing.
    """
    from rooftrace.report.render import render_analysis
    from rooftrace.report.view import open_view

    return render_analysis(open_view(run, report, told))


def deliverables(run: Path) -> dict[str, bytes]:
    """Content of ``report.json``, ``analysis.md``, plots and findings, as the run's evidence and prose give them."""
    return _rendered(run, compose(run))


def _rendered(run: Path, composed: Composed) -> dict[str, bytes]:
    from rooftrace.report.plots import draw_plots
    from rooftrace.report.render import render_analysis, render_findings
    from rooftrace.report.view import open_view

    view = open_view(run, composed.report, composed.told)
    with beside(lambda: {**draw_plots(view), **render_findings(view)}) as drawing:
        texts = {store.ANALYSIS: render_analysis(view)}
        texts |= drawing.result()
    return {store.REPORT: store.to_json(composed.report), **{path: text.encode() for path, text in texts.items()}}


def write(run: Path) -> list[str]:
    """Write the deliverables; returns their relative paths, sorted."""
    from rooftrace.report.notice import open_words, with_notice

    composed = compose(run)
    files = _rendered(run, composed)
    files[store.ANALYSIS] = with_notice(files[store.ANALYSIS].decode(), open_words(run)).encode()
    store.write_files(run, files)
    note(run, is_sound=not any(outcome.codes for outcome in composed.told.outcomes))
    return sorted(files)
