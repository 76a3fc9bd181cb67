"""What prose is held against: findings in the pack's own words, the citable values, the names of the trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

from rooftrace.report.asked import asked_findings
from rooftrace.report.files import read_kernels
from rooftrace.report.grounding.names import Names, collect_names
from rooftrace.report.slots import SlotText
from rooftrace.report.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import CompareFinding
    from rooftrace.contracts.report import Finding, ReportFile

    AnyFinding = Finding | CompareFinding


class Basis(Protocol):
    """What the rules ask of a run, or of a comparison."""

    @property
    def run(self) -> Path:
        """The folder."""

    @property
    def values(self) -> Mapping[str, EvidenceValue]:
        """By evidence id."""

    @property
    def summaries(self) -> Mapping[str, Mapping[str, EvidenceValue]]:
        """What each analyzer says of its whole."""

    @property
    def findings(self) -> Mapping[str, AnyFinding]:
        """Findings by id, in rank order."""

    @property
    def names(self) -> Names:
        """The names of the trace, or of both."""

    def findings_of(self, analyzer: str) -> Sequence[AnyFinding]:
        """Findings of one analyzer, in rank order."""

    def asked_of(self, analyzer: str) -> list[str]:
        """Ids of the findings for which a writer is asked."""


@dataclass(frozen=True, kw_only=True)
class Grounds:
    """The run behind the prose. `values` is by evidence id, `summaries` what each analyzer says of its whole."""

    run: Path
    report: ReportFile
    values: Mapping[str, EvidenceValue]
    summaries: Mapping[str, Mapping[str, EvidenceValue]]
    more_names: tuple[str, ...] = ()  # of the trace, although the report has them not

    @cached_property
    def view(self) -> View:
        """The report, indexed."""
        return View(self.report, kernels=[], gaps=[])

    @cached_property
    def findings(self) -> dict[str, Finding]:
        """Findings by id, in rank order."""
        return {finding.id: finding for finding in self.view.all_findings}

    @cached_property
    def names(self) -> Names:
        """The names of the trace."""
        kernels = read_kernels(self.run) if self.report.ledger.devices else []
        return collect_names(self.report, kernels, self.more_names)

    def findings_of(self, analyzer: str) -> list[Finding]:
        """Findings of one analyzer, in rank order."""
        return [finding for finding in self.view.all_findings if finding.id.startswith(f"{analyzer}.")]

    def asked_of(self, analyzer: str) -> list[str]:
        """Ids of the findings for which a writer is asked."""
        return [finding.id for finding in asked_findings(self.report).get(analyzer, [])]


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One text of a prose file: its place in the file, and what it is about."""

    where: str  # `prose/gemm.json::$.findings[0].insight`
    name: str  # insight, action, … or summary
    analyzer: str
    text: SlotText
    finding: AnyFinding | None = None  # None for a summary

    @property
    def evidence(self) -> Mapping[str, EvidenceValue]:
        """Evidence of the finding it is about."""
        return self.finding.evidence if self.finding else {}
