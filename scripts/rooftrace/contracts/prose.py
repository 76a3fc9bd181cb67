"""``prose/<analyzer>.json``: the words of one analyzer's findings, as a writer hands them in. Words only, no numbers.

The descriptions are the writer's instructions: the generated schema carries them into every task.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from rooftrace.contracts.base import Analyzer, Record
from rooftrace.contracts.store import MODEL, json_path, prose_path
from rooftrace.errors import CheckFailed

if TYPE_CHECKING:
    from collections.abc import Iterator

# The five slots of a finding, in the order of the report.
SLOTS = ("insight", "action", "reasoning", "resolution", "verify")
SUMMARY = "summary"
# Of a model's name; of its family commas as well. Said in words where one is refused.
_NAME_SIGNS = "A-Za-z0-9 ._+/()-"
_SAID_SIGNS = "letters, digits, spaces and . _ + / ( ) -"
# A whole file is a few kilobytes; more is not read.
MAX_BYTES = 65_536

_CITE = "Cite every quantity by its id in double braces (`{{gemm.F1.time_ms}}`): the report puts value and unit there."
_SHA = "SHA-256 of the evidence file the words are about. `submit` puts it in; leave it out."
_VERSION = "Version of this file's schema."


class FindingProse(Record):
    """The words of one finding. Plain sentences: no Markdown but `code`, no links, no numbers of your own."""

    id: str = Field(
        pattern=r"^[a-z_]+\.F[1-9][0-9]*$",
        description="Id of the finding in the evidence, such as `gemm.F1`. Each finding once.",
    )
    insight: str = Field(
        min_length=20,
        max_length=400,
        description="What is the case, in one or two sentences: what takes the time, where, and what bounds it. "
        f"{_CITE} Say nothing the evidence does not hold.",
    )
    action: str = Field(
        min_length=20,
        max_length=400,
        description="What to do first, in one or two sentences: the concrete setting or API in `backticks`, for this "
        "library and this GPU. Nothing that the evidence shows as done already.",
    )
    reasoning: str = Field(
        min_length=20,
        max_length=700,
        description="Why the evidence says so: which quantities, set side by side, point to this cause and not to "
        "another. Causes inside a kernel (occupancy, cache hits, bank conflicts, spills, stalls) are not in a trace: "
        "name the tool that could show them, or leave them out.",
    )
    resolution: str = Field(
        min_length=20,
        max_length=1_000,
        description="How to carry the action out: steps, conditions under which it works, what to watch. "
        "A blank line starts a new paragraph; at most four.",
    )
    verify: str | None = Field(
        default=None,
        min_length=20,
        max_length=400,
        description="What in a new trace shows that it worked: a name of this trace that is gone, one that is to come "
        "(`X` appears, a new kernel `X`), or a quantity named in words that falls from its value now "
        "(`the time falls from {{gemm.F1.time_ms}}`). "
        "Null or absent keeps the words of the knowledge base.",
    )


class ProseFile(Record):
    """What a writer hands in for one analyzer."""

    schema_version: Literal["1.0"] = Field(default="1.0", description=_VERSION)
    analyzer: Analyzer | Literal["compare"] = Field(description="Equal to the file's name without `.json`.")
    evidence_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description=_SHA)
    summary: str = Field(
        min_length=20,
        max_length=600,
        description="What this analyzer's findings say together, in two or three sentences: how much is at stake, "
        f"what comes first. {_CITE}",
    )
    findings: list[FindingProse] = Field(
        max_length=60, description="One entry a finding of the evidence, in its order; empty if it has none."
    )


class ModelProse(Record):
    """What a writer hands in about the model that ran."""

    schema_version: Literal["1.0"] = Field(default="1.0", description=_VERSION)
    analyzer: Literal["model"] = Field(description="Always `model`.")
    evidence_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description=_SHA)
    name: str = Field(
        min_length=2,
        max_length=80,
        pattern=rf"^[A-Za-z][{_NAME_SIGNS}]*$",
        description="The model as its makers call it, as far as the evidence tells; else its family, such as "
        "`BERT-style encoder`. A name only: no quantity that is not part of it. Letters, digits, spaces and "
        ". _ + / ( ) -, a letter first: no backticks, no comma.",
    )
    family: str = Field(
        min_length=2,
        max_length=80,
        pattern=rf"^[A-Za-z][,{_NAME_SIGNS}]*$",
        description="Kind of network and of use in two or three words, such as decoder-only transformer, inference. "
        "Characters as in `name`, and commas.",
    )
    confidence: Literal["high", "medium", "low"] = Field(
        description="high: names in the trace say so; medium: sizes and structure fit one family; low: a guess."
    )
    reasoning: str = Field(
        min_length=20,
        max_length=700,
        description=f"What in the evidence points to it: names, layer counts, sizes, precision. {_CITE}",
    )
    summary: str = Field(
        min_length=20,
        max_length=600,
        description=f"What the model is and how it was run, in two or three sentences. {_CITE}",
    )


Prose = ProseFile | ModelProse
_NAMES = {"$.name": "", "$.family": ","}  # paths of names, with the characters that they may hold beside the usual


def parse_prose(path: str, data: bytes) -> Prose:
    """The prose in a file's content; `CheckFailed` lists what does not match the schema, by JSON path."""
    if len(data) > MAX_BYTES:
        raise _refused(path, [f"{path}: {len(data)} bytes; prose has {MAX_BYTES} at most"])
    model: type[Prose] = ModelProse if path == prose_path(MODEL) else ProseFile
    try:
        return model.model_validate_json(data, strict=True)
    except ValidationError as error:
        raise _refused(path, [f"{path}::{at}: {why}" for at, why in _problems(error)]) from None


def _problems(error: ValidationError) -> Iterator[tuple[str, str]]:
    for item in error.errors(include_url=False):
        path = json_path(item["loc"])
        is_name = item["type"] == "string_pattern_mismatch" and path in _NAMES
        yield path[:200], _wrong_signs(str(item["input"]), path) if is_name else item["msg"]


def _wrong_signs(text: str, path: str) -> str:
    """What a name or a family may hold, and what this one holds beside it."""
    more = _NAMES[path]
    wrong = sorted(set(re.findall(f"[^{more}{_NAME_SIGNS}]", text)))
    shown = f"it holds {' '.join(wrong[:8])}" if wrong else "it begins with no letter"
    return f"{shown}; it may hold {_SAID_SIGNS}{' and commas' if more else ''}, and begins with a letter"


def _refused(path: str, details: list[str]) -> CheckFailed:
    return CheckFailed(
        f"`{path}` is no prose: {len(details)} problem{'s' if len(details) > 1 else ''}",
        details=details[:20],
        hint="The schema is `schemas/prose.schema.json` (`schemas/model_prose.schema.json` for the model)",
    )
