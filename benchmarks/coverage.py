"""``python -m benchmarks.coverage``: how much kernel time of real traces is modelled, rated and inferred, and why not.

Shares are of ratable kernel time (METHODS: cost of an op). *Inferred* is rated time whose shapes, dtypes or scalars are
not all the call's own record. The last table adds up the reasons over all traces. Nothing here asserts a share.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace import roofline  # noqa: E402 - found only now
from rooftrace.calltree import Link  # noqa: E402
from rooftrace.trace import load  # noqa: E402
from rooftrace.workflow import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402

_TOP = 3  # reasons shown a trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One trace; times in ns."""

    trace: str
    platform: str
    ratable_ns: int
    shaped_ns: int
    modelled_ns: int
    rated_ns: int
    inferred_ns: int
    reasons: dict[str, int]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=main.__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="default: every trace of the shared folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [measure(path) for path in options.traces or sorted(TRACES.rglob("*.json.gz"))]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'trace':52} {'GPU':13} {'ratable ms':>10} {'modelled':>9} {'rated':>7} {'inferred':>9}  not rated because")
    for row in rows:
        print(_line(row))
    total = Counter[str]()
    for row in rows:
        total.update(row.reasons)
    print("\nratable ms  reason, all traces")
    for reason, spent in sorted(total.items(), key=lambda item: (-item[1], item[0])):
        print(f"{spent / 1e6:10.2f}  {reason}")


def measure(path: Path) -> Row:
    """Coverage of one trace."""
    trace, _ = load(path)
    workload = prepare_workload(trace, AnalyzeOptions()).workload
    found = roofline.coverage(workload.activities, workload.groups, workload.ratings)
    inferred = sum(
        group.kernel_ns
        for group, rating in zip(workload.groups, workload.ratings, strict=True)
        if group.link not in (Link.CARRY_IN, Link.LOST) and rating.cost and roofline.is_inferred(rating.cost)
    )
    below = path.relative_to(TRACES) if path.is_relative_to(TRACES) else Path(path.name)
    return Row(
        trace=str(below).removesuffix(".json.gz"),
        platform=workload.platform.slug if workload.platform else "-",
        ratable_ns=found.ratable_ns,
        shaped_ns=found.shaped_ns,
        modelled_ns=found.modelled_ns,
        rated_ns=found.rated_ns,
        inferred_ns=inferred,
        reasons=dict(found.reasons),
    )


def _line(row: Row) -> str:
    def share(part: int) -> str:
        return f"{100 * part / row.ratable_ns:.1f} %" if row.ratable_ns else "-"

    top = "; ".join(f"{reason} {share(ns)}" for reason, ns in list(row.reasons.items())[:_TOP])
    return (
        f"{row.trace[-52:]:52} {row.platform:13} {row.ratable_ns / 1e6:10.2f} {share(row.modelled_ns):>9} "
        f"{share(row.rated_ns):>7} {share(row.inferred_ns):>9}  {top}"
    )


if __name__ == "__main__":
    main()
