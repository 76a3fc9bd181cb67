"""Files that agents write or that only a prepared run has, one of each model."""

from __future__ import annotations

from typing import Any

PROSE: dict[str, Any] = {
    "schema_version": "1.0",
    "analyzer": "gemm",
    "summary": "Products take {{gemm.time_ms}} in all.",
    "findings": [
        {
            "id": "gemm.F1",
            "insight": "The product takes {{gemm.F1.time_ms}}.",
            "action": "Give each call more rows to work on.",
            "reasoning": "Its floor is {{gemm.F1.floor_ms}}, far below.",
            "resolution": "Raise the batch.\n\nThen measure again.",
        }
    ],
}
MODEL_PROSE: dict[str, Any] = {
    "schema_version": "1.0",
    "analyzer": "model",
    "name": "Qwen1.5-0.5B",
    "family": "decoder-only transformer",
    "confidence": "medium",
    "reasoning": "Its layers are of class `Qwen2DecoderLayer`.",
    "summary": "A small decoder that generated text.",
}
STATE: dict[str, Any] = {
    "schema_version": "1.0",
    "tool_version": "0.1.0",
    "source_sha256": "ab" * 32,
    "trace_path": "/traces/a.json.gz",
    "options": {"platform": "h100-sxm"},
    "tasks": [
        {
            "analyzer": "gemm",
            "brief": "tasks/gemm.md",
            "prose": "prose/gemm.json",
            "status": "handed_out",
            "dispatches": 1,
            "submissions": 1,
            "problems": ["GROUND001 prose/gemm.json::$.summary: `42` is a number that no script wrote"],
        }
    ],
}
WRITTEN = {"prose": PROSE, "model_prose": MODEL_PROSE, "state": STATE}
