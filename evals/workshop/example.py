"""The repository's example: three training steps of a small decoder on an H100, and the truth about them.

The cost of a planted problem is what the device's span loses when the same run is simulated without it; every
other number of that run is the same draw.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from evals.workshop.hardware import H100_SXM
from evals.workshop.instructions import Timeline
from evals.workshop.kineto import START_NS, Header, trace_text, write_trace
from evals.workshop.program import Gemm
from evals.workshop.simulator import simulate
from evals.workshop.transformer import Workload, training
from evals.workshop.truth import span_ns, step_windows, window_facts

TRACE_NAME = "transformer_training_h100.json.gz"
TRUTH_NAME = "transformer_training_h100.truth.json"
WORKLOAD = Workload(gpu=H100_SXM)
DESCRIPTIONS = {
    "slow_gemm": (
        "the second linear of every MLP runs forward on an old small-tile kernel at 28 % of its roofline",
        "aten::addmm in nn.Module: MLP_*, Linear_3, Linear_7, Linear_11, Linear_15; 12 kernels",
    ),
    "unfused_rms_norm": (
        "an RMS norm written out as single operators, eight kernels forward, instead of aten::rms_norm",
        "nn.Module: RMSNorm_*, model.py(17): forward, and its backward nodes",
    ),
    "loss_item_each_step": (
        "the loss is read on the host after every step, so the queue runs dry before the next one begins",
        "aten::item in train.py(58): log_loss, once a step",
    ),
    "data_loader_stall": (
        "one batch comes 3.5 ms late",
        "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__ in ProfilerStep#4",
    ),
}
Facts = dict[str, object]


def build(workload: Workload = WORKLOAD) -> tuple[str, Facts]:
    """The trace's text and the truth about it."""
    programs = training(workload)
    timeline = simulate(programs.threads)
    header = Header(
        gpu=workload.gpu,
        threads={thread.tid: thread.name for thread in programs.threads},
        trace_name=TRACE_NAME.removesuffix(".gz"),
        trace_id=hashlib.blake2b(workload.seed.encode(), digest_size=16).hexdigest().upper(),
        notes={"workload": _workload_facts(workload)},
    )
    text = trace_text(timeline, header)
    span = span_ns(timeline)
    truth: Facts = {
        "schema_version": 1,
        "synthetic": True,
        "trace": TRACE_NAME,
        "trace_json_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "workload": _workload_facts(workload),
        "whole": _whole(timeline, programs.gemms, workload),
        "steps": _steps(timeline, programs.gemms),
        "problems": _problems(workload, span),
        "together_cost_ns": span - _span_without(workload, workload.problems),
    }
    return text, truth


def write_example(folder: Path) -> list[Path]:
    """Writes trace and truth; returns their paths."""
    text, truth = build()
    folder.mkdir(parents=True, exist_ok=True)
    write_trace(folder / TRACE_NAME, text)
    (folder / TRUTH_NAME).write_text(truth_text(truth), encoding="utf-8")
    return [folder / TRACE_NAME, folder / TRUTH_NAME]


def truth_text(truth: Facts) -> str:
    """The truth as it is written."""
    return json.dumps(truth, indent=2, ensure_ascii=False) + "\n"


def _workload_facts(workload: Workload) -> dict[str, int | str]:
    return {
        "model": "decoder, bf16 parameters, AdamW (foreach)",
        "gpu": workload.gpu.slug,
        "layers": workload.layers,
        "width": workload.width,
        "heads": workload.heads,
        "vocabulary": workload.vocabulary,
        "batch": workload.batch,
        "length": workload.length,
        "steps": workload.steps,
        "seed": workload.seed,
    }


def _whole(timeline: Timeline, gemms: Sequence[Gemm], workload: Workload) -> Facts:
    rows = timeline.activities
    window = (min(row.start_ns for row in rows), max(row.end_ns for row in rows))
    return {
        "device": str(workload.gpu.properties["name"]),
        "start_ns": START_NS + window[0],
        "end_ns": START_NS + window[1],
        **window_facts(timeline, gemms, window),
    }


def _steps(timeline: Timeline, gemms: Sequence[Gemm]) -> list[Facts]:
    facts: list[Facts] = []
    for number, window in enumerate(step_windows(timeline)):
        own = [product for product in gemms if product.step == number]
        facts.append(
            {
                "name": window.name,
                "start_ns": START_NS + window.start_ns,
                "end_ns": START_NS + window.end_ns,
                **window_facts(timeline, own, (window.start_ns, window.end_ns)),
            }
        )
    return facts


def _problems(workload: Workload, span: int) -> list[Facts]:
    rows: list[Facts] = []
    for name in sorted(workload.problems):
        what, where = DESCRIPTIONS[name]
        cost = span - _span_without(workload, frozenset({name}))
        rows.append({"name": name, "what": what, "where": where, "cost_ns": cost})
    return rows


def _span_without(workload: Workload, removed: frozenset[str]) -> int:
    """The device's span of the same run without these problems."""
    without = replace(workload, problems=workload.problems - removed)
    return span_ns(simulate(training(without).threads))
