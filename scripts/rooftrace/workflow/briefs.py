"""``tasks/<analyzer>.md``: everything one writer needs, in one file; its words are the pack's, its data is fenced."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

import orjson

from rooftrace.contracts.fencing import fence, one_line
from rooftrace.pack import KNOWLEDGE, ROOT, TEMPLATES
from rooftrace.patterns import load_patterns
from rooftrace.report.environment import template_environment
from rooftrace.report.evidence_ids import MEMBERS_CITED
from rooftrace.report.values import format_value

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.pattern import PatternFile
    from rooftrace.contracts.report import Finding
    from rooftrace.report.grounding.grounds import Grounds

MODEL = "model"
# A brief is read whole by a model with little room; 10 KB are usual.
MAX_BYTES = 24_576
TYPICAL_BYTES = 10_240
_VALUE = 140
_KERNEL = 70
_MEMBERS = (4, 2, 1, 0)  # heaviest members shown, less where a brief would grow too large
_MIN_COMMON = 8  # fewer lines are better read where they belong
_ROLES = ROOT / "skills" / "analyzers"
_SAID_BY_RULES = re.compile(
    r" ?Cite every quantity by its id[^:]*: the report puts value and unit there\."
    r"| Causes inside a kernel[^:]*: name the tool that could show them, or leave them out\."
)
_CITATION = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_BOUND_BY_MEMORY = ("elementwise", "reduction", "normalization", "triton", "generic")
# The example that an analyzer is shown where it has none of its own, and the ids in it, which become its own.
_EXAMPLE_OF = {"moe": ("gemm", "gemm"), **dict.fromkeys(_BOUND_BY_MEMORY, ("memory", "normalization"))}
_OTHERS = 5  # findings that are told in a line each
_OTHER_TITLE = 90
_SCORE_IS_MORE = re.compile(r"A score worth more than \{\{saving_ms\}\}[^.]*\.\s*")
# Said of the whole run in every brief, where the run has it.
_CONTEXT = (
    "platform.gpu_name",
    "trace.workload",
    "ledger.span_ms",
    "ledger.compute_pct",
    "ledger.exposed_comm_pct",
    "ledger.exposed_copy_pct",
    "ledger.idle_pct",
    "steps.steps_count",
    "steps.mean_ms",
    "health.verdict",
)
# Beside it, by analyzer; what bounds the run tells whether the time of kernels matters at all.
_OF_KERNELS = ("replay.bound_by", "replay.compute_free_")
_MORE_CONTEXT = {
    "idle": ("ledger.idle_", "replay."),
    "multi_kernel": ("ledger.total_comm_", "ledger.total_copy_", "replay."),
    "fusion": (*_OF_KERNELS, "idle."),
    MODEL: (),
}
_PACE = re.compile(r"idle\.F[0-9]+\.launch_us")  # of the idle findings, all that a fusion asks for
# Of a finding: shown in its first line, or of no use to a writer.
_LEFT_OUT = frozenset(
    {
        *("rank", "category", "kind", "score_low_pct", "score_mid_pct", "score_high_pct", "gpu_time_score_pct"),
        *(
            "inventory",
            "gpu_name",
            "gpu_vendor",
            "top_op_id",
            "datasheet_efficiency_pct",
            "ceilings_kind",
            "members_count",
        ),
    }
)
_OF_A_MEMBER = ("op", "shapes", "module", "kernel", "time_ms", "instances_count", "bound", "efficiency_pct")
_LEGEND = (
    "One block a finding. Ids: `{{%s.F1.NAME}}`, of the score `{{%s.F1.score_mid_pct}}`: what the replayed span loses "
    "with 75, 87.5 and 100 %% of the fix made (low, mid, high), in per cent%s. What is zero, empty or no is left out."
)
_LEGEND_MEMBERS = (
    "; of its heaviest ops, m1 first, `{{%s.F1.m1.NAME}}`, told whole although another finding may hold part of them"
)
_LEGEND_NAMES = "What the names mean:"


def compose_brief(analyzer: str, findings: list[Finding], grounds: Grounds, patterns: Mapping[str, list[str]]) -> str:
    """The brief of one analyzer. `patterns` are the ids of those that hold, by finding id, best first."""
    own = {finding.id: _own_values(finding, grounds) for finding in findings}
    common = _common(list(own.values()))
    context = _context(analyzer, grounds)
    text = ""
    for members in _MEMBERS:
        blocks = [_finding_block(finding, own[finding.id], common, members) for finding in findings]
        blocks += _others_block(analyzer, findings, grounds)
        legend = _LEGEND % (analyzer, analyzer, _LEGEND_MEMBERS % analyzer if "\nm1: " in "".join(blocks) else "")
        shown = [name for values in own.values() for name in values if _is_shown(name, values[name])]
        text = _rendered(
            analyzer,
            ids=[finding.id for finding in findings],
            legend="\n".join([legend, "", _LEGEND_NAMES, *_run_phrases(context), *_phrases(analyzer, shown)]),
            evidence="\n\n".join([_context_block(context, _model_line(grounds)), *_common_block(common), *blocks]),
            words=_words(analyzer, findings, patterns, grounds),
        )
        if len(text.encode()) <= (TYPICAL_BYTES if members > 1 else MAX_BYTES):
            break
    return _cut(text)


def compose_model_brief(evidence: Iterable[str], grounds: Grounds) -> str:
    """The brief for naming the model; `evidence` are lines about it, as the trace tells."""
    context = _context(MODEL, grounds)
    legend = "Cite a value by its id, such as `{{model.layers_count}}`."
    return _cut(
        _rendered(
            MODEL,
            ids=[],
            legend="\n".join([legend, "", *_run_phrases(context)]),
            evidence="\n\n".join([_context_block(context), fence("\n".join(evidence), limit=6_000)]),
            words="",
        )
    )


def _cut(text: str) -> str:
    """A brief that is still too long loses the end of its knowledge, never its task."""
    while len(text.encode()) > MAX_BYTES:
        start, end = text.rfind("\n### "), text.rfind("\n\n## Hand in")
        if start < 0 or end < start:
            break
        text = text[:start] + text[end:]
    return text


def _rendered(analyzer: str, *, ids: list[str], legend: str, evidence: str, words: str) -> str:
    environment = template_environment(lambda value: value, autoescape=False)
    return (
        environment.get_template("briefs/brief.md.j2").render(
            analyzer=analyzer,
            ids=ids,
            role=role_of(analyzer),
            rules=rules_of(analyzer),
            legend=legend,
            evidence=evidence,
            words=words,
            slots=slots_text(analyzer),
            example=example_of(analyzer),
        )
        + "\n"
    )


def example_of(analyzer: str) -> str:
    """Prose as it is handed in, about another run, with ids as this analyzer has them."""
    file, owner = _EXAMPLE_OF.get(analyzer, (analyzer, analyzer))
    return re.sub(rf"\b{owner}\.F", f"{analyzer}.F", brief_part(f"example_{file}.txt"))


def rules_of(analyzer: str) -> str:
    """The rules that hold for a writer; who names the model needs none about findings."""
    return brief_part("rules_model.md" if analyzer == MODEL else "rules.md")


def brief_part(name: str) -> str:
    """Fixed words of the briefs, by file name."""
    return (TEMPLATES / "briefs" / name).read_text(encoding="utf-8").strip()


def role_of(analyzer: str) -> str:
    """The analyzer's prompt without its title."""
    text = (_ROLES / f"{analyzer}.md").read_text(encoding="utf-8").strip()
    return text.partition("\n")[2].strip()


