"""``python -m tests.fuzz --minutes N``: mutates small traces and runs each through the whole program.

With atheris, coverage guides the choices; without it, a random source does, and inputs that raised something are
kept. Every finding is printed once, with its input's file; the exit code is 1 if there was any.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import random
import sys
import tempfile
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

try:
    import atheris
except ImportError:
    atheris = None

# What coverage counts must be told when it is imported.
_instrumented: Any = atheris.instrument_imports(include=["rooftrace"]) if atheris else nullcontext()
with _instrumented:
    from tests.fuzz.mutate import mutated
    from tests.fuzz.seeds import seeds
    from tests.fuzz.target import TOO_SLOW, try_content

    if atheris:  # what the stages import when they are called
        try_content(seeds()["training"])

if TYPE_CHECKING:
    from tests.fuzz.target import Finding


class Findings:
    """Findings by their key, and where their inputs lie."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.counts: dict[str, int] = {}

    def add(self, finding: Finding, content: bytes, origin: str) -> None:
        """Count a finding; tell it and keep its input if it is new."""
        key = f"{finding.key}, from {origin}" if finding.key == TOO_SLOW else finding.key
        known = key in self.counts
        self.counts[key] = self.counts.get(key, 0) + 1
        if not known:
            self._folder.mkdir(parents=True, exist_ok=True)
            path = self._folder / f"{hashlib.sha256(content).hexdigest()[:12]}.trace"
            path.write_bytes(content)
            print(f"FINDING {finding.key}\n  input: {path} (from {origin})\n{finding.text}", flush=True)


def main() -> int:
    """Fuzz for the time given."""
    parser = argparse.ArgumentParser(description="Fuzz the whole program with mutated traces.", allow_abbrev=False)
    parser.add_argument("--minutes", type=float, default=1.0, help="how long (default 1)")
    parser.add_argument("--seed", type=int, default=0, help="first seed of the random source (default 0)")
    parser.add_argument("--no-report", action="store_true", help="stop before the report is rendered")
    parser.add_argument("--no-coverage", action="store_true", help="choose at random even where atheris is there")
    parser.add_argument("--only", help="start from this seed file alone", choices=sorted(seeds()))
    parser.add_argument("--keep", type=Path, default=Path(tempfile.gettempdir()) / "rooftrace-fuzz", metavar="FOLDER")
    options = parser.parse_args()
    findings = Findings(options.keep)
    if atheris and not options.no_coverage:
        return _coverage_guided(options, findings)
    count = _random(options, findings)
    print(f"{count} inputs, {len(findings.counts)} findings", *sorted(findings.counts.items()), sep="\n  ")
    return 1 if findings.counts else 0


def _random(options: argparse.Namespace, findings: Findings) -> int:
    until, number = time.monotonic() + 60 * options.minutes, options.seed
    names = [options.only] if options.only else sorted(seeds())
    while time.monotonic() < until:
        choose = random.Random(number)  # noqa: S311 - not for secrets
        origin = choose.choice(names)
        content = mutated(seeds()[origin], choose)
        finding = try_content(content, report=not options.no_report)
        if finding is not None:
            findings.add(finding, content, f"{origin}, seed {number}")
        number += 1
        if number % 50 == 0:
            gc.collect()
    return number - options.seed


def _coverage_guided(options: argparse.Namespace, findings: Findings) -> int:
    """Coverage tells which bytes to go on from: they are the content itself, or choose the mutations of a seed."""
    names = [options.only] if options.only else sorted(seeds())

    def one(data: bytes) -> None:
        content = data
        if data[:1] < b"\x80":
            choose = random.Random(data)  # noqa: S311 - not for secrets
            content = mutated(seeds()[choose.choice(names)], choose)
        finding = try_content(content, report=not options.no_report)
        if finding is not None:
            findings.add(finding, content, "atheris")

    seconds = max(1, int(60 * options.minutes))
    atheris.Setup([sys.argv[0], f"-max_total_time={seconds}", "-rss_limit_mb=4096"], one)
    atheris.Fuzz()  # ends the process: an exception of a finding would stop it, so none is raised
    return 1 if findings.counts else 0


if __name__ == "__main__":
    sys.exit(main())
