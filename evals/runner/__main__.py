"""``python -m evals.runner``: lets a harness work on tasks, several times, with and without the skill, and reports."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

from evals.runner.attempt import INSTALLED, Harness, attempt
from evals.runner.judge import verdicts
from evals.runner.report import Outcome, judged, markdown, summary
from evals.runner.tasks import task


def main() -> int:
    """Runs every task as often as asked, writes the report; exit 1 if a check fails in all attempts with the skill."""
    options = _options()
    root = options.output or Path(tempfile.mkdtemp(prefix="rooftrace-agents-"))
    harness = Harness(command=options.harness, installed=options.installed, source=options.pack, limit_s=options.limit)
    outcomes: list[Outcome] = []
    for name in options.case:
        chosen = task(name)
        for has_skill in (True, False) if options.without_skill else (True,):
            for number in range(options.repeat):
                label = f"{name.replace(' ', '_')}-{'with' if has_skill else 'without'}-{number}"
                done = attempt(chosen, harness, root / label, number, has_skill=has_skill)
                rubrics = verdicts(done, options.judge) if options.judge else None
                outcomes.append(judged(done, rubrics))
                failed = [check for check, value in outcomes[-1].checks.items() if value is False]
                print(f"{label}: {done.seconds:.0f} s, {'failed: ' + ', '.join(failed) if failed else 'passed'}")
    result = summary(outcomes)
    (root / "report.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (root / "report.md").write_text(markdown(result, options.harness), encoding="utf-8")
    print(f"wrote {root / 'report.md'} and {root / 'report.json'}")
    with_skill = [group for group in result["groups"] if group["with_skill"]]
    broken = any(row["verdict"] == "stable fail" for group in with_skill for row in group["checks"].values())
    return 1 if broken else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m evals.runner", description=__doc__)
    parser.add_argument("--harness", required=True, metavar="COMMAND", help="such as 'claude -p {prompt}'")
    parser.add_argument("--case", required=True, action="append", metavar="NAME", help="scenario or case; repeatable")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--without-skill", action="store_true", help="as well without the pack, for comparison")
    parser.add_argument("--judge", default="", metavar="COMMAND", help="asks this command for verdicts by the rubrics")
    parser.add_argument("--pack", choices=("archive", "tree"), default="archive", help="as committed, or as it stands")
    parser.add_argument("--installed", default=INSTALLED, metavar="FOLDER", help="where the harness looks for skills")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="for one attempt")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where the attempts and the report go")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
