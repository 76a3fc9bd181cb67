"""Many attempts as one judgement a check: stable or flaky, pass or fail; as Markdown and as JSON."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from evals.runner.attempt import Attempt
from evals.runner.checks import CHECKS, is_catastrophe

STABLE_PASS, FLAKY_PASS, FLAKY_FAIL, STABLE_FAIL = "stable pass", "flaky pass", "flaky fail", "stable fail"
VERDICTS = (STABLE_PASS, FLAKY_PASS, FLAKY_FAIL, STABLE_FAIL)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """An attempt with what the checks and the judges said; None where one does not apply."""

    task: str
    has_skill: bool
    number: int
    seconds: float | None
    tokens: int | None
    cost: float | None
    exit_code: int | None
    is_catastrophe: bool
    checks: dict[str, bool | None]


def judged(attempt: Attempt, rubrics: dict[str, bool | None] | None = None) -> Outcome:
    """Runs every check; ``rubrics`` are verdicts of a judge, by name."""
    checks = {name: check(attempt) for name, check in CHECKS.items()}
    return Outcome(
        task=attempt.task.name,
        has_skill=attempt.pack is not None,
        number=attempt.number,
        seconds=None if attempt.seconds is None else round(attempt.seconds, 1),
        tokens=attempt.tokens,
        cost=attempt.cost,
        exit_code=attempt.exit_code,
        is_catastrophe=is_catastrophe(attempt),
        checks={**checks, **{f"judge: {name}": value for name, value in (rubrics or {}).items()}},
    )


def stability(values: Sequence[bool]) -> str:
    """One word for repeated outcomes of a check; half of them passed is a flaky pass."""
    passed = sum(values)
    if passed == len(values):
        return STABLE_PASS
    if passed == 0:
        return STABLE_FAIL
    return FLAKY_PASS if 2 * passed >= len(values) else FLAKY_FAIL


def summary(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    """Everything by task and by with or without the skill, and over all tasks."""
    groups: defaultdict[tuple[str, bool], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        groups[outcome.task, outcome.has_skill].append(outcome)
    found = [_group(key, groups[key]) for key in sorted(groups, key=lambda key: (key[0], not key[1]))]
    sides = [side for side in (True, False) if any(group["with_skill"] is side for group in found)]
    overall = [_overall([group for group in found if group["with_skill"] is side]) for side in sides]
    return {"overall": overall, "groups": found}


def _overall(mine: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many checks of how many tasks are stable or flaky, on one side."""
    rows = [row for group in mine for row in group["checks"].values()]
    verdicts = {word: sum(row["verdict"] == word for row in rows) for word in VERDICTS}
    return {
        "with_skill": mine[0]["with_skill"],
        "tasks": len(mine),
        "attempts": sum(group["attempts"] for group in mine),
        "catastrophes": sum(group["catastrophes"] for group in mine),
        "passed": sum(row["passed"] for row in rows),
        "of": sum(row["of"] for row in rows),
        "verdicts": verdicts,
    }


def _group(key: tuple[str, bool], outcomes: Sequence[Outcome]) -> dict[str, Any]:
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.checks))
    checks = {}
    for name in names:
        values = [value for outcome in outcomes if (value := outcome.checks.get(name)) is not None]
        if values:
            checks[name] = {"passed": sum(values), "of": len(values), "verdict": stability(values)}
    tokens = [outcome.tokens for outcome in outcomes if outcome.tokens is not None]
    costs = [outcome.cost for outcome in outcomes if outcome.cost is not None]
    times = [outcome.seconds for outcome in outcomes if outcome.seconds is not None]
    return {
        "task": key[0],
        "with_skill": key[1],
        "attempts": len(outcomes),
        "catastrophes": sum(outcome.is_catastrophe for outcome in outcomes),
        "median_seconds": median(times) if times else None,
        "median_tokens": median(tokens) if tokens else None,
        "median_cost_usd": median(costs) if costs else None,
        "checks": checks,
    }


def markdown(result: dict[str, Any], command: str) -> str:
    """The summary for people: one table a task, with and without the skill side by side."""
    lines = ["# Agents in the loop", "", f"Harness: `{command}`", "", *_overall_lines(result["overall"])]
    for name in dict.fromkeys(group["task"] for group in result["groups"]):
        groups = [group for group in result["groups"] if group["task"] == name]
        titles = ["with the skill" if group["with_skill"] else "without" for group in groups]
        lines += [f"## {name}", "", f"| Check | {' | '.join(titles)} |", f"|---|{'---|' * len(groups)}"]
        for check in dict.fromkeys(check for group in groups for check in group["checks"]):
            lines.append(f"| {check} | {' | '.join(_cell(group, check) for group in groups)} |")
        for label, key in (
            ("attempts", "attempts"),
            ("catastrophic runs", "catastrophes"),
            ("median time, s", "median_seconds"),
            ("median tokens", "median_tokens"),
            ("median cost, USD", "median_cost_usd"),
        ):
            cells = ("not reported" if group[key] is None else str(group[key]) for group in groups)
            lines.append(f"| *{label}* | {' | '.join(cells)} |")
        lines.append("")
    return "\n".join(lines)


def _overall_lines(sides: Sequence[dict[str, Any]]) -> list[str]:
    """All tasks together, one line a side."""
    titles = ("", "tasks", "attempts", "catastrophic", "checks passed", *VERDICTS)
    lines = [f"| {' | '.join(titles)} |", f"|{'---|' * len(titles)}"]
    for side in sides:
        cells = [
            "with the skill" if side["with_skill"] else "without",
            *(str(side[name]) for name in ("tasks", "attempts", "catastrophes")),
            f"{side['passed']}/{side['of']}",
            *(str(side["verdicts"][word]) for word in VERDICTS),
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return [*lines, ""]


def _cell(group: dict[str, Any], check: str) -> str:
    found = group["checks"].get(check)
    return "-" if found is None else f"{found['verdict']} ({found['passed']}/{found['of']})"
