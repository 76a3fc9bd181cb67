"""Library and category rules: read from the knowledge folder, matched without a regex where that suffices.

One JSON file per library (``libraries/``) and per category (``kernel_categories/``), found by folder and
tried in order of ``priority``. `contracts.kernel_rules` describes and checks the files; here they are only
read, because importing pydantic takes longer than describing every name of a trace.

A pattern is a regular expression in lower case, matched anywhere in the lower-case name. Most are plain text
or ``^`` and plain text and never reach the regex engine; the others are compiled once a name holds their
longest plain part.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from rooftrace.errors import InputError
from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SPECIAL = frozenset("\\.[](){}*+?|^$")
_PLAIN_RUN = re.compile(r"[a-z0-9_:<, -]+")
_GROUP_OR_CLASS = re.compile(r"\[[^\]]*\]|\([^()]*\)")


class LibraryRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of ``libraries/``; `contracts.kernel_rules.LibraryFile` says what the fields mean."""

    schema_version: str
    slug: str
    name: str
    priority: int
    patterns: list[str]
    source: str
    exclude: list[str] = []
    fused_patterns: list[str] = []
    category: str | None = None


class CategoryRecord(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A file of ``kernel_categories/``; `contracts.kernel_rules.CategoryFile` says what the fields mean."""

    schema_version: str
    slug: str
    priority: int
    description: str
    patterns: list[str] = []
    exclude: list[str] = []
    fused_patterns: list[str] = []
    copy_patterns: list[str] = []
    fill_patterns: list[str] = []
    fused_ops: list[str] = []


# Names are looked through with this before them, so that a pattern `^abc` is the plain text `START` + "abc".
START = "\n"


class Probe(NamedTuple):
    """One pattern, as it is tried."""

    needle: str
    pattern: str | None

    def passes(self, text: str) -> bool:
        """True if the pattern occurs in `text`, a lower-case name with `START` before it."""
        return self.needle in text and (self.pattern is None or _compiled(self.pattern).search(text[1:]) is not None)


class Rule(Struct, frozen=True, kw_only=True):
    """One library or category: its record and what is tried once a pattern of it has matched."""

    slug: str
    name: str
    category: str | None
    exclude: tuple[Probe, ...]
    fused: tuple[Probe, ...]
    copies: tuple[Probe, ...] = ()
    fills: tuple[Probe, ...] = ()

    def is_fused(self, text: str) -> bool:
        """True if a name of this rule is that of a fused kernel."""
        return any(probe.passes(text) for probe in self.fused)


# Patterns of all rules in the order in which they are tried, each with its rule. One flat loop a name: the search for
# plain texts is the bulk of the work here.
RuleTable = tuple[tuple[str, "str | None", Rule], ...]


class Rules(Struct, frozen=True, kw_only=True):
    """All rules of a knowledge folder."""

    libraries: RuleTable
    categories: RuleTable
    category_of_op: dict[str, str]  # ops as Inductor spells them


def load_rules(folder: Path = KNOWLEDGE) -> Rules:
    """Rules in `folder`'s ``libraries/*.json`` and ``kernel_categories/*.json``."""
    libraries = _read(folder / "libraries", LibraryRecord)
    categories = _read(folder / "kernel_categories", CategoryRecord)
    return Rules(
        libraries=_table(
            (
                record.patterns,
                Rule(
                    slug=record.slug,
                    name=record.name,
                    category=record.category,
                    exclude=probes(record.exclude),
                    fused=probes(record.fused_patterns),
                ),
            )
            for record in libraries
        ),
        categories=_table(
            (
                record.patterns,
                Rule(
                    slug=record.slug,
                    name=record.slug,
                    category=record.slug,
                    exclude=probes(record.exclude),
                    fused=probes(record.fused_patterns),
                    copies=probes(record.copy_patterns),
                    fills=probes(record.fill_patterns),
                ),
            )
            for record in categories
        ),
        category_of_op={op: record.slug for record in categories for op in record.fused_ops},
    )


def first_match(table: RuleTable, text: str) -> Rule | None:
    """The first rule with a pattern in `text` (`START` and a lower-case name) that does not exclude it."""
    for needle, pattern, rule in table:
        if (
            needle in text
            and (pattern is None or _compiled(pattern).search(text[1:]))
            and not any(probe.passes(text) for probe in rule.exclude)
        ):
            return rule
    return None


def probes(patterns: Iterable[str]) -> tuple[Probe, ...]:
    """`patterns` with the plain text that each needs; a plain pattern needs nothing else."""
    found = []
    for pattern in patterns:
        plain = pattern.removeprefix("^")
        if _SPECIAL.isdisjoint(plain):
            found.append(Probe(START + plain if plain is not pattern else plain, None))
        else:
            found.append(Probe(plain_part(pattern), pattern))
    return tuple(found)


def plain_part(pattern: str) -> str:
    """The longest text that every match of `pattern` holds; empty if it has alternatives outside a group."""
    # A backslash in their place: the character after it is no part of a plain run.
    outside = _GROUP_OR_CLASS.sub("\\\\", pattern)
    if "|" in outside:
        return ""
    best = ""
    for run in _PLAIN_RUN.finditer(outside):
        text = run.group()
        if run.start() and outside[run.start() - 1] == "\\":
            text = text[1:]
        if outside[run.end() : run.end() + 1] in {"?", "*", "{", "+"}:
            text = text[:-1]
        best = max(best, text, key=len)
    return best


def _table(rules: Iterable[tuple[list[str], Rule]]) -> RuleTable:
    return tuple((probe.needle, probe.pattern, rule) for patterns, rule in rules for probe in probes(patterns))


@lru_cache(maxsize=4_096)
def _compiled(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(
            f"`{pattern}` in the kernel-name rules is not a regular expression", details=(str(error),)
        ) from error


_RecordT = TypeVar("_RecordT", LibraryRecord, CategoryRecord)


def _read(folder: Path, record_type: type[_RecordT]) -> list[_RecordT]:
    """Records of all files of `folder` in the order in which they are tried."""
    decoder = msgspec.json.Decoder(record_type)
    records: list[_RecordT] = []
    for path in sorted(folder.glob("*.json")):
        try:
            record = decoder.decode(path.read_bytes())
        except msgspec.MsgspecError as error:
            raise InputError(
                f"`{path.parent.name}/{path.name}` is not a file of kernel-name rules",
                details=(str(error),),
                hint="`contracts.kernel_rules` describes the fields and what a pattern may hold",
            ) from error
        records.append(record)
    return sorted(records, key=lambda record: (record.priority, record.slug))
