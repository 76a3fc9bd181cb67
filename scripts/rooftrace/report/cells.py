"""Quantities and names as cells of a table, and whole tables. A quantity that is not known is a dash, never zero."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinja2 import Undefined

from rooftrace import units
from rooftrace.contracts.base import RANKING_LIMIT_PCT
from rooftrace.report.markdown import UNKNOWN, Safe, code, md, prose, tail, token
from rooftrace.report.values import cite
from rooftrace.report.view import dtypes_text, shapes_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from pydantic import JsonValue

    from rooftrace.contracts.report import Finding

Cell = str | int | None


def ns(value: float | None) -> Safe:
    """A duration."""
    return UNKNOWN if value is None else Safe(units.format_ns(value))


def pct(value: float | None) -> Safe:
    """A percentage."""
    return UNKNOWN if value is None else Safe(units.format_pct(value))


def share(part: float, whole: float) -> Safe:
    """`part` as a percentage of `whole`; unknown where there is no whole."""
    if not whole:
        return UNKNOWN
    text = units.format_pct(units.pct(part, whole))
    # Beside other parts a part that is not the whole must not read as the whole.
    return Safe("over 99.9 %" if part < whole and text == "100.0 %" else text)


def count(value: float | None) -> Safe:
    """A number of things."""
    return UNKNOWN if value is None else Safe(units.format_count(value))


def flops(value: float | None) -> Safe:
    """FLOPs."""
    return UNKNOWN if value is None else Safe(units.format_flops(value))


def flops_per_s(value: float | None) -> Safe:
    """A FLOP rate."""
    return UNKNOWN if value is None else Safe(units.format_flops_per_s(value))


def size(value: float | None) -> Safe:
    """Bytes."""
    return UNKNOWN if value is None else Safe(units.format_bytes(value))


def marker(value: float) -> Safe:
    """A number in a marker: two decimals, no unit."""
    return Safe(f"{value:.2f}")


def shapes(recorded: list[JsonValue] | None) -> Safe:
    """Input shapes of an op."""
    return code(shapes_text(recorded), 60)


def dtypes(recorded: list[JsonValue] | None) -> Safe:
    """Input dtypes of an op."""
    return code(dtypes_text(recorded), 40)


def frame(text: str, limit: int = 60) -> Safe:
    """A Python frame, a long path cut at its beginning: file, line and function stay."""
    return code(tail(text, limit), limit)


def ident(text: str) -> Safe:
    """An id of the report as inline code."""
    return Safe(f"`{token(text)}`")


def anchor(finding_id: str) -> Safe:
    """The target of links to a finding's details."""
    return Safe(re.sub(r"[^a-z0-9]+", "-", finding_id.lower()).strip("-"))


def spaced(slug: str) -> Safe:
    """A slug as words."""
    return md(slug.replace("_", " "))


def finding_row(finding: Finding) -> list[Cell]:
    """Rank (of ranked ones), id, title, time, efficiency, score: a finding as a row."""
    efficiency = finding.evidence.get("efficiency_pct")
    return [
        finding.rank if is_ranked(finding) else None,
        ident(finding.id),
        prose(finding.title),
        _first_cited(finding, *_TIMES),
        cite("efficiency_pct", efficiency) if efficiency is not None else None,
        Safe(f"{'≤ ' if finding.kind == 'upper_bound' else ''}{pct(finding.score.mid)}"),
    ]


def is_ranked(finding: Finding) -> bool:
    """Whether a finding is worth a rank; places of the others in the list only order them."""
    return finding.score.mid >= RANKING_LIMIT_PCT


def finding_marker(finding: Finding) -> Safe:
    """The opening marker of a finding: a comment that programs read."""
    score = finding.score
    words = {"id": finding.id, "tier": finding.tier, "category": finding.category, "rank": str(finding.rank)}
    numbers = {"low": score.low, "mid": score.mid, "high": score.high, "gpu_time": finding.gpu_time_score}
    fields = [f"{name}={token(text)}" for name, text in words.items()]
    fields += [f"{name}={marker(value)}" for name, value in numbers.items()]
    return Safe(f"<!-- finding {' '.join(fields)} -->")


def marked_row(finding: Finding) -> list[Cell]:
    """A ranked finding that is not written out: a row that carries its markers."""
    *cells, last = finding_row(finding)
    return [*cells, Safe(f"{as_markdown(last)} {finding_marker(finding)}<!-- /finding -->")]


def finding_gap(finding: Finding) -> Safe:
    """What a finding could give at most: the gap to its floor, of a fusion what it saves, else all of its time.

    Empty for a system finding without any: what a wait hides lies elsewhere, and the replay tells it.
    """
    names = [name for name in ("gap_ms", "saving_ms", *_TIMES) if name in finding.evidence]
    if finding.tier == "system" and not (names and finding.evidence[names[0]]):
        return Safe("")
    return _first_cited(finding, *names)


# The time a finding is about: of its kernels, or idle, or exposed.
_TIMES = ("time_ms", "idle_ms", "exposed_comm_ms", "exposed_copy_ms")


def _first_cited(finding: Finding, *names: str) -> Safe:
    for name in names:
        if name in finding.evidence:
            return cite(name, finding.evidence[name])
    return UNKNOWN


def cited(finding: Finding, name: str) -> Safe:
    """A quantity of a finding's evidence; unknown where it has none of this name."""
    return _first_cited(finding, name)


def table(
    rows: Iterable[Sequence[Cell]], name: str, columns: Sequence[str], labels: Mapping[str, str] | None = None
) -> Safe:
    """A table between its markers. A column whose head ends in `>` is set right; `labels` words the first cells."""
    heads = [column.removesuffix(">") for column in columns]
    rules = ["---:" if column.endswith(">") else "---" for column in columns]
    words = labels or {}
    lines = [f"<!-- table id={token(name)} -->", f"| {' | '.join(heads)} |", f"|{'|'.join(rules)}|"]
    for row in rows:
        first = row[0]
        label = words.get(first, first) if isinstance(first, str) else first
        lines.append(f"| {' | '.join(str(as_markdown(cell)) for cell in [label, *row[1:]])} |")
    return Safe("\n".join([*lines, "<!-- /table -->"]))


def as_markdown(value: object) -> object:
    """What a template may write: numbers, strings escaped unless they are so already, nothing as a dash."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str) and not isinstance(value, Safe):
        return md(value)
    if isinstance(value, str | int | float | Undefined):
        return value
    msg = f"a template writes a {type(value).__name__}, whose strings would not be escaped"
    raise TypeError(msg)
