"""``python -m benchmarks``: seconds, ratio to the floor and peak memory of ``analyze`` on real traces.

Each figure is the median of several fresh processes, environment in place. The floor is measured between them on the
same file, so that a slow moment of the machine hits both. Peak memory is that of the largest process: files of 8 MB
and more are read by several, and analysed by two (``taskset -c 0`` leaves it to one). Nothing here asserts a time.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TRACES = Path(os.environ.get("ROOFTRACE_TRACES", ROOT.parent / "shared" / "traces"))
USUAL = (
    "serving/xdit_sd_3.5/profile_trace_rank_0.json.gz",
    "h100/google_owlv2-large-patch14-ensemble__1016001.json.gz",
)
LARGE = USUAL[0]
COPIES = (3, 13)  # of 62 MB each: about 190 and 810 MB; 80 make 5 GB


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("traces", nargs="*", type=Path, help="trace files (default: two real ones)")
    parser.add_argument(
        "--large",
        nargs="*",
        type=int,
        metavar="COPIES",
        help="also valid traces made on the spot of so many copies of a real one (default 3 and 13: 190 and 810 MB)",
    )
    parser.add_argument("--runs", type=int, default=3, help="processes a figure (default 3)")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rooftrace-bench-") as folder:
        paths = options.traces or [TRACES / name for name in USUAL]
        rows = [measure(path, Path(folder), options.runs) for path in paths if path.is_file()]
        for copies in [] if options.large is None else options.large or COPIES:
            large = make_large(Path(folder), copies)
            rows.append(measure(large, Path(folder), options.runs))
            large.unlink()
    if options.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'trace':40} {'events':>10} {'floor s':>8} {'analyze s':>10} {'ratio':>6} {'peak MiB':>9}")
    for row in rows:
        print(
            f"{row['trace']:40.40} {row['events']:>10,} {row['floor_s']:>8.2f} {row['analyze_s']:>10.2f} "
            f"{row['ratio']:>6.1f} {row['peak_mib']:>9.0f}"
        )
    print(f"{'--help':40} {'':10} {'':8} {help_seconds(options.runs):>10.2f}")


def make_large(folder: Path, copies: int) -> Path:
    """A real trace repeated with shifted times and ids, uncompressed."""
    target = folder / f"{copies}_copies.json"
    command = [sys.executable, "-m", "evals.workshop", "repeat", str(TRACES / LARGE)]
    subprocess.run([*command, "--times", str(copies), "--output", str(target)], cwd=ROOT, check=True, stdout=sys.stderr)
    return target


def measure(path: Path, folder: Path, runs: int) -> dict[str, float | int | str]:
    """Medians over fresh processes."""
    floors, seconds, peaks, events = [], [], [], 0
    for number in range(runs):
        floor = subprocess.run(
            [sys.executable, "-m", "benchmarks.floor", str(path)], cwd=ROOT, check=True, capture_output=True, text=True
        )
        first, events_read, _ = floor.stdout.split()
        floors.append(float(first))
        events = int(events_read)
        elapsed, peak = timed(["analyze", str(path), "-q", "-o", str(folder / f"run{number}")])
        seconds.append(elapsed)
        peaks.append(peak)
    floor_s, analyze_s = statistics.median(floors), statistics.median(seconds)
    return {
        "trace": path.name,
        "events": events,
        "floor_s": floor_s,
        "analyze_s": analyze_s,
        "ratio": analyze_s / floor_s,
        "peak_mib": statistics.median(peaks),
    }


def timed(arguments: list[str]) -> tuple[float, float]:
    """Wall seconds and peak resident MiB of one command through the launcher."""
    started = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "scripts" / "rooftrace.py"), *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - started
    if os.waitstatus_to_exitcode(status) != 0:
        raise SystemExit(f"error: {' '.join(arguments)} failed")
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return elapsed, usage.ru_maxrss / unit


def help_seconds(runs: int) -> float:
    """Wall seconds of `--help`."""
    return statistics.median(timed(["--help"])[0] for _ in range(runs))


if __name__ == "__main__":
    main()
