"""``python -m evals.workshop.whatif``: the spans of drawn runs before and after their change, simulator only."""

from __future__ import annotations

import argparse

from evals.workshop.whatif.battery import battery
from evals.workshop.whatif.changes import described
from evals.workshop.whatif.draws import draw


def main() -> None:
    """Prints one line a case."""
    parser = argparse.ArgumentParser(prog="python -m evals.workshop.whatif", description=__doc__)
    parser.add_argument("--seeds", type=int, default=40, metavar="N", help="how many runs to draw")
    cases = [*battery(), *(draw(seed) for seed in range(parser.parse_args().seeds))]
    print(f"{'case':44} {'before, ns':>12} {'after, ns':>12} {'change':>8}  what")
    for case in cases:
        share = case.after_ns / case.before_ns - 1
        what = " | ".join(part for part in (described(case.change), case.trait) if part)
        print(f"{case.name:44} {case.before_ns:12,} {case.after_ns:12,} {share:8.1%}  {what}")


if __name__ == "__main__":
    main()
