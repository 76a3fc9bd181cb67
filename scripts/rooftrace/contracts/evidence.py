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
from rooftrace.contracts.report import Coverage, CpuOp, Health, PlatformInfo, TraceInfo


class FindingEvidence(Record):
    """A finding without words: what an analyzer claims, in numbers."""

    id: str = Field(description="`<analyzer>.F<k>`.")
    tier: Tier
    category: str = Field(description="Op category or the analyzer's own name.")
    subject: str = Field(description="What it is about, in a few words that name no number.")
    score: Score
    score_basis: ScoreBasis
    gpu_time_score: float = Field(ge=0, description="Gap over span, per cent.")
    kind: FindingKind
    members: list[str] = Field(description="Op group ids or instance ids.")
    evidence: dict[str, EvidenceValue] = Field(
        description="Quantities by name; the name's ending is the unit "
        "(`_ms`, `_us`, `_pct`, `_count`, `_bytes`, `_tflops`, `_gbps`)."
    )
    patterns: list[str] = Field(description="Ids of the knowledge patterns whose predicate holds, best first.")
    confidence: str | None = None


class AnalyzerEvidence(Artifact):
    """Everything one analyzer found."""

    analyzer: Analyzer
    summary: dict[str, EvidenceValue] = Field(description="Quantities about the whole category.")
    findings: list[FindingEvidence] = Field(description="Best score first.")


class RunFile(Record):
    """A file of the run."""

    path: str = Field(description="Relative to the run's folder, with forward slashes.")
    sha256: str = Field(pattern="^[0-9a-f]{64}$")
    schema_name: str | None = Field(default=None, description="Schema it is checked against.")


class ManifestFile(Artifact):
    """What the run is made of."""

    trace: TraceInfo
    health: Health
    platform: PlatformInfo | None
    coverage: Coverage
    cpu_ops: list[CpuOp]
    analyzers: list[Analyzer] = Field(description="Analyzers whose condition holds on this trace.")
    files: list[RunFile] = Field(description="Every file of the run except this one, by path.")
