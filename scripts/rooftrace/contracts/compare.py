"""Two runs side by side: evidence, deliverable and manifest; and what is known of names, causes and notes."""

from __future__ import annotations

from typing import Literal

from pydantic import Field, model_validator

from rooftrace.contracts.base import RANKING_LIMIT_PCT, Artifact, Record
from rooftrace.contracts.evidence import FindingEvidence, RunFile
from rooftrace.contracts.report import Finding, Health, KernelUse, LedgerBlock, PlatformInfo, TraceInfo

RowCause = Literal[
    "unchanged",
    "slower_kernel",
    "different_kernel",
    "more_launches",
    "fewer_launches",
    "precision",
    "layout_or_copy",
    "shape",
    "lost_overlap",
    "clock_or_power",
    "different_work",
    "only_in_base",
    "only_in_target",
    "device",
    "dependency",
    "synchronisation",
    "launch_bound",
    "data_loading",
    "host_code",
    "memory_management",
    "compilation",
    "garbage_collection",
    "graph_launch",
    "communication_setup",
    "profiler",
    "before_window",
    "unknown",
]
Verdict = Literal["comparable", "partly", "not_comparable"]
SanityCode = Literal[
    "no_gpu_work",
    "different_model",
    "nothing_aligns",
    "partly_aligned",
    "different_gpu",
    "different_devices",
    "different_ranks",
    "different_world",
    "different_steps",
    "one_step",
    "no_modules",
    "no_ops",
    "unlike_recording",
]
_NS = "integer nanoseconds"


class Equivalence(Record):
    """Names that mean the same work."""

    name: str = Field(min_length=1, description="The word for it.")
    why: str = Field(min_length=1, description="What these names have in common.")
    members: list[str] = Field(default_factory=list, description="Names as recorded.")
    patterns: list[str] = Field(default_factory=list, description="Regular expressions that find further ones.")


class EquivalentsFile(Record):
    """Ops across frameworks and dispatch, kernels across vendors."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    ops: list[Equivalence] = Field(description="Op names; a name stands in one entry only.")
    kernels: list[Equivalence] = Field(
        description="Kernels that their category alone would mix up, by patterns on the short name; first match."
    )

    @model_validator(mode="after")
    def _is_unambiguous(self) -> EquivalentsFile:
        members = [member for entry in self.ops for member in entry.members]
        twice = sorted({member for member in members if members.count(member) > 1})
        if twice:
            msg = f"in two entries: {', '.join(twice)}"
            raise ValueError(msg)
        return self


class CauseWords(Record):
    """What is said of a finding by its cause; texts cite the finding's evidence as ``{{name}}`` and hold no numbers."""

    worse: str = Field(min_length=1, description="Title where the target takes longer, after the subject.")
    better: str = Field(min_length=1, description="Title where the target takes less time.")
    insight: str = Field(min_length=1, description="What is the case.")
    action: str = Field(min_length=1, description="What to do where the target takes longer.")
    reasoning: str = Field(min_length=1, description="How the evidence tells this cause from the others.")
    resolution: str = Field(min_length=1, description="The fix in detail, and how the slower side gets the gain.")
    cannot_see: str | None = Field(default=None, description="What a trace cannot show here and which tool can.")


class CausesFile(Record):
    """``knowledge/compare_causes.json``: every cause but `unchanged`."""

    schema_version: Literal["1.0"] = Field(description="Version of this file's schema.")
    improvement: str = Field(min_length=1, description="What to do where the target takes less time, for any cause.")
    causes: dict[RowCause, CauseWords] = Field(description="Words by cause.")


