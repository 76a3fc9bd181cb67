"""``explain``: what a code means."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING

import orjson

from rooftrace.cli.output import put, put_json
from rooftrace.errors import unknown_name
from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    import argparse

HEALTH_NOTES, SANITY_NOTES = "health_notes.json", "sanity_notes.json"

# What is told of comparisons only: a pattern of the same name goes first.
COMPARED = ("sanity/", "compare/")


def run(options: argparse.Namespace) -> int:
    """Print what a check, a note on health or sanity, a pattern or a cause means."""
    entries = _entries()
    if options.code is None:
        listed = {code: next(iter(parts.values())) for code, parts in sorted(entries.items())}
        if options.json:
            put_json(listed)
        else:
            for code, text in listed.items():
                put(f"{code}: {text}")
        return 0
    found = _resolved(options.code, entries)
    if options.json:
        told = [{"code": code, **entries[code]} for code in found]
        put_json(told[0] if len(told) == 1 else told)
        return 0
    for at, code in enumerate(found):
        put(f"\n{code}" if at else code)
        for name, text in entries[code].items():
            put(f"  {name}: {text}")
    return 0


def _resolved(code: str, entries: dict[str, dict[str, str]]) -> list[str]:
    """Full codes of what is meant: checks in any case; what is in a group also by its name alone, all that have it.

    A name that only comparisons have is also that of patterns which begin with it: `host_code` is a cause of idle
    time of one run as well as of a difference between two.
    """
    for full in (code, code.upper()):
        if full in entries:
            return [full]
    named = [full for full in sorted(entries) if full.partition("/")[2] == code]
    of_one_run = [full for full in named if not full.startswith(COMPARED)]
    if not named:
        raise unknown_name("code", code, entries, listed_by="rooftrace explain")
    begins = [full for full in sorted(entries) if full.partition("/")[2].startswith(f"{code}_")]
    return of_one_run or [*(full for full in begins if not full.startswith(COMPARED)), *named]


def _entries() -> dict[str, dict[str, str]]:
    """Everything that has a code, by code."""
    return {**_checks(), **_notes(HEALTH_NOTES), **_sanity(), **_patterns(), **_causes()}


def _notes(name: str) -> dict[str, dict[str, str]]:
    content: dict[str, dict[str, str]] = orjson.loads((KNOWLEDGE / name).read_bytes())
    return content


def _sanity() -> dict[str, dict[str, str]]:
    """Notes on whether two traces can be compared."""
    return {f"sanity/{code}": parts for code, parts in _notes(SANITY_NOTES).items()}


def _causes() -> dict[str, dict[str, str]]:
    """Causes of the rows of a comparison; a quantity of the finding as `<base_kernel>`."""
    from rooftrace.report.compare_words import causes_file

    entries = {}
    for cause, words in sorted(causes_file().causes.items()):
        parts = {"what": words.insight, "do": words.action, "why": words.reasoning, "more": words.resolution}
        if words.cannot_see:
            parts["not in a trace"] = words.cannot_see
        entries[f"compare/{cause}"] = _spelled(parts)
    return entries


def _spelled(parts: dict[str, str]) -> dict[str, str]:
    """Texts with a quantity of the finding as `<time_ms>`."""
    from rooftrace.report.values import CITATION

    return {name: CITATION.sub(lambda match: f"<{match.group(1)}>", text) for name, text in parts.items()}


def _checks() -> dict[str, dict[str, str]]:
    from rooftrace.validators.checks import load_checks

    return {
        code: {
            "rule": inspect.cleandoc(check.__doc__ or ""),
            "file": check.file or "every file of the run",
            "after": ", ".join(check.requires) or "nothing",
        }
        for code, check in load_checks().items()
    }


def _patterns() -> dict[str, dict[str, str]]:
    """What each pattern says; a quantity of the finding as `<time_ms>`."""
    from rooftrace.patterns import load_patterns

    entries = {}
    for folder in sorted((KNOWLEDGE / "patterns").iterdir()):
        for pattern in load_patterns(folder.name) if folder.is_dir() else ():
            parts = {"what": pattern.insight, "do": pattern.action, "why": pattern.reasoning, "verify": pattern.verify}
            if pattern.cannot_see:
                parts["not in a trace"] = pattern.cannot_see
            entries[f"{folder.name}/{pattern.id}"] = _spelled(parts)
    return entries
