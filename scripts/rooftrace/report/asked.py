"""Which findings are worth words of a writer; all others keep those of the knowledge base."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rooftrace.contracts.report import Finding, ReportFile

# Beside the ranked findings: those with most GPU time, which a reader will ask about although a fix gains little.
_MOST_UNRANKED = 3
_LEAST_GPU_TIME_PCT = 0.5
# Of one analyzer: a writer's attention, and the size of a brief, end here.
_MOST_OF_ONE = 6


def asked_findings(report: ReportFile) -> dict[str, list[Finding]]:
    """Findings to be written about by analyzer, in rank order; analyzers in the order of their best finding."""
    heavy = [finding for finding in report.unranked if finding.gpu_time_score >= _LEAST_GPU_TIME_PCT]
    heavy = sorted(heavy, key=lambda finding: (-finding.gpu_time_score, finding.id))[:_MOST_UNRANKED]
    kept = {finding.id for finding in heavy}
    asked: dict[str, list[Finding]] = {}
    for finding in [*report.findings, *(found for found in report.unranked if found.id in kept)]:
        analyzer = finding.id.partition(".")[0]
        if len(asked.setdefault(analyzer, [])) < _MOST_OF_ONE:
            asked[analyzer].append(finding)
    return asked
