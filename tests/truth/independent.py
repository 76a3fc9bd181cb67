"""A second opinion on a Kineto trace: slow, obvious, standard library only, sharing no code with the package.

`python -m tests.truth.independent [TRACE ...]` prints one Python literal a trace (default: the ten of
`traces.TEN`); a TRACE is a path, absolute or below ROOFTRACE_TRACES. All times are integer nanoseconds.

Definitions, each the plainest reading of the method:
- GPU activity is a complete event of kind kernel, memcpy or memset; annotations on the GPU are not activity.
- A device's time is walked from boundary to boundary. While any compute runs, the time is compute; else while
  any communication runs, exposed communication; else while any copy runs, exposed copy; else idle.
- A GPU activity is linked if a runtime or driver call carries its correlation (0 and -1 are no ids).
- An unlinked activity is carry-in if it starts before the first linked one of its own (device, stream); on a
  stream without a linked one, all are if its first starts before the first recorded launch. Else lost.
- The owner of an activity is the innermost host op with start <= launch start < end on the launching thread.
"""

from __future__ import annotations

import gzip
import json
import re
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import Any

from tests.truth.traces import TEN, traces_root

GPU_KINDS = {
    "kernel": "kernel",
    "memcpy": "memcpy",
    "gpu_memcpy": "memcpy",
    "memset": "memset",
    "gpu_memset": "memset",
}
HOST_OP_CATEGORIES = {"cpu_op", "operator"}
LAUNCH_CATEGORIES = {"cuda_runtime", "cuda_driver", "runtime"}

# ROCm records its blit copies as kernels; its blit fills stay compute, like any other fill.
COPY_KERNEL = re.compile(r"^(__amd_rocclr_copyBuffer|MEMORY_COPY_)")
COMMUNICATION_PARTS = (
    "nccl",
    "rccl",
    "oneccl",
    "cross_device_reduce",
    "allreduce",
    "all_reduce",
    "allgather",
    "all_gather",
    "reducescatter",
    "reduce_scatter",
    "alltoall",
    "all_to_all",
    "nvshmem",
    "deep_ep",
)
KINDS = ("compute", "comm", "copy")
NO_ID = (None, 0, -1)


@dataclass(frozen=True, kw_only=True)
class Activity:
    """One GPU event; `category` is kernel, memcpy or memset, `kind` is compute, comm or copy."""

    device: int
    stream: int
    name: str
    category: str
    kind: str
    start: int
    end: int
    correlation: int | None

    @property
    def duration(self) -> int:
        return self.end - self.start


@dataclass(frozen=True, kw_only=True)
class Call:
    """One host event: an op, or a runtime or driver call (then `correlation` may be set)."""

    name: str
    thread: tuple[str, str]
    start: int
    end: int
    order: int
    correlation: int | None


@dataclass(frozen=True, kw_only=True)
class Trace:
    """What this program looks at, in file order."""

    activities: list[Activity]
    ops: list[Call]
    launches: list[Call]
    unusable: int


def nanoseconds(value: Any) -> int:
    """A `ts` or `dur` in microseconds as integer nanoseconds; exact for up to three decimals."""
    return round(Fraction(Decimal(value)) * 1000)


def read_events(path: Path) -> list[dict[str, Any]]:
    """The event list of a plain or gzipped file, decimals kept as decimals."""
    raw = path.read_bytes()
    if raw[:2] == b"\x1f\x8b":
        raw = gzip.decompress(raw)
    document = json.loads(raw.decode("utf-8", errors="replace"), parse_float=Decimal)
    events = document if isinstance(document, list) else document["traceEvents"]
    return [event for event in events if isinstance(event, dict)]


def load(path: Path) -> Trace:
    """The GPU activities, host ops and launch calls of a trace."""
    activities, ops, launches, unusable = [], [], [], 0
    for order, event in enumerate(read_events(path)):
        category = str(event.get("cat", "")).lower()
        wanted = category in GPU_KINDS or category in HOST_OP_CATEGORIES or category in LAUNCH_CATEGORIES
        if event.get("ph") != "X" or not wanted:
            continue
        if "ts" not in event or "dur" not in event or event["dur"] < 0:
            unusable += 1
        elif category in GPU_KINDS:
            activities.append(activity_of(event, GPU_KINDS[category]))
        else:
            (ops if category in HOST_OP_CATEGORIES else launches).append(call_of(event, order))
    return Trace(activities=activities, ops=ops, launches=launches, unusable=unusable)