class ComparedSide(Record):
    """One of the two runs."""

    trace: TraceInfo = Field(description="The trace, as in `report.json`.")
    health: Health = Field(description="Whether to trust it.")
    platform: PlatformInfo | None = Field(description="Null where the GPU is unknown.")
    ledger: LedgerBlock = Field(description="The time ledger.")
    span_ns: int = Field(ge=0, description=f"Spans of its devices, summed, {_NS}.")
    compared_ns: int = Field(
        ge=0,
        description=f"What the rows other than `steps left out` hold: the compared steps, or the span, {_NS}.",
    )
    compared_steps: list[str] = Field(description="Steps that the rows sum over; empty: the whole span.")
    steady_steps: list[str] = Field(description="Steps that medians and spreads are of.")
    left_out: list[str] = Field(description="Steps in the row `steps left out`, with the reason.")


class RowSide(Record):
    """What a row is on one side; times over the compared steps."""

    op: str | None = Field(description="Op as recorded, several joined by ` + `; null for kernels outside any op.")
    shapes: str = Field(description="Input shapes as recorded; empty where they were not.")
    dtypes: str = Field(description="Input dtypes as recorded; empty where they were not.")
    calls: int = Field(ge=0, description="Calls of the op (gaps, for idle time).")
    launches: int = Field(ge=0, description="GPU activities.")
    raw_ns: int = Field(ge=0, description=f"Summed durations, whatever ran beside them, {_NS}.")
    kernel: str = Field(description="Short name of the kernel with most time; empty where there is none.")
    kernels: list[KernelUse] = Field(description="Kernels over all steps, most time first, at most eight.")
    median_step_ns: int | None = Field(description=f"Median over the steady steps of the row's share, {_NS}.")
    spread_step_ns: int | None = Field(
        description=f"Standard deviation over the steady steps (from the median absolute deviation), {_NS}; "
        "null below three steps."
    )
    efficiency_pct: float | None = Field(description="Floor over measured time on this side's own GPU, per cent.")


class CompareRow(Record):
    """A part of both timelines: each nanosecond of a span is in exactly one row."""

    id: str = Field(description="`r1` is the row with most difference.")
    path: list[str] = Field(description="Phase, modules, op; or `idle`, cause, op. Rows roll up along it.")
    kind: Literal["op", "block", "idle", "left_out"] = Field(
        description="`block`: several calls that match as a whole, not one by one."
    )
    category: str = Field(description="Op category, `communication`, `copy`, `idle` or `steps left out`.")
    cause: RowCause = Field(description="Why the two sides differ.")
    base_ns: int = Field(ge=0, description=f"Ledger share of the base, {_NS}.")
    target_ns: int = Field(ge=0, description=f"Ledger share of the target, {_NS}.")
    delta_ns: int = Field(description=f"Target less base, {_NS}.")
    beyond_noise: bool | None = Field(
        description="Whether the medians over steps differ by more than steps differ; null where that cannot be told."
    )
    base: RowSide | None = Field(description="Null where the base has no such work.")
    target: RowSide | None = Field(description="Null where the target has no such work.")

    @model_validator(mode="after")
    def _is_a_difference(self) -> CompareRow:
        if self.delta_ns != self.target_ns - self.base_ns:
            msg = f"{self.id}: delta_ns is {self.delta_ns}, target less base is {self.target_ns - self.base_ns}"
            raise ValueError(msg)
        return self


def listing_order(direction: str, high: float) -> tuple[bool, bool, float]:
    """By which findings are listed: those worth telling first, regressions before improvements, most gain first."""
    return high < RANKING_LIMIT_PCT, direction == "improvement", -high


class _Change(Record):
    """What a finding of a comparison has more than one of a single trace."""

    rank: int = Field(ge=1, description="Place in the list: regressions, improvements, then those of little gain.")
    direction: Literal["regression", "improvement"] = Field(description="`regression`: the target takes longer.")
    cause: RowCause = Field(description="The cause that its rows share.")
    delta_ns: int = Field(description=f"Sum of its rows' differences, {_NS}.")
    beyond_noise: bool | None = Field(description="As for rows, of their sum.")


class CompareFinding(_Change, FindingEvidence):
    """Rows that changed for one reason; its score is what reaching the other side would save in the slower run."""


class ToldFinding(_Change, Finding):
    """A finding with its words: the pack's own by cause, or a writer's where they are sound."""

    subject: str = Field(description="What it is about, in a few words that name no number.")


