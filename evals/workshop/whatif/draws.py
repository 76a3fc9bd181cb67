"""Random but realistic runs, each with a random change; one seed is one case."""

from __future__ import annotations

from collections import Counter

from evals.workshop.instructions import Launch, Thread
from evals.workshop.program import Draws
from evals.workshop.transformer import LOADER
from evals.workshop.whatif.cases import Case, simulated_case
from evals.workshop.whatif.changes import (
    COLLECTIVE,
    Both,
    Change,
    DropSpans,
    FreeCollectives,
    FreeCopies,
    RemoveWaits,
    ScaleHost,
    ScaleKernels,
    Single,
)
from evals.workshop.whatif.runs import programs
from evals.workshop.whatif.traits import Traits, chance, draw_traits, pick

FACTORS = (0.25, 0.5, 0.7)
SHARE_OF_TWO = 0.2
"""Of the cases, those that change two things at once."""


def draw(seed: int) -> Case:
    """The case of a seed."""
    traits = draw_traits(seed)
    threads = programs(traits)
    return simulated_case(
        Case(
            name=f"seed {seed}",
            threads=threads,
            change=_change(traits, threads, Draws(traits.seed, "change")),
            before_ns=0,
            after_ns=0,
            gpu=traits.gpu,
            sync_events=traits.sync_events,
            trait=traits.words,
        )
    )


def _change(traits: Traits, threads: tuple[Thread, ...], d: Draws) -> Change:
    possible = _possible(traits, threads, d)
    first = pick(d, "first", possible)
    others = [change for change in possible if type(change) is not type(first)]
    if others and chance(d, "two", SHARE_OF_TWO):
        return Both(first=first, second=pick(d, "second", others))
    return first


def _possible(traits: Traits, threads: tuple[Thread, ...], d: Draws) -> list[Single]:
    """The changes that touch something in this run, those more than once that are likely to matter."""
    is_host = traits.host_share > 0.5
    found: list[Single] = [ScaleKernels(name=_kernel(threads, d), factor=pick(d, "factor", FACTORS))]
    found += [ScaleHost(factor=0.5), ScaleHost(factor=0.5)] if is_host else [found[0], ScaleHost(factor=0.5)]
    if traits.stall_ns:
        found.append(DropSpans(name=LOADER))
    if traits.reads != "never" and (traits.steps > 1 or traits.read_share):
        found.append(RemoveWaits(op="aten::item"))
    if traits.copy_bytes:
        found += [FreeCopies(), RemoveWaits(op="aten::copy_")]
    if traits.collective_bytes:
        found.append(FreeCollectives())
    return found


def _kernel(threads: tuple[Thread, ...], d: Draws) -> str:
    """One of the three kernels with most time, the first one in half of the draws."""
    spent: Counter[str] = Counter()
    for thread in threads:
        for row in thread.instructions:
            for activity in row.activities if isinstance(row, Launch) else ():
                if activity.kind == "kernel" and not activity.name.startswith(COLLECTIVE):
                    spent[activity.name] += activity.duration_ns
    most = [name for name, _ in sorted(spent.items(), key=lambda item: (-item[1], item[0]))[:3]]
    return most[0] if chance(d, "most", 0.5) else pick(d, "kernel", most)
