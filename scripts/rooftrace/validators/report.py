"""Checks of the report: order, references, agreement with the evidence, structure of `analysis.md`."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.base import CREDIBLE_PCT, RANKING_LIMIT_PCT
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.validators.checks import Check

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.validators.checks import Files

SECTIONS = (
    "## Executive Summary",
    "## Trace Health",
    "## What To Do First",
    "## Compute Kernel Optimizations",
    "## Kernel Fusion Opportunities",
    "## System-Level Optimizations",
    "## Detailed Analysis",
    "## Appendix",
)
_MARKER = re.compile(
    r"<!-- finding id=(\S+) tier=(\S+) category=(\S+) rank=(\d+) "
    r"low=(\d+\.?\d*) mid=(\d+\.?\d*) high=(\d+\.?\d*) gpu_time=(\d+\.?\d*) -->"
)


def _report(files: Files) -> ReportFile:
    report = files.model(store.REPORT)
    if not isinstance(report, ReportFile):
        raise InputError("the report has another type")
    return report


class REP001(Check):
    """Findings must stand in the order of their mid score, ranked from 0.5 % of the span up, with ranks 1, 2, 3."""

    file = store.REPORT
    requires = ("RUN003",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Check order and ranks."""
        report = _report(files)
        for at, (first, second) in enumerate(pairwise(report.findings)):
            if first.score.mid < second.score.mid:
                yield f"report.json::$.findings[{at + 1}].score.mid = {second.score.mid} after {first.score.mid}"
        for at, finding in enumerate([*report.findings, *report.unranked]):
            if finding.rank != at + 1:
                yield f"report.json: {finding.id} has rank {finding.rank} at place {at + 1}"
        for finding in report.findings:
            if finding.score.mid < RANKING_LIMIT_PCT:
                yield f"report.json: {finding.id} is ranked with {finding.score.mid} %"
        for finding in report.unranked:
            if finding.score.mid >= RANKING_LIMIT_PCT:
                yield f"report.json: {finding.id} is unranked with {finding.score.mid} %"


class REP002(Check):
    """A finding's members must be op groups of the report, and a score's low, mid and high must not fall."""

    file = store.REPORT
    requires = ("RUN003",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Resolve members, compare scores."""
        report = _report(files)
        known = {op.id for op in report.ops}
        seen: set[str] = set()
        for finding in [*report.findings, *report.unranked]:
            for member in finding.members:
                if finding.tier == "compute" and member not in known:
                    yield f"report.json: {finding.id} has the unknown member {member}"
            if not finding.score.low <= finding.score.mid <= finding.score.high:
                yield f"report.json: {finding.id} scores {finding.score.low}, {finding.score.mid}, {finding.score.high}"
            if finding.id in seen:
                yield f"report.json: {finding.id} occurs twice"
            seen.add(finding.id)


class REP003(Check):
    """The report's ledger must be the evidence's."""

    file = store.REPORT
    requires = ("RUN003",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare device by device."""
        ledger = files.model(store.LEDGER)
        if isinstance(ledger, LedgerFile) and ledger.devices != _report(files).ledger.devices:
            yield "report.json::$.ledger differs from evidence/ledger.json"


class REP004(Check):
    """`analysis.md` must have every section once, in order."""

    file = store.ANALYSIS
    requires = ("RUN001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the headings."""
        text = files.text(store.ANALYSIS)
        found = tuple(line.rstrip() for line in text.split("\n") if line.startswith("## "))
        if found != SECTIONS:
            yield f"analysis.md has the sections {', '.join(found)}"


class REP005(Check):
    """The markers of `analysis.md` must carry the report's findings with their ranks and scores."""

    file = store.ANALYSIS
    requires = ("RUN003", "REP004")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare markers with findings."""
        text = files.text(store.ANALYSIS)
        findings = {finding.id: finding for finding in _report(files).findings}
        marked: set[str] = set()
        for identity, tier, category, rank, low, mid, high, gpu_time in _MARKER.findall(text):
            finding = findings.get(identity)
            if finding is None:
                yield f"analysis.md marks the unknown finding {identity}"
                continue
            if identity in marked:
                yield f"analysis.md marks {identity} twice"
            marked.add(identity)
            score = finding.score
            numbers = (float(low), float(mid), float(high), float(gpu_time))
            expected = (score.low, score.mid, score.high, finding.gpu_time_score)
            if (tier, category, int(rank)) != (finding.tier, finding.category, finding.rank) or numbers != expected:
                yield f"analysis.md: the marker of {identity} differs from report.json"
        for identity in findings:
            if identity not in marked:
                yield f"analysis.md has no marker for {identity}"


class ROOF001(Check):
    """No op may beat its ceiling without a flag: above 105 % the formula, the dtype or the ceiling is wrong."""

    file = store.REPORT
    requires = ("RUN003",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look for efficiencies above 105 %."""
        for at, op in enumerate(_report(files).ops):
            if op.efficiency_pct is not None and op.efficiency_pct > CREDIBLE_PCT and op.flag is None:
                yield f"report.json::$.ops[{at}].efficiency_pct = {op.efficiency_pct}"
