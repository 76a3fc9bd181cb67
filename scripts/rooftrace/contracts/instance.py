"""One real instance of a fusion finding on the timeline: what the plot of a finding is drawn from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from rooftrace.contracts.base import Category, Record


class InstanceBar(Record):
    """A kernel of the instance, in long instances several in a row; times from the start of the instance on."""

    name: str = Field(description="Short name of the kernel, of several the first one's.")
    category: Category = Field(description="What the kernel does, of several the first one.")
    role: Literal["replaced", "stays"] = Field(description="`replaced` by the fused kernel, or runs beside it.")
    kernels: int = Field(ge=1, description="Kernels that the bar stands for.")
    start_ns: int = Field(ge=0, description="When the first of them starts, nanoseconds.")
    dur_ns: int = Field(ge=0, description="Until the last of them ends, nanoseconds.")
    busy_ns: int = Field(ge=0, description="Sum of their durations, nanoseconds.")
    launch_start_ns: int | None = Field(
        description="When the host began to launch the first of them, nanoseconds; negative before the instance "
        "started, null where no launch is recorded."
    )
    launch_dur_ns: int | None = Field(description="Until the host returned from the last launch, nanoseconds.")
    launch_busy_ns: int | None = Field(description="Sum of the launches' durations, nanoseconds.")
    launch_stays: bool = Field(description="Whether the fused kernel, or what stays, is launched in its place.")


class Instance(Record):
    """The instance whose kernel time is the median of those with these calls, kernels and shapes."""

    device: int = Field(description="GPU.")
    stream: int = Field(description="Stream.")
    start_ns: int = Field(description="Start of its first kernel on the trace's clock, nanoseconds.")
    of: int = Field(ge=1, description="Instances that it is the median of.")
    replaced_ns: int = Field(ge=0, description="Summed durations of the kernels that are replaced, nanoseconds.")
    fused_ns: int | None = Field(
        description="What the fused kernel takes, or an epilogue adds, with the whole gap closed, nanoseconds; null "
        "where it is not estimated."
    )
    bars: list[InstanceBar] = Field(min_length=1, description="In the order of the stream.")
