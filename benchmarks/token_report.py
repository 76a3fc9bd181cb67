"""What a run puts in front of models, in tokens of four bytes: ``python -m benchmarks.token_report TRACE…``.

Counted once each: the skill file that starts a run, every brief, and what `prepare`, `next` and `report` print for the
agent. Prose that a writer sends is not: it is the work itself.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace.cli import main as command  # noqa: E402 - found only now

BYTES_PER_TOKEN = 4
# What the longest run may take: the small models of the target, then the large ones.
LIMITS = {"resnet": 40_000, "xdit": 40_000}
USUAL_LIMIT = 25_000


def told(*arguments: str) -> int:
    """Bytes that a command prints."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(list(arguments))
    if code:
        raise SystemExit(f"error: `{' '.join(arguments)}` failed\n{err.getvalue()}")
    return len((out.getvalue() + err.getvalue()).encode())


def sizes(trace: Path, run: Path) -> dict[str, int]:
    """Bytes by part of a run."""
    found = {"SKILL.md": (ROOT / "SKILL.md").stat().st_size}
    found["prepare"] = told("prepare", str(trace), "-o", str(run), "-q")
    briefs = sorted((run / "tasks").glob("*.md"))
    # Every task is handed out twice at most; `next` is asked once more for the report and once for the end.
    found["next"] = sum(told("next", str(run)) for _ in range(2 + len(briefs) // 3))
    found["report"] = told("report", str(run))
    return found | {f"tasks/{path.name}": path.stat().st_size for path in briefs}


def limit_of(trace: Path) -> int:
    """Tokens that a run of this trace may take."""
    return next((limit for word, limit in LIMITS.items() if word in str(trace).lower()), USUAL_LIMIT)


def main() -> int:
    """Print one table a trace; 1 if any is over its limit."""
    parser = argparse.ArgumentParser(description="Tokens that a run puts in front of models.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    over = 0
    for trace in parser.parse_args().traces:
        with tempfile.TemporaryDirectory() as folder:
            parts = sizes(trace, Path(folder) / "run")
        total = sum(parts.values()) // BYTES_PER_TOKEN
        print(f"{trace.name}: {total:,} tokens of {limit_of(trace):,}")
        for name, size in parts.items():
            print(f"  {size // BYTES_PER_TOKEN:6,}  {name}")
        over += total > limit_of(trace)
    return int(over > 0)


if __name__ == "__main__":
    sys.exit(main())
