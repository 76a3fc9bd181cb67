"""Prose as a writer hands it in, sound for any finding, and a run that waits for it."""

from __future__ import annotations

from pathlib import Path

from rooftrace.workflow.agents import prepare
from rooftrace.workflow.options import AnalyzeOptions
from tests.golden_runs.cases import gpu_training

SLOTS = {
    "insight": "The kernels of this finding take {{%s.score_mid_pct}} of the span more than they need.",
    "action": "Wrap the step in `torch.compile` and record the run again.",
    "reasoning": "The score is {{%s.score_high_pct}} at most, and the quantities of the finding lead to it.",
    "resolution": "Compile the step, keep the shapes fixed.\n\nCompare the outputs once.",
}


def prose_for(*ids: str) -> str:
    """Text in the form of a brief for these findings."""
    parts = ["summary: What these findings say together is told by the findings themselves."]
    for name in ids:
        slots = [f"{slot}: {text.replace('%s', name)}" for slot, text in SLOTS.items()]
        parts.append("\n".join([name, *slots]))
    return "\n\n".join(parts) + "\n"


def prepared_run(folder: Path, builder=gpu_training) -> Path:
    """A run in which nothing has been handed out yet."""
    trace = builder().write(folder / "trace.json", "plain")
    prepare(trace, folder / "run", AnalyzeOptions(platform="h100-sxm"), {"platform": "h100-sxm"})
    return folder / "run"
