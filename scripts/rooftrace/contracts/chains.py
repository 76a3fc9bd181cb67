"""``evidence/chains.json``: the calls behind the findings, with all that a run of them alone needs."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rooftrace.contracts.base import Artifact, Record

Role = Literal["replaced", "stays", "view"]


class ChainTensor(Record):
    """A tensor that a call reads."""

    shape: list[int] = Field(description="Sizes as recorded.")
    dtype: str | None = Field(description="Element type by PyTorch's name; null where it is not known.")
    strides: list[int] | None = Field(description="Strides in elements; null where they are not recorded.")
    step: int | None = Field(
        description="Position in `steps` of the call whose result it is taken to be, from shapes, element types and "
        "strides; null for a tensor from outside."
    )
    number: int = Field(
        ge=0,
        description="Which result of that call, 0 first; of tensors from outside, which of them: equal numbers "
        "are one tensor.",
    )


class ChainArgument(Record):
    """An argument of a call, in the order of the op's schema."""

    kind: Literal["tensor", "tensors", "scalar", "number", "unrecorded", "none"] = Field(
        description="`number`: a number whose value is not recorded; `unrecorded`: neither value nor type is; "
        "`none`: an optional that is absent."
    )
    tensors: list[ChainTensor] = Field(description="One for `tensor`, any number for `tensors`, else none.")
    text: str | None = Field(description="Text of a scalar, or of a list of them, as recorded.")


class ChainStep(Record):
    """One call."""

    op: str = Field(description="Op name as recorded.")
    word: str = Field(description="What the call does, in the words of the compositions.")
    role: Role = Field(
        description="`replaced` by the fused kernel; `stays`: the product that takes the others in; `view`: launches "
        "nothing."
    )
    arguments: list[ChainArgument] = Field(description="Empty where none are recorded.")
    results: int = Field(ge=0, description="How many tensors it returns, as far as is known.")
    kernel_ns: int = Field(ge=0, description="Summed kernel durations, median over the instances, nanoseconds.")
    kernels: list[str] = Field(description="Short names of its kernels in the example.")


class Chain(Record):
    """The calls of one instance of a finding, in the order in which they were made."""

    finding: str = Field(description="Id of the finding.")
    op_id: str | None = Field(description="Op group of a compute finding; null for a fusion.")
    pattern: str = Field(description="Composition of a fusion, `novel` for a chain without one, else empty.")
    instances: int = Field(ge=1, description="Instances that make just these calls.")
    period: int = Field(ge=0, description="Calls of one repetition in a loop over tensors; 0 where there is no loop.")
    left_out: int = Field(ge=0, description="Calls of a long instance that are not listed.")
    steps: list[ChainStep] = Field(description="The calls and the views between them.")
    reason: str | None = Field(description="Why there are no calls; null where there are.")


class ChainsFile(Artifact):
    """Examples of the calls that fusion and compute findings are about."""

    chains: list[Chain] = Field(description="In the order of the findings; a compute finding has one an op group.")
