"""The one task of a comparison: its brief, composed by script, and the state by which agents go through it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from rooftrace.contracts import store
from rooftrace.contracts.fencing import fence, one_line
from rooftrace.contracts.kinds import COMPARE
from rooftrace.report.compare_ids import ROWS_CITED, pair_summary, pair_values
from rooftrace.report.compare_parts import asked_of_pair, by_part, rolled_up
from rooftrace.report.compare_words import words_of
from rooftrace.report.environment import template_environment
from rooftrace.workflow import state as states
from rooftrace.workflow.agents import keep_prose
from rooftrace.workflow.briefs import MAX_BYTES, TYPICAL_BYTES, brief_part, role_of, slots_text, value_text
from rooftrace.workflow.compare_files import list_files
from rooftrace.workflow.state import State, Task

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.compare import CompareEvidence, CompareFinding
    from rooftrace.contracts.redaction import Redactor
    from rooftrace.report.compare_parts import Summed

    Values = Mapping[str, EvidenceValue]

BRIEF = f"{states.TASKS}/{COMPARE}.md"
_CITATION = re.compile(r"\{\{\s*(\w+)\s*\}\}")
# Rows of a finding that are shown, less where the brief would grow too large.
_ROWS = (ROWS_CITED, 3, 1, 0)
_PARTS_SHOWN, _OTHERS_SHOWN = 12, 6
_KERNEL = 70
_SHAPES = 60
# Of a finding: shown in its first lines, or of no use to a writer.
_LEFT_OUT = frozenset(
    {
        *("delta_ms", "rank", "category", "cause", "direction", "subject", "rows_count", "score_low_pct"),
        *("score_mid_pct", "score_high_pct", "gpu_time_score_pct"),
    }
)
_CUT = {"kernel": _KERNEL, "shapes": _SHAPES}


def write_task(
    run: Path,
    result: CompareEvidence,
    told: Mapping[str, str],
    earlier: Mapping[str, tuple[Task, bytes]],
    redactor: Redactor,
) -> None:
    """Write the brief, redacted, and the state.

    Prose that was accepted before and is sound about this comparison is kept. `told` are the traces, as `base` and
    `target`, and the options as they were given, for whoever resumes. Where no finding is worth words there is no
    task: the page says all of it.
    """
    (run / states.TASKS).mkdir(exist_ok=True)
    is_asked = bool(asked_of_pair(result))
    if is_asked:
        store.write_bytes(run / BRIEF, redactor.text(compose_pair_brief(result)).encode())
        list_files(run, [BRIEF])
    task = Task(analyzer=COMPARE, brief=BRIEF, prose=store.prose_path(COMPARE))
    state = State(
        tool_version=result.tool_version,
        source_sha256=result.source_sha256,
        trace_path=told["target"],
        options={name: text for name, text in sorted(told.items()) if name != "target"},
        tasks=(task,) if is_asked else (),
    )
    states.write(run, keep_prose(run, state, earlier))


def compose_pair_brief(result: CompareEvidence) -> str:
    """``tasks/compare.md``: everything the writer needs, in one file; its words are the pack's, its data is fenced."""
    values, asked = pair_values(result), asked_of_pair(result)
    text = ""
    for rows in _ROWS:
        blocks = [_whole(result), *_tables(result, values)]
        blocks += [_finding(finding, values, rows) for finding in asked]
        blocks += _others(result, asked, values)
        text = _rendered(result, asked, "\n\n".join(blocks))
        if len(text.encode()) <= (TYPICAL_BYTES if rows > 1 else MAX_BYTES):
            break
    return text


def _rendered(result: CompareEvidence, asked: list[CompareFinding], evidence: str) -> str:
    page = template_environment(lambda value: value, autoescape=False)
    text = page.get_template("compare/brief.md.j2").render(
        analyzer=COMPARE,
        ids=[finding.id for finding in asked],
        verdict=result.sanity.verdict,
        role=role_of(COMPARE),
        rules=brief_part("rules.md"),
        evidence=evidence,
        words=_words(asked),
        slots=slots_text(COMPARE),
        example=brief_part("example_compare.txt"),
    )
    return text.strip() + "\n"


def _whole(result: CompareEvidence) -> str:
    notes = [f"{note.severity} {note.code}: {note.text}" for note in result.sanity.notes]
    summary = pair_summary(result)
    return fence("\n".join([f"{COMPARE}: the whole", *_lines(summary), "sanity notes", *notes]), limit=4_000)


