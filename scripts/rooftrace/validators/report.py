"""Checks of the report: order, references, agreement with the evidence, structure of `analysis.md`."""

from __future__ import annotations

import re
from itertools import islice, pairwise
from typing import TYPE_CHECKING

import orjson

from rooftrace.contracts import store
from rooftrace.contracts.base import CREDIBLE_PCT, RANKING_LIMIT_PCT
from rooftrace.contracts.ledger import LedgerFile
from rooftrace.contracts.report import ReportFile
from rooftrace.errors import InputError
from rooftrace.validators.checks import RUN, Check
from rooftrace.validators.differences import first_difference, wrong_sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pydantic import JsonValue

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
_MOST_TOLD = 5  # differences of one file; one edit often makes many
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
    about = (RUN,)
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
    about = (RUN,)
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
    about = (RUN,)
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
    about = (RUN,)
    requires = ("RUN001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the headings."""
        yield from wrong_sections(store.ANALYSIS, files.text(store.ANALYSIS), SECTIONS)


class REP005(Check):
    """The markers of `analysis.md` must carry the report's findings with their ranks and scores."""

    file = store.ANALYSIS
    about = (RUN,)
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


class REP006(Check):
    """`report.json` must be what evidence and prose give: write it again, no number or word of it is to be edited."""

    file = store.REPORT
    about = (RUN,)
    only = (store.REPORT,)
    requires = ("RUN002", "RUN003", "RUN004", "RUN005", "REP001", "REP002", "REP003", "ROOF001")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Assemble the report again and compare, unless exactly this has been assembled before."""
        if files.is_as_rendered():
            return
        actual = files.raw(store.REPORT)
        expected = files.deliverables()[store.REPORT]
        if actual != expected:
            found = list(islice(_differences(orjson.loads(expected), orjson.loads(actual), "$"), _MOST_TOLD))
            yield from found or ["report.json holds the same values, written another way"]


class REP007(Check):
    """`analysis.md`, findings and plots must be what the evidence renders to: write them again, do not edit them."""

    file = store.ANALYSIS
    about = (RUN,)
    only = (store.ANALYSIS, "findings/*.md", "plots/*.svg")
    requires = ("REP004", "REP005", "REP006")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Render them again and compare line by line, unless exactly these have been rendered before."""
        if files.is_as_rendered():
            return
        from rooftrace.report.notice import without_notice

        for path, expected in files.deliverables().items():
            if path == store.REPORT:
                continue
            if not files.exists(path):
                yield f"{path} is missing"
            elif files.raw(path) != expected:
                actual = without_notice(files.text(path)) if path == store.ANALYSIS else files.text(path)
                if actual != expected.decode():
                    yield first_difference(path, expected.decode(), actual)


def _differences(expected: JsonValue, actual: JsonValue, at: str) -> Iterator[str]:
    """Places of `report.json` that differ from what the evidence gives."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in [*expected, *(key for key in actual if key not in expected)]:
            yield from _differences(expected.get(key), actual.get(key), f"{at}.{key}")
    elif isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        for number, (wanted, found) in enumerate(zip(expected, actual, strict=True)):
            yield from _differences(wanted, found, f"{at}[{number}]")
    elif expected != actual or isinstance(expected, bool) != isinstance(actual, bool):
        shown = [orjson.dumps(value).decode()[:80] for value in (actual, expected)]
        yield f"report.json::{at}: {shown[0]} where the evidence gives {shown[1]}"


class ROOF001(Check):
    """No op may beat its ceiling without a flag: above 105 % the formula, the dtype or the ceiling is wrong."""

    file = store.REPORT
    about = (RUN,)
    requires = ("RUN003",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Look for efficiencies above 105 %."""
        for at, op in enumerate(_report(files).ops):
            if op.efficiency_pct is not None and op.efficiency_pct > CREDIBLE_PCT and op.flag is None:
                yield f"report.json::$.ops[{at}].efficiency_pct = {op.efficiency_pct}"
