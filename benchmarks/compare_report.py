"""What `compare` finds of known changes, and how real pairs align: ``python -m benchmarks.compare_report``.

Planted pairs are simulated (`evals.workshop.pairs`): each has one change whose cause is known. Real pairs are read from
the folder that ROOFTRACE_TRACES names (``../shared/traces``); their cost is set against that of two analyses.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT)]

from evals.workshop.pairs.cases import corpus  # noqa: E402
from evals.workshop.pairs.runs import PairCase, planted_ns  # noqa: E402
from rooftrace.compare import Comparison, Side, compare_sides  # noqa: E402
from rooftrace.trace import load  # noqa: E402
from rooftrace.units import format_ns, format_pct  # noqa: E402
from rooftrace.workflow.options import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402

if TYPE_CHECKING:
    from rooftrace.compare.findings import Found

SPURIOUS_PCT = 1.0
_BERT, _OWLV2 = (
    "gaunernst_bert-small-uncased__1016001.json.gz",
    "google_owlv2-large-patch14-ensemble__1016001.json.gz",
)
REAL = (
    (f"h100/{_BERT}", f"mi300/{_BERT}"),
    (f"h100/{_OWLV2}", f"mi300/{_OWLV2}"),
    ("nvidia/diff_a100.json.gz", "nvidia/diff_v100.json.gz"),
    ("ranks/megatron_tp8/rank0.json.gz", "ranks/megatron_tp8/rank3.json.gz"),
    ("ranks/megatron_tp8/rank0.json.gz", "ranks/megatron_tp8/rank0.json.gz"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a planted pair; shares in per cent."""

    found: bool
    spurious: tuple[str, ...]
    error_pct: float | None  # of the rows with the planted cause against what was planted


def side_of(path: Path) -> Side:
    """A trace, prepared."""
    workload = prepare_workload(load(path)[0], AnalyzeOptions()).workload
    return Side(**{name: getattr(workload, name) for name in Side.__slots__})


def compare_files(base: Path, target: Path) -> Comparison:
    """The comparison of two traces, held to conserve time."""
    comparison = compare_sides(side_of(base), side_of(target))
    difference = comparison.target.side.span_ns - comparison.base.side.span_ns
    total = sum(row.delta_ns for row in comparison.rows)
    if total != difference:
        msg = f"the rows sum to {total} ns, the spans differ by {difference} ns"
        raise ValueError(msg)
    return comparison


def judge(case: PairCase, comparison: Comparison) -> Outcome:
    """Whether the change was found, what else was, and how well its rows are sized."""
    meant = [item for item in comparison.findings if is_meant(case, item)]
    others = [item for item in comparison.findings if item not in meant and item.score.high > SPURIOUS_PCT]
    planted = planted_ns(case)
    sized = sum(
        row.delta_ns
        for row, cause in zip(comparison.rows, comparison.causes, strict=True)
        if cause in case.causes and row.kind != "left_out"
    )
    return Outcome(
        found=bool(meant) or not case.causes,
        spurious=tuple(f"{item.cause} {item.subject} {item.score.high} %" for item in others),
        error_pct=None if planted is None else 100.0 * (sized - planted) / planted,
    )


def is_meant(case: PairCase, item: Found) -> bool:
    """Whether a finding names the planted change."""
    alike = item.cause in case.causes and item.is_regression == case.is_regression
    return alike and case.subject in item.subject


def report_planted() -> bool:
    """One line a planted pair, then the totals; whether they are good enough."""
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        paths = (Path(folder) / "base.json", Path(folder) / "target.json")
        for case in corpus():
            for path, text in zip(paths, case.traces(), strict=True):
                path.write_text(text, encoding="utf-8")
            comparison = compare_files(*paths)
            outcome = judge(case, comparison)
            outcomes.append(outcome)
            size = "" if outcome.error_pct is None else f", size {outcome.error_pct:+.2f} %"
            words = "found" if outcome.found else "MISSED"
            extra = f"; SPURIOUS {'; '.join(outcome.spurious)}" if outcome.spurious else ""
            print(
                f"{case.name}: {words} ({', '.join(case.causes) or 'nothing to find'}){size}{extra}"
                f", aligned {format_pct(comparison.aligned.least_pct)}"
            )
    found = sum(outcome.found for outcome in outcomes)
    spurious = sum(bool(outcome.spurious) for outcome in outcomes)
    worst = max(abs(outcome.error_pct) for outcome in outcomes if outcome.error_pct is not None)
    print(
        f"planted: {found} of {len(outcomes)} found with the right cause, {spurious} with a spurious finding above "
        f"{SPURIOUS_PCT:g} %, largest error of size {worst:.2f} %"
    )
    return found >= 0.95 * len(outcomes) and not spurious


def report_real(folder: Path) -> None:
    """One line a real pair, with its cost."""
    pairs = {names: [folder / name for name in names] for names in REAL}
    pairs = {names: paths for names, paths in pairs.items() if all(path.is_file() for path in paths)}
    # Commands first: what a process inherits of this one's size counts as its own.
    costs = {names: cost_line(paths) for names, paths in pairs.items()}
    for names, paths in pairs.items():
        comparison = compare_files(*paths)
        aligned = comparison.aligned
        print(
            f"{names[0]} → {names[1]}: {format_ns(comparison.base.side.span_ns)} to "
            f"{format_ns(comparison.target.side.span_ns)}, {comparison.verdict}, by {comparison.level}, "
            f"aligned {format_pct(aligned.base_pct)} / {format_pct(aligned.target_pct)} (but for copies that one side "
            f"makes more {format_pct(aligned.least_but_copies_pct)}), "
            f"{len(comparison.rows)} rows, {len(comparison.findings)} findings; {costs[names]}"
        )


def cost_line(paths: list[Path]) -> str:
    """CPU time and memory of a comparison beside those of two analyses."""
    with tempfile.TemporaryDirectory() as folder:
        analyses = [cost(["analyze", str(path), "-o", f"{folder}/{at}", "-q"]) for at, path in enumerate(paths)]
        compared = cost(["compare", *map(str, paths), "-o", f"{folder}/pair", "-q"])
    seconds, memory = (sum(values) for values in zip(*analyses, strict=True))
    return (
        f"{compared[0]:.1f} s CPU of {seconds:.1f} s for two analyses ({100 * compared[0] / seconds:.0f} %), "
        f"{compared[1]:.0f} MiB of {memory:.0f} MiB ({100 * compared[1] / memory:.0f} %)"
    )


def cost(arguments: list[str]) -> tuple[float, float]:
    """CPU seconds and peak MiB of one command."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "scripts")}
    process = subprocess.Popen(
        [sys.executable, "-m", "rooftrace", *arguments],
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:  # what a command took that failed is no cost of it
        raise subprocess.CalledProcessError(process.returncode, arguments)
    unit = 1024 if sys.platform == "darwin" else 1
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / unit / 1024


def main() -> int:
    """Print both reports; 1 where too little is found."""
    report_real(Path(os.environ.get("ROOFTRACE_TRACES", ROOT / "../shared/traces")))
    return 0 if report_planted() else 1


if __name__ == "__main__":
    sys.exit(main())
