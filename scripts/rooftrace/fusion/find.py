"""From a run to its fusion candidates: every kernel in at most one of them, and what is none with the reason."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace import roofline
from rooftrace.fusion.calls import Calls, FusionInputs, collect_calls
from rooftrace.fusion.candidates import BROKEN, EQUAL, Builder, Candidate, Rejected
from rooftrace.fusion.compositions import load_compositions
from rooftrace.fusion.fused_time import Machine
from rooftrace.fusion.names import NamedRun, find_named
from rooftrace.fusion.owners import DDP_COPIES
from rooftrace.fusion.resolve import Claim, choose
from rooftrace.fusion.spans import Places, find_runs, find_spans
from rooftrace.fusion.tokens import BARRIER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

NOTHING_SAVED = "nothing to save: as fast as the fused kernel would be"


class FusionResult(Struct, frozen=True, kw_only=True):
    """Candidates, most saved first; ``unrated`` have no time to claim, ``named`` are known from kernel names alone."""

    calls: Calls
    candidates: tuple[Candidate, ...]
    unrated: tuple[Candidate, ...]
    named: tuple[NamedRun, ...]
    rejected: tuple[Rejected, ...]
    before_window: dict[int, int]  # example of a candidate -> instances before the window, by kernel names

    def activities(self, candidate: Candidate) -> NDArray[np.int64]:
        """Activities that the instances claim: a row an instance, in the order of the stream."""
        calls = self.calls
        columns = []
        for member in candidate.members:
            low = calls.bounds[candidate.first + member]
            size = int(calls.bounds[candidate.first[0] + member + 1] - low[0])
            columns.append(calls.order[low[:, None] + np.arange(size)[None, :]])
        return np.concatenate(columns, axis=1)


def find_candidates(run: FusionInputs) -> FusionResult:
    """Every fusion candidate of a run."""
    calls = collect_calls(run)
    places = Places(run, calls)
    machine = machine_of(run)
    builder = Builder(places, machine)
    compositions = load_compositions()
    found = [candidate for spans in find_spans(places, compositions) for candidate in builder.build(spans)]
    chosen, taken = _chosen(found, np.zeros(calls.node.size, dtype=bool))
    unrated, named_too = _without_time(found, taken)
    runs = builder.build(find_runs(places, taken | named_too))
    novel = [candidate for candidate in runs if candidate.estimate is not None and candidate.weight > 0]
    taken = taken | named_too | _covered(novel, taken.size)
    unrated += _without_time(runs, taken)[0]
    chosen += novel
    chosen.sort(key=lambda c: (-int(c.saving_ns.sum()), int(c.first[0])))
    unrated.sort(key=lambda c: (-int(c.time_ns.sum()), int(c.first[0])))
    named, before = find_named(run, calls, chosen)
    return FusionResult(
        calls=calls,
        candidates=tuple(chosen),
        unrated=tuple(unrated),
        named=named,
        rejected=tuple(_rejected([*found, *runs], places, taken)),
        before_window=before,
    )


def machine_of(run: FusionInputs) -> Machine | None:
    """What fused kernels of a run would run on; None where the GPU is not known."""
    if run.platform is None:
        return None
    return Machine(platform=run.platform, latency_ns=roofline.latency_floor(run.platform, run.activities))


def _chosen(found: Sequence[Candidate], taken: NDArray[np.bool_]) -> tuple[list[Candidate], NDArray[np.bool_]]:
    """The instances that save most among what is not taken, and what is taken then.

    Of compositions that save the same the one counts that names around the calls say, else that of an optimizer, else
    the one of more spellings.
    """
    rated = [candidate for candidate in found if candidate.estimate is not None and candidate.weight > 0]
    rated.sort(key=_preference)
    chosen = _resolved(rated, [candidate.weight for candidate in rated], taken=taken)
    return chosen, taken | _covered(chosen, taken.size)


def _preference(candidate: Candidate) -> tuple[bool, bool, int]:
    composition = candidate.composition
    if composition is None:
        return (True, True, 0)
    file = composition.file
    return (not composition.names_it(candidate.scope), not file.optimizers, -len(file.sequences))


def _without_time(found: Sequence[Candidate], taken: NDArray[np.bool_]) -> tuple[list[Candidate], NDArray[np.bool_]]:
    """Instances without a time to claim, the most calls first, and the calls inside them."""
    unknown = [c for c in found if c.reason is not None and c.reason not in _NO_CANDIDATE and _tells_enough(c)]
    chosen = _resolved(unknown, [len(candidate.members) for candidate in unknown], taken=taken)
    return chosen, _covered(chosen, taken.size)


def _tells_enough(candidate: Candidate) -> bool:
    """Whether the words alone are a pattern where no shapes confirm it: three different ones at least."""
    return candidate.connected or len({call.word for call in candidate.calls}) >= _TELLING


_TELLING = 3
_NO_CANDIDATE = frozenset({BROKEN, EQUAL})


def _resolved(found: Sequence[Candidate], weights: Sequence[int], *, taken: NDArray[np.bool_]) -> list[Candidate]:
    """The instances that together save most, no two of which share a call; none that overlaps what is taken."""
    before = np.r_[0, np.cumsum(taken)]
    claims: list[Claim] = []
    owner: list[tuple[int, int]] = []
    for number, (candidate, weight) in enumerate(zip(found, weights, strict=True)):
        free = before[candidate.first] == before[candidate.first + candidate.length]
        for at in np.flatnonzero(free).tolist():
            first = int(candidate.first[at])
            claims.append(Claim(first, first + candidate.length - 1, weight))
            owner.append((number, at))
    kept: dict[int, list[int]] = defaultdict(list)
    for position in choose(claims):
        number, at = owner[position]
        kept[number].append(at)
    result = []
    for number in sorted(kept):
        mask = np.zeros(found[number].first.size, dtype=bool)
        mask[kept[number]] = True
        result.append(found[number].restricted(mask))
    return result


def _covered(chosen: Sequence[Candidate], size: int) -> NDArray[np.bool_]:
    """Calls that lie inside a chosen instance."""
    edges = np.zeros(size + 1, dtype=np.int64)
    for candidate in chosen:
        np.add.at(edges, candidate.first, 1)
        np.add.at(edges, candidate.first + candidate.length, -1)
    covered: NDArray[np.bool_] = np.cumsum(edges)[:-1] > 0
    return covered


def _rejected(found: Sequence[Candidate], places: Places, taken: NDArray[np.bool_]) -> list[Rejected]:
    """Compositions that came to nothing and calls that are never fused, by reason."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    before = np.r_[0, np.cumsum(taken)]
    for candidate in found:
        if candidate.composition is None:
            continue
        if candidate.reason in _NO_CANDIDATE:
            reason = candidate.reason or ""
        elif candidate.estimate is not None and candidate.weight <= 0:
            reason = NOTHING_SAVED
        else:
            continue
        free = before[candidate.first] == before[candidate.first + candidate.length]
        if free.any():
            entry = counts[candidate.composition.file.name, reason]
            entry[0] += int(free.sum())
            entry[1] += int(candidate.time_ns[free].sum())
    _count_barriers(places.calls, counts)
    copies = np.flatnonzero(places.by_ddp)
    if copies.size:
        counts["copies", DDP_COPIES] = [int(copies.size), int(places.calls.time_ns[copies].sum())]
    return [
        Rejected(what=what, reason=reason, count=count, time_ns=time)
        for (what, reason), (count, time) in sorted(counts.items(), key=lambda item: (-item[1][1], item[0]))
    ]


def _count_barriers(calls: Calls, counts: dict[tuple[str, str], list[int]]) -> None:
    """Add the calls that nothing is fused across."""
    blocked = np.array([meaning.word == BARRIER for meaning in calls.meanings], dtype=bool)
    mine = np.flatnonzero(blocked[calls.meaning]) if calls.meaning.size else calls.meaning
    for number, time in zip(calls.meaning[mine].tolist(), calls.time_ns[mine].tolist(), strict=True):
        meaning = calls.meanings[number]
        entry = counts[meaning.name, meaning.reason or ""]
        entry[0] += 1
        entry[1] += time
