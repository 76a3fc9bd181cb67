"""``python -m evals.scoring.expected``: real traces against what an expert reads off their timelines.

An expectation names a problem, the reason an expert has for it, the range in which its saving can lie, and how far up
in the list it belongs. ``not_first``: analyzers whose findings must not lead the list.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evals.scoring.found import Found, ranked

FOLDER = Path(__file__).resolve().parents[1] / "expected"
TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))


@dataclass(frozen=True, kw_only=True)
class Expected:
    """One problem that a report on a trace has to name."""

    what: str
    reason: str
    analyzers: tuple[str, ...]
    causes: tuple[str, ...]
    places: tuple[str, ...]
    low: float
    high: float
    within_first: int


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Whether it was found, for the right reason, at the right place, in a possible size, far enough up."""

    what: str
    found: Found | None
    is_cause: bool
    is_place: bool
    is_size: bool
    is_order: bool

    @property
    def problems(self) -> list[str]:
        """What is not as expected."""
        if self.found is None:
            return ["not found"]
        rows = (
            (self.is_cause, f"cause {self.found.cause}"),
            (self.is_place, "place"),
            (self.is_size, f"size {self.found.high} %"),
            (self.is_order, "too far down"),
        )
        return [text for holds, text in rows if not holds]


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What is expected of one trace."""

    name: str
    trace: str
    facts: tuple[str, ...]
    expected: tuple[Expected, ...]
    not_first: tuple[str, ...]


def sheets() -> tuple[Sheet, ...]:
    """Every sheet, by name."""
    return tuple(_sheet(path) for path in sorted(FOLDER.glob("*.json")))


def _sheet(path: Path) -> Sheet:
    document = json.loads(path.read_text(encoding="utf-8"))
    return Sheet(
        name=path.stem,
        trace=document["trace"],
        facts=tuple(document["facts"]),
        expected=tuple(_expected(row) for row in document["expected"]),
        not_first=tuple(document["not_first"]),
    )


def _expected(row: dict[str, Any]) -> Expected:
    low, high = row["saving_pct"]
    return Expected(
        what=row["what"],
        reason=row["reason"],
        analyzers=tuple(row["analyzers"]),
        causes=tuple(row["causes"]),
        places=tuple(row["places"]),
        low=float(low),
        high=float(high),
        within_first=row["within_first"],
    )


def verdicts(sheet: Sheet, findings: list[Found]) -> list[Verdict]:
    """Each expectation against a report."""
    listed = ranked(findings)
    return [_verdict(one, listed) for one in sheet.expected]


def _verdict(expected: Expected, listed: list[Found]) -> Verdict:
    mine = [one for one in listed if one.analyzer in expected.analyzers]
    placed = [one for one in mine if any(place in one.text for place in expected.places)]
    named = [one for one in mine if one.cause in expected.causes]
    best = next(iter([one for one in placed if one in named] or named or placed), None)
    return Verdict(
        what=expected.what,
        found=best,
        is_cause=best in named,
        is_place=best in placed,
        is_size=best is not None and expected.low <= best.high <= expected.high,
        is_order=best is not None and listed.index(best) < expected.within_first,
    )


def leads_wrongly(sheet: Sheet, findings: list[Found]) -> str:
    """The first finding, if it must not lead."""
    listed = ranked(findings)
    return listed[0].subject if listed and listed[0].analyzer in sheet.not_first else ""


def lines(sheet: Sheet, findings: list[Found]) -> Iterator[str]:
    """One line an expectation."""
    for verdict in verdicts(sheet, findings):
        said = f"{verdict.found.identity} {verdict.found.high} %" if verdict.found else "-"
        yield f"{sheet.name:32} {verdict.what[:58]:58} {said:24} {', '.join(verdict.problems) or 'as expected'}"
    wrong = leads_wrongly(sheet, findings)
    if wrong:
        yield f"{sheet.name:32} leads wrongly: {wrong}"


def main() -> int:
    """Scores the traces that are there; exit 1 where one is not as expected."""
    from evals.scoring.analyse import analyse  # the sheets can be read without the product

    failed = False
    for sheet in sheets():
        if not (TRACES / sheet.trace).is_file():
            print(f"{sheet.name:32} not there: {sheet.trace}")
            continue
        findings = analyse(TRACES / sheet.trace)
        for line in lines(sheet, findings):
            print(line)
        problems = [problem for verdict in verdicts(sheet, findings) for problem in verdict.problems]
        failed = failed or bool(problems) or bool(leads_wrongly(sheet, findings))
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
