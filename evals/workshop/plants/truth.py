"""A case: a base with kinds planted; its trace, and what each kind and each set of kernels really costs."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection
from dataclasses import dataclass, field, replace
from functools import cached_property

from evals.workshop.hardware import Gpu
from evals.workshop.instructions import (
    Activity,
    Instruction,
    Launch,
    RecordEvent,
    Synchronize,
    Thread,
    Timeline,
    WaitEvent,
)
from evals.workshop.kineto import Header, trace_text
from evals.workshop.plants.machines import MACHINES
from evals.workshop.plants.networks import BASES
from evals.workshop.plants.scene import NATURAL, Setting
from evals.workshop.simulator import simulate
from evals.workshop.truth import span_ns
from evals.workshop.whatif.changes import NEVER, ScaleHost, changed

Threads = tuple[Thread, ...]
Shrink = Callable[[Activity], int]


@dataclass(frozen=True, kw_only=True)
class Case:
    """``decoys``: kinds that are there although they cost nothing here; ``split``: ``train`` or ``held-out``."""

    name: str
    base: str
    machine: str
    seed: str
    planted: tuple[str, ...]
    split: str = "train"
    sizes: dict[str, int] = field(default_factory=dict, hash=False)

    @property
    def gpu(self) -> Gpu:
        """The GPU, with the rates that are reached."""
        return MACHINES[self.machine]

    def threads(self, planted: Collection[str] | None = None) -> Threads:
        """The programs with these kinds planted and the case's others mended; with all unless told otherwise."""
        kinds = frozenset(self.planted if planted is None else planted)
        mended = frozenset(self.planted) - kinds
        return BASES[self.base](Setting(gpu=self.gpu, seed=self.seed, planted=kinds, mended=mended, **self.sizes))


class Run:
    """A case simulated, and everything that may be asked about it."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.threads = case.threads()
        self.timeline: Timeline = simulate(self.threads)
        self.span_ns = span_ns(self.timeline)

    def trace(self) -> str:
        """The trace as a profiler writes it."""
        case = self.case
        is_many = case.base in ("distributed", "experts", "recommender")
        header = Header(
            gpu=case.gpu,
            threads={thread.tid: thread.name for thread in self.threads},
            trace_name=f"{case.name.replace(' ', '_')}.json",
            trace_id=hashlib.blake2b(case.name.encode(), digest_size=16).hexdigest().upper(),
            rank=0 if is_many else None,
            world_size=8 if is_many else 1,
            sync_events=case.gpu.vendor == "nvidia",
        )
        return trace_text(self.timeline, header)

    @cached_property
    def costs(self) -> dict[str, int]:
        """What the span loses without each kind, what takes its place run at its floor."""
        return {kind: self.cost({kind}) for kind in self.case.planted}

    def cost(self, kinds: Collection[str]) -> int:
        """The same for some kinds at once, ns."""
        left = [kind for kind in self.case.planted if kind not in kinds]
        without = _shrunk(self.case.threads(left), lambda row: row.floor_ns if row.tag in kinds else -1)
        return self.span_ns - span_ns(simulate(without))

    def absent(self, kinds: Collection[str]) -> int:
        """What the span loses if nothing takes the place of some kinds: no remedy can save more."""
        left = tuple(kind for kind in self.case.planted if kind not in kinds)
        without = replace(self.case, planted=left).threads()
        return self.span_ns - span_ns(simulate(_shrunk(without, lambda row: row.floor_ns if row.tag in kinds else -1)))

    def plain_cost(self, kinds: Collection[str]) -> int:
        """The same with what takes their place as sound as any other kernel, ns."""
        left = [kind for kind in self.case.planted if kind not in kinds]
        return self.span_ns - span_ns(simulate(self.case.threads(left)))

    @cached_property
    def tags(self) -> dict[int, str]:
        """Correlation -> what its activities are there for; kinds that are not planted are none."""
        return {
            row.correlation: row.tag if row.tag in self.case.planted or row.tag.startswith(NATURAL) else ""
            for row in self.timeline.activities
        }

    @cached_property
    def durations(self) -> dict[int, int]:
        """Correlation -> time of its activities, ns."""
        spent: Counter[int] = Counter()
        for row in self.timeline.activities:
            spent[row.correlation] += row.end_ns - row.start_ns
        return dict(spent)

    def tuned(self, correlations: Collection[int]) -> int:
        """What the span loses if these activities take their floor, ns."""
        return self._without(correlations, lambda row: min(row.floor_ns, row.duration_ns))

    def gone(self, correlations: Collection[int]) -> int:
        """What it loses if they take no time: no change of them can save more."""
        return self._without(correlations, lambda _: 0)

    @cached_property
    def host_bound_ns(self) -> int:
        """What it loses if the host takes no time at all and nothing blocks it."""
        threads = changed(_unblocked(self.threads), ScaleHost(factor=0.0))
        return self.span_ns - span_ns(simulate(threads))

    @cached_property
    def device_gaps_ns(self) -> int:
        """What it loses if queued activities follow each other at once."""
        threads = tuple(
            replace(
                thread,
                instructions=tuple(
                    replace(row, activities=tuple(replace(one, gap_ns=0) for one in row.activities))
                    if isinstance(row, Launch)
                    else row
                    for row in thread.instructions
                ),
            )
            for thread in self.threads
        )
        return self.span_ns - span_ns(simulate(threads))

    def _without(self, correlations: Collection[int], shrink: Shrink) -> int:
        chosen = set(correlations)
        order: defaultdict[int, list[int]] = defaultdict(list)
        for call in self.timeline.calls:
            order[call.tid].append(call.correlation)
        threads = []
        for thread in self.threads:
            numbers = iter(order[thread.tid])
            rows: list[Instruction] = []
            for row in thread.instructions:
                is_call = isinstance(row, (Launch, Synchronize, RecordEvent, WaitEvent))
                number = next(numbers) if is_call else -1
                rows.append(_resized(row, shrink) if isinstance(row, Launch) and number in chosen else row)
            threads.append(replace(thread, instructions=tuple(rows)))
        return self.span_ns - span_ns(simulate(tuple(threads)))


def _resized(launch: Launch, shrink: Shrink) -> Launch:
    """``shrink`` gives an activity's new time, -1 where it stays."""
    rows = []
    for row in launch.activities:
        ns = shrink(row)
        rows.append(row if ns < 0 else replace(row, duration_ns=ns))
    return replace(launch, activities=tuple(rows))


def _shrunk(threads: Threads, shrink: Shrink) -> Threads:
    return tuple(
        replace(
            thread,
            instructions=tuple(
                _resized(row, shrink) if isinstance(row, Launch) else row for row in thread.instructions
            ),
        )
        for thread in threads
    )


def _unblocked(threads: Threads) -> Threads:
    def free(row: Instruction) -> Instruction:
        if isinstance(row, Launch):
            return replace(row, is_blocking=False)
        return replace(row, event=NEVER) if isinstance(row, Synchronize) else row

    return tuple(replace(thread, instructions=tuple(free(row) for row in thread.instructions)) for thread in threads)
