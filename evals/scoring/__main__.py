"""``python -m evals.scoring``: scores the product on the planted corpus; exit 1 below the bar or the baseline."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

from evals.corpus.cases import cases, short
from evals.scoring import baseline
from evals.scoring.measures import overall
from evals.scoring.run import score_cases
from evals.scoring.table import below_bar, lines, not_covered, surprises


def main() -> int:
    """Runs the cases, prints the table, compares."""
    parser = argparse.ArgumentParser(prog="python -m evals.scoring", description=__doc__)
    parser.add_argument("--short", action="store_true", help="only the cases that CI runs")
    parser.add_argument("--only", default="", metavar="WORD", help="cases whose name holds a word; no baseline")
    parser.add_argument("--workers", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the measures there as well")
    parser.add_argument(
        "--no-bar", action="store_true", help="exit 0 below the bar if nothing falls behind the baseline"
    )
    parser.add_argument("--update-baseline", action="store_true", help="make what is reached the baseline")
    parser.add_argument("--because", default="", metavar="REASON", help="why a baseline may get worse; kept in it")
    options = parser.parse_args()
    form = "short" if options.short else "whole"
    chosen = [case for case in (short() if options.short else cases()) if options.only in case.name]
    started = time.monotonic()
    results = score_cases(chosen, workers=options.workers)
    for line in lines(results):
        print(line)
    print(f"\n{len(results)} cases in {time.monotonic() - started:.0f} s")
    if options.json:
        options.json.write_text(json.dumps(baseline.facts(results), indent=1) + "\n", encoding="utf-8")
    if options.only:
        return 0
    if options.update_baseline:
        for line in baseline.write(form, results, because=options.because):
            print(f"not stored without --because: {line}", file=sys.stderr)
    problems = [f"behind the baseline: {line}" for line in baseline.regressions(form, results)]
    missed = [f"below the bar: {line}" for line in below_bar(overall(results))]
    missed += [f"clean run: {line}" for line in surprises(results)]
    missed += [f"kind {line}" for line in not_covered(results)]
    for line in (*problems, *missed):
        print(line, file=sys.stderr)
    return 1 if problems or (missed and not options.no_bar) else 0


if __name__ == "__main__":
    sys.exit(main())
