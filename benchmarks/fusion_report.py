"""How well planted fusions are found, and what finding them costs: ``python -m benchmarks.fusion_report [TRACE]``.

An instance counts as found when its activities are exactly those planted. Precision is of everything that is told:
candidates, those without a time to claim, and sequences of kernel names. Savings are compared where a time is modelled.
With ``TRACE`` the cost of fusion beside the rest of ``analyze``, on the trace and on 5 and 10 repetitions of it.
"""

from __future__ import annotations

import argparse
import gc
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]

import numpy as np  # noqa: E402 - found only now

from evals.workshop.fusions.corpus import Case, cases, planted  # noqa: E402
from evals.workshop.repeat import repeat_trace  # noqa: E402
from rooftrace import platforms  # noqa: E402
from rooftrace.analyzers import fusion as analyzer  # noqa: E402
from rooftrace.calltree import build_context, build_tree, collect_activities  # noqa: E402
from rooftrace.fusion import FusionInputs, FusionResult, find_candidates  # noqa: E402
from rooftrace.trace import load  # noqa: E402
from rooftrace.workflow import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

PRECISION, RECALL, SAVING_PCT = 0.95, 0.95, 10.0
LARGEST = ROOT.parent / "shared" / "traces"
NOVEL = "novel"


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """An instance as the package tells it."""

    pattern: str
    activities: tuple[int, ...]
    saving_ns: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """One trace: instances planted, told, and told with just the planted activities."""

    case: Case
    planted: int
    told: int
    right: int
    same_pattern: int
    errors_pct: tuple[float, ...]  # of the saving, for modelled instances that are right
    missing: tuple[str, ...]
    wrong: tuple[str, ...]


def found_in(run: FusionInputs, result: FusionResult) -> list[Found]:
    """Every instance that is told, its activities numbered in order of (device, stream, start)."""
    activities, calls = run.activities, result.calls
    rank = np.empty(activities.row.size, dtype=np.int64)
    rank[np.lexsort((activities.start, activities.stream, activities.device))] = np.arange(rank.size)
    told = []
    for candidate in (*result.candidates, *result.unrated):
        pattern = candidate.composition.identity if candidate.composition else NOVEL
        savings = candidate.saving_ns.tolist()
        for row, saving in zip(result.activities(candidate).tolist(), savings, strict=True):
            numbers = tuple(sorted(rank[row].tolist()))
            told.append(Found(pattern=pattern, activities=numbers, saving_ns=saving if candidate.estimate else None))
    for named in result.named:
        pattern = named.composition.identity if named.composition else NOVEL
        for first in named.first.tolist():
            row = calls.activities_of(first, first + len(named.kernels) - 1)
            told.append(Found(pattern=pattern, activities=tuple(sorted(rank[row].tolist())), saving_ns=None))
    return told


