"""What every exchanged file has in common: strict records, one schema version, the closed lists."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

# Findings below this share of the span (mid score) are listed, not ranked (METHODS: impact).
RANKING_LIMIT_PCT = 0.5
# Above this share of a ceiling a number is not believed without an explanation (METHODS: ceilings).
CREDIBLE_PCT = 105.0
# The stretch of a device's timeline that no step claims.
BEFORE_FIRST_STEP = "before first step"

Tier = Literal["compute", "fusion", "system"]
Analyzer = Literal[
    "gemm",
    "attention",
    "moe",
    "elementwise",
    "reduction",
    "normalization",
    "convolution",
    "triton",
    "generic",
    "idle",
    "multi_kernel",
    "fusion",
]
Category = Literal[
    "gemm",
    "attention",
    "moe",
    "elementwise",
    "reduction",
    "normalization",
    "convolution",
    "triton",
    "generic",
    "memory",
    "optimizer",
    "quantization",
    "embedding",
    "sort",
    "ssm",
    "communication",
]
COMPUTE_ANALYZERS: tuple[Analyzer, ...] = (
    "gemm",
    "attention",
    "moe",
    "elementwise",
    "reduction",
    "normalization",
    "convolution",
    "triton",
    "generic",
)
# Categories without an analyzer of their own, and the analyzer that looks after each.
ANALYZER_OF_CATEGORY: dict[str, Analyzer] = {
    **{name: name for name in COMPUTE_ANALYZERS},
    "memory": "elementwise",
    "optimizer": "elementwise",
    "quantization": "elementwise",
    "embedding": "generic",
    "sort": "generic",
    "ssm": "generic",
}
Bound = Literal["compute", "memory", "latency"]
FindingKind = Literal["measured", "modelled", "upper_bound"]
ScoreBasis = Literal["replay", "gap_share"]

EvidenceValue = int | float | str | bool


class Record(BaseModel):
    """A part of an artifact: unknown fields are refused, values do not change, numbers are finite."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True, allow_inf_nan=False)


class Artifact(Record):
    """The head of every JSON artifact of a run."""

    schema_version: Literal["1.0"] = Field(
        default="1.0", description="Version of this file's schema; a reader refuses others."
    )
    tool_version: str = Field(description="Version of rooftrace that wrote the file.")
    source_sha256: str = Field(
        pattern="^[0-9a-f]{64}$",
        description="SHA-256 of the trace file (as stored, compressed or not) that everything here comes from.",
    )


class Score(Record):
    """What a fix is worth, in per cent of the span."""

    low: float = Field(ge=0, description="Per cent of the span saved when 75 % of the gap is closed.")
    mid: float = Field(ge=0, description="Per cent of the span saved when 87.5 % of the gap is closed.")
    high: float = Field(ge=0, description="Per cent of the span saved when the whole gap is closed.")
