"""Prose as plain text: the form in which an agent hands it to ``submit``.

JSON in a shell command has braces beside quotes, which harnesses take for an attempt to hide something, and needs
escapes that writers forget. So a slot is a line ``insight: …``, a finding a line with its id:

    summary: What the findings say together.

    gemm.F1
    insight: What is the case.
    action: What to do.

Lines that begin with neither belong to the slot above; an empty line inside a slot starts a paragraph.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import orjson

from rooftrace.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Mapping

_FINDING = re.compile(r"[#*\s\[`]*([a-z_]+\.F[0-9]+)[\]`*:\s]*")
_SLOT = re.compile(
    r"[*\s]{0,4}(insight|action|reasoning|resolution|verify|summary|name|family|confidence)[*]*\s*:\s*(.*)", re.I
)
_FENCE = re.compile(r"\s*(?:```|~~~)")
_HINT = "The form is in the brief: `summary: …`, then each finding's id on a line and its slots as `insight: …`"
_OF_FINDING = ("insight", "action", "reasoning", "resolution", "verify")


def to_json(analyzer: str, text: str) -> bytes:
    """The JSON of prose handed in as text, or as JSON already; what it holds is for the checks to judge."""
    stripped = text.strip().lstrip("\ufeff")
    if not stripped:
        raise CheckFailed("no prose was handed in", hint=f"Give it on stdin. {_HINT}")
    json = _unfenced(stripped)
    return json.encode("utf-8", "replace") if json.startswith("{") else orjson.dumps(_parsed(analyzer, stripped))


def _unfenced(text: str) -> str:
    """Text without the code fence round it."""
    lines = text.splitlines()
    if len(lines) > 1 and _FENCE.match(lines[0]) and _FENCE.match(lines[-1]):
        return "\n".join(lines[1:-1]).strip()
    return text


def _parsed(analyzer: str, text: str) -> Mapping[str, object]:
    whole: dict[str, object] = {"schema_version": "1.0", "analyzer": analyzer}
    findings: list[dict[str, object]] = []
    slot: tuple[dict[str, object], str] | None = None
    for line in _unfenced(text).splitlines():
        finding, start = _FINDING.fullmatch(line), _SLOT.match(line)
        if finding:
            findings.append({"id": finding.group(1)})
            slot = None
        elif start:
            slot = _begin(whole, findings, start.group(1).lower(), line)
            slot[0][slot[1]] = start.group(2).strip()
        elif slot:
            slot[0][slot[1]] = f"{slot[0][slot[1]]}\n{line.strip()}"
        elif line.strip():
            raise CheckFailed(f"`{line.strip()[:60]}` belongs to no slot", hint=_HINT)
    for record in (whole, *findings):
        record.update({name: _tidy(value) for name, value in record.items() if isinstance(value, str)})
    return whole if analyzer == "model" else {**whole, "findings": findings}


def _begin(
    whole: dict[str, object], findings: list[dict[str, object]], name: str, line: str
) -> tuple[dict[str, object], str]:
    """The record that a slot belongs to; a reasoning without a finding is the model's."""
    if name not in _OF_FINDING or (name == "reasoning" and not findings):
        record = whole
    elif findings:
        record = findings[-1]
    else:
        raise CheckFailed(f"`{line.strip()[:60]}` stands before the id of its finding", hint=_HINT)
    if name in record:
        raise CheckFailed(f"`{name}` comes twice: `{line.strip()[:60]}`", hint=_HINT)
    return record, name


def _tidy(text: str) -> str:
    """Lines of a paragraph joined; paragraphs kept apart."""
    paragraphs = re.split(r"\n\s*\n", text.strip())
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs if paragraph.strip())
