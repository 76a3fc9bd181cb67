"""The fast reader gives what the slow one gives, on real traces.

By default the files below 3 MB of a spread of writers and the two largest; all of them with ROOFTRACE_ALL_TRACES=1
(about a minute).
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.trace.reading import assert_same, read_both

pytestmark = pytest.mark.real_traces

ROOT = Path(os.environ.get("ROOFTRACE_TRACES") or Path(__file__).resolve().parents[3] / "shared" / "traces")
HANDFUL = (
    "amd/mi250_train.json.gz",
    "cpu/rank_non_gpu.json.gz",
    "h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "mi210/gpu_only_trace.json.gz",
    "mi300/google_owlv2-large-patch14-ensemble__1016001.json.gz",
    "mi300/normalization_layer_test.json.gz",
    "mi300/torch_compile_triton.json.gz",
    "nvidia/a100_sampled_rank-0.json.gz",
    "nvidia/a100_triton.json.gz",
    "nvidia/alexnet.json.gz",
    "nvidia/event_sync_multi_stream.json.gz",
    "nvidia/kineto_before_fix.json.gz",
    "nvidia/v100_ns_resolution.json.gz",
    "nvidia/v100_torch18_old_format.json.gz",
    "ranks/dlrm8/rank0.json.gz",
    "ranks/megatron_tp8/rank0.json.gz",
    "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "serving/vllm_decode_full/graph_execution.json.gz",
)


def chosen() -> list[str]:
    """Paths below the folder of traces, in order."""
    if os.environ.get("ROOFTRACE_ALL_TRACES") == "1":
        return sorted(str(path.relative_to(ROOT)) for path in ROOT.rglob("*.json.gz"))
    return list(HANDFUL)


@pytest.mark.parametrize("name", chosen())
def test_both_readers_give_the_same_columns(name: str) -> None:
    path = ROOT / name
    if not path.exists():
        pytest.skip(f"no {name} under {ROOT} (set ROOFTRACE_TRACES)")

    fast, slow = read_both(path)

    assert_same(fast, slow)
    assert fast.event_count > 0
    assert (fast.repaired.counts, fast.dropped.counts) == ({}, {})
