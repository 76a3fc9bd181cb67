"""What prose is held against: the report in the pack's own words, the citable values, the names of the trace."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from rooftrace.report.files import read_kernels
from rooftrace.report.grounding.names import Names, collect_names
from rooftrace.report.slots import SlotText
from rooftrace.report.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.report import Finding, ReportFile


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


@dataclass(frozen=True, kw_only=True)
class Slot:
    """One text of a prose file: its place in the file, and what it is about."""

    where: str  # `prose/gemm.json::$.findings[0].insight`
    name: str  # insight, action, … or summary
    analyzer: str
    text: SlotText
    finding: Finding | None = None  # None for a summary

    @property
    def evidence(self) -> Mapping[str, EvidenceValue]:
        """Evidence of the finding it is about."""
        return self.finding.evidence if self.finding else {}
