"""Words for findings, with the evidence's numbers filled in.

The pack's own words are knowledge patterns chosen by the evidence. A writer's words take their place where they are
sound; title, numbers and order are the scripts' in either case.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import Struct, field
from pydantic import ValidationError

from rooftrace.contracts.pattern import PatternFile
from rooftrace.contracts.report import Finding
from rooftrace.contracts.store import json_path
from rooftrace.errors import CheckFailed
from rooftrace.pack import KNOWLEDGE
from rooftrace.report.markdown import md
from rooftrace.report.values import fill

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.evidence import FindingEvidence
    from rooftrace.contracts.prose import FindingProse
    from rooftrace.contracts.report import ModelGuess, ReportFile
    from rooftrace.report.grounding.judge import Chosen, Outcome

# Begins the paragraph of a resolution that a writer's words do not replace.
_NOT_VISIBLE = "Not visible in a trace: "
_PROSE_SLOTS = ("insight", "action", "reasoning", "resolution", "verify")

# Used where a finding names no pattern.
_FALLBACK = {"measured": "default", "modelled": "default", "upper_bound": "unrated"}

# Kernels of a category in words, for analyzers that look after several; others are named in their patterns.
_CATEGORY_KERNELS = {
    "elementwise": "Elementwise kernels",
    "memory": "Copies, casts and fills",
    "optimizer": "Optimizer kernels",
    "quantization": "Quantisation kernels",
    "embedding": "Embedding and gather kernels",
    "sort": "Sorting kernels",
    "ssm": "State-space kernels",
}


class Knowledge:
    """Patterns by analyzer and id, each file read once and only when cited."""

    def __init__(self) -> None:
        self._read: dict[tuple[str, str], PatternFile] = {}

    def pattern(self, analyzer: str, name: str) -> PatternFile:
        """The pattern, or `CheckFailed` naming the file that is missing or wrong."""
        key = (analyzer, name)
        if key not in self._read:
            self._read[key] = _read_pattern(analyzer, name)
        return self._read[key]


def _read_pattern(analyzer: str, name: str) -> PatternFile:
    path = KNOWLEDGE / "patterns" / analyzer / f"{name}.json"
    try:
        return PatternFile.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        raise CheckFailed(
            f"pattern `{name}` of analyzer `{analyzer}` is not among the knowledge patterns",
            hint="The run comes from another version of rooftrace: analyze the trace again",
        ) from None
    except ValidationError as error:
        details = [f"{path.name}::{json_path(e['loc'])}: {e['msg']}" for e in error.errors(include_url=False)]
        raise CheckFailed(
            f"pattern `{name}` of analyzer `{analyzer}` does not match its schema", details=details
        ) from None


def write_finding(found: FindingEvidence, *, analyzer: str, rank: int, knowledge: Knowledge) -> Finding:
    """A finding with words: the pattern of highest priority writes, the others add their action."""
    names = found.patterns or [_FALLBACK[found.kind]]
    patterns = [knowledge.pattern(analyzer, name) for name in names]
    patterns.sort(key=lambda pattern: (-pattern.priority, pattern.id))
    writer, others = patterns[0], patterns[1:]
    values = citable(found, analyzer)

    def words(pattern: PatternFile, field: str) -> str:
        return fill(getattr(pattern, field), values, where=f"pattern `{analyzer}/{pattern.id}`")

    resolution = [words(writer, "resolution")]
    # Priority 0 is what is said when nothing better is known: it adds nothing to a specific pattern.
    resolution += [f"Also: {words(other, 'action')}" for other in others if other.priority > 0]
    if writer.cannot_see:
        resolution.append(f"{_NOT_VISIBLE}{words(writer, 'cannot_see')}")
    return Finding(
        **{name: getattr(found, name) for name in _COPIED},
        rank=rank,
        patterns=[pattern.id for pattern in patterns],
        title=words(writer, "title"),
        insight=words(writer, "insight"),
        action=words(writer, "action"),
        reasoning=words(writer, "reasoning"),
        resolution="\n\n".join(resolution),
        verify=words(writer, "verify"),
    )


_COPIED = (
    "id",
    "tier",
    "category",
    "score",
    "score_basis",
    "gpu_time_score",
    "kind",
    "members",
    "evidence",
    "confidence",
)


def citable(found: FindingEvidence, analyzer: str) -> Mapping[str, EvidenceValue]:
    """What a pattern may cite of a finding: its evidence and what identifies it."""
    return {
        **found.evidence,
        "category": found.category,
        "category_kernels": _CATEGORY_KERNELS.get(found.category, "Other kernels"),
        "analyzer": analyzer,
        "kind": found.kind,
        "subject": found.subject,
        "score_low_pct": found.score.low,
        "score_mid_pct": found.score.mid,
        "score_high_pct": found.score.high,
    }


class Told(Struct, frozen=True, kw_only=True):
    """Words beside the findings, as Markdown: summaries by analyzer, the model, and whose words were used."""

    summaries: Mapping[str, str] = field(default_factory=dict)
    model: str | None = None
    outcomes: tuple[Outcome, ...] = ()


def with_prose(report: ReportFile, chosen: Chosen, values: Mapping[str, EvidenceValue]) -> tuple[ReportFile, Told]:
    """The report with the chosen words in their slots. `values` are all citable quantities by id."""
    from rooftrace.report.slots import SlotText

    def words(finding: Finding) -> Finding:
        prose = chosen.findings.get(finding.id)
        return finding.model_copy(update=_slots(finding, prose, values)) if prose else finding

    told = Told(
        summaries={name: SlotText(raw=text).markdown(values) for name, text in chosen.summaries.items()},
        model=_model(chosen, values),
        outcomes=chosen.outcomes,
    )
    update = {"findings": [words(f) for f in report.findings], "unranked": [words(f) for f in report.unranked]}
    return report.model_copy(update={**update, "model": _guess(report.model, chosen)}), told


def _guess(guess: ModelGuess | None, chosen: Chosen) -> ModelGuess | None:
    """What the rules say of the model, under the name that a writer was allowed to give it."""
    model = chosen.model
    if model is None or guess is None:
        return guess
    return guess.model_copy(update={"name": model.name, "family": model.family, "confidence": model.confidence})


def _slots(finding: Finding, prose: FindingProse, values: Mapping[str, EvidenceValue]) -> dict[str, str]:
    from rooftrace.report.slots import SlotText

    slots = {name: text for name in _PROSE_SLOTS if (text := getattr(prose, name)) is not None}
    filled = {name: SlotText(raw=text).markdown(values) for name, text in slots.items()}
    kept = [part for part in finding.resolution.split("\n\n") if part.startswith(_NOT_VISIBLE)]
    return {**filled, "resolution": "\n\n".join([filled["resolution"], *kept])}


def _model(chosen: Chosen, values: Mapping[str, EvidenceValue]) -> str | None:
    from rooftrace.report.slots import SlotText

    model = chosen.model
    if model is None:
        return None
    summary = SlotText(raw=model.summary).markdown(values)
    return f"{md(model.name)}: {md(model.family)}, confidence {model.confidence}. {summary}"