def activity_of(event: dict[str, Any], category: str) -> Activity:
    """A GPU event with device and stream from its arguments, else from pid and tid ("stream 7")."""
    args = event.get("args", {})
    start = nanoseconds(event["ts"])
    return Activity(
        device=int(args.get("device", event["pid"])),
        stream=int(args.get("stream", str(event["tid"]).removeprefix("stream "))),
        name=event["name"],
        category=category,
        kind=kind_of(category, event["name"]),
        start=start,
        end=start + nanoseconds(event["dur"]),
        correlation=args.get("correlation"),
    )


def call_of(event: dict[str, Any], order: int) -> Call:
    """A host event on its (pid, tid)."""
    start = nanoseconds(event["ts"])
    return Call(
        name=event["name"],
        thread=(str(event["pid"]), str(event["tid"])),
        start=start,
        end=start + nanoseconds(event["dur"]),
        order=order,
        correlation=event.get("args", {}).get("correlation"),
    )


def kind_of(category: str, name: str) -> str:
    """Whether this is compute, comm or copy."""
    if category == "memcpy" or (category == "kernel" and COPY_KERNEL.match(name)):
        return "copy"
    if category == "kernel" and any(part in name.lower() for part in COMMUNICATION_PARTS):
        return "comm"
    return "compute"


def sweep(activities: list[Activity]) -> dict[str, int]:
    """The time ledger of one device, walked from boundary to boundary."""
    steps: dict[int, Counter[str]] = defaultdict(Counter)
    for activity in activities:
        steps[activity.start][activity.kind] += 1
        steps[activity.end][activity.kind] -= 1
    ledger = dict.fromkeys(("span", "compute", "exposed_comm", "exposed_copy", "idle", "total_comm", "total_copy"), 0)
    running: Counter[str] = Counter()
    boundaries = sorted(steps)
    for here, after in pairwise(boundaries):
        for kind, change in steps[here].items():
            running[kind] += change
        length = after - here
        ledger["span"] += length
        ledger[part_of(running)] += length
        ledger["total_comm"] += length if running["comm"] else 0
        ledger["total_copy"] += length if running["copy"] else 0
    return {f"{name}_ns": value for name, value in ledger.items()}


def part_of(running: Counter[str]) -> str:
    """The ledger part of an instant at which these numbers of activities run."""
    if running["compute"]:
        return "compute"
    if running["comm"]:
        return "exposed_comm"
    return "exposed_copy" if running["copy"] else "idle"


def launch_by_correlation(launches: list[Call]) -> dict[int, Call]:
    """The earliest runtime or driver call of each correlation."""
    found: dict[int, Call] = {}
    for call in launches:
        if call.correlation in NO_ID:
            continue
        known = found.get(call.correlation)
        if known is None or call.start < known.start:
            found[call.correlation] = call
    return found


def is_launch(name: str) -> bool:
    """Whether this call starts work on the GPU by its name: `...Launch...`, but not a host callback."""
    return "Launch" in name and "LaunchHostFunc" not in name


def split_unlinked(
    activities: list[Activity], linked: set[int], first_launch: int | None
) -> tuple[list[Activity], list[Activity]]:
    """Unlinked activities as (carry-in, lost), by the stream rule above."""
    streams: dict[tuple[int, int], list[Activity]] = defaultdict(list)
    for activity in activities:
        streams[activity.device, activity.stream].append(activity)
    carry_in, lost = [], []
    for members in streams.values():
        linked_starts = [a.start for a in members if a.correlation in linked]
        earliest = min(a.start for a in members)
        unlinked = [a for a in members if a.correlation not in linked]
        for activity in unlinked:
            if linked_starts:
                before = activity.start < min(linked_starts)
            else:
                before = first_launch is not None and earliest < first_launch
            (carry_in if before else lost).append(activity)
    return carry_in, lost


