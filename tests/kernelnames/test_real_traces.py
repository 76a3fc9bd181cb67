"""Every distinct kernel name of the real traces at hand."""

from __future__ import annotations

import gzip
import os
import time
from collections import defaultdict
from pathlib import Path
from typing import get_args

import orjson
import pytest

from rooftrace.contracts.base import Category
from rooftrace.kernelnames import describe, describe_copy

TRACES = Path(os.environ.get("ROOFTRACE_TRACES", Path(__file__).resolve().parents[3] / "shared" / "traces"))
# Small traces of every kind: CUDA and ROCm, training and inference, eager, compiled and graph-replayed.
FILES = (
    "amd/mi250_train.json.gz",
    "h100/gaunernst_bert-small-uncased__1016001.json.gz",
    "mi210/gpu_only_trace.json.gz",
    "mi300/gaunernst_bert-small-uncased__1016001.json.gz",
    "mi300/normalization_layer_test.json.gz",
    "nvidia/a100_sampled_rank-0.json.gz",
    "nvidia/a100_switch_transformer.json.gz",
    "nvidia/a100_triton.json.gz",
    "ranks/dlrm8/rank0.json.gz",
    "ranks/megatron_tp8/rank0.json.gz",
    "serving/sglang_decode/sglang_Qwen3-8B_decode.json.gz",
    "serving/vllm_decode_full/graph_execution.json.gz",
)

pytestmark = [
    pytest.mark.real_traces,
    pytest.mark.skipif(not TRACES.is_dir(), reason=f"no traces at {TRACES.name}; set ROOFTRACE_TRACES"),
]


def names_by_time(file):
    """Microseconds by kernel name, and the names of copies."""
    kernels = defaultdict(float)
    copies = set()
    for event in orjson.loads(gzip.decompress((TRACES / file).read_bytes()))["traceEvents"]:
        category = str(event.get("cat", "")).lower()
        if category == "kernel":
            kernels[event["name"]] += float(event.get("dur", 0))
        elif category in {"gpu_memcpy", "gpu_memset", "memcpy", "memset"}:
            copies.add(event["name"])
    return kernels, copies


@pytest.mark.parametrize("file", FILES)
def test_little_time_is_generic_or_without_a_library(file):
    kernels, copies = names_by_time(file)
    started = time.process_time()
    infos = {name: describe(name) for name in kernels}
    seconds = time.process_time() - started

    total = sum(kernels.values())
    generic = sum(us for name, us in kernels.items() if infos[name].category == "generic")
    no_library = sum(us for name, us in kernels.items() if infos[name].library is None)
    assert {info.category for info in infos.values()} <= set(get_args(Category))
    assert generic <= 0.03 * total
    assert no_library <= 0.03 * total
    # 0.03 s for 200 names where this was written
    assert seconds < 0.5
    assert all(describe_copy(name).direction for name in copies)
