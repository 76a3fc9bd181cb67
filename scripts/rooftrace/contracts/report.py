"""``report.json``: the whole report for machines. Names, types and meanings here are stable."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, JsonValue, model_validator

from rooftrace.contracts.base import (
    Artifact,
    Bound,
    EvidenceValue,
    FindingKind,
    Record,
    Score,
    ScoreBasis,
    Tier,
)
from rooftrace.contracts.ledger import DeviceLedger


class Device(Record):
    """A GPU that appears in the trace."""

    id: int = Field(description="Device id as the profiler numbers it.")
    name: str = Field(description="Name the profiler gives; empty where it gives none.")


class Step(Record):
    """One step on the host's clock."""

    name: str = Field(description="Annotation or `step k` of a detected period.")
    start_ns: int = Field(description="Start, nanoseconds since the trace's first event.")
    end_ns: int = Field(description="End, nanoseconds since the trace's first event.")


class TraceInfo(Record):
    """What was read."""

    file: str = Field(description="File name of the trace, without its folder.")
    sha256: str = Field(description="SHA-256 of the file as stored.")
    format: str = Field(description="Container and dialect, such as `gzip, kineto object`.")
    events: int = Field(ge=0, description="Events in the file.")
    gpu_events: int = Field(ge=0, description="Kernels, copies and fills on a GPU.")
    devices: list[Device] = Field(description="GPUs with activity in the trace.")
    steps: list[Step] = Field(description="Steps, annotated or detected; one step if neither.")
    step_source: str = Field(description="Where the steps come from: `annotation`, `kernel period`, `whole trace`.")
    rank: int | None = Field(default=None, description="Rank of the process, where the trace tells it.")
    world_size: int | None = Field(default=None, description="Number of ranks, where the trace tells it.")
    versions: dict[str, str] = Field(description="Versions in the trace's header (CUDA, HIP, driver, profiler).")
    workload: Literal["training", "inference", "unknown"] = Field(
        description="Training if backward or optimizer work was seen."
    )


class HealthNote(Record):
    """One thing a reader must know before trusting the numbers."""

    code: str = Field(description="Stable code; `explain CODE` tells more.")
    text: str = Field(description="One sentence with its numbers.")
    count: int | None = Field(default=None, description="How many events it concerns.")
    severity: Literal["info", "limit", "severe"] = Field(description="`limit` and `severe` lower the verdict.")


class Health(Record):
    """Whether this trace can be trusted."""

    verdict: Literal["good", "limited", "unusable"] = Field(description="`limited` names its limits in the notes.")
    notes: list[HealthNote] = Field(description="Most severe first.")
    recovered: int = Field(ge=0, description="Events repaired while reading.")
    dropped: int = Field(ge=0, description="Events that could not be used.")


class PlatformInfo(Record):
    """The GPU against which kernels are rated."""

    slug: str = Field(description="`platforms` lists them.")
    product: str = Field(description="Product name.")
    ceilings_kind: str = Field(description="`achievable` or `datasheet-dense`; `mixed` where both are used.")
    detected_by: str = Field(description="`name`, `properties`, `option` or `file`.")


