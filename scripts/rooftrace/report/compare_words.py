"""Words for the findings of a comparison: the pack's own by cause, or a writer's where they are sound."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from msgspec import Struct

from rooftrace.contracts.compare import CausesFile
from rooftrace.contracts.kinds import COMPARE
from rooftrace.pack import KNOWLEDGE
from rooftrace.report.markdown import Safe, code, md
from rooftrace.report.slots import SlotText
from rooftrace.report.values import fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import CauseWords, CompareFinding
    from rooftrace.contracts.prose import FindingProse
    from rooftrace.report.grounding.judge import Chosen

CAUSES = "compare_causes.json"
_COLLECTIVE = " A collective also holds the wait for the other ranks."
_TITLE = 80


class Said(Struct, frozen=True, kw_only=True):
    """The words of a finding, as Markdown; the scripts' numbers stand round them."""

    title: str
    insight: str
    action: str
    reasoning: str
    resolution: str
    verify: str | None  # None: the page's own


@cache
def causes_file() -> CausesFile:
    """What is known of every cause."""
    return CausesFile.model_validate_json((KNOWLEDGE / CAUSES).read_bytes())


def words_of(finding: CompareFinding) -> CauseWords:
    """What is known of a finding's cause."""
    return causes_file().causes[finding.cause]


def say(finding: CompareFinding, prose: FindingProse | None, values: Mapping[str, EvidenceValue]) -> Said:
    """The words of one finding; `values` are all citable quantities by id."""
    own = _own(finding)
    if prose is None:
        return own

    def written(text: str) -> str:
        return SlotText(raw=text).markdown(values)

    return Said(
        title=own.title,
        insight=written(prose.insight),
        action=written(prose.action),
        reasoning=written(prose.reasoning),
        resolution=written(prose.resolution),
        verify=written(prose.verify) if prose.verify else None,
    )


def _own(finding: CompareFinding) -> Said:
    words, is_worse = words_of(finding), finding.direction == "regression"

    def filled(text: str) -> str:
        return fill(text, finding.evidence, where=f"cause `{COMPARE}/{finding.cause}`")

    insight = filled(words.insight)
    if finding.category == "communication" and finding.cause == "slower_kernel":
        insight += _COLLECTIVE
    insight += filled(_efficiencies(finding))
    resolution = filled(words.resolution)
    if words.cannot_see:
        resolution += f"\n\nNot visible in a trace: {filled(words.cannot_see)}"
    return Said(
        title=_title(finding, words.worse if is_worse else words.better),
        insight=insight,
        action=filled(words.action) if is_worse else causes_file().improvement,
        reasoning=filled(words.reasoning),
        resolution=resolution,
        verify=None,
    )


def _title(finding: CompareFinding, what: str) -> str:
    if finding.subject == finding.cause:
        return md(f"{what[0].upper()}{what[1:]}")
    return Safe(f"{code(finding.subject, _TITLE)}: {md(what)}")


def _efficiencies(finding: CompareFinding) -> str:
    if {"base_efficiency_pct", "target_efficiency_pct"} <= finding.evidence.keys():
        return " Efficiency on its own GPU: {{base_efficiency_pct}}, then {{target_efficiency_pct}}."
    return ""


def summary_of(chosen: Chosen | None, values: Mapping[str, EvidenceValue]) -> str | None:
    """The writer's summary as Markdown, where there is a sound one."""
    text = chosen.summaries.get(COMPARE) if chosen else None
    return SlotText(raw=text).markdown(values) if text else None