def score(case: Case) -> Score:
    """Find what is planted in a trace."""
    truth = planted(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        path.write_bytes(truth.trace)
        trace, _ = load(path)
    tree = build_tree(trace)
    run = FusionInputs(
        trace=trace,
        tree=tree,
        context=build_context(trace, tree),
        activities=collect_activities(trace, tree),
        platform=platforms.load_platform(truth.platform) if truth.platform else None,
    )
    if run.activities.row.size != truth.activities:
        raise SystemExit(f"{case.name}: {run.activities.row.size} activities read, {truth.activities} recorded")
    told = found_in(run, find_candidates(run))
    wanted = {instance.activities: instance for instance in truth.instances}
    right = [one for one in told if one.activities in wanted]
    reached = {one.activities for one in right}
    return Score(
        case=case,
        planted=len(wanted),
        told=len(told),
        right=len(right),
        same_pattern=sum(one.pattern == wanted[one.activities].pattern for one in right),
        errors_pct=tuple(_errors(right, {key: one.saving_ns for key, one in wanted.items()})),
        missing=tuple(_told(one.pattern, key) for key, one in sorted(wanted.items()) if key not in reached),
        wrong=tuple(_told(one.pattern, one.activities) for one in told if one.activities not in wanted),
    )


def _errors(right: Iterable[Found], savings: dict[tuple[int, ...], int | None]) -> Iterable[float]:
    """Per cent that a saving is off its closed form; one that is claimed without being modelled is all off."""
    for one in right:
        true = savings[one.activities]
        if true is not None:
            yield 100.0 * ((one.saving_ns or 0) - true) / true
        elif one.saving_ns is not None:
            yield 100.0


def _told(pattern: str, activities: Sequence[int]) -> str:
    return f"{pattern} {list(activities)}" if len(activities) < 12 else f"{pattern} {activities[0]}..{activities[-1]}"


def share(part: int, whole: int) -> float:
    """Part of a whole; of nothing everything."""
    return part / whole if whole else 1.0


def table(scores: Sequence[Score], *, details: bool) -> list[str]:
    """A line a family and the total, with what went wrong below its family."""
    groups: dict[str, list[Score]] = defaultdict(list)
    for one in scores:
        groups[one.case.family].append(one)
    lines = [
        f"{'family':20} {'traces':>6} {'planted':>8} {'told':>5} {'right':>6} {'precision':>10} {'recall':>7} "
        f"{'named so':>9} {'saving off by':>14}"
    ]
    for family, members in sorted(groups.items()):
        lines.append(_line(family, members))
        lines += [f"    {one.case.name}: {what}" for one in members for what in _troubles(one) if details]
    return [*lines, _line("all", scores)]


def _line(family: str, members: Sequence[Score]) -> str:
    wanted, told, right, same = (
        sum(getattr(one, name) for one in members) for name in ("planted", "told", "right", "same_pattern")
    )
    errors = [error for one in members for error in one.errors_pct]
    off = f"{min(errors):+.1f} … {max(errors):+.1f} %" if errors else "-"
    return (
        f"{family:20} {len(members):>6} {wanted:>8} {told:>5} {right:>6} {share(right, told):>10.3f} "
        f"{share(right, wanted):>7.3f} {share(same, right):>9.3f} {off:>18}"
    )


def _troubles(one: Score) -> list[str]:
    far = [f"saving off by {error:+.1f} %" for error in one.errors_pct if abs(error) > SAVING_PCT]
    return [*(f"missing {what}" for what in one.missing), *(f"wrong {what}" for what in one.wrong), *dict.fromkeys(far)]


def cost_lines(path: Path, repetitions: Sequence[int] = (1, 5, 10)) -> list[str]:
    """CPU time of fusion, of everything that `analyze` does before it, and their ratio, for repeated traces."""
    lines = [f"{path.name}", f"{'repeated':>8} {'activities':>10} {'rest s':>8} {'fusion s':>9} {'fusion / rest':>14}"]
    with tempfile.TemporaryDirectory() as folder:
        for times in repetitions:
            target = path
            if times > 1:
                target = Path(folder) / "repeated.json"
                repeat_trace(path, times, target)
            gc.collect()
            lines.append(_cost_of(target, times))
    return lines


def _cost_of(path: Path, times: int) -> str:
    began = time.process_time()
    workload = prepare_workload(load(path)[0], AnalyzeOptions()).workload
    prepared = time.process_time()
    analyzer.analyze(workload)
    done = time.process_time()
    rest, fusion = prepared - began, done - prepared
    return f"{times:>8} {workload.activities.row.size:>10} {rest:>8.2f} {fusion:>9.2f} {100 * fusion / rest:>12.1f} %"


def main() -> int:
    """Print the tables; 1 where a bar is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion_report", description=main.__doc__)
    parser.add_argument("trace", nargs="?", type=Path, help="a trace to time fusion on")
    parser.add_argument("--details", action="store_true", help="name what is missing, wrong or off")
    parser.add_argument("--only", default="", help="traces whose name or family holds this")
    options = parser.parse_args()
    chosen = [one for one in cases() if options.only in one.name or options.only in one.family]
    scores = [score(one) for one in chosen]
    print("\n".join(table(scores, details=options.details)))
    if options.trace:
        print("\n" + "\n".join(cost_lines(options.trace)))
    return int(not meets_bars(scores))


def meets_bars(scores: Sequence[Score]) -> bool:
    """Whether precision, recall and every saving are within their bars."""
    right, told, wanted = (sum(getattr(one, name) for one in scores) for name in ("right", "told", "planted"))
    errors = [abs(error) for one in scores for error in one.errors_pct]
    return share(right, told) >= PRECISION and share(right, wanted) >= RECALL and max(errors, default=0) <= SAVING_PCT


if __name__ == "__main__":
    raise SystemExit(main())