def slots_text(analyzer: str) -> str:
    """The slots as lines: name, length, what goes there; from the contract."""
    from rooftrace.contracts.prose import FindingProse, ModelProse, ProseFile

    lines = []
    models = (ModelProse,) if analyzer == MODEL else (ProseFile, FindingProse)
    for name, schema in ((name, part) for model in models for name, part in _properties(model)):
        if name not in ("schema_version", "analyzer", "evidence_sha256", "findings", "id"):
            lines.append(f"- `{name}` ({_length(schema)}): {_SAID_BY_RULES.sub('', str(schema['description']))}")
    return "\n".join(lines)


def _properties(model: type) -> Iterable[tuple[str, dict[str, object]]]:
    found: dict[str, dict[str, object]] = model.model_json_schema()["properties"]  # type: ignore[attr-defined]
    return found.items()


def _length(schema: dict[str, object]) -> str:
    options = [schema, *(part for part in schema.get("anyOf", ()) if isinstance(part, dict))]  # type: ignore[attr-defined]
    longest = next((part["maxLength"] for part in options if "maxLength" in part), None)
    if longest:
        return f"up to {longest} characters"
    return "one of " + ", ".join(str(word) for word in schema.get("enum", ()))  # type: ignore[attr-defined]


def _context(analyzer: str, grounds: Grounds) -> dict[str, EvidenceValue]:
    """What is told of the whole run, by id."""
    more = _MORE_CONTEXT.get(analyzer, _OF_KERNELS)
    told = {name: value for name, value in grounds.values.items() if name in _CONTEXT or name.startswith(more)}
    pace = {name: told.pop(name) for name in list(told) if name.startswith("idle.")}
    return told | {name: value for name, value in pace.items() if _PACE.fullmatch(name)}


