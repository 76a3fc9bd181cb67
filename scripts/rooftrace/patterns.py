"""The knowledge base of inefficiencies: loads ``knowledge/patterns`` and tells which patterns hold on some evidence."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from pydantic import ValidationError

from rooftrace.contracts.pattern import Condition, PatternFile
from rooftrace.errors import InternalError
from rooftrace.pack import KNOWLEDGE

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from rooftrace.contracts.base import EvidenceValue


@cache
def load_patterns(analyzer: str, folder: Path = KNOWLEDGE / "patterns") -> tuple[PatternFile, ...]:
    """The patterns of an analyzer, highest priority first, then by id."""
    patterns = [_read(path) for path in sorted((folder / analyzer).glob("*.json"))]
    return tuple(sorted(patterns, key=lambda pattern: (-pattern.priority, pattern.id)))


def _read(path: Path) -> PatternFile:
    try:
        return PatternFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        name = f"{path.parent.name}/{path.name}"
        raise InternalError(f"pattern `{name}` does not match its schema: {error}") from None


def matching_patterns(analyzer: str, evidence: Mapping[str, EvidenceValue]) -> list[str]:
    """Ids of the patterns whose predicate holds, best first."""
    return [pattern.id for pattern in load_patterns(analyzer) if holds(pattern, evidence)]


def holds(pattern: PatternFile, evidence: Mapping[str, EvidenceValue]) -> bool:
    """Whether all of `all` and, if there are any, one of `any` hold."""
    if not all(_is_met(condition, evidence) for condition in pattern.when.all):
        return False
    return not pattern.when.any or any(_is_met(condition, evidence) for condition in pattern.when.any)


def _is_met(condition: Condition, evidence: Mapping[str, EvidenceValue]) -> bool:
    actual, wanted = evidence.get(condition.field), condition.value
    if actual is None:
        return False
    if condition.op == "eq":
        return _is_same(actual, wanted)
    if condition.op == "ne":
        return not _is_same(actual, wanted)
    if condition.op == "in":
        return isinstance(wanted, list) and any(_is_same(actual, value) for value in wanted)
    if condition.op in ("contains", "lacks"):
        texts = isinstance(actual, str) and isinstance(wanted, str)
        return texts and (str(wanted).lower() in str(actual).lower()) == (condition.op == "contains")
    return _is_ordered(condition.op, actual, wanted)


def _is_same(actual: EvidenceValue, wanted: object) -> bool:
    """Equality of values; a truth value is no number, as in JSON."""
    return isinstance(actual, bool) == isinstance(wanted, bool) and actual == wanted


def _is_ordered(op: str, actual: EvidenceValue, wanted: object) -> bool:
    if isinstance(actual, str | bool) or isinstance(wanted, bool) or not isinstance(wanted, int | float):
        return False
    return {"lt": actual < wanted, "le": actual <= wanted, "gt": actual > wanted, "ge": actual >= wanted}[op]
