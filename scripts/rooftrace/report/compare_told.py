"""``compare.json`` from its evidence: every finding with its words, numbers resolved, as the page has them too."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.compare import CompareFile, CompareFinding, ToldFinding
from rooftrace.report.compare_gate import signed_pct
from rooftrace.report.compare_parts import cause_words
from rooftrace.report.compare_words import say
from rooftrace.report.markdown import Safe
from rooftrace.report.render import environment as report_environment
from rooftrace.units import format_ns

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jinja2 import Environment

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import CompareEvidence, CompareRow
    from rooftrace.report.grounding.judge import Chosen

_MODULES_SHOWN = 3
# What a finding has with words as without.
_KEPT = tuple(name for name in CompareFinding.model_fields if name in ToldFinding.model_fields)


class Change(Struct, frozen=True, kw_only=True):
    """A finding with what its rows tell; times in ns over the compared steps."""

    finding: CompareFinding
    example: CompareRow  # with the largest difference
    modules: str  # of that row, the innermost ones
    base_ns: int
    target_ns: int

    @property
    def is_regression(self) -> bool:
        """Whether the target takes longer."""
        return self.finding.direction == "regression"


def with_words(
    result: CompareEvidence, chosen: Chosen | None = None, values: Mapping[str, EvidenceValue] | None = None
) -> CompareFile:
    """The deliverable. `chosen` are the words of a writer, which cite `values` by id; else they are the pack's own."""
    rows = {row.id: row for row in result.rows}
    prose = chosen.findings if chosen else {}
    parts = {name: getattr(result, name) for name in CompareFile.model_fields if name != "findings"}
    findings = []
    for finding in result.findings:
        change = _change(finding, [rows[member] for member in finding.members])
        said = say(finding, prose.get(finding.id), values or {})
        findings.append(
            ToldFinding(
                **{name: getattr(finding, name) for name in _KEPT},
                title=str(said.title),
                insight=f"{_sentence('counted', change)} {said.insight}",
                action=said.action,
                reasoning=said.reasoning,
                resolution=said.resolution,
                verify=" ".join(filter(None, [_sentence("again", change), said.verify])),
            )
        )
    return CompareFile(**parts, findings=findings)


def _change(finding: CompareFinding, rows: list[CompareRow]) -> Change:
    heaviest = max(rows, key=lambda row: abs(row.delta_ns))
    return Change(
        finding=finding,
        example=heaviest,
        modules=" > ".join(heaviest.path[1:-1][-_MODULES_SHOWN:]),
        base_ns=sum(row.base_ns for row in rows),
        target_ns=sum(row.target_ns for row in rows),
    )


def _sentence(name: str, change: Change) -> str:
    """A macro of ``templates/compare/sentences.j2`` as one line of Markdown."""
    macro = getattr(pair_environment().get_template("compare/sentences.j2").module, name)
    return str(macro(change)).strip()


@lru_cache(maxsize=1)
def pair_environment() -> Environment:
    """That of the report, with differences."""
    environment = report_environment().overlay()
    environment.filters = {**environment.filters, "signed_ns": signed_ns, "signed_pct": _signed_pct, "caused": _caused}
    return environment


def _caused(finding: CompareFinding) -> str:
    return cause_words(finding.cause, finding.delta_ns)


def _signed_pct(value: float) -> Safe:
    return Safe(signed_pct(value))


def signed_ns(value: int) -> Safe:
    """A difference."""
    return Safe(f"{'+' if value > 0 else ''}{format_ns(value)}")
