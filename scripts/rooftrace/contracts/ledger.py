"""``evidence/ledger.json``: where every nanosecond of each device went."""

from __future__ import annotations

from pydantic import Field, model_validator

from rooftrace.contracts.base import Artifact, Record

_NS = "integer nanoseconds"


class LedgerParts(Record):
    """A stretch of one device's timeline, divided without remainder."""

    span_ns: int = Field(ge=0, description=f"Length of the stretch, {_NS}.")
    compute_ns: int = Field(ge=0, description=f"Time in which at least one compute kernel ran, {_NS}.")
    exposed_comm_ns: int = Field(ge=0, description=f"Communication not covered by compute, {_NS}.")
    exposed_copy_ns: int = Field(ge=0, description=f"Copies covered neither by compute nor by communication, {_NS}.")
    idle_ns: int = Field(ge=0, description=f"Time without any GPU activity, {_NS}.")
    total_comm_ns: int = Field(ge=0, description=f"Union of all communication, hidden or not, {_NS}.")
    total_copy_ns: int = Field(ge=0, description=f"Union of all copies, hidden or not, {_NS}.")
    carry_in_ns: int = Field(
        ge=0, description=f"Of which: summed durations of activities launched before the window, {_NS}."
    )
    compute_by_category: dict[str, int] = Field(
        description="`compute_ns` divided over op categories; "
        "time shared by kernels of several categories is split equally."
    )
    idle_by_cause: dict[str, int] = Field(description="`idle_ns` divided over its causes.")

    @model_validator(mode="after")
    def _conserves_time(self) -> LedgerParts:
        parts = self.compute_ns + self.exposed_comm_ns + self.exposed_copy_ns + self.idle_ns
        if parts != self.span_ns:
            msg = f"the four parts sum to {parts} ns, the span is {self.span_ns} ns"
            raise ValueError(msg)
        for name, whole, split in (
            ("compute_by_category", self.compute_ns, self.compute_by_category),
            ("idle_by_cause", self.idle_ns, self.idle_by_cause),
        ):
            if sum(split.values()) != whole:
                msg = f"{name} sums to {sum(split.values())} ns instead of {whole} ns"
                raise ValueError(msg)
        return self


class StepLedger(LedgerParts):
    """The part of a device's timeline that belongs to one step."""

    name: str = Field(description="Name of the step, as annotated or detected.")
    start_ns: int = Field(description=f"Start of the stretch on the trace's clock, {_NS} since its first event.")


class DeviceLedger(LedgerParts):
    """The whole timeline of one device: first start to last end of GPU activity."""

    device: int = Field(description="Device id as the profiler numbers it.")
    start_ns: int = Field(description=f"First GPU activity, {_NS} since the trace's first event.")
    window_ns: int | None = Field(
        default=None,
        description=f"First step's start to last step's end on the host, where steps are annotated, {_NS}.",
    )
    steps: list[StepLedger] = Field(
        description="The same timeline cut at step boundaries; "
        "a stretch before the first step is listed as `before first step`."
    )

    @model_validator(mode="after")
    def _steps_add_up(self) -> DeviceLedger:
        for name in ("span_ns", "compute_ns", "exposed_comm_ns", "exposed_copy_ns", "idle_ns", "carry_in_ns"):
            total = sum(getattr(step, name) for step in self.steps)
            if self.steps and total != getattr(self, name):
                msg = f"the steps' {name} sum to {total}, the device has {getattr(self, name)}"
                raise ValueError(msg)
        return self


class LedgerFile(Artifact):
    """The time ledger of a run, one entry a device."""

    devices: list[DeviceLedger] = Field(description="One ledger a device; empty for a trace without GPU activity.")
