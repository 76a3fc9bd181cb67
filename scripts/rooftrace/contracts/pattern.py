"""``knowledge/patterns/<analyzer>/<id>.json``: an inefficiency, when it holds, and what to do about it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rooftrace.contracts.base import Analyzer, EvidenceValue, Record


class Condition(Record):
    """A comparison of one evidence field with a value."""

    field: str = Field(description="Name in the finding's evidence; an absent field makes the condition false.")
    op: Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "lacks"] = Field(
        description="Comparison; `contains` and `lacks` look for a part of a text in any case of letters."
    )
    value: EvidenceValue | list[EvidenceValue] = Field(description="What the field is compared with.")


class Predicate(Record):
    """All of `all` and, if given, one of `any`."""

    all: list[Condition] = Field(default_factory=list, description="Every one has to hold.")
    any: list[Condition] = Field(default_factory=list, description="One has to hold, where there are any.")


class PatternFile(Record):
    """A piece of knowledge that fires on evidence; texts cite a run's numbers as ``{{name}}`` and hold no others."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    id: str = Field(pattern="^[a-z0-9_]+$", description="Equal to the file's name without `.json`.")
    analyzer: Analyzer = Field(description="Equal to the folder's name.")
    priority: int = Field(
        ge=0,
        le=100,
        description="Of several that hold, the highest writes the finding; the others add their action.",
    )
    title: str = Field(description="One line; may cite evidence.")
    when: Predicate = Field(description="The evidence on which it fires.")
    insight: str = Field(description="What is the case, with the run's numbers cited.")
    action: str = Field(description="What to do, in which setting or API.")
    reasoning: str = Field(description="Why the evidence says so.")
    resolution: str = Field(description="The fix in detail.")
    verify: str = Field(description="Where to look to see that it worked.")
    cannot_see: str | None = Field(default=None, description="What a trace cannot show here and which tool can.")
    sources: list[str] = Field(default_factory=list, description="Documents the facts come from.")

    @model_validator(mode="after")
    def _has_words(self) -> PatternFile:
        for name in ("title", "insight", "action", "reasoning", "resolution", "verify"):
            if not getattr(self, name).strip():
                msg = f"{name} is empty"
                raise ValueError(msg)
        return self
