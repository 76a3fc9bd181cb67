"""Where the real traces lie, and which ten of them the literals describe; standard library only."""

from __future__ import annotations

import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

TEN = (
    "h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "h100/Falconsai_nsfw_image_detection__1016002.json.gz",
    "h100/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz",
    "mi300/resnet_act_checkpoint.json.gz",
    "mi300/normalization_layer_test.json.gz",
    "nvidia/diff_v100.json.gz",
    "nvidia/v100_torch18_old_format.json.gz",
    "ranks/megatron_tp8/rank0.json.gz",
    "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
)

REFERENCES = (
    "h100/Falconsai_nsfw_image_detection__1016002",
    "h100/facebook_timesformer-base-finetuned-k400__1016002",
    "h100/gaunernst_bert-small-uncased__1016001",
    "h100/google_owlv2-large-patch14-ensemble__1016001",
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005",
    "mi300/gaunernst_bert-small-uncased__1016001",
    "mi300/google_owlv2-large-patch14-ensemble__1016001",
)


def traces_root() -> Path:
    """The folder named by ROOFTRACE_TRACES, else `shared/traces` beside the repository."""
    named = os.environ.get("ROOFTRACE_TRACES")
    return Path(named) if named else REPOSITORY.parent / "shared" / "traces"


def missing_reason(relative: str) -> str | None:
    """Why this file of the trace folder cannot be tested here; None where it can."""
    path = traces_root() / relative
    return None if path.exists() else f"no {relative} under {traces_root()} (set ROOFTRACE_TRACES)"
