"""Simulates cases, analyses them and measures the outcome."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from evals.scoring.analyse import analyse
from evals.scoring.measures import CaseResult, measure
from evals.workshop.plants.truth import Case, Run


def score_case(case: Case) -> CaseResult:
    """One case from its seed to its measures."""
    run = Run(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_text(run.trace(), encoding="utf-8")
        return measure(run, analyse(path))


def score_cases(
    cases: Iterable[Case], *, workers: int = 1, progress: Callable[[CaseResult], None] | None = None
) -> list[CaseResult]:
    """All of them, in order."""
    listed = list(cases)
    if workers <= 1:
        done: Iterable[CaseResult] = map(score_case, listed)
        return [_told(result, progress) for result in done]
    with ProcessPoolExecutor(workers) as pool:
        return [_told(result, progress) for result in pool.map(score_case, listed, chunksize=4)]


def _told(result: CaseResult, progress: Callable[[CaseResult], None] | None) -> CaseResult:
    if progress is not None:
        progress(result)
    return result