class Alignment(Record):
    """How the two runs were matched."""

    level: Literal["modules", "ops", "kernels"] = Field(description="The finest structure that both sides have.")
    basis: Literal["steps", "span"] = Field(description="Whether steps or whole spans are compared.")
    base_pct: float = Field(ge=0, le=100, description="Share of the base's GPU time with a counterpart, per cent.")
    target_pct: float = Field(ge=0, le=100, description="The same of the target.")
    block_pct: float = Field(ge=0, le=100, description="Of both, matched only as a block of several calls.")
    pace: float | None = Field(
        description="Common ratio of times of unrelated, unchanged kernels; null where there is none."
    )


class SanityNote(Record):
    """One thing to know before the numbers are used."""

    code: SanityCode = Field(description="What `explain sanity/CODE` tells about.")
    text: str = Field(description="One sentence with its numbers.")
    severity: Literal["info", "limit", "severe"] = Field(description="`limit` and `severe` lower the verdict.")


class Sanity(Record):
    """Whether the two traces can be compared."""

    verdict: Verdict = Field(description="`partly`: what has a counterpart is compared, the rest listed.")
    notes: list[SanityNote] = Field(description="Most severe first.")


class GateCheck(Record):
    """A limit on a metric, held against what was measured."""

    metric: str = Field(description="`span`, `idle`, `category:SLUG` or `kernel:REGEX`.")
    limit_pct: float = Field(description="Largest growth allowed, per cent.")
    base_ns: int = Field(ge=0, description=f"Median over steps, or over the whole span, {_NS}.")
    target_ns: int = Field(ge=0, description=f"The same of the target, {_NS}.")
    change_pct: float = Field(description="Growth, per cent of the base (of its whole step, for idle time).")
    bound_pct: float | None = Field(
        description="What the growth exceeds in 95 of 100 resamplings of the steps; null with too few steps."
    )
    violated: bool = Field(description="Whether the bound (without one, the growth) exceeds the limit.")


class _Compared(Artifact):
    """Two runs and the rows that account for both spans."""

    base: ComparedSide = Field(description="The run that is compared with.")
    target: ComparedSide = Field(description="The run that is judged.")
    delta_ns: int = Field(description=f"Span of the target less that of the base, {_NS}.")
    alignment: Alignment = Field(description="How the two were matched.")
    sanity: Sanity = Field(description="Whether they can be compared.")
    gate: list[GateCheck] | None = Field(description="Limits of `--fail-above`; null where none was asked for.")
    rows: list[CompareRow] = Field(description="Most difference first; their `delta_ns` sum to `delta_ns` exactly.")

    @model_validator(mode="after")
    def _conserves_time(self) -> _Compared:
        sums = (
            ("base_ns", sum(row.base_ns for row in self.rows), self.base.span_ns),
            ("target_ns", sum(row.target_ns for row in self.rows), self.target.span_ns),
            ("delta_ns", sum(row.delta_ns for row in self.rows), self.delta_ns),
        )
        for name, total, whole in sums:
            if total != whole:
                msg = f"the rows' {name} sum to {total} instead of {whole}"
                raise ValueError(msg)
        return self


class CompareEvidence(_Compared):
    """``evidence/compare.json``: the comparison in numbers, without words. `source_sha256` is the target's trace."""

    findings: list[CompareFinding] = Field(description="Regressions, then improvements, each most gain first.")


class CompareFile(_Compared):
    """``compare.json``: the comparison of two runs, findings in words. `source_sha256` is the target's trace."""

    findings: list[ToldFinding] = Field(description="Regressions, then improvements, each most gain first.")


class ComparisonManifest(Artifact):
    """``manifest.json`` of a comparison. `source_sha256` is the target's trace, as in its other files."""

    kind: Literal["comparison"] = Field(default="comparison", description="Tells it from the manifest of a run.")
    base_sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the base's trace file.")
    files: list[RunFile] = Field(description="Every file of the folder except this one, state and prose, by path.")