class Coverage(Record):
    """How much of the kernel time could be rated, in summed durations."""

    kernel_ns: int = Field(ge=0, description="All GPU activities except copies recorded as such: kernels and fills.")
    comm_ns: int = Field(ge=0, description="Of it, communication kernels.")
    copy_ns: int = Field(ge=0, description="Copies between host and device or on a device.")
    carry_in_ns: int = Field(ge=0, description="Kernels launched before the window (communication not included).")
    lost_launch_ns: int = Field(ge=0, description="Kernels whose launch is missing (communication not included).")
    ratable_ns: int = Field(ge=0, description="Linked kernel time that is neither communication nor carry-in nor lost.")
    shaped_ns: int = Field(ge=0, description="Ratable time with recorded input shapes.")
    modelled_ns: int = Field(ge=0, description="Ratable time with a cost model that gave a cost.")
    rated_ns: int = Field(ge=0, description="Ratable time set against a ceiling.")
    reasons: dict[str, int] = Field(description="Ratable time that is not rated, by reason; sums to the difference.")

    @model_validator(mode="after")
    def _adds_up(self) -> Coverage:
        parts = self.comm_ns + self.carry_in_ns + self.lost_launch_ns + self.ratable_ns
        if parts != self.kernel_ns:
            msg = f"communication, carry-in, lost and ratable time sum to {parts} ns, kernels to {self.kernel_ns} ns"
            raise ValueError(msg)
        if sum(self.reasons.values()) != self.ratable_ns - self.rated_ns:
            msg = "the reasons do not sum to the time that is not rated"
            raise ValueError(msg)
        return self


class KernelUse(Record):
    """A kernel of an op group."""

    name: str = Field(description="Raw kernel name.")
    count: int = Field(ge=1, description="Launches over all instances of the group.")
    ns: int = Field(ge=0, description="Summed duration, nanoseconds.")
    library: str | None = Field(default=None, description="Library the name belongs to, where it shows.")


class OpGroup(Record):
    """Instances of one op with equal name, shapes, dtypes, strides, phase and kernels."""

    id: str = Field(description="Stable id, `op1` being the one with most kernel time.")
    name: str = Field(description="Op name; for kernels launched outside any op, the kernel's short name.")
    category: str = Field(description="What the op does.")
    shapes: list[JsonValue] | None = Field(
        description="Input shapes as recorded, one entry an input: a list of sizes, or a list of such lists; "
        "empty for scalars. Null where none were recorded."
    )
    dtypes: list[JsonValue] | None = Field(
        description="Input dtypes as recorded, one entry an input. Null where none were recorded."
    )
    phase: str = Field(description="forward, backward, optimizer or data.")
    count: int = Field(ge=1, description="Instances.")
    kernel_ns: int = Field(ge=0, description="Summed kernel durations of all instances, nanoseconds.")
    busy_ns: int = Field(ge=0, description="Union of the kernels of each instance, summed, nanoseconds.")
    min_ns: int = Field(ge=0, description="Fastest instance (union of its kernels).")
    median_ns: int = Field(ge=0, description="Median instance.")
    max_ns: int = Field(ge=0, description="Slowest instance.")
    cov: float = Field(ge=0, description="Coefficient of variation of the instances' times.")
    kernels: list[KernelUse] = Field(description="Kernels of the group, most time first.")
    modules: list[str] = Field(description="nn.Module paths it was called from, most time first, at most five.")
    source: str | None = Field(default=None, description="Innermost user frame of the slowest instance.")
    carry_in: bool = Field(description="Launched before the window.")
    graph_replayed: bool = Field(description="Launched by a graph.")
    recompute_ns: int = Field(
        ge=0, description="Of `kernel_ns`, time of forward work run again in backward (activation checkpointing)."
    )
    flops: int | None = Field(default=None, description="FLOPs of one instance; a multiply-add is 2.")
    bytes: int | None = Field(default=None, description="Compulsory traffic of one instance, bytes.")
    precision: str | None = Field(default=None, description="Precision whose ceiling applies.")
    bound: Bound | None = Field(default=None, description="Largest term of the floor.")
    floor_ns: int | None = Field(default=None, description="Least time one instance can take on this platform.")
    efficiency_pct: float | None = Field(default=None, description="Floor over measured time, per cent.")
    datasheet_efficiency_pct: float | None = Field(default=None, description="The same against datasheet ceilings.")
    gap_ns: int | None = Field(default=None, description="Time above the floor over all instances, nanoseconds.")
    flag: str | None = Field(
        default=None,
        description="Above 105 %: `cache-resident`, `above-achievable` (within the datasheet) or `inconsistent`.",
    )
    unmodelled: str | None = Field(default=None, description="Why there is no rating.")
    notes: list[str] = Field(default_factory=list, description="What the cost model assumed.")


