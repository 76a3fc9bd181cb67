"""``python -m benchmarks.growth [KIND …]``: what ``analyze`` takes of traces that were made to be slow.

Each kind is generated in two sizes, one ten times the other, and analysed through the launcher, each in a fresh
process: CPU seconds of both and their ratio, peak memory of the larger, and what an event costs beyond the smaller
trace. The first kind is a usual trace, to compare with. Nothing here asserts a time; `tests/fuzz/test_growth.py` does.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parent.parent
HOST = 4242
STREAM = 7
FACTOR = 10
MEGABYTE = 1_000_000
_SHAPED = '"Input Dims":[[%d,32],[32,16]],"Input type":["float","float"]'
_HEADER = (
    '{"schemaVersion":1,"deviceProperties":[{"id":0,"name":"NVIDIA H100 80GB HBM3","totalGlobalMem":85017755648,'
    '"computeMajor":9,"computeMinor":0,"numSms":132}],"traceEvents":['
)


def event(cat: str, name: str, ts: float, dur: float, args: str = "", lane: tuple[int, int] = (HOST, 1)) -> str:
    """One complete event of a process and thread; times in µs."""
    pid, tid = lane
    return f'{{"ph":"X","cat":"{cat}","name":"{name}","pid":{pid},"tid":{tid},"ts":{ts},"dur":{dur},"args":{{{args}}}}}'


def op(name: str, ts: float, dur: float, args: str = "", tid: int = 1) -> str:
    """A host op."""
    return event("cpu_op", name, ts, dur, args, (HOST, tid))


def call(name: str, ts: float, dur: float, correlation: int, tid: int = 1) -> str:
    """A call of the runtime."""
    return event("cuda_runtime", name, ts, dur, f'"correlation":{correlation}', (HOST, tid))


def gpu(name: str, ts: float, dur: float, correlation: int, stream: int = STREAM, device: int = 0) -> str:
    """A kernel or, if its name says so, a copy."""
    cat = "gpu_memcpy" if name.startswith("Memcpy") else "kernel"
    args = f'"device":{device},"stream":{stream},"correlation":{correlation}'
    return event(cat, name, ts, dur, args, (device, stream))


def launched(name: str, ts: float, correlation: int, tid: int = 1, stream: int = STREAM) -> Iterator[str]:
    """A kernel of 6 µs and its launch."""
    yield call("cudaLaunchKernel", ts, 3, correlation, tid)
    yield gpu(name, ts + 4, 6, correlation, stream)


def usual(count: int) -> Iterator[str]:
    """Ops of a few shapes in frames of a few modules, in steps of a thousand."""
    for number in range(count):
        at = 20 * number
        if number % 1000 == 0:
            yield event("user_annotation", f"ProfilerStep#{number // 1000}", at, 19_999)
        if number % 10 == 0:
            yield event("python_function", f"nn.Module: Linear_{number // 10 % 100}", at, 199)
        yield op(("aten::mm", "aten::add")[number % 2], at, 9, _SHAPED % (number % 50 + 1))
        yield from launched(("sgemm", "vectorized_elementwise_kernel")[number % 2], at + 1, number + 1)


def one_stack(count: int) -> Iterator[str]:
    """Every op inside the one before; the innermost launches."""
    for number in range(count):
        yield op("aten::mm", number, 3 * count - 2 * number)
    yield from launched("k", count + 1, 1)


def stacked_launches(count: int) -> Iterator[str]:
    """Every op inside the one before, and each launches."""
    for number in range(count):
        yield op("aten::mm", 20 * number, 60 * count - 40 * number, _SHAPED % (number % 50 + 1))
        yield from launched("k", 20 * number + 1, number + 1)


def stacked_modules(count: int) -> Iterator[str]:
    """Modules in one another, each of another name, and an op in each."""
    for number in range(count):
        yield event("python_function", f"nn.Module: M{number}_0", 20 * number, 60 * count - 40 * number)
        yield op("aten::mm", 20 * number + 1, 9)
        yield from launched("k", 20 * number + 2, number + 1)


def annotations(count: int) -> Iterator[str]:
    """Annotations in one another, each of another name and on the GPU, too, and a kernel in each."""
    for number in range(count):
        at, dur = 20 * number, 60 * count - 40 * number
        yield event("user_annotation", f"range {number}", at, dur)
        yield event("gpu_user_annotation", f"range {number}", at, dur, '"device":0,"stream":7', (0, STREAM))
        yield from launched("k", at + 1, number + 1)


def streams(count: int) -> Iterator[str]:
    """Every kernel on a stream of its own."""
    for number in range(count):
        yield from launched("k", 5 * number, number + 1, stream=number)


def graph(count: int) -> Iterator[str]:
    """All kernels from one graph launch."""
    yield call("cudaGraphLaunch", 0, 5, 1)
    for number in range(count):
        yield gpu(f"k{number % 10}", 10 + 2 * number, 1, 1)


def long_names(length: int) -> Iterator[str]:
    """Names of a megabyte of what the readers of names look for."""
    parts = ("void a<", "_ZN", "(", "<", "a_", "triton_poi_fused_", "x ", "9", "_Z1", "ncclKernel_", "Cijk_")
    for number, part in enumerate(parts):
        name = part * (length // len(part))
        at = 100 * number
        yield op(name, at, 50, tid=3)
        yield event("python_function", f"{name}(1): f", at, 50, lane=(HOST, 1))
        yield event("user_annotation", name, at, 50, lane=(HOST, 2))
        yield from launched(name, at + 1, number + 1)


def long_arguments(count: int) -> Iterator[str]:
    """Ops and kernels with a megabyte of arguments, of every kind that is read and one that is not."""
    dims, text = "[" + ",".join(["8"] * (MEGABYTE // 2)) + "]", "x" * MEGABYTE
    for number in range(count):
        args = (f'"Input Dims":[{dims}],"Input type":["float"]', f'"Concrete Inputs":["{text}"]', f'"text":"{text}"')
        yield op("aten::mm", 20 * number, 9, args[number % 3])
        yield from launched("k", 20 * number + 1, number + 1)


def shapes(count: int) -> Iterator[str]:
    """Every op of another shape."""
    for number in range(count):
        yield op("aten::mm", 20 * number, 9, _SHAPED % (number + 1))
        yield from launched("sgemm", 20 * number + 1, number + 1)


def op_names(count: int) -> Iterator[str]:
    """Every op of another name."""
    for number in range(count):
        yield op(f"mine::op_{number}", 20 * number, 9, _SHAPED % 8)
        yield from launched("k", 20 * number + 1, number + 1)


def kernel_names(count: int) -> Iterator[str]:
    """Every kernel of another name."""
    for number in range(count):
        yield op("aten::mm", 20 * number, 9, _SHAPED % 8)
        yield from launched(f"void kernel_{number}<float, {number}>(int)", 20 * number + 1, number + 1)


def frames(count: int) -> Iterator[str]:
    """Every op in a frame of its own."""
    for number in range(count):
        yield event("python_function", f"model_{number}.py({number}): forward", 20 * number, 15)
        yield op("aten::mm", 20 * number + 1, 9)
        yield from launched("k", 20 * number + 2, number + 1)


def waits(count: int) -> Iterator[str]:
    """A wait after every kernel, read back by the op around it."""
    for number in range(count):
        at = 100 * number
        yield from launched("k", at, 2 * number + 1)
        yield op("aten::item", at + 4, 30)
        yield call("cudaStreamSynchronize", at + 5, 20, 2 * number + 2)


def copies(count: int) -> Iterator[str]:
    """Every result copied to the host and waited for."""
    for number in range(count):
        at, first = 100 * number, 3 * number + 1
        yield from launched("k", at, first)
        yield op("aten::_local_scalar_dense", at + 4, 60)
        yield call("cudaMemcpyAsync", at + 5, 5, first + 1)
        yield gpu("Memcpy DtoH (Device -> Pageable)", at + 12, 5, first + 1)
        yield call("cudaStreamSynchronize", at + 12, 20, first + 2)


def threads(count: int) -> Iterator[str]:
    """Every kernel launched by a thread of its own, with time between."""
    for number in range(count):
        at = 30 * number
        yield op("aten::mm", at, 9, tid=number)
        yield from launched("k", at + 1, number + 1, tid=number)
        yield op("aten::add", at + 20, 9, tid=number)


def handovers(count: int) -> Iterator[str]:
    """Threads that take turns, two at a time."""
    for number in range(count):
        at = 40 * number
        for half in (0, 1):
            yield op("aten::mm", at + 20 * half, 15, tid=2 * (number // 10) + half)
            yield from launched("k", at + 20 * half + 1, 2 * number + half + 1, tid=2 * (number // 10) + half)


def events_awaited(count: int) -> Iterator[str]:
    """Streams that wait for one another after every kernel."""
    for number in range(count):
        at, mine = 20 * number, number % 100
        yield call("cudaStreamWaitEvent", at, 1, 3 * number + 1)
        yield from launched("k", at + 2, 3 * number + 2, stream=mine)
        yield call("cudaEventRecord", at + 8, 1, 3 * number + 3)


def collectives(count: int) -> Iterator[str]:
    """Collectives of all kinds and sizes beside kernels."""
    names = ("AllReduce_Sum_f32", "AllGather", "ReduceScatter_Sum_bf16", "SendRecv")
    for number in range(count):
        at, name = 30 * number, f"ncclDevKernel_{names[number % 4]}_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
        sizes = f'"In msg nelems":{number + 1},"Out msg nelems":{number + 1},"Group size":8,"dtype":"Float"'
        args = f'"device":0,"stream":9,"correlation":{2 * number + 2},"Collective name":"allreduce",{sizes}'
        yield from launched("k", at, 2 * number + 1)
        yield call("cudaLaunchKernelExC", at + 4, 2, 2 * number + 2)
        yield event("kernel", name, at + 8, 12, args, (0, 9))


def shared_ids(count: int) -> Iterator[str]:
    """Correlation ids of many launches and kernels: every second pair has the same, the others share in tens."""
    for number in range(count):
        yield from launched("k", 20 * number, 1 if number % 2 else 2 + number // 20)


def steps(count: int) -> Iterator[str]:
    """A step a kernel."""
    for number in range(count):
        yield event("user_annotation", f"ProfilerStep#{number}", 20 * number, 19)
        yield op("aten::mm", 20 * number + 1, 9, _SHAPED % (number % 50 + 1))
        yield from launched("k", 20 * number + 2, number + 1)


def flows(count: int) -> Iterator[str]:
    """Arrows from every op to one kernel, which has no other link, and forward to backward."""
    yield event("kernel", "k", 20 * count, 5, '"device":0,"stream":7', (0, STREAM))
    for number in range(count):
        yield op("aten::mm", 20 * number, 9)
        for cat in ("ac2g", "fwdbwd"):
            plain = f'"id":{number + 1},"cat":"{cat}","name":"{cat}"'
            yield f'{{"ph":"s",{plain},"pid":{HOST},"tid":1,"ts":{20 * number}}}'
            yield f'{{"ph":"f",{plain},"pid":0,"tid":{STREAM},"ts":{20 * count},"bp":"e"}}'


def chains(count: int) -> Iterator[str]:
    """Elementwise ops that chain, of alternating kinds, in modules of ten."""
    names = ("mul", "add", "sigmoid", "neg", "exp", "tanh", "sub")
    for number in range(count):
        at, name = 20 * number, names[number * number % 7 if number % 3 else number % 7]
        if number % 10 == 0:
            yield event("python_function", f"nn.Module: Block_{number // 10}", at, 199)
        shape = f"[64,{number // 10 % 997 + 1}]"
        yield op(f"aten::{name}", at, 9, f'"Input Dims":[{shape},{shape}],"Input type":["float","float"]')
        yield from launched(f"void elementwise_kernel<{name}>()", at + 1, number + 1)


def devices(count: int) -> Iterator[str]:
    """Every kernel on a device of its own, launched by a process of its own."""
    for number in range(count):
        yield event("cuda_runtime", "cudaLaunchKernel", 20 * number, 3, f'"correlation":{number + 1}', (number + 1, 1))
        yield gpu("k", 20 * number + 4, 6, number + 1, device=number)


def causes(count: int) -> Iterator[str]:
    """Before every kernel the host does something else, under a name of its own."""
    calls = ("cudaMalloc", "cudaFree", "cudaModuleLoadData", "cudaDeviceSynchronize", "cudaHostAlloc")
    for number in range(count):
        at = 1000 * number
        yield event("python_function", f"model.py({number}): forward", at, 950)
        yield event("user_annotation", f"phase {number}", at + 10, 900)
        yield op(f"mine::step_{number}", at + 20, 600)
        yield call(calls[number % 5], at + 50, 500, 2 * number + 1)
        yield from launched("k", at + 910, 2 * number + 2)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How a trace is generated, and of how much the larger one is made."""

    make: Callable[[int], Iterator[str]]
    count: int


