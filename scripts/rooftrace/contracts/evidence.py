"""``evidence/<analyzer>.json`` and ``manifest.json``: what the analyzers found, and what a run consists of."""

from __future__ import annotations

from pydantic import Field

from rooftrace.contracts.base import (
    Analyzer,
    Artifact,
    EvidenceValue,
    FindingKind,
    Record,
    Score,
    ScoreBasis,
    Tier,
)
from rooftrace.contracts.instance import Instance
from rooftrace.contracts.report import Coverage, CpuOp, Health, PlatformInfo, TraceInfo


class FindingEvidence(Record):
    """A finding without words: what an analyzer claims, in numbers."""

    id: str = Field(description="`<analyzer>.F<k>`.")
    tier: Tier = Field(description="compute, fusion or system.")
    category: str = Field(description="Op category or the analyzer's own name.")
    subject: str = Field(description="What it is about, in a few words that name no number.")
    score: Score = Field(description="Per cent of the span a fix would save.")
    score_basis: ScoreBasis = Field(description="How the score was found.")
    gpu_time_score: float = Field(ge=0, description="Gap over span, per cent.")
    kind: FindingKind = Field(description="`upper_bound`: the true gain is at most this.")
    members: list[str] = Field(description="Op group ids or instance ids.")
    evidence: dict[str, EvidenceValue] = Field(
        description="Quantities by name; the name's ending is the unit "
        "(`_ms`, `_us`, `_pct`, `_count`, `_bytes`, `_tflops`, `_gbps`)."
    )
    patterns: list[str] = Field(description="Ids of the knowledge patterns whose predicate holds, best first.")
    confidence: str | None = Field(default=None, description="high, medium or low, where it is judged.")
    instance: Instance | None = Field(
        default=None, description="One of the instances of a fusion finding; null for other findings."
    )


class AnalyzerEvidence(Artifact):
    """Everything one analyzer found."""

    analyzer: Analyzer = Field(description="Who found it; equal to the file's name without `.json`.")
    summary: dict[str, EvidenceValue] = Field(description="Quantities about the whole category.")
    findings: list[FindingEvidence] = Field(description="Best score first.")


class RunFile(Record):
    """A file of the run."""

    path: str = Field(
        pattern="^[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*$",
        description="Relative to the run's folder, with forward slashes, never out of it.",
    )
    sha256: str = Field(pattern="^[0-9a-f]{64}$", description="SHA-256 of the file's content.")
    schema_name: str | None = Field(default=None, description="Schema it is checked against.")


class ManifestFile(Artifact):
    """What the run is made of."""

    trace: TraceInfo = Field(description="The trace: file, devices, steps, versions.")
    health: Health = Field(description="Whether to trust it.")
    platform: PlatformInfo | None = Field(description="Null where the GPU is unknown.")
    coverage: Coverage = Field(description="How much could be rated.")
    cpu_ops: list[CpuOp] = Field(description="Top host ops by self time.")
    analyzers: list[Analyzer] = Field(description="Analyzers whose condition holds on this trace.")
    files: list[RunFile] = Field(description="Every file of the run except this one, by path.")
