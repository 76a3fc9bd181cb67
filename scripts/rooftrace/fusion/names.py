"""Candidates known from the names of kernels alone: replayed graphs, traces without a host, and carried-in kernels.

No call is recorded, so there are no shapes and no claim about data or time: a sequence of names that recurs is all.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.calltree import Link
from rooftrace.fusion.compositions import Alphabet, Composition, find_all, load_compositions
from rooftrace.fusion.meaning import why_barrier
from rooftrace.fusion.resolve import Claim, choose
from rooftrace.fusion.tokens import kernel_word
from rooftrace.sorted_unique import sorted_unique

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from rooftrace.fusion.calls import Calls, FusionInputs
    from rooftrace.fusion.candidates import Candidate
    from rooftrace.kernelnames import KernelInfo

_PLAIN = frozenset({"elementwise", "reduction", "memory"})
_NATIVE = "PyTorch native"
_RECURS = 3  # occurrences of one sequence of names from which on it is told, where no composition is known
_LONGEST = 32
_MOST_COUNTED = 64  # candidates, most saved first, that are looked for among the kernels of before the window
# Name codes as characters beyond the surrogates.
_FIRST_CHARACTER = 0x10000


class NamedRun(Struct, frozen=True, kw_only=True):
    """Instances of one sequence of kernel names; ``first`` is the first call (here: kernel) of each."""

    composition: Composition | None
    kernels: tuple[int, ...]  # name codes
    first: NDArray[np.int64]
    time_ns: NDArray[np.int64]
    graph: bool


def find_named(
    run: FusionInputs, calls: Calls, chosen: Sequence[Candidate]
) -> tuple[tuple[NamedRun, ...], dict[int, int]]:
    """Recurring sequences without a recorded call, and how often each candidate ran before the window."""
    if not calls.node.size:
        return (), {}
    activity = calls.order[calls.bounds[:-1]]
    bare = calls.node < 0
    early = bare & (run.activities.link[activity] == int(Link.CARRY_IN))
    return _named(run, calls, bare & ~early), _before_window(run, calls, early, chosen)


def _before_window(
    run: FusionInputs, calls: Calls, early: NDArray[np.bool_], chosen: Sequence[Candidate]
) -> dict[int, int]:
    """Occurrences of each candidate's kernel names among those launched before the window."""
    at = np.flatnonzero(early)
    codes = run.activities.name[calls.order[calls.bounds[at]]].tolist()
    breaks = np.r_[False, (np.diff(at) != 1) | (np.diff(calls.queue[at]) != 0)].tolist() if at.size else []
    text = "".join(
        ("\n" if cut else "") + chr(_FIRST_CHARACTER + code) for code, cut in zip(codes, breaks, strict=True)
    )
    found: dict[int, int] = {}
    seen: set[str] = set()
    for candidate in chosen[:_MOST_COUNTED]:
        first = candidate.example
        names = run.activities.name[calls.activities_of(first, first + candidate.length - 1)].tolist()
        wanted = "".join(chr(_FIRST_CHARACTER + code) for code in names)
        if wanted not in seen:
            seen.add(wanted)
            count = text.count(wanted)
            if count:
                found[first] = count
    return found


def _named(run: FusionInputs, calls: Calls, bare: NDArray[np.bool_]) -> tuple[NamedRun, ...]:
    """Stretches of kernels without calls: those that fit a composition first, then whatever recurs."""
    if bare.sum() < 2:
        return ()
    infos = run.activities.infos
    codes = run.activities.name[calls.order[calls.bounds[:-1]]]
    distinct = sorted_unique(codes[bare]).tolist()
    word_of = {code: kernel_word(infos[code].name, infos[code].category) for code in distinct}
    blocked = {code: why_barrier([infos[code]]) is not None for code in distinct}
    able = {code: not blocked[code] and _is_plain(infos[code]) for code in distinct}
    letters: list[str | None] = [None, *(None if blocked[code] else word_of[code] for code in distinct)]
    position = np.where(bare, np.searchsorted(distinct, codes) + 1, 0)
    alphabet = Alphabet(loose=True)
    text = alphabet.encode(letters, position.tolist())
    claims: list[tuple[Composition | None, int, int]] = []
    for composition in load_compositions():
        if composition.file.kind == "chain":
            claims += [(composition, first, last) for first, last in find_all(composition, text, alphabet)]
    fits = bare & np.array([False, *(able[code] for code in distinct)])[position]
    claims += [(None, first, last) for first, last in _runs(fits, calls.queue)]
    whole = [claim for claim in claims if calls.queue[claim[1]] == calls.queue[claim[2]]]
    return _grouped(run, calls, codes, _recurring(whole, codes))


def _is_plain(info: KernelInfo) -> bool:
    """A kernel of the framework's own that does one elementwise op, reduction or copy; libraries' are whole already."""
    return info.library == _NATIVE and info.category in _PLAIN and info.kind == "kernel"


def _runs(fits: NDArray[np.bool_], queue: NDArray[np.int64]) -> list[tuple[int, int]]:
    apart = np.r_[True, (np.diff(queue) != 0) | ~fits[:-1]]
    starts = np.flatnonzero(fits & apart)
    ends = np.flatnonzero(fits & np.r_[(np.diff(queue) != 0) | ~fits[1:], True])
    pairs = zip(starts.tolist(), ends.tolist(), strict=True)
    return [(first, last) for first, last in pairs if 1 < last - first + 1 <= _LONGEST]


def _recurring(
    claims: Sequence[tuple[Composition | None, int, int]], codes: NDArray[np.int32]
) -> list[tuple[Composition | None, int, int]]:
    """Those with a composition, and those whose names recur; of overlapping ones the set that removes most launches."""
    counts: dict[bytes, int] = defaultdict(int)
    for _, first, last in claims:
        counts[codes[first : last + 1].tobytes()] += 1
    worth = [c for c in claims if c[0] is not None or counts[codes[c[1] : c[2] + 1].tobytes()] >= _RECURS]
    # A composition is preferred to a run that only contains it: twice its launches.
    weighted = [Claim(c[1], c[2], (c[2] - c[1]) * (2 if c[0] is not None else 1)) for c in worth]
    return [worth[position] for position in choose(weighted)]


def _grouped(
    run: FusionInputs,
    calls: Calls,
    codes: NDArray[np.int32],
    claims: Sequence[tuple[Composition | None, int, int]],
) -> tuple[NamedRun, ...]:
    groups: dict[tuple[str, tuple[int, ...]], list[tuple[Composition | None, int, int]]] = defaultdict(list)
    for composition, low, high in claims:
        key = (composition.identity if composition else "", tuple(codes[low : high + 1].tolist()))
        groups[key].append((composition, low, high))
    total = np.r_[0, np.cumsum(calls.time_ns)]
    found = []
    for (_, kernels), members in groups.items():
        first = np.array([member[1] for member in members], dtype=np.int64)
        found.append(
            NamedRun(
                composition=members[0][0],
                kernels=kernels,
                first=first,
                time_ns=total[first + len(kernels)] - total[first],
                graph=bool(run.activities.graph[calls.order[calls.bounds[first[0]]]]),
            )
        )
    return tuple(sorted(found, key=lambda named: (-int(named.time_ns.sum()), int(named.first[0]))))
