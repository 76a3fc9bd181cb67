"""Measures the timing distributions that ``hardware.py`` states, from real profiler traces.

Reads Kineto traces with plain ``json`` and prints, for each quantity, the number of samples and its
quantiles::

    python -m evals.workshop.fit TRACE [TRACE ...]

It changes nothing: a person copies the printed quantiles into ``hardware.py`` together with the sample count.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

LEVELS = (0.05, 0.25, 0.50, 0.75, 0.95)
"""The quantiles that ``hardware.Quantiles`` interpolates between."""

LAUNCH_CALLS = frozenset(
    {"cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx"}
    | {"hipLaunchKernel", "hipExtModuleLaunchKernel", "hipExtLaunchKernel"}
)
SYNC_CALLS = frozenset({"cudaStreamSynchronize", "cudaDeviceSynchronize", "hipStreamSynchronize"})
VIEW_OPS = frozenset({"aten::view", "aten::as_strided", "aten::transpose", "aten::t"})
FOREIGN_WAIT_US = 20.0
"""A longer gap before a queued kernel is a wait for another stream, not launch processing (rule of thumb)."""
Event = dict[str, Any]
Samples = dict[str, list[float]]


def quantiles_ns(samples_us: list[float], scale: float = 1000.0) -> list[int]:
    """The quantiles at ``LEVELS``, scaled from microseconds to integer nanoseconds."""
    ordered = sorted(samples_us)
    last = len(ordered) - 1
    return [round(ordered[round(level * last)] * scale) for level in LEVELS]


def read_events(path: Path) -> list[Event]:
    """Complete events of a trace, earliest first, with numeric times."""
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rt", encoding="utf-8", errors="replace") as stream:
        document = json.load(stream)
    rows = document["traceEvents"] if isinstance(document, dict) else document
    return sorted((row for row in rows if row.get("ph") == "X" and "args" in row), key=lambda row: row["ts"])


def stream_samples(activities: list[Event], launches: dict[int, Event], samples: Samples) -> None:
    """Adds launch latencies (queue was empty) and gaps (queue was full) of one stream."""
    busy_until = None
    for row in activities:
        launch = launches.get(row["args"].get("correlation"))
        if launch is not None and busy_until is not None and row["cat"] == "kernel":
            if launch["ts"] > busy_until:
                samples["launch latency, ns"].append(row["ts"] - launch["ts"])
            elif busy_until - launch["ts"] > 40.0:
                gap = row["ts"] - busy_until
                if gap < FOREIGN_WAIT_US:
                    samples["gap between queued kernels, ns"].append(max(0.0, gap))
        busy_until = max(busy_until or 0.0, row["ts"] + row["dur"])


def duration_samples(activities: list[Event], samples: Samples) -> None:
    """Adds kernel durations over the median of their name and grid, for groups of at least ten."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for row in activities:
        if row["cat"] == "kernel" and row["dur"] > 5.0:
            groups[row["name"], str(row["args"].get("grid"))].append(row["dur"])
    for durations in groups.values():
        if len(durations) >= 10:
            median = sorted(durations)[len(durations) // 2]
            samples["duration over median of its name and grid, ppm"] += [value / median for value in durations]


def host_samples(calls: list[Event], ops: list[Event], activities: list[Event], samples: Samples) -> None:
    """Adds durations of launch calls, tails of synchronisations and durations of view operators."""
    ends = sorted(row["ts"] + row["dur"] for row in activities)
    for row in calls:
        if row["name"] in LAUNCH_CALLS:
            samples["launch call, ns"].append(row["dur"])
        elif row["name"] in SYNC_CALLS:
            end = row["ts"] + row["dur"]
            before = [value for value in ends if row["ts"] + 2.0 < value <= end]
            if before:
                samples["synchronisation tail, ns"].append(end - before[-1])
    samples["view operator, ns"] += [row["dur"] for row in ops if row["name"] in VIEW_OPS]


def copy_samples(activities: list[Event], samples: Samples) -> None:
    """Adds bandwidths of host-device copies of 64 KiB and more, in MB/s."""
    for row in activities:
        size = row["args"].get("bytes", 0)
        if row["cat"] == "gpu_memcpy" and size >= 1 << 16 and ("HtoD" in row["name"] or "DtoH" in row["name"]):
            samples[f"bandwidth of {row['name']}, MB/s"].append(size / row["dur"] / 1000.0)


def collect(path: Path, samples: Samples) -> None:
    """Adds every sample of one trace."""
    rows = read_events(path)
    activities = [row for row in rows if row.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset")]
    calls = [row for row in rows if row.get("cat") in ("cuda_runtime", "cuda_driver")]
    launches = {row["args"]["correlation"]: row for row in calls if row["args"].get("correlation", -1) > 0}
    streams: dict[tuple[Any, Any], list[Event]] = defaultdict(list)
    for row in activities:
        streams[row["pid"], row["tid"]].append(row)
    for group in streams.values():
        stream_samples(group, launches, samples)
    duration_samples(activities, samples)
    host_samples(calls, [row for row in rows if row.get("cat") == "cpu_op"], activities, samples)
    copy_samples(activities, samples)


def main() -> None:
    """Prints one line a quantity: sample count and quantiles."""
    parser = argparse.ArgumentParser(description="Fit the timing distributions of the trace workshop.")
    parser.add_argument("traces", nargs="+", type=Path, metavar="TRACE")
    samples: Samples = defaultdict(list)
    for path in parser.parse_args().traces:
        collect(path, samples)
    print(f"{'quantity':60} {'samples':>8}  quantiles {LEVELS}")
    for name in sorted(samples):
        scale = 1_000_000.0 if name.endswith("ppm") else 1000.0
        print(f"{name:60} {len(samples[name]):8}  {quantiles_ns(samples[name], scale)}")


if __name__ == "__main__":
    main()