class Finding(Record):
    """One thing to fix."""

    id: str = Field(description="`<analyzer>.F<k>`; the same in every run on this trace.")
    tier: Tier = Field(description="compute, fusion or system.")
    category: str = Field(description="Analyzer or op category.")
    rank: int = Field(
        ge=1, description="Place in the one list over all tiers, 1 first; unranked findings go on counting."
    )
    title: str = Field(description="What, in one line.")
    score: Score = Field(description="Per cent of the span a fix would save.")
    score_basis: ScoreBasis = Field(description="How the score was found.")
    gpu_time_score: float = Field(ge=0, description="Gap over span, per cent.")
    kind: FindingKind = Field(description="`upper_bound`: the true gain is at most this.")
    members: list[str] = Field(description="Ids of the op groups or instances it is made of.")
    patterns: list[str] = Field(description="Knowledge patterns that hold for it.")
    evidence: dict[str, EvidenceValue] = Field(description="Quantities; cited as `<finding id>.<name>`.")
    insight: str = Field(description="What is the case.")
    action: str = Field(description="What to do.")
    reasoning: str = Field(description="Why the evidence says so.")
    resolution: str = Field(description="The fix in detail.")
    verify: str = Field(description="Where to look to see that it worked.")
    confidence: str | None = Field(default=None, description="high, medium or low, where it is judged.")


class Remaining(Record):
    """What is left after the first findings are fixed."""

    after: int = Field(ge=1, description="Number of findings fixed, in rank order.")
    span_ns: int = Field(ge=0, description="Span then, nanoseconds.")


BOUND_BY = ("host", "compute", "communication", "copy")
BoundBy = Literal["host", "compute", "communication", "copy", "mixed", "unknown"]
PathResource = Literal[
    "compute",
    "communication",
    "copy",
    "host",
    "launch",
    "device",
    "dependency",
    "synchronisation",
    "unexplained",
]
Freed = Literal["compute", "communication", "copy", "host", "synchronisation"]


class CriticalPath(Record):
    """Which resource decided each part of a device's span."""

    device: int = Field(description="Device id as the profiler numbers it.")
    span_ns: int = Field(ge=0, description="Span of the device, nanoseconds.")
    by_resource: dict[PathResource, int] = Field(
        description="Time on the critical path, nanoseconds; the entries sum to the span. `launch` is the time from a "
        "launch call to the start, `device` the distance of queued activities, `synchronisation` the return of a "
        "blocking call after the work it waited for."
    )
    strip: list[str] = Field(
        description="The span in equal stretches (100, or fewer for a short one), each named after the resource with "
        "most of its time on the path; equal neighbours as one `resource:count`."
    )

    @model_validator(mode="after")
    def _covers_the_span(self) -> CriticalPath:
        if sum(self.by_resource.values()) != self.span_ns:
            msg = f"the critical path sums to {sum(self.by_resource.values())} ns instead of {self.span_ns} ns"
            raise ValueError(msg)
        return self


class Quantiles(Record):
    """A distribution in three numbers."""

    p10: int = Field(description="10th percentile, nanoseconds.")
    median: int = Field(description="Median, nanoseconds.")
    p90: int = Field(description="90th percentile, nanoseconds.")


class ReplayEvidence(Record):
    """What the constraints of the replay come from."""

    launches: int = Field(ge=0, description="Launching calls.")
    unlinked: int = Field(ge=0, description="Activities without a launch: only their queue is known.")
    waits: dict[str, int] = Field(description="Blocking calls by what they wait for.")
    waits_guessed: int = Field(ge=0, description="Of them, with a stream taken from the thread's last launch.")
    dependencies: dict[str, int] = Field(
        description="Dependencies between streams: `recorded`, from the order of `calls`, or `inferred`."
    )
    handovers: int = Field(ge=0, description="Hand-overs between host threads, inferred from their rests.")
    queue_depth: int = Field(ge=0, description="Launches a queue holds; 0 where none was seen full.")
    launch_latency: Quantiles | None = Field(description="Launch to start where the queue was empty.")
    queued: list[int] = Field(description="Launches under way, at 20 equally spaced times of the span.")


