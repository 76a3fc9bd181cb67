"""The measures of a case and of many: recall, precision, first place, order, size, cause, place."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import fmean, median

from evals.scoring.found import Found
from evals.scoring.matching import Judged, is_placed, judge, pct
from evals.workshop.plants.kinds import KINDS
from evals.workshop.plants.truth import Run

LEAST_COST_PCT = 1.0
"""A planted kind that costs less of its run's span need not be found."""
EQUAL_PCT = 0.3
"""Truths closer than this have no order."""
TOP_SHARE = 0.9
CLEAN_PCT = 2.0


@dataclass(frozen=True, kw_only=True)
class PlantResult:
    """A planted kind of one case; sizes in per cent of the span.

    ``said`` is what its findings say, None where nothing ranked is about it; ``asked`` what they should say.
    """

    case: str
    kind: str
    others: int
    cost: float
    asked: float
    said: float | None
    cause: str
    is_cause: bool
    is_place: bool

    @property
    def is_asked(self) -> bool:
        """Whether it costs enough to be found."""
        return self.cost >= LEAST_COST_PCT

    @property
    def error(self) -> float | None:
        """Relative error of the size, where it was found."""
        return None if self.said is None or self.asked <= 0 else abs(self.said - self.asked) / self.asked

    @property
    def is_found(self) -> bool:
        """Whether it was found for the right reason and at the right place."""
        return self.said is not None and self.is_cause and self.is_place


@dataclass(frozen=True, kw_only=True)
class CaseResult:
    """One case."""

    name: str
    split: str
    plants: tuple[PlantResult, ...]
    judged: tuple[Judged, ...]
    top: bool | None
    order: float | None

    @property
    def surprises(self) -> list[Judged]:
        """Ranked findings that the truth does not know."""
        return [one for one in self.judged if not one.is_true]


def measure(run: Run, findings: list[Found]) -> CaseResult:
    """A case's findings against its truth."""
    judged = judge(run, findings)
    plants = tuple(_plant(run, kind, judged) for kind in sorted(run.case.planted))
    return CaseResult(
        name=run.case.name,
        split=run.case.split,
        plants=plants,
        judged=tuple(judged),
        top=_is_top(judged, plants),
        order=kendall(_ordered(judged)),
    )


def _plant(run: Run, name: str, judged: Sequence[Judged]) -> PlantResult:
    kind, cost = KINDS[name], pct(run.costs[name], run)
    mine = [one for one in judged if name in one.kinds]
    best = max(mine, key=lambda one: (one.found.cause in kind.causes, one.found.mid), default=None)
    said, asked = None, cost
    if best is not None:
        asked = best.value if best.is_mixed else cost
        alone = kind.is_host or best.found.analyzer in ("idle", "multi_kernel") or best.is_mixed
        said = best.found.high if alone else sum(one.found.high for one in mine if one.found.analyzer != "idle")
    return PlantResult(
        case=run.case.name,
        kind=name,
        others=len(run.case.planted) - 1,
        cost=cost,
        asked=asked,
        said=said,
        cause=best.found.cause if best else "",
        is_cause=any(one.found.cause in kind.causes for one in mine if one is best),
        is_place=any(is_placed(kind, one.found) for one in mine if one is best),
    )


def _is_top(judged: Sequence[Judged], plants: Sequence[PlantResult]) -> bool | None:
    """Whether the first finding is the one that is worth most; None where nothing is worth being ranked."""
    values = [one.value for one in judged if one.is_exact] + [plant.cost for plant in plants if plant.is_asked]
    if not values:
        return None
    if not judged:
        return False
    return judged[0].is_true and judged[0].value >= TOP_SHARE * max(values) - EQUAL_PCT


def _ordered(judged: Sequence[Judged]) -> list[tuple[float, float]]:
    """Score and truth of the first finding about each kind and of those about nothing planted whose worth is known."""
    pairs, seen = [], set[str]()
    for one in judged:
        if one.is_exact and not one.kinds & seen:
            pairs.append((one.found.mid, one.value))
        seen |= one.kinds
    return pairs


def kendall(pairs: Sequence[tuple[float, float]]) -> float | None:
    """Kendall's rank agreement of scores and truths, pairs of equal truth left out; None without any pair."""
    agree = total = 0
    for (score, truth), (other_score, other_truth) in combinations(pairs, 2):
        if abs(truth - other_truth) < EQUAL_PCT or score == other_score:
            continue
        agree += 1 if (score > other_score) == (truth > other_truth) else -1
        total += 1
    return agree / total if total else None


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Shares of 1, and the median relative error of sizes; None where nothing was asked."""

    count: int
    recall: float | None
    precision: float | None
    top: float | None
    order: float | None
    size_error: float | None
    cause: float | None
    place: float | None


def overall(results: Sequence[CaseResult]) -> Measures:
    """Over all cases."""
    plants = [plant for result in results for plant in result.plants]
    judged = [one for result in results for one in result.judged]
    return _measures(plants, len(results), judged, results)


def by_kind(results: Sequence[CaseResult]) -> dict[str, Measures]:
    """Over the plants of each kind; precision, first place and order belong to cases and are None."""
    plants: defaultdict[str, list[PlantResult]] = defaultdict(list)
    for result in results:
        for plant in result.plants:
            plants[plant.kind].append(plant)
    return {kind: _measures(plants[kind], len(plants[kind]), [], []) for kind in sorted(plants)}


BURIED = 3
"""So many others stand beside a kind that is buried."""


@dataclass(frozen=True, kw_only=True)
class Coverage:
    """In how many cases a kind is found, and how many there are, alone in a run and buried among three others."""

    alone: int
    of_alone: int
    buried: int
    of_buried: int


def coverage(results: Sequence[CaseResult]) -> dict[str, Coverage]:
    """Every kind that there is, by name; cases in which it costs too little to be asked for are left out."""
    asked = [plant for result in results for plant in result.plants if plant.is_asked]
    found = {}
    for kind in sorted(KINDS):
        alone, buried = ([plant for plant in asked if plant.kind == kind and plant.others == n] for n in (0, BURIED))
        found[kind] = Coverage(
            alone=sum(plant.is_found for plant in alone),
            of_alone=len(alone),
            buried=sum(plant.is_found for plant in buried),
            of_buried=len(buried),
        )
    return found


def _measures(
    plants: Sequence[PlantResult], count: int, judged: Sequence[Judged], results: Sequence[CaseResult]
) -> Measures:
    asked = [plant for plant in plants if plant.is_asked]
    met = [plant for plant in asked if plant.said is not None]
    errors = [plant.error for plant in met if plant.error is not None]
    return Measures(
        count=count,
        recall=_share(plant.said is not None for plant in asked),
        precision=_share(one.is_true for one in judged),
        top=_share(result.top for result in results if result.top is not None),
        order=_mean([result.order for result in results if result.order is not None]),
        size_error=median(errors) if errors else None,
        cause=_share(plant.is_cause for plant in met),
        place=_share(plant.is_place for plant in met),
    )


def _share(values: Iterable[bool]) -> float | None:
    return _mean([float(value) for value in values])


def _mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
