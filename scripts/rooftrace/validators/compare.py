"""Checks of a comparison: its findings follow from its rows, its rows from its ledgers, its page from all of it."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from rooftrace.contracts import kinds, store
from rooftrace.contracts.compare import CompareEvidence, CompareFile, listing_order
from rooftrace.errors import InputError
from rooftrace.units import ns_to_ms, pct
from rooftrace.validators.checks import COMPARISON, Check
from rooftrace.validators.differences import first_difference, wrong_sections

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rooftrace.contracts.compare import ComparedSide, CompareFinding, CompareRow, ToldFinding
    from rooftrace.validators.checks import Files

    AnyFinding = CompareFinding | ToldFinding

_WHOLE = (store.COMPARE_EVIDENCE, store.COMPARE)
SECTIONS = ("## Verdict", "## Sanity", "## Where The Time Went", "## Findings", "## Rows", "## Appendix")
_NUMBER = r"\d+\.?\d*"
_MARKER = re.compile(
    r"<!-- finding id=(\S+) tier=(\S+) category=(\S+) rank=(\d+) direction=(\S+) cause=(\S+) "
    rf"low=({_NUMBER}) mid=({_NUMBER}) high=({_NUMBER}) gpu_time=({_NUMBER}) -->"
)


def _compared(files: Files) -> CompareFile:
    result = files.model(store.COMPARE)
    if not isinstance(result, CompareFile):
        raise InputError("the comparison has another type")
    return result


def _both(files: Files) -> Iterator[tuple[str, CompareEvidence | CompareFile]]:
    """Evidence and deliverable, by path."""
    evidence = files.model(store.COMPARE_EVIDENCE)
    if not isinstance(evidence, CompareEvidence):
        raise InputError("the evidence has another type")
    yield store.COMPARE_EVIDENCE, evidence
    yield store.COMPARE, _compared(files)


class CMP001(Check):
    """A comparison must hold its evidence, `compare.json` and `compare.md`, and its manifest both traces' digests."""

    file = store.MANIFEST
    about = (COMPARISON,)
    requires = ("RUN001", "RUN003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the manifest with what a comparison consists of."""
        manifest = files.manifest()
        missing = [path for path in (*_WHOLE, kinds.COMPARISON_PAGE) if path not in files.paths()]
        yield from (f"manifest.json does not list {path}" for path in missing)
        if missing:
            return
        for path, result in _both(files):
            found = (getattr(manifest, "base_sha256", ""), manifest.source_sha256)
            if found != (result.base.trace.sha256, result.target.trace.sha256):
                yield f"manifest.json: the digests of the traces are not those of {path}"


class CMP002(Check):
    """A side's span must be that of its ledgers, and so its idle time where the rows hold whole spans."""

    file = store.COMPARE
    about = (COMPARISON,)
    requires = ("CMP001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare rows with ledgers."""
        for path, result in _both(files):
            for name, side in (("base", result.base), ("target", result.target)):
                yield from (f"{path}{problem}" for problem in _side(name, side, result.rows))


def _side(name: str, side: ComparedSide, rows: list[CompareRow]) -> Iterator[str]:
    devices = side.ledger.devices
    span, idle = sum(device.span_ns for device in devices), sum(device.idle_ns for device in devices)
    if span != side.span_ns:
        yield f"::$.{name}.span_ns = {side.span_ns}, the ledgers' spans sum to {span}"
    if not any(row.kind == "left_out" for row in rows):
        held = sum(getattr(row, f"{name}_ns") for row in rows if row.kind == "idle")
        if held != idle:
            yield f": the idle rows of the {name} hold {held} ns, its ledgers {idle} ns"


class CMP003(Check):
    """A finding must be the sum of its rows, which share its cause; they stand by what is told, direction and gain."""

    file = store.COMPARE
    about = (COMPARISON,)
    requires = ("CMP001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Sum up the rows of every finding."""
        for path, result in _both(files):
            yield from (f"{path}: {problem}" for problem in _findings(result))


def _findings(result: CompareEvidence | CompareFile) -> Iterator[str]:
    rows = {row.id: row for row in result.rows}
    found: list[AnyFinding] = [*result.findings]
    for at, finding in enumerate(found, start=1):
        if (finding.rank, finding.id) != (at, f"compare.F{at}"):
            yield f"{finding.id} has rank {finding.rank} at place {at}"
        yield from (f"{finding.id} {problem}" for problem in _finding(finding, rows, result))
    for first, second in pairwise(found):
        orders = [listing_order(item.direction, item.score.high) for item in (first, second)]
        if orders[0] > orders[1]:
            yield f"{second.id} stands after {first.id}"


def _finding(finding: AnyFinding, rows: dict[str, CompareRow], result: CompareEvidence | CompareFile) -> Iterator[str]:
    unknown = [member for member in finding.members if member not in rows]
    if unknown or not finding.members:
        yield f"has the unknown rows {', '.join(unknown) or 'none at all'}"
        return
    own = [rows[member] for member in finding.members]
    delta = sum(row.delta_ns for row in own)
    if finding.delta_ns != delta:
        yield f"has a difference of {finding.delta_ns} ns, its rows of {delta} ns"
    if (finding.direction == "regression") != (delta > 0):
        yield f"is called {finding.direction} with a difference of {delta} ns"
    others = sorted({row.cause for row in own} - {finding.cause})
    if others:
        yield f"has the cause {finding.cause}, its rows {', '.join(others)}"
    sums = {"base": sum(row.base_ns for row in own), "target": sum(row.target_ns for row in own), "delta": delta}
    for name, value in sums.items():
        if finding.evidence.get(f"{name}_ms") != ns_to_ms(value):
            yield f"has {name}_ms {finding.evidence.get(f'{name}_ms')}, its rows {ns_to_ms(value)}"
    slower = result.target.compared_ns if delta > 0 else result.base.compared_ns
    if finding.gpu_time_score != pct(abs(delta), slower):
        yield f"has a share of {finding.gpu_time_score} %, its rows of {pct(abs(delta), slower)} %"
    score = finding.score
    if not score.low <= score.mid <= score.high <= 100:
        yield f"scores {score.low}, {score.mid}, {score.high}"


class CMP004(Check):
    """`compare.md` must have every section once, in order."""

    file = kinds.COMPARISON_PAGE
    about = (COMPARISON,)
    requires = ("CMP001",)

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare the headings."""
        yield from wrong_sections(kinds.COMPARISON_PAGE, files.text(kinds.COMPARISON_PAGE), SECTIONS)


class CMP005(Check):
    """The markers of `compare.md` must carry the findings of `compare.json` with their causes, ranks and scores."""

    file = kinds.COMPARISON_PAGE
    about = (COMPARISON,)
    requires = ("CMP003", "CMP004")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Compare markers with findings."""
        from rooftrace.report.compare_page import finding_marker

        text = files.text(kinds.COMPARISON_PAGE)
        findings = {finding.id: finding for finding in _compared(files).findings}
        marked: set[str] = set()
        for match in _MARKER.finditer(text):
            identity = match.group(1)
            if identity not in findings:
                yield f"compare.md marks the unknown finding {identity}"
            elif match.group() != finding_marker(findings[identity]):
                yield f"compare.md: the marker of {identity} differs from compare.json"
            if identity in marked:
                yield f"compare.md marks {identity} twice"
            marked.add(identity)


class CMP006(Check):
    """`compare.md` must be what evidence and sound prose give: write it again, no number or word of it is edited."""

    file = kinds.COMPARISON_PAGE
    about = (COMPARISON,)
    only = (kinds.COMPARISON_PAGE,)
    requires = ("RUN002", "RUN003", "RUN005", "CMP002", "CMP003", "CMP004", "CMP005", "CMP007")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Render the page again and compare line by line."""
        from rooftrace.report.notice import without_notice

        expected = files.deliverables()[kinds.COMPARISON_PAGE].decode()
        actual = without_notice(files.text(kinds.COMPARISON_PAGE))
        if actual != expected:
            yield first_difference(kinds.COMPARISON_PAGE, expected, actual)


class CMP007(Check):
    """`compare.json` must be what evidence and sound prose give: write it again, no number or word of it is edited."""

    file = store.COMPARE
    about = (COMPARISON,)
    only = (store.COMPARE,)
    requires = ("RUN002", "RUN003", "RUN005", "CMP002", "CMP003")

    @staticmethod
    def check(files: Files) -> Iterator[str]:
        """Put it together again and compare line by line."""
        expected = files.deliverables()[store.COMPARE]
        if files.raw(store.COMPARE) != expected:
            yield first_difference(store.COMPARE, expected.decode(), files.text(store.COMPARE))
