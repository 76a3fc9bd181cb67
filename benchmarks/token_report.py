"""What a run puts in front of models, in tokens of four bytes: ``python -m benchmarks.token_report [TRACE…]``.

Counted once each: the skill file that starts a run, every brief, what `prepare`, `next` and `report` print for the
agent, and the part of the report that its answer needs. Prose that a writer sends is not: it is the work itself.
Without a trace, those of the target, from the folder that ROOFTRACE_TRACES names (``../shared/traces``).
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace.cli import main as command  # noqa: E402 - found only now

BYTES_PER_TOKEN = 4
TRACES = Path(os.environ.get("ROOFTRACE_TRACES", ROOT.parent / "shared" / "traces"))
USUAL_LIMIT = 25_000
# What a run may take: the small models of the target, then the large ones.
TARGET = {
    "h100/gaunernst_bert-small-uncased__1016001.json.gz": USUAL_LIMIT,
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": USUAL_LIMIT,
    "h100/Falconsai_nsfw_image_detection__1016002.json.gz": USUAL_LIMIT,
    "mi300/resnet_act_checkpoint.json.gz": 40_000,
    "serving/xdit_sd_3.5/profile_trace_rank_0.json.gz": 40_000,
}
_READ = ("\n## What To Do First\n", "\n## ")  # the answer reads down to the heading after this one


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
    found["analysis.md"] = len(read_for_the_answer((run / "analysis.md").read_text(encoding="utf-8")).encode())
    return found | {f"tasks/{path.name}": path.stat().st_size for path in briefs}


def read_for_the_answer(report: str) -> str:
    """The report down to the end of *What To Do First*."""
    before, heading, after = report.partition(_READ[0])
    return before + heading + after.partition(_READ[1])[0]


def limit_of(trace: Path) -> int:
    """Tokens that a run of this trace may take."""
    return next((limit for name, limit in TARGET.items() if trace.as_posix().endswith(name)), USUAL_LIMIT)


def main() -> int:
    """Print one table a trace; 1 if any is over its limit, 2 if there is none."""
    parser = argparse.ArgumentParser(description="Tokens that a run puts in front of models.")
    parser.add_argument("traces", nargs="*", type=Path, metavar="TRACE")
    traces = parser.parse_args().traces or [TRACES / name for name in TARGET if (TRACES / name).is_file()]
    if not traces:
        parser.error(f"no traces in {TRACES}: give some, or name their folder with ROOFTRACE_TRACES")
    over = 0
    for trace in traces:
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
