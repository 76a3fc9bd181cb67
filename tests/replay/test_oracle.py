"""Drawn runs: the replay of run A with a change against the simulation of run B, which has it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from statistics import median

import pytest

from evals.workshop.whatif.changes import described
from evals.workshop.whatif.draws import draw
from tests.replay.adapter import Answer, replayed

SEEDS = tuple(range(36))
TABLE_HEAD = f"{'seed':>4} {'before, ns':>12} {'after, ns':>12} {'change':>7} {'unchanged':>9} {'changed':>8}  what"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """A case as simulated and as replayed; errors in per cent of the simulated span."""

    before_ns: int
    after_ns: int
    answer: Answer
    what: str

    @property
    def effect_pct(self) -> float:
        return 100.0 * (self.after_ns - self.before_ns) / self.before_ns

    @property
    def unchanged_pct(self) -> float:
        return 100.0 * (self.answer.unchanged_ns - self.before_ns) / self.before_ns

    @property
    def changed_pct(self) -> float:
        return 100.0 * (self.answer.changed_ns - self.after_ns) / self.after_ns


@cache
def outcome(seed: int) -> Outcome:
    case = draw(seed)
    return Outcome(
        before_ns=case.before_ns,
        after_ns=case.after_ns,
        answer=replayed(case),
        what=f"{described(case.change)} | {case.trait}",
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_drawn_run_replays_as_recorded_and_its_change_within_five_per_cent(seed: int):
    row = outcome(seed)

    assert row.answer.measured_ns == row.before_ns
    assert abs(row.unchanged_pct) <= 0.5, row.what
    assert abs(row.changed_pct) <= 5.0, row.what


def test_half_of_the_predictions_are_within_one_per_cent_and_half_of_the_changes_matter():
    rows = {seed: outcome(seed) for seed in SEEDS}
    print(f"\n{TABLE_HEAD}")
    for seed, row in rows.items():
        shares = f"{row.effect_pct:6.1f}% {row.unchanged_pct:8.3f}% {row.changed_pct:7.2f}%"
        print(f"{seed:4} {row.before_ns:12,} {row.after_ns:12,} {shares}  {row.what}")

    errors = [abs(row.changed_pct) for row in rows.values()]
    mattering = [row for row in rows.values() if abs(row.effect_pct) > 5.0]
    print(f"median error {median(errors):.3f} %, worst {max(errors):.2f} %, {len(mattering)} of {len(rows)} matter")
    assert 2 * len(mattering) >= len(rows)
    assert median(errors) <= 1.0
    assert median(abs(row.changed_pct) for row in mattering) <= 1.0  # not by the runs in which nothing happens
