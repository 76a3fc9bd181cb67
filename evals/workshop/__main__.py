"""``python -m evals.workshop``: writes the example, or repeats a real trace into a large one."""

from __future__ import annotations

import argparse
from pathlib import Path

from evals.workshop.example import write_example
from evals.workshop.repeat import repeat_trace


def main() -> None:
    """Parses the command line and runs one of the two."""
    parser = argparse.ArgumentParser(prog="python -m evals.workshop", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    example = commands.add_parser("example", help="write the example trace and its truth")
    example.add_argument("--output", type=Path, default=Path("examples"), metavar="FOLDER")
    repeat = commands.add_parser("repeat", help="write one trace that holds another N times, one after the other")
    repeat.add_argument("trace", type=Path, metavar="TRACE")
    repeat.add_argument("--times", type=int, required=True, metavar="N")
    repeat.add_argument("--output", type=Path, required=True, metavar="FILE")
    options = parser.parse_args()
    if options.command == "example":
        for path in write_example(options.output):
            print(f"wrote {path}: {path.stat().st_size} bytes")
        return
    if options.times < 1:
        parser.error("--times: at least 1")
    events = repeat_trace(options.trace, options.times, options.output)
    print(f"wrote {options.output}: {events} events, {options.output.stat().st_size} bytes")


if __name__ == "__main__":
    main()
