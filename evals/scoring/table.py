"""The measures as a table, with the bars beside them and what missed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from evals.scoring.measures import CLEAN_PCT, CaseResult, Measures, by_kind, coverage, overall


@dataclass(frozen=True, kw_only=True)
class Bar:
    """What a measure has to reach; of the size error, what it may not exceed."""

    name: str
    limit: float
    is_upper: bool = False

    def holds(self, value: float | None) -> bool:
        """Whether a value is good enough; one that was not asked for is."""
        if value is None:
            return True
        return value <= self.limit if self.is_upper else value >= self.limit


BARS = (
    Bar(name="recall", limit=0.95),
    Bar(name="precision", limit=0.95),
    Bar(name="top", limit=0.95),
    Bar(name="size_error", limit=0.05, is_upper=True),
    Bar(name="cause", limit=0.95),
)
NAMES = ("recall", "precision", "top", "order", "size_error", "cause", "place")
TITLES = {"top": "top-1", "order": "rank agreement", "size_error": "median size error"}


def lines(results: Sequence[CaseResult], *, details: bool = True) -> Iterator[str]:
    """The whole table as text."""
    yield f"{'':24} {'cases':>6}" + "".join(f" {TITLES.get(name, name):>18}" for name in NAMES)
    for title, chosen in _groups(results):
        if chosen:
            yield _row(title, overall(chosen))
    bars = {bar.name: f"{'<=' if bar.is_upper else '>='} {100 * bar.limit:.0f} %" for bar in BARS}
    yield f"{'bar':24} {'':6}" + "".join(f" {bars.get(name, ''):>18}" for name in NAMES)
    yield ""
    for kind, measures in by_kind(results).items():
        yield _row(kind, measures)
    yield ""
    yield from _covered(results)
    if details:
        yield ""
        yield from _misses(results)


def _covered(results: Sequence[CaseResult]) -> Iterator[str]:
    yield f"{'found in ... of ... cases':24} {'alone':>10} {'buried':>10}"
    for kind, found in coverage(results).items():
        fails = "  FAILS" if not found.alone or not found.buried else ""
        alone, buried = f"{found.alone}/{found.of_alone}", f"{found.buried}/{found.of_buried}"
        yield f"{kind:24} {alone:>10} {buried:>10}{fails}"


def not_covered(results: Sequence[CaseResult]) -> list[str]:
    """Kinds that are found in no case alone, or in none among three others."""
    failing = []
    for kind, found in coverage(results).items():
        if not found.alone:
            failing.append(f"{kind}: found in none of {found.of_alone} cases alone")
        if not found.buried:
            failing.append(f"{kind}: found in none of {found.of_buried} cases among three others")
    return failing


def _groups(results: Sequence[CaseResult]) -> Iterator[tuple[str, list[CaseResult]]]:
    yield "all", list(results)
    for split in ("train", "held-out"):
        yield split, [result for result in results if result.split == split]
    for count, title in ((0, "clean"), (1, "one planted"), (2, "two planted"), (4, "four planted")):
        yield title, [result for result in results if len(result.plants) == count]


def _row(title: str, measures: Measures) -> str:
    cells = (_cell(name, getattr(measures, name)) for name in NAMES)
    return f"{title:24} {measures.count:6}" + "".join(f" {cell:>18}" for cell in cells)


def _cell(name: str, value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.3f}" if name == "order" else f"{100 * value:.1f} %"


def surprises(results: Sequence[CaseResult]) -> list[str]:
    """Ranked findings of clean runs above 2 % that the truth does not know."""
    return [
        f"{result.name}: {one.found.identity} {one.found.subject}: {one.found.mid} %"
        for result in results
        if not result.plants
        for one in result.surprises
        if one.found.mid > CLEAN_PCT
    ]


def below_bar(measures: Measures) -> list[str]:
    """The measures that do not reach their bar."""
    return [
        f"{TITLES.get(bar.name, bar.name)} {_cell(bar.name, getattr(measures, bar.name))}"
        for bar in BARS
        if not bar.holds(getattr(measures, bar.name))
    ]


def _misses(results: Sequence[CaseResult]) -> Iterator[str]:
    for result in results:
        for plant in result.plants:
            what = f"{result.name}: {plant.kind}, {plant.cost:.2f} %"
            if plant.is_asked and plant.said is None:
                yield f"not found    {what}"
            elif plant.is_asked and not plant.is_cause:
                yield f"other cause  {what}: {plant.cause}"
            elif plant.is_asked and not plant.is_place:
                yield f"no place     {what}: {plant.cause}"
            if plant.is_asked and plant.error is not None and plant.error > 0.1:
                yield f"size         {what}: should say {plant.asked:.2f}, says {plant.said:.2f} ({plant.cause})"
        for one in result.surprises:
            yield (
                f"not known    {result.name}: {one.found.identity} {one.found.subject}, {one.found.cause}: "
                f"{one.found.high} %, truth {one.value:.2f} %"
            )
        if result.top is False:
            first = result.judged[0].found.subject if result.judged else "nothing ranked"
            yield f"not first    {result.name}: {first}"
