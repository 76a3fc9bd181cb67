"""The corpus: every pair is a run and the same run with one known change, or with none that matters."""

from __future__ import annotations

from evals.workshop.hardware import A100_SXM_80, H100_SXM, MI300X
from evals.workshop.pairs import changes
from evals.workshop.pairs.further_cases import further_cases
from evals.workshop.pairs.kernel_cases import kernel_cases
from evals.workshop.pairs.order_cases import order_cases
from evals.workshop.pairs.runs import PairCase, run


def corpus() -> list[PairCase]:
    """Every pair."""
    return [*kernel_cases(), *order_cases(), *further_cases(), *same_cases()]


def same_cases() -> list[PairCase]:
    """Pairs that differ in names, in the way of launching or by noise alone: nothing is to be found."""
    cases = []
    for gpu in (H100_SXM, MI300X):
        threads = run(gpu, "training", "large")
        renamed = changes.renamed_spans(
            threads,
            lambda name: name.replace("Module: MLP_", "Module: FeedForward_").replace("_Self", "_Masked"),
        )
        cases.append(PairCase(name=f"{gpu.slug} modules renamed", gpu=gpu, base=threads, target=renamed, causes=()))
    for gpu in (H100_SXM, A100_SXM_80):
        threads = run(gpu, "inference", "large", frozenset(), 4)
        unstacked = changes.without_frames(threads)
        cases.append(PairCase(name=f"{gpu.slug} no stacks", gpu=gpu, base=threads, target=unstacked, causes=()))
        lowered = changes.renamed_spans(threads, lambda name: {"aten::linear": "aten::_linear"}.get(name, name))
        cases.append(PairCase(name=f"{gpu.slug} other dispatch", gpu=gpu, base=threads, target=lowered, causes=()))
        replayed = changes.as_graph(threads, "nn.Module: GPT_0")
        cases.append(PairCase(name=f"{gpu.slug} graph replay", gpu=gpu, base=threads, target=replayed, causes=()))
        noisy = [changes.with_jitter(threads, 0.02, seed) for seed in ("one", "two")]
        cases.append(PairCase(name=f"{gpu.slug} noise", gpu=gpu, base=noisy[0], target=noisy[1], causes=()))
    return cases
