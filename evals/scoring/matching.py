"""Which finding is about which planted kind, and what the truth says a finding is worth."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from evals.scoring.found import Found, ranked
from evals.workshop.plants.kinds import KINDS, Kind
from evals.workshop.plants.scene import NATURAL
from evals.workshop.plants.truth import Run

LEAST_SHARE, NAMED_SHARE = 0.4, 0.25
"""A finding is about the kind that the first share of its activities' time is there for; or about one of which it has
the second share and that its cause names."""
SLACK, SLACK_PCT = 1.25, 0.5
"""What the truth does not plant is known to it if it is worth as much as claimed, within a factor and a difference."""
NOTHING_PCT, CLAIM_PCT = 0.3, 1.0
"""Truth below the first is nothing; a claim of the second about nothing is false."""


@dataclass(frozen=True, kw_only=True)
class Judged:
    """A ranked finding against the truth; ``value`` is what it is really worth, per cent of the span.

    ``is_mixed``: it is worth something else than the kinds that it is about, being about more, or less, than they.
    """

    found: Found
    kinds: frozenset[str]
    value: float
    is_exact: bool
    is_true: bool
    is_mixed: bool = False


def judge(run: Run, findings: list[Found]) -> list[Judged]:
    """Every ranked finding, best first."""
    return [_judged(run, found) for found in ranked(findings)]


def kinds_of(run: Run, found: Found) -> frozenset[str]:
    """The planted kinds that a finding is about."""
    planted = [KINDS[name] for name in run.case.planted]
    if found.is_joint:  # waiting in several ops, of which the first decides its cause
        sync = (kind for kind in planted if any(cause.startswith("sync_") for cause in kind.causes))
        return frozenset(kind.name for kind in sync if is_placed(kind, found))
    if found.activities:
        return frozenset(_by_activities(run, found, planted))
    if found.analyzer != "idle":
        return frozenset()
    named = [kind for kind in planted if found.analyzer in kind.analyzers and found.cause in kind.causes]
    placed = [kind for kind in planted if found.analyzer in kind.analyzers and is_placed(kind, found)]
    both = [kind for kind in named if kind in placed]
    return frozenset(kind.name for kind in (both or placed or named))


def _by_activities(run: Run, found: Found, planted: list[Kind]) -> set[str]:
    spent: Counter[str] = Counter()
    for number in found.activities:
        spent[run.tags.get(number, "")] += run.durations.get(number, 0)
    whole = spent.total()
    most = {kind.name for kind in planted if whole and spent[kind.name] >= LEAST_SHARE * whole}
    named = {kind.name for kind in planted if found.cause in kind.causes and spent[kind.name]}
    return most or {name for name in named if spent[name] >= NAMED_SHARE * _spent_on(run, name)}


def _spent_on(run: Run, kind: str) -> int:
    return sum(ns for number, ns in run.durations.items() if run.tags.get(number) == kind)


def _is_most(run: Run, found: Found, kinds: frozenset[str]) -> bool:
    """Whether most of a finding's activities are there for some kinds."""
    if not found.activities:
        return True
    mine = sum(run.durations.get(number, 0) for number in found.activities if run.tags.get(number, "") in kinds)
    return mine >= LEAST_SHARE * sum(run.durations.get(number, 0) for number in found.activities)


def is_placed(kind: Kind, found: Found) -> bool:
    """Whether a finding says where a kind is."""
    return any(place in found.text for place in kind.places)


def _judged(run: Run, found: Found) -> Judged:
    kinds = kinds_of(run, found)
    if kinds:
        value, is_mixed = _worth(run, found, kinds)
        is_true = value >= NOTHING_PCT or found.mid < CLAIM_PCT
        is_exact = not _is_other_remedy(found, kinds)
        return Judged(found=found, kinds=kinds, value=value, is_exact=is_exact, is_true=is_true, is_mixed=is_mixed)
    value, is_exact = _known(run, found)
    return Judged(
        found=found, kinds=kinds, value=value, is_exact=is_exact, is_true=found.high <= SLACK * value + SLACK_PCT
    )


def _worth(run: Run, found: Found, kinds: frozenset[str]) -> tuple[float, bool]:
    """What a finding about planted kinds is worth, and whether that is something else than the cost of one kind."""
    if _is_other_remedy(found, kinds):
        return pct(run.absent(kinds), run), True
    if not _is_most(run, found, kinds):
        return pct(run.tuned(found.activities), run), True
    return pct(run.costs[min(kinds)] if len(kinds) == 1 else run.cost(kinds), run), len(kinds) > 1


def _is_other_remedy(found: Found, kinds: frozenset[str]) -> bool:
    """Whether a finding changes the GPU's work where the kinds cost the host's time: only a bound of it is known."""
    return bool(found.activities) and all(KINDS[name].is_host for name in kinds)


def _known(run: Run, found: Found) -> tuple[float, bool]:
    """What the truth knows of a finding about nothing planted, and whether that is its worth or a bound."""
    if found.analyzer == "fusion":
        return (pct(run.gone(found.activities), run) if _is_natural(run, found) else 0.0), False
    if found.analyzer == "multi_kernel":
        return pct(run.gone(found.activities), run), False
    if found.analyzer == "idle":
        ns = run.device_gaps_ns if found.aspect in ("device", "dependency") else run.host_bound_ns
        return pct(ns, run), False
    return pct(run.tuned(found.activities), run), True


def _is_natural(run: Run, found: Found) -> bool:
    """Whether a base leaves these kernels apart on purpose."""
    return any(run.tags.get(number, "").startswith(NATURAL) for number in found.activities)


def pct(ns: int, run: Run) -> float:
    """Per cent of a run's span."""
    return 100.0 * ns / run.span_ns