def _context_block(context: Mapping[str, EvidenceValue], *more: str) -> str:
    return fence("\n".join(["the run", *_lines(context.items()), *filter(None, more)]), limit=2_000)


def _model_line(grounds: Grounds) -> str:
    """Which model it is, as far as the rules tell: words, no id."""
    model = grounds.report.model
    return one_line(f"model (by rules): {model.name}, {model.family}", _VALUE) if model else ""


def _others_block(analyzer: str, asked: list[Finding], grounds: Grounds) -> list[str]:
    """The analyzer's findings that keep the pack's words, a line each: what a summary may name."""
    known = {finding.id for finding in asked}
    others = [finding for finding in grounds.findings_of(analyzer) if finding.id not in known]
    lines = [
        f"{finding.id}: {one_line(finding.title, _OTHER_TITLE)}; score {finding.score.mid:g}, "
        f"GPU time over its floor {finding.gpu_time_score:g}"
        for finding in others[:_OTHERS]
    ]
    told = "not asked for: other findings of this analyzer, for the summary"
    return [fence("\n".join([told, *lines]), limit=2_000)] if lines else []


def _own_values(finding: Finding, grounds: Grounds) -> dict[str, EvidenceValue]:
    """What the evidence holds of a finding and of its members, by the part of the id after the finding's."""
    prefix = f"{finding.id}."
    own = {name.removeprefix(prefix): value for name, value in grounds.values.items() if name.startswith(prefix)}
    if own.get("op_names") == own.get("top_op"):
        own.pop("op_names", None)
    return own


def _is_shown(name: str, value: EvidenceValue) -> bool:
    """Whether a finding's own value is told; one that is zero, empty or no says nothing."""
    return "." not in name and name not in _LEFT_OUT and value not in (0, "", False)


def _common(findings: list[dict[str, EvidenceValue]]) -> dict[str, EvidenceValue]:
    """What all findings say alike, where there are several: it is told once."""
    if len(findings) < 2:
        return {}
    found = {
        name: value
        for name, value in findings[0].items()
        if _is_shown(name, value) and all(name in other and other[name] == value for other in findings)
    }
    return found if len(found) >= _MIN_COMMON else {}


def _common_block(common: Mapping[str, EvidenceValue]) -> list[str]:
    return (
        [fence("\n".join(["every finding below (an id of any of them will do)", *_lines(common.items())]), limit=6_000)]
        if common
        else []
    )


def _phrases(analyzer: str, names: Iterable[str]) -> list[str]:
    """What each field is, in the order of the evidence: a phrase may point back to the one before."""
    known = orjson.loads((KNOWLEDGE / "evidence_names.json").read_bytes())
    meaning: dict[str, str] = known["names"] | known.get(analyzer, {})
    return [f"- {name}: {meaning[name]}" for name in dict.fromkeys(names) if name in meaning]


def _run_phrases(context: Mapping[str, EvidenceValue]) -> list[str]:
    """The same of what is told of the run: a line of the file for the names that its pattern stands for."""
    shown = [name for name, value in context.items() if value not in (0, "", False)]
    lines = []
    for line in brief_part("run_fields.txt").splitlines():
        pattern, _, phrase = line.partition(": ")
        names = [name for name in shown if fnmatchcase(name, pattern)]
        if names:
            lines.append(f"- {names[0] if len(names) == 1 else pattern}: {phrase}")
    return lines


