"""``python -m evals.runner``: lets a harness work on tasks, several times, with and without the skill, and reports."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from evals.runner import by_hand
from evals.runner.attempt import INSTALLED, Attempt, Harness, attempt
from evals.runner.judge import verdicts
from evals.runner.report import Outcome, judged, markdown, summary
from evals.runner.tasks import task

BY_HAND = """\
by hand, for a person or an agent that no command starts:
  1. python -m evals.runner --by-hand FOLDER --case NAME --repeat 3 [--without-skill]
     makes a folder for each attempt, the pack installed in it, and NAME.prompt.md beside it: hand that file over.
  2. whoever works follows it and leaves the answer in NAME.answer.md beside the folder: text, or one JSON object
     {"result": answer, "usage": {"input_tokens": 1, "output_tokens": 1}, "seconds": 1}.
  3. python -m evals.runner --by-hand FOLDER [--judge COMMAND]
     scores what lies there and writes report.md and report.json; an attempt without an answer counts as catastrophic.
"""


def main() -> int:
    """Runs every task as often as asked, writes the report; exit 1 if a check fails in all attempts with the skill."""
    options = _options()
    root = options.by_hand or options.output or Path(tempfile.mkdtemp(prefix="rooftrace-agents-"))
    harness = Harness(command=options.harness, installed=options.installed, source=options.pack, limit_s=options.limit)
    if options.by_hand and options.case:
        sides = (True, False) if options.without_skill else (True,)
        for label, asked in by_hand.prepare(options.case, harness, root.resolve(), repeat=options.repeat, sides=sides):
            print(f"{label}: {asked}")
        return 0
    done = by_hand.attempts(root.resolve()) if options.by_hand else _run(options, harness, root)
    outcomes: list[Outcome] = []
    for one in done:
        outcomes.append(judged(one, verdicts(one, options.judge) if options.judge else None))
        failed = [check for check, value in outcomes[-1].checks.items() if value is False]
        print(f"{one.folder.name}: {'failed: ' + ', '.join(failed) if failed else 'passed'}")
    return _report(outcomes, root, options.harness or "by hand")


def _run(options: argparse.Namespace, harness: Harness, root: Path) -> Iterator[Attempt]:
    for name in options.case:
        chosen = task(name)
        for has_skill in (True, False) if options.without_skill else (True,):
            for number in range(options.repeat):
                label = f"{name.replace(' ', '_')}-{'with' if has_skill else 'without'}-{number}"
                yield attempt(chosen, harness, root / label, number, has_skill=has_skill)


def _report(outcomes: list[Outcome], root: Path, harness: str) -> int:
    result = summary(outcomes)
    (root / "report.json").write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    (root / "report.md").write_text(markdown(result, harness), encoding="utf-8")
    print(f"wrote {root / 'report.md'} and {root / 'report.json'}")
    with_skill = [group for group in result["groups"] if group["with_skill"]]
    broken = any(row["verdict"] == "stable fail" for group in with_skill for row in group["checks"].values())
    return 1 if broken or not outcomes else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m evals.runner",
        description=__doc__,
        epilog=BY_HAND,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--harness", default="", metavar="COMMAND", help="such as 'claude -p {prompt}'")
    parser.add_argument("--case", default=[], action="append", metavar="NAME", help="scenario or case; repeatable")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    parser.add_argument("--without-skill", action="store_true", help="as well without the pack, for comparison")
    parser.add_argument("--judge", default="", metavar="COMMAND", help="asks this command for verdicts by the rubrics")
    parser.add_argument("--pack", choices=("archive", "tree"), default="archive", help="as committed, or as it stands")
    parser.add_argument("--installed", default=INSTALLED, metavar="FOLDER", help="where the harness looks for skills")
    parser.add_argument("--limit", type=float, default=1800.0, metavar="SECONDS", help="for one attempt")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="where the attempts and the report go")
    parser.add_argument("--by-hand", type=Path, metavar="FOLDER", help="no harness: prepare with --case, score without")
    options = parser.parse_args()
    if options.by_hand is None and not (options.harness and options.case):
        parser.error("a run takes --harness and --case; without a harness see --by-hand")
    if options.by_hand is not None and options.harness:
        parser.error("--by-hand takes no --harness")
    return options


if __name__ == "__main__":
    sys.exit(main())