KINDS = {
    "usual": Kind(make=usual, count=100_000),
    "one-stack": Kind(make=one_stack, count=1_000_000),
    "stacked-launches": Kind(make=stacked_launches, count=100_000),
    "stacked-modules": Kind(make=stacked_modules, count=20_000),
    "annotations": Kind(make=annotations, count=50_000),
    "streams": Kind(make=streams, count=100_000),
    "graph": Kind(make=graph, count=1_000_000),
    "long-names": Kind(make=long_names, count=MEGABYTE),
    "long-arguments": Kind(make=long_arguments, count=100),
    "shapes": Kind(make=shapes, count=100_000),
    "op-names": Kind(make=op_names, count=100_000),
    "kernel-names": Kind(make=kernel_names, count=100_000),
    "frames": Kind(make=frames, count=100_000),
    "waits": Kind(make=waits, count=30_000),
    "copies": Kind(make=copies, count=30_000),
    "threads": Kind(make=threads, count=30_000),
    "handovers": Kind(make=handovers, count=30_000),
    "events-awaited": Kind(make=events_awaited, count=50_000),
    "collectives": Kind(make=collectives, count=50_000),
    "shared-ids": Kind(make=shared_ids, count=50_000),
    "steps": Kind(make=steps, count=50_000),
    "flows": Kind(make=flows, count=100_000),
    "chains": Kind(make=chains, count=50_000),
    "devices": Kind(make=devices, count=10_000),
    "causes": Kind(make=causes, count=50_000),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one analysis took."""

    events: int
    cpu_s: float
    peak_mib: float
    ended: str  # nothing where it ended well


def measure(kind: Kind, count: int, limit_s: int) -> Cost:
    """Generate a trace of a kind and analyse it in a fresh process."""
    with tempfile.TemporaryDirectory(prefix="rooftrace-growth-") as folder:
        path = Path(folder) / "trace.json"
        events = write(path, kind.make(count))
        command = [sys.executable, str(ROOT / "scripts" / "rooftrace.py"), "analyze", str(path), "-q"]
        process = subprocess.Popen(
            [*command, "-o", str(Path(folder) / "run")],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=lambda: limit_cpu(limit_s),
        )
        _, status, usage = os.wait4(process.pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return Cost(
        events=events,
        cpu_s=usage.ru_utime + usage.ru_stime,
        peak_mib=usage.ru_maxrss / (1 << 20 if sys.platform == "darwin" else 1 << 10),
        ended="" if code == 0 else f"stopped at {limit_s} s" if code == -signal.SIGXCPU else f"exit code {code}",
    )


def limit_cpu(seconds: int) -> None:
    """Let this process use no more CPU seconds."""
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))


def write(path: Path, events: Iterator[str]) -> int:
    """Write a trace; returns its number of events."""
    number = -1
    with path.open("w", encoding="utf-8") as file:
        file.write(_HEADER)
        for number, text in enumerate(events):
            file.write(f",\n{text}" if number else text)
        file.write("]}")
    return number + 1


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description=__doc__)
    parser.add_argument("kinds", nargs="*", metavar="KIND", help=f"of {', '.join(KINDS)} (default: all)")
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual sizes (default 1)")
    parser.add_argument("--limit", type=int, default=600, help="CPU seconds after which a run is stopped (default 600)")
    parser.add_argument("--write", type=Path, metavar="FILE", help="write the larger trace of one kind, and no more")
    options = parser.parse_args()
    unknown = sorted(set(options.kinds) - set(KINDS))
    if unknown:
        parser.error(f"unknown kind: {unknown[0]}; known: {', '.join(KINDS)}")
    if options.write:
        kind = KINDS[options.kinds[0]] if options.kinds else KINDS["usual"]
        print(f"{write(options.write, kind.make(int(kind.count * options.scale))):,} events")
        return
    print(f"{'kind':18} {'events':>10} {'small s':>8} {'large s':>8} {'ratio':>6} {'peak MiB':>9} {'µs/event':>9}")
    for name in options.kinds or KINDS:
        count = int(KINDS[name].count * options.scale)
        small, large = (measure(KINDS[name], size, options.limit) for size in (count // FACTOR, count))
        print(row(name, small, large), flush=True)


def row(name: str, small: Cost, large: Cost) -> str:
    """A line of the table; what an event costs is meant beyond the smaller trace, so without the start of a process."""
    each = 1e6 * (large.cpu_s - small.cpu_s) / max(1, large.events - small.events)
    return (
        f"{name:18} {large.events:>10,} {small.cpu_s:>8.1f} {large.cpu_s:>8.1f} {large.cpu_s / small.cpu_s:>6.1f} "
        f"{large.peak_mib:>9.0f} {each:>9.0f} {small.ended or large.ended}"
    ).rstrip()


if __name__ == "__main__":
    main()