def owners(ops: list[Call], calls: list[Call]) -> dict[int, str | None]:
    """For each call, by its file order: the name of the innermost op open at its start, None outside ops."""
    ops_by_thread: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for op in sorted(ops, key=lambda op: op.start):
        ops_by_thread[op.thread].append(op)
    calls_by_thread: dict[tuple[str, str], list[Call]] = defaultdict(list)
    for call in sorted(calls, key=lambda call: call.start):
        calls_by_thread[call.thread].append(call)
    found: dict[int, str | None] = {}
    for thread, thread_calls in calls_by_thread.items():
        waiting = iter(ops_by_thread[thread])
        following = next(waiting, None)
        open_ops: list[Call] = []
        for call in thread_calls:
            while following is not None and following.start <= call.start:
                open_ops.append(following)
                following = next(waiting, None)
            open_ops = [op for op in open_ops if op.end > call.start]
            innermost = max(open_ops, key=lambda op: (op.start, -op.end, op.order), default=None)
            found[call.order] = None if innermost is None else innermost.name
    return found


def owner_of_each(trace: Trace) -> list[tuple[Activity, str | None]]:
    """Each activity with its owner op's name; None where it has no launch or the launch lies outside ops."""
    launches = launch_by_correlation(trace.launches)
    used = {a.correlation for a in trace.activities} & launches.keys()
    names = owners(trace.ops, [launches[correlation] for correlation in used])
    return [(a, names[launches[a.correlation].order] if a.correlation in launches else None) for a in trace.activities]


def top_three(durations: Counter[str]) -> dict[str, int]:
    """The three largest sums, largest first, ties in name order."""
    return dict(sorted(durations.items(), key=lambda item: (-item[1], item[0]))[:3])


def linked_only(trace: Trace) -> list[Activity]:
    """The activities that have a recorded launch."""
    linked = set(launch_by_correlation(trace.launches))
    return [a for a in trace.activities if a.correlation in linked]


def describe_device(trace: Trace, device: int) -> dict[str, Any]:
    """The ledger of one device and what of it came from launches outside the recording."""
    linked = set(launch_by_correlation(trace.launches))
    on_gpu = {a.correlation for a in trace.activities}
    starts = [c.start for c in trace.launches if is_launch(c.name) or c.correlation in linked & on_gpu]
    mine = [a for a in trace.activities if a.device == device]
    carry_in, lost = split_unlinked(mine, linked, min(starts, default=None))
    return {
        "device": device,
        **sweep(mine),
        "gpu_events": len(mine),
        **{f"{kind}_sum_ns": total(mine, kind) for kind in KINDS},
        "carry_in_events": len(carry_in),
        "carry_in_sum_ns": total(carry_in),
        "carry_in_compute_sum_ns": total(carry_in, "compute"),
        "lost_events": len(lost),
        "lost_sum_ns": total(lost),
        "lost_compute_sum_ns": total(lost, "compute"),
        "linked_compute_sum_ns": total([a for a in mine if a.correlation in linked], "compute"),
    }


def total(activities: list[Activity], kind: str | None = None) -> int:
    """Summed durations of all of these, or of those of one kind."""
    return sum(a.duration for a in activities if kind in (None, a.kind))


def busy(activities: list[Activity]) -> int:
    """How long at least one of these ran."""
    ledger = sweep(activities)
    return ledger["span_ns"] - ledger["idle_ns"]


def describe(trace: Trace) -> dict[str, Any]:
    """Everything the literals hold about one trace."""
    on_gpu = {a.correlation for a in trace.activities}
    launched = [c for c in trace.launches if is_launch(c.name) and c.correlation not in NO_ID]
    by_kernel: Counter[str] = Counter()
    by_op: Counter[str] = Counter()
    unowned = 0
    for activity, owner in owner_of_each(trace):
        by_kernel[activity.name] += activity.duration
        if owner is None:
            unowned += activity.duration
        else:
            by_op[owner] += activity.duration
    return {
        "devices": [describe_device(trace, d) for d in sorted({a.device for a in trace.activities})],
        "gpu_events": len(trace.activities),
        "launches": len(launched),
        "launches_without_kernel": sum(c.correlation not in on_gpu for c in launched),
        "unowned_ns": unowned,
        "top_ops": top_three(by_op),
        "top_kernels": top_three(by_kernel),
    }


def main(arguments: list[str]) -> None:
    """Print a dictionary entry for each named trace; JSON without null and booleans is a Python literal."""
    for relative in arguments or TEN:
        trace = load(traces_root() / relative)
        print(f"{relative!r}: {json.dumps(describe(trace), indent=4)},")
        if trace.unusable:
            print(f"{relative}: {trace.unusable} events without a start or a length left out", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1:])