def _tables(result: CompareEvidence, values: Values) -> list[str]:
    """T1 and T2, a line a row."""
    tables = (("T1", by_part(result)[:_PARTS_SHOWN]), ("T2", rolled_up(result)))
    return [
        fence("\n".join([f"{COMPARE}.{name}", *(_summed(f"{COMPARE}.{name}", entry, values) for entry in entries)]))
        for name, entries in tables
        if entries
    ]


def _summed(prefix: str, entry: Summed, values: Values) -> str:
    own = _own(f"{prefix}.{entry.key}", values)
    named = {name: own.pop(name) for name in ("where", "cause", "rows_count") if name in own}
    head = ", ".join(one_line(str(named[name]), 90) for name in ("where", "cause") if name in named)
    return f"{entry.key} ({head}): {_joined(own)}"


def _finding(finding: CompareFinding, values: Values, rows: int) -> str:
    own = _own(finding.id, values)
    score = " / ".join(f"{value:g}" for value in (finding.score.low, finding.score.mid, finding.score.high))
    slower = "target" if finding.direction == "regression" else "base"
    rows_told = f"{len(finding.members)} row{'s' if len(finding.members) > 1 else ''}"
    lines = [
        f"{finding.id}: {finding.direction} ({slower} is the slower side), {own.get('cause', '')}, "
        f"{one_line(finding.subject, 100)}",
        f"{rows_told}; reaching the other side saves of the {slower} (low / mid / high) {score}",
    ]
    lines += _lines({name: value for name, value in own.items() if name not in _LEFT_OUT})
    for number in range(1, min(rows, len(finding.members)) + 1):
        row = _without_repeats(_own(f"{finding.id}.m{number}", values), own)
        if row:
            lines.append(f"m{number}: {_joined(row)}")
    return fence("\n".join(lines), limit=6_000)


def _without_repeats(row: dict[str, EvidenceValue], told: Values) -> dict[str, EvidenceValue]:
    """A row without what the finding tells already, what is on the target as on the base, and what is zero."""
    kept = {name: value for name, value in row.items() if value and told.get(name) != value and "dtypes" not in name}
    same = {
        name
        for name in kept
        if name.startswith("target_") and kept.get(f"base_{name.removeprefix('target_')}") == kept[name]
    }
    return {name: value for name, value in kept.items() if name not in same}


def _others(result: CompareEvidence, asked: list[CompareFinding], values: Values) -> list[str]:
    """Findings that keep the pack's words, a line each: what a summary may name."""
    known = {finding.id for finding in asked}
    others = [finding for finding in result.findings if finding.id not in known]
    others = sorted(others, key=lambda finding: (-abs(finding.delta_ns), finding.id))[:_OTHERS_SHOWN]
    lines = [
        f"{finding.id}: {finding.direction}, {values[f'{finding.id}.cause']}, {one_line(finding.subject, 90)}; "
        + _joined({name: values[f"{finding.id}.{name}"] for name in ("base_ms", "target_ms", "score_high_pct")})
        for finding in others
    ]
    return [fence("\n".join(["not asked for: other findings, most difference first", *lines]))] if lines else []


def _own(prefix: str, values: Values) -> dict[str, EvidenceValue]:
    """What stands right below a prefix, by the last part of its id."""
    start = f"{prefix}."
    found = {name.removeprefix(start): value for name, value in values.items() if name.startswith(start)}
    return {name: value for name, value in found.items() if "." not in name}


def _lines(pairs: Values) -> list[str]:
    return [f"{name} = {value_text(name, value)}" for name, value in pairs.items() if value not in ("", False)]


def _joined(pairs: Values) -> str:
    return ", ".join(f"{name} {_short(name, value)}" for name, value in pairs.items())


def _short(name: str, value: EvidenceValue) -> str:
    limit = _CUT.get(name.rpartition("_")[2])
    return one_line(str(value), limit) if limit and isinstance(value, str) else value_text(name, value)


def _words(asked: Iterable[CompareFinding]) -> str:
    """What is known of each cause, once."""
    parts: list[str] = []
    told: dict[str, str] = {}
    for finding in asked:
        parts.append(f"### {finding.id}: {finding.cause}")
        if finding.cause in told:
            parts[-1] += f" (as for {told[finding.cause]})"
            continue
        told[finding.cause] = finding.id
        words = words_of(finding)
        slots = ("insight", "action", "reasoning", "resolution")
        parts += [f"- {slot}: {_cited(getattr(words, slot), finding)}" for slot in slots]
        if words.cannot_see:
            parts.append(f"- not visible in a trace: {words.cannot_see}")
    return "\n".join(parts)


def _cited(text: str, finding: CompareFinding) -> str:
    """A cause's text with its citations as those of the finding."""
    return _CITATION.sub(lambda match: f"{{{{{finding.id}.{match.group(1)}}}}}", text)
