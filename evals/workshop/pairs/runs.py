"""The runs that pairs are made of, and a pair."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from evals.workshop.hardware import Gpu
from evals.workshop.instructions import Thread, Timeline
from evals.workshop.kineto import Header, trace_text
from evals.workshop.program import Draws, Tensor, ThreadBuilder
from evals.workshop.simulator import simulate
from evals.workshop.transformer import MAIN_TID, Workload, inference, training

Threads = tuple[Thread, ...]
LARGE, SMALL = {"width": 1024, "batch": 8, "length": 1024}, {"width": 256, "batch": 1, "length": 64}
X = Tensor((8, 1024, 1024))


@dataclass(frozen=True, kw_only=True)
class PairCase:
    """``causes``: any of these names the change, empty where nothing is to be found.

    ``subject``: part of what the finding is about.

    ``planted``: whether the change is one of GPU work alone, so that what durations grew by is its size.
    """

    name: str
    gpu: Gpu
    base: Threads
    target: Threads
    causes: tuple[str, ...]
    subject: str = ""
    is_regression: bool = True
    planted: bool = True

    def timelines(self) -> tuple[Timeline, Timeline]:
        """Both runs."""
        return simulate(self.base), simulate(self.target)

    def traces(self) -> tuple[str, str]:
        """Both traces."""
        first, second = self.timelines()
        return self._text(first, self.base, "base"), self._text(second, self.target, "target")

    def _text(self, timeline: Timeline, threads: Threads, side: str) -> str:
        header = Header(
            gpu=self.gpu,
            threads={thread.tid: thread.name for thread in threads},
            trace_name=f"{self.name.replace(' ', '_')}_{side}.json",
            trace_id=hashlib.blake2b(f"{self.name} {side}".encode(), digest_size=16).hexdigest().upper(),
            sync_events=self.gpu.vendor == "nvidia",
        )
        return trace_text(timeline, header)


_BUILT: dict[tuple[str, str, str, frozenset[str], int], Threads] = {}


def run(gpu: Gpu, kind: str, size: str, problems: frozenset[str] = frozenset(), layers: int = 2) -> Threads:
    """A run of the decoder: ``training`` or ``inference``, ``large`` (GPU-bound) or ``small`` (host-bound)."""
    key = (gpu.slug, kind, size, problems, layers)
    if key not in _BUILT:
        sizes = LARGE if size == "large" else SMALL
        workload = Workload(gpu=gpu, layers=layers, vocabulary=8000, steps=4, problems=problems, **sizes)
        _BUILT[key] = (training if kind == "training" else inference)(workload).threads
    return _BUILT[key]


def builder(gpu: Gpu, seed: str, stream: int | None = None) -> ThreadBuilder:
    """Builds instructions that are put into the main thread, for its default stream or another one."""
    default = 7 if gpu.vendor == "nvidia" else 0
    return ThreadBuilder(gpu, Draws(seed), tid=MAIN_TID, name="python3", stream=default if stream is None else stream)


def planted_ns(case: PairCase) -> int | None:
    """What durations of GPU work grew by, all steps together; None where the change is none of durations."""
    if not case.planted or not case.causes:
        return None
    first, second = case.timelines()
    spent = [sum(row.end_ns - row.start_ns for row in timeline.activities) for timeline in (first, second)]
    return spent[1] - spent[0]
