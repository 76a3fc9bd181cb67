"""``knowledge/fusion/<id>.json``: a composition of calls that one kernel can do, and what replaces it."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rooftrace.contracts.base import Record


class Replacement(Record):
    """A kernel or setting that does the work of the composition at once."""

    name: str = Field(min_length=1, description="API, op or setting, as its documentation spells it.")
    vendor: Literal["nvidia", "amd", "any"] = Field(default="any", description="GPUs it runs on.")
    fits: list[str] = Field(
        default_factory=list,
        description="Offered only where an op or module of the chain has one of these in its name, in small letters.",
    )
    unless: list[str] = Field(
        default_factory=list, description="Not offered where an op or module of the chain has one of these in its name."
    )
    optimizers: list[str] = Field(
        default_factory=list,
        description="Offered only to these optimizers, by class in small letters. `{optimizer}` in a name stands for "
        "the class that the trace names; where it names none, the setting alone is left.",
    )


class Operands(Record):
    """Tensors of the largest shape that one repetition reads and writes, where in-place updates hide them."""

    pivot: str = Field(description="Word of the call that occurs once in each repetition; its result gives the size.")
    read: int = Field(ge=1, description="Tensors read.")
    written: int = Field(ge=1, description="Tensors written.")


class FusionPatternFile(Record):
    """A composition, in the words of `rooftrace.fusion.tokens`."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    id: str = Field(pattern="^[a-z0-9_]+$", description="Equal to the file's name without `.json`.")
    name: str = Field(description="What it is, for a reader.")
    kind: Literal["chain", "epilogue", "loop"] = Field(
        description="chain: one kernel, connected by data; epilogue: joins the matrix product before it, which stays; "
        "loop: equal work on many tensors, one multi-tensor call."
    )
    sequences: list[str] = Field(
        min_length=1,
        description="Words of the calls in order, with `?`, `|`, `{m,n}` and parentheses, in loops also `*` and `+`; "
        "`same` alone stands for a run of one word.",
    )
    keeps: list[str] = Field(
        default_factory=list,
        description="Words in the sequence that are no part of it: calls that run in between.",
    )
    written: list[str] = Field(default_factory=list, description="Words whose result is needed by others in any case.")
    joined: bool = Field(default=False, description="Whether parts that only share an operand belong together.")
    one_input: bool = Field(
        default=False,
        description="Whether every operand of the input's shape that no call makes is the input itself.",
    )
    permutes: bool = Field(
        default=False, description="Whether the shapes that the calls read are permutations of each other."
    )
    phases: list[str] = Field(default_factory=list, description="Phases it occurs in; none: all.")
    optimizers: list[str] = Field(
        default_factory=list,
        description="Classes of optimizers in small letters: where the trace names the optimizer around the calls, it "
        "has to be one of these. None: any.",
    )
    tells: list[str] = Field(default_factory=list, description="Sequences of which one has to occur in a loop's calls.")
    denies: list[str] = Field(default_factory=list, description="Sequences of which none may occur in a loop's calls.")
    modules: list[str] = Field(
        default_factory=list, description="Parts of module or op names, in lower case, that say the same."
    )
    operands: Operands | None = Field(default=None, description="For loops that update in place.")
    replacements: list[Replacement] = Field(min_length=1, description="What does it at once, best first.")
    sources: list[str] = Field(min_length=1, description="Documents the composition or its replacement comes from.")
