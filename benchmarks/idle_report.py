"""``python -m benchmarks.idle_report``: why the GPUs of real traces are idle, and how much of it nothing explains.

Shares are of a device's idle time. *Unknown* is taken of the idle time that does not end at an activity launched
before the window. Nothing here asserts a share.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = ROOT.parent / "shared" / "traces"
sys.path.insert(0, str(ROOT / "scripts"))

from rooftrace.causes import REASON_NAMES, Cause  # noqa: E402 - found only now
from rooftrace.trace import Kind, load  # noqa: E402
from rooftrace.workflow import AnalyzeOptions  # noqa: E402
from rooftrace.workflow.prepare import prepare_workload  # noqa: E402


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One device of one trace; times in ns."""

    trace: str
    device: int
    stacks: bool
    span_ns: int
    idle_ns: int
    by_cause: dict[str, int]
    unknown_because: dict[str, int]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.idle_report", description=main.__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="default: every trace of the shared folder")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    rows = [row for path in options.traces or sorted(TRACES.rglob("*.json.gz")) for row in measure(path)]
    if options.json:
        print(json.dumps([asdict(row) for row in rows], indent=2))
        return
    print(f"{'trace':48} {'dev':>3} {'stacks':6} {'span ms':>10} {'idle':>7} {'unknown':>8}  by cause")
    for row in rows:
        print(_line(row))


def measure(path: Path) -> list[Row]:
    """The devices of one trace."""
    trace, _ = load(path)
    workload = prepare_workload(trace, AnalyzeOptions()).workload
    causes = workload.causes
    below = path.relative_to(TRACES) if path.is_relative_to(TRACES) else Path(path.name)
    rows = []
    for ledger in workload.ledgers:
        unknown = causes.of_cause(ledger.device, Cause.UNKNOWN)
        because = {
            name: int(causes.dur[unknown][causes.reason[unknown] == code].sum())
            for code, name in enumerate(REASON_NAMES)
        }
        rows.append(
            Row(
                trace=str(below).removesuffix(".json.gz"),
                device=ledger.device,
                stacks=bool(trace.of_kind(Kind.PYTHON).size),
                span_ns=ledger.span_ns,
                idle_ns=ledger.idle_ns,
                by_cause={cause.name.lower(): ns for cause, ns in causes.idle_ns(ledger.device).items()},
                unknown_because={name: ns for name, ns in because.items() if ns},
            )
        )
    return rows


def _line(row: Row) -> str:
    def share(part: int, whole: int) -> str:
        return f"{100 * part / whole:.1f} %" if whole else "-"

    causes = ", ".join(f"{name} {share(ns, row.idle_ns)}" for name, ns in row.by_cause.items())
    within = row.idle_ns - row.by_cause.get("before_window", 0)
    because = f" ({'; '.join(row.unknown_because)})" if row.unknown_because else ""
    return (
        f"{row.trace[-48:]:48} {row.device:>3} {'yes' if row.stacks else 'no':6} {row.span_ns / 1e6:>10.2f} "
        f"{share(row.idle_ns, row.span_ns):>7} {share(row.by_cause.get('unknown', 0), within):>8}  {causes}{because}"
    )


if __name__ == "__main__":
    main()
