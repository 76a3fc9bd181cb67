"""``knowledge/libraries/*.json``, ``knowledge/kernel_categories/*.json``: how kernel names are told apart."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from rooftrace.contracts.base import Category, Record

_PLAIN = re.compile(r"[a-z0-9_:<, -]{3,}")
_REPEATED_GROUP = re.compile(r"\)[*+{]")
_UNBOUNDED = re.compile(r"(?<!\\)[*+]|\{\d+,\}")
_MAX_UNBOUNDED = 2


def _check_pattern(pattern: str) -> str:
    """A pattern is lower case, compiles, holds plain text to look for, and cannot backtrack for long."""
    if re.sub(r"\\[A-Za-z]", "", pattern) != re.sub(r"\\[A-Za-z]", "", pattern).lower():
        msg = f"`{pattern}` has capitals; names are matched in lower case"
        raise ValueError(msg)
    try:
        re.compile(pattern)
    except re.error as error:
        msg = f"`{pattern}` is not a regular expression: {error}"
        raise ValueError(msg) from error
    if not _PLAIN.search(re.sub(r"\[[^\]]*\]|\([^()]*\)", "\\\\", pattern)):
        msg = f"`{pattern}` needs three plain characters outside groups and classes"
        raise ValueError(msg)
    if "|" in re.sub(r"\([^()]*\)", "", pattern):
        msg = f"`{pattern}` has alternatives outside a group; write two patterns"
        raise ValueError(msg)
    if _REPEATED_GROUP.search(pattern) or len(_UNBOUNDED.findall(pattern)) > _MAX_UNBOUNDED:
        msg = f"`{pattern}` repeats a group, or more than {_MAX_UNBOUNDED} parts without bound"
        raise ValueError(msg)
    return pattern


Pattern = Annotated[str, AfterValidator(_check_pattern)]
_PRIORITY = "Lower is tried first; the first file that matches and is not excluded decides."
_EXCLUDE = "Patterns that take a name out again."


class LibraryFile(Record):
    """A library of kernels. Patterns see the qualified name with template arguments and parameters."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    slug: str = Field(pattern="^[a-z0-9_]+$", description="Equal to the file's name without `.json`.")
    name: str = Field(min_length=1, description="As reports show it.")
    priority: int = Field(ge=0, le=1000, description=_PRIORITY)
    patterns: list[Pattern] = Field(min_length=1, description="Any of these makes a kernel the library's.")
    exclude: list[Pattern] = Field(default_factory=list, description=_EXCLUDE)
    fused_patterns: list[Pattern] = Field(
        default_factory=list, description="Names of this library that are fused kernels."
    )
    category: Category | None = Field(
        default=None, description="Category of the library's kernels that no category rule knows."
    )
    source: str = Field(min_length=1, description="Where the names are defined.")


class CategoryFile(Record):
    """What a kernel does. Patterns see its qualified name and template arguments, without lambdas."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    slug: Category = Field(description="Equal to the file's name without `.json`.")
    priority: int = Field(ge=0, le=1000, description=_PRIORITY)
    description: str = Field(min_length=1, description="Which kernels belong here.")
    patterns: list[Pattern] = Field(default_factory=list, description="Any of these puts a kernel into the category.")
    exclude: list[Pattern] = Field(default_factory=list, description=_EXCLUDE)
    fused_patterns: list[Pattern] = Field(
        default_factory=list, description="Names of this category that are fused kernels."
    )
    copy_patterns: list[Pattern] = Field(
        default_factory=list,
        description="Copies that the runtime performs with a kernel: activity of kind copy.",
    )
    fill_patterns: list[Pattern] = Field(
        default_factory=list,
        description="Memsets that the runtime performs with a kernel: activity of kind fill.",
    )
    fused_ops: list[str] = Field(
        default_factory=list, description="Ops, as TorchInductor spells them in kernel names, that do this."
    )
