"""Scores findings by replay: what the whole run would lose, each finding for itself and the first ones together.

A finding's score is the share of the measured span that is saved with its edit made at 75, 87.5 and 100 %, and never
more than its bound. Where the constraints explain too little of the critical path, gap shares stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct

from rooftrace.analyzers.workload import CLOSURES
from rooftrace.contracts.base import RANKING_LIMIT_PCT, Score
from rooftrace.patterns import matching_patterns
from rooftrace.units import pct

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rooftrace.analyzers.draft import Draft
    from rooftrace.contracts.base import EvidenceValue
    from rooftrace.contracts.evidence import FindingEvidence
    from rooftrace.replay.edits import Edit
    from rooftrace.replay.run import Replay
    from rooftrace.replay.scenarios import Scenario

_MID = CLOSURES[1]
# A finding that can save no more than this share of the span cannot be ranked, even with host gaps halved: it is
# replayed once, with all of its edit made.
_SMALL_PCT = RANKING_LIMIT_PCT / 4
# Differences below this factor are not worth a word: after the first fix, or with host gaps halved.
_MUCH_MORE = 2.0
# A score is another one only if it also differs by this much of the span, per cent; with host gaps halved a place in
# the ranked list is another one if it moves this far, or into or out of the first places (rules of thumb).
_OTHER_POINTS = 2.0
_OTHER_PLACES = 3
_FIRST_PLACES = 3


class Scores(Struct, frozen=True, kw_only=True):
    """Findings with their scores, in the order of the drafts, and the spans left when the first ones are fixed."""

    findings: list[FindingEvidence]
    together: list[int]


def score(drafts: Sequence[Draft], replay: Replay, *, halved: Edit | None) -> Scores:
    """Scores of all findings; ``halved`` is the host time that recording stacks or shapes may have doubled, if any."""
    measured = replay.measured_ns
    large = [at for at, draft in enumerate(drafts) if pct(draft.most_ns, measured) >= _SMALL_PCT]
    small = [at for at in range(len(drafts)) if at not in set(large)]
    alone: list[Scenario] = [((drafts[at].edit, closure),) for at in large for closure in _closures(drafts[at])]
    whole: list[Scenario] = [((drafts[at].edit, 1.0),) for at in small]
    at_half: list[Scenario] = []
    if halved is not None:
        fix = (halved, 1.0)
        at_half = [(fix,), *[(fix, (drafts[at].edit, _closures(drafts[at])[1])) for at in large]]
    base, *spans = replay.spans([(), *alone, *whole, *at_half])
    scores: dict[int, Score] = {}
    for place, at in enumerate(large):
        saved = [base - span for span in spans[3 * place : 3 * place + 3]]
        scores[at] = _score(drafts[at], saved, measured)
    for place, at in enumerate(small):
        saved_all = base - spans[len(alone) + place]
        scores[at] = _score(drafts[at], [round(saved_all * closure) for closure in _closures(drafts[at])], measured)
    ranked = _ranked(drafts, {at: value.mid for at, value in scores.items()})
    together, after_first = _combined(drafts, (ranked, large), replay, base)
    notes = _move_notes(drafts, scores)
    for at, later in after_first.items():
        if later >= max(RANKING_LIMIT_PCT, _MUCH_MORE * scores[at].mid):
            notes[at] |= {"after_first_pct": later, "first_id": drafts[ranked[0]].finding.id}
    if at_half:
        half, *halves = spans[len(alone) + len(whole) :]
        worth = {at: pct(_bounded(half - span, drafts[at]), half) for at, span in zip(large, halves, strict=True)}
        for at, told in _half_host_notes(drafts, scores, worth).items():
            notes[at] |= told
    return Scores(
        findings=[_scored(draft, scores[at], notes[at]) for at, draft in enumerate(drafts)],
        together=together,
    )


def _move_notes(drafts: Sequence[Draft], scores: Mapping[int, Score]) -> dict[int, dict[str, EvidenceValue]]:
    """Marks waits whose highest score is far above the middle one: with any of them left, the host waits later."""
    notes: dict[int, dict[str, EvidenceValue]] = {at: {} for at in scores}
    for at, value in scores.items():
        far = value.high >= _MUCH_MORE * value.mid and value.high - value.mid >= _OTHER_POINTS
        if far and drafts[at].edit.unblocked.size:
            notes[at] = {"wait_may_move": True}
    return notes


def _closures(draft: Draft) -> tuple[float, float, float]:
    """Time that no model explains has one bound, the whole of it, and no share that a fix might reach."""
    finding = draft.finding
    return (1.0, 1.0, 1.0) if finding.kind == "upper_bound" and finding.tier == "compute" else CLOSURES


def _bounded(saved: int, draft: Draft) -> int:
    return max(0, min(saved, draft.most_ns))


def _score(draft: Draft, saved: list[int], measured: int) -> Score:
    low, mid, high = sorted(pct(_bounded(value, draft), measured) for value in saved)
    return Score(low=low, mid=mid, high=high)


def _combined(
    drafts: Sequence[Draft], chosen: tuple[list[int], list[int]], replay: Replay, base: int
) -> tuple[list[int], dict[int, float]]:
    """Spans with the first n ranked findings fixed, and what each large one saves, in per cent, after the first is.

    Time without a model is left as it is: nobody knows what a fix of it would give.
    """
    ranked, large = chosen
    fixes = [() if _closures(drafts[at])[0] == 1.0 else ((drafts[at].edit, _MID),) for at in ranked]
    if not fixes:
        return [], {}
    counts = range(1, len(fixes) + 1)
    cumulated: list[Scenario] = [tuple(part for fix in fixes[:count] for part in fix) for count in counts]
    others = [at for at in large if at != ranked[0]]
    after: list[Scenario] = [(*fixes[0], (drafts[at].edit, _closures(drafts[at])[1])) for at in others]
    spans = replay.spans([*cumulated, *after])
    left = np.minimum.accumulate(np.minimum(spans[: len(fixes)], base)).tolist()
    gained = {
        at: pct(_bounded(left[0] - span, drafts[at]), replay.measured_ns)
        for at, span in zip(others, spans[len(fixes) :], strict=True)
    }
    return left, gained


def _ranked(drafts: Sequence[Draft], mids: Mapping[int, float]) -> list[int]:
    """The findings that are ranked with these scores, best first."""
    order = sorted(mids, key=lambda at: (-mids[at], drafts[at].finding.id))
    return [at for at in order if mids[at] >= RANKING_LIMIT_PCT]


def _half_host_notes(
    drafts: Sequence[Draft], scores: Mapping[int, Score], halves: Mapping[int, float]
) -> dict[int, dict[str, EvidenceValue]]:
    """What each finding is worth with host gaps halved, marked where that is another score or another place."""
    mids = {at: value.mid for at, value in scores.items()}
    before, after = _ranked(drafts, mids), _ranked(drafts, halves)
    notes: dict[int, dict[str, EvidenceValue]] = {}
    for at in sorted({*before, *after}):
        if at in halves:
            moved = _is_other_place(_place(before, at), _place(after, at))
            sensitive = _is_other_score(mids[at], halves[at]) or moved
            notes[at] = {"half_host_score_pct": halves[at], "profiler_sensitive": sensitive}
    return notes


def _place(ranked: list[int], at: int) -> int | None:
    """Place in a ranked list, 1 first; None for what is not in it."""
    return ranked.index(at) + 1 if at in ranked else None


def _is_other_place(before: int | None, after: int | None) -> bool:
    """Whether one is among the first places and the other is not, or both are ranked far from each other."""
    first = [place is not None and place <= _FIRST_PLACES for place in (before, after)]
    moved = abs(after - before) if before is not None and after is not None else 0
    return first[0] != first[1] or moved >= _OTHER_PLACES


def _is_other_score(mid: float, half: float) -> bool:
    """Many times more or less, by a share of the span that counts or to the other side of the ranking limit."""
    low, high = sorted((mid, half))
    return high >= _MUCH_MORE * low and (high - low >= _OTHER_POINTS or low < RANKING_LIMIT_PCT)


def _scored(draft: Draft, value: Score, notes: dict[str, EvidenceValue]) -> FindingEvidence:
    """The finding with its score, and with the patterns that hold now that the score is known."""
    finding = draft.finding
    evidence = {**finding.evidence, **notes}
    analyzer = finding.id.partition(".")[0]
    known = {
        **evidence,
        "kind": finding.kind,
        "category": finding.category,
        "analyzer": analyzer,
        "score_mid_pct": value.mid,
    }
    return finding.model_copy(
        update={
            "score": value,
            "score_basis": "replay",
            "evidence": evidence,
            "patterns": matching_patterns(analyzer, known) or finding.patterns,
        }
    )