def _finding_block(
    finding: Finding, own: Mapping[str, EvidenceValue], common: Mapping[str, EvidenceValue], members: int
) -> str:
    score = " / ".join(f"{value:g}" for value in (finding.score.low, finding.score.mid, finding.score.high))
    lines = [
        f"{finding.id}: {one_line(finding.title, 160)}",
        f"{finding.tier} tier, {finding.kind}; score (low / mid / high) {score}; "
        f"GPU time over its floor, share of the span {finding.gpu_time_score:g}",
    ]
    lines += _lines((name, value) for name, value in own.items() if _is_shown(name, value) and name not in common)
    for number in range(1, min(members, MEMBERS_CITED) + 1):
        shown = {name: own[f"m{number}.{name}"] for name in _OF_A_MEMBER if f"m{number}.{name}" in own}
        if shown:
            texts = {name: value_text(name, value) for name, value in shown.items()} | _short_kernel(shown)
            lines.append(f"m{number}: " + ", ".join(f"{name} {text}" for name, text in texts.items()))
    return fence("\n".join(lines), limit=6_000)


def _short_kernel(member: Mapping[str, EvidenceValue]) -> dict[str, str]:
    """A member's kernel, cut short: the finding's own block tells the heaviest one."""
    return {"kernel": one_line(str(member["kernel"]), _KERNEL)} if "kernel" in member else {}


def _lines(pairs: Iterable[tuple[str, EvidenceValue]]) -> list[str]:
    """Name and text of each value that says something."""
    return [f"{name} = {value_text(name, value)}" for name, value in pairs if value not in (0, "", False)]


def value_text(name: str, value: EvidenceValue) -> str:
    """A value with its unit, in one line."""
    return one_line(format_value(name, value), _VALUE)


def _words(analyzer: str, findings: list[Finding], patterns: Mapping[str, list[str]], grounds: Grounds) -> str:
    """The patterns that hold, each once: the one that writes a finding whole, of the others what they advise."""
    known = {pattern.id: pattern for pattern in load_patterns(analyzer)}
    told: set[str] = set()
    parts = []
    for finding in findings:
        chosen = [known[name] for name in patterns.get(finding.id, ()) if name in known] or [known["default"]]
        chosen.sort(key=lambda pattern: (-pattern.priority, pattern.id))
        writer, others = (
            chosen[0],
            [pattern for pattern in chosen[1:] if pattern.priority > 0 and pattern.id != "unrated"],
        )
        parts.append(f"### {finding.id}: {writer.id}")
        if writer.id in told:
            parts[-1] += " (as above)"
        else:
            parts += _told_whole(writer, finding, grounds)
        parts += [f"- also, {pattern.id}: {_cited(pattern.action, finding)}" for pattern in others]
        told |= {writer.id}
    return "\n".join(parts)


def _told_whole(pattern: PatternFile, finding: Finding, grounds: Grounds) -> list[str]:
    slots = ("action", "reasoning", "resolution", "verify")  # what is the case, the evidence tells
    texts = {slot: str(getattr(pattern, slot)) for slot in slots}
    if not _is_worth_more(finding, grounds):
        texts["reasoning"] = _SCORE_IS_MORE.sub("", texts["reasoning"]).strip()
    lines = [f"- {slot}: {_cited(text, finding)}" for slot, text in texts.items()]
    if pattern.cannot_see:
        lines.append(f"- not visible in a trace (the report adds this itself): {_cited(pattern.cannot_see, finding)}")
    return lines


def _is_worth_more(finding: Finding, grounds: Grounds) -> bool:
    """Whether the score is more than the kernel time that the fix saves: then the words about the rest belong here."""
    span, saving = grounds.values.get("ledger.span_ms"), finding.evidence.get("saving_ms")
    if not isinstance(span, int | float) or not isinstance(saving, int | float):
        return True
    return finding.score.high / 100 * span > saving


def _cited(text: str, finding: Finding) -> str:
    """A pattern's text with its citations as those of the finding; what no id stands for is spelled out."""

    def cite(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in finding.evidence or name.startswith("score_"):
            return f"{{{{{finding.id}.{name}}}}}"
        return finding.category.replace("_", " ") + " kernels" if name == "category_kernels" else f"(the {name})"

    return _CITATION.sub(cite, text)