class Replay(Record):
    """How well the replay reproduces the run, and what it tells about it."""

    baseline_ns: int = Field(ge=0, description="Span of the replay with nothing fixed, nanoseconds.")
    measured_ns: int = Field(ge=0, description="Span as recorded, nanoseconds.")
    error_pct: float = Field(description="Replayed over recorded span, minus one, per cent; negative: too fast.")
    explained_pct: float = Field(description="Share of the critical path that the replay's rules explain, per cent.")
    bound_by: BoundBy = Field(
        description="What bounds the run: the resource without which it would lose at least 20 %, and clearly more "
        "than without any other; `mixed` where several run abreast, `unknown` where less than 70 % is explained."
    )
    paths: list[CriticalPath] = Field(description="One critical path a device.")
    if_free: dict[Freed, int] = Field(
        description="Span were a resource free, nanoseconds: a bound on everything that could be done about it."
    )
    half_host_ns: int = Field(
        ge=0,
        description="Span with the time of the host threads halved, but for long calls in which nothing is recorded."
        " What recording stacks and shapes may hide.",
    )
    bound_by_half_host: BoundBy | None = Field(
        default=None,
        description="`bound_by` with that time halved; another value says that it depends on what "
        "the profiler itself cost. Null in files of earlier versions.",
    )
    evidence: ReplayEvidence = Field(description="What the constraints come from.")


class LedgerBlock(Record):
    """Time ledgers of the trace."""

    devices: list[DeviceLedger] = Field(description="One a device; empty for a trace without GPU activity.")


class CpuOp(Record):
    """A row of the CPU section."""

    name: str = Field(description="Op, annotation or frame name.")
    count: int = Field(ge=1, description="Calls.")
    total_ns: int = Field(ge=0, description="Summed durations.")
    self_ns: int = Field(ge=0, description="Summed durations without children.")
    median_ns: int | None = Field(
        default=None, ge=0, description="Median duration of a call. Null in files of earlier versions."
    )
    max_ns: int | None = Field(default=None, ge=0, description="Longest call. Null in files of earlier versions.")


class ModelGuess(Record):
    """The model that ran, as far as the trace tells; made by rules."""

    name: str = Field(description="A model by its usual name, or its family.")
    family: str = Field(description="Kind of network.")
    confidence: Literal["high", "medium", "low"] = Field(description="How sure.")
    reasons: list[str] = Field(description="What it rests on.")
    facts: dict[str, EvidenceValue] = Field(description="Layers, sizes, precision and more, where the trace tells.")


class ReportFile(Artifact):
    """The complete report."""

    trace: TraceInfo = Field(description="The trace: file, devices, steps, versions.")
    health: Health = Field(description="Whether to trust it.")
    platform: PlatformInfo | None = Field(description="Null where the GPU is unknown.")
    model: ModelGuess | None = Field(default=None, description="The model; null where the trace tells nothing of it.")
    ledger: LedgerBlock = Field(description="The time ledger.")
    coverage: Coverage = Field(description="How much could be rated.")
    replay: Replay | None = Field(description="Null until the run is replayed.")
    ops: list[OpGroup] = Field(description="Op groups, most kernel time first.")
    cpu_ops: list[CpuOp] = Field(description="Top host ops by self time.")
    findings: list[Finding] = Field(description="Ranked, best first.")
    unranked: list[Finding] = Field(description="Findings below the ranking limit.")
    together: list[Remaining] | None = Field(description="Null until the run is replayed.")
